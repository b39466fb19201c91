"""The board without a link, as plain ports. Only this module and the other tops have pads and, on real boards, more
than one clock domain.
"""

from collections.abc import Iterator

from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer

from .capture import Capture
from .layout import ADDRESS_BITS, EXTRA_OUTPUTS, EXTRA_PINS, Front, Geometry
from .lib.reset_net import ResetNet
from .regeneration.wired_boards import WiredBoards
from .stream.beats_to_16 import BeatsTo16
from .stream.deep_buffer import DeepBuffer
from .stream.external_fifo import BURST, ExternalFifo
from .stream.sdram_part import SdramPart
from .transport.beat_crossing import BeatCrossing
from .transport.crossing import Crossing

__all__ = ["LinkedTop", "PlainTop", "SdramWires"]


class SdramWires:
    """Ports ``sdram_*`` of a top with an SDRAM, or none without: attributes with the names of
    :func:`~.sdram_controller.sdram_signature`."""

    def __init__(self, buffer: DeepBuffer | None):
        self._buffer = buffer
        self.ports: list[Signal] = []
        for name, pin in self._pins():
            port = Signal.like(getattr(pin, "as_value", lambda pin=pin: pin)(), name=f"sdram_{name}")
            setattr(self, name, port)
            self.ports.append(port)

    def _pins(self) -> Iterator[tuple]:
        if self._buffer:
            yield from ((name, getattr(self._buffer.pins, name)) for name in self._buffer.pins.signature.members)

    def connected(self) -> list:
        """Statements that connect the ports to the controller's pins."""
        return [pin.eq(port) if port.name == "sdram_dq_i" else port.eq(pin)
                for (_, pin), port in zip(self._pins(), self.ports, strict=True)]


def _extra_pins(geometry: Geometry) -> dict[str, Signal]:
    """Pins of the extras that a board has, by name."""
    names = EXTRA_PINS | EXTRA_OUTPUTS
    return {name: Signal(name=name) for extra, name in names.items() if extra in geometry.extras}


def _connected(capture: Capture, pins: dict[str, Signal]) -> list:
    """Statements that connect these pins to the core."""
    return [pin.eq(getattr(capture, name)) if name in EXTRA_OUTPUTS.values() else getattr(capture, name).eq(pin)
            for name, pin in pins.items()]


def _buffer(m: Module, capture: Capture, buffer: DeepBuffer | None, wires: SdramWires):
    """Adds the deep buffer, if there is one; returns the stream to the link."""
    if not buffer:
        return capture.stream
    m.submodules.buffer = buffer
    wiring.connect(m, capture.stream, buffer.i)
    m.d.comb += [
        capture.external_level.eq(buffer.level), capture.external_high.eq(buffer.high), *wires.connected()]
    return buffer.o


class PlainTop(Elaboratable):
    """The board in one clock domain, with names that read well outside Amaranth.

    ``make verilog`` writes it, and the virtual board runs it. Ports:

    - ``clk``, ``rst``; ``data``, ``strobe``;
    - ``early`` with several samples per clock, see :class:`~.input.strobe_synchronizer.StrobeSynchronizer`;
    - ``pbx_*``, see :func:`~.pbx.pbx_signature`;
    - ``stream_*``, beats of 16 bytes;
    - ``running``, ``advance``, ``quiet``, ``horizon``, see :class:`~.capture.Capture`; tie ``advance`` to 0. With
      ``skips`` also ``shift``, ``slip`` and ``left``, by which the virtual board skips idle time to the clock;
    - on a board with links, ``line``: the samples of their lines, see :class:`~.capture.Capture`. ``strobe`` and
      ``data`` of their nodes then have no effect. With ``skips``, regeneration boards and lines are included between
      the ports and the receivers, and ``wrong`` and ``pulled`` disturb these lines; see
      :class:`~.regeneration.wired_boards.WiredBoards`, also for ``link_front``;
    - ``sync_in``, ``sync_out``, ``pps_in``, ``trigger_in``, ``trigger_out`` on a board that has them;
    - with external memory, ``memory_*``, see :func:`~.external_fifo.memory_signature`; if the memory is an ``sdram``,
      its pins ``sdram_*`` instead, see :func:`~.sdram_controller.sdram_signature`.

    Without a ``pad_stage``, ``data``, ``strobe`` and ``early`` come from flip-flops outside, as in
    :class:`~.pads.Pads`; the stream is the same.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, pad_stage: bool = True,
                 sdram: SdramPart | None = None, skips: bool = False,
                 link_front: tuple[Front, int] = (Front.PORT, 0)):
        self.capture = Capture(geometry, ram, build, pad_stage)
        self.skips, self.link_front = skips, link_front
        self.clk = Signal()
        self.rst = Signal()
        self.data = Signal(geometry.port_bits * geometry.nodes)
        self.strobe = Signal(geometry.nodes)
        self.early = Signal(geometry.nodes * max(geometry.phases - 1, 1))
        self.pbx_req = Signal()
        self.pbx_more = Signal()
        self.pbx_write = Signal()
        self.pbx_ack = Signal()
        self.pbx_addr = Signal(ADDRESS_BITS)
        self.pbx_wdata = Signal(32)
        self.pbx_rdata = Signal(32)
        self.stream_valid = Signal()
        self.stream_ready = Signal()
        self.stream_last = Signal()
        self.stream_data = Signal(128)
        self.running = Signal()
        self.quiet = Signal()
        self.advance = Signal(32)
        self.shift = Signal(16)
        self.slip = Signal(8)
        self.left = Signal(16)
        self.horizon = Signal(32)
        self.line = Signal(4 * geometry.links)
        self.wrong = Signal(2 * geometry.links)
        self.pulled = Signal(geometry.links)
        self.sync_in = Signal()
        self.sync_out = Signal()
        self.pins = _extra_pins(geometry)
        self.buffer = DeepBuffer(geometry, sdram, ram) if sdram else None
        self.sdram = SdramWires(self.buffer)
        behind = geometry.external_depth and not sdram
        self.external = ExternalFifo(geometry.external_depth, ram=ram) if behind else None
        if self.external:
            self.memory_command_valid = Signal()
            self.memory_command_ready = Signal()
            self.memory_command_write = Signal()
            self.memory_command_burst = Signal(range(geometry.external_depth // BURST))
            self.memory_write_valid = Signal()
            self.memory_write_ready = Signal()
            self.memory_write_data = Signal(128)
            self.memory_read_valid = Signal()
            self.memory_read_data = Signal(128)

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        return [
            self.clk, self.rst, self.data, self.strobe,
            *([self.early] if self.capture.geometry.halvings else []),
            self.pbx_req, self.pbx_more, self.pbx_write, self.pbx_addr, self.pbx_wdata, self.pbx_ack, self.pbx_rdata,
            self.stream_valid, self.stream_ready, self.stream_data, self.stream_last,
            self.running, self.advance, self.quiet, self.horizon,
            *([self.shift, self.slip, self.left] if self.skips else []),
            *self._lines(),
            *([self.sync_in, self.sync_out] if self.capture.geometry.synced else []), *self.pins.values(),
            *(() if not self.external else (
                self.memory_command_valid, self.memory_command_ready, self.memory_command_write,
                self.memory_command_burst, self.memory_write_valid, self.memory_write_ready, self.memory_write_data,
                self.memory_read_valid, self.memory_read_data)),
            *self.sdram.ports,
        ]

    def _lines(self) -> list[Signal]:
        if not self.capture.geometry.links:
            return []
        return [self.wrong, self.pulled] if self.skips else [self.line]

    def _connect_lines(self, m: Module) -> None:
        capture, line = self.capture, self.line
        if self.skips:
            nodes = capture.geometry.linked_nodes
            m.submodules.wired = wired = WiredBoards(capture.geometry.links, capture.ram, *self.link_front)
            m.d.comb += [
                wired.strobe.eq(self.strobe), wired.data.eq(self.data), wired.wrong.eq(self.wrong),
                wired.pulled.eq(self.pulled),
                *(getattr(wired, name).eq(capture.straps.word_select(k, nodes))
                  for k, name in enumerate(("rising", "falling", "after", "words", "events"))),
            ]
            line = wired.samples
        m.d.comb += capture.line.eq(line)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        # The reset is an input of every next state; from a flip-flop it costs a simulation nothing.
        m.domains.por = por = ClockDomain(reset_less=True)
        reset = Signal(init=1)
        m.d.por += reset.eq(self.rst)
        m.submodules.capture = capture = self.capture
        m.d.comb += [
            sync.clk.eq(self.clk), por.clk.eq(self.clk), sync.rst.eq(reset),
            capture.data.eq(self.data), capture.strobe.eq(self.strobe),
            capture.bus.req.eq(self.pbx_req), capture.bus.more.eq(self.pbx_more), capture.bus.write.eq(self.pbx_write),
            capture.bus.addr.eq(self.pbx_addr), capture.bus.wdata.eq(self.pbx_wdata),
            self.pbx_ack.eq(capture.bus.ack), self.pbx_rdata.eq(capture.bus.rdata),
            self.running.eq(capture.running), capture.skip.advance.eq(self.advance),
            capture.skip.shift.eq(self.shift), capture.skip.slip.eq(self.slip), self.left.eq(capture.rest.left),
            self.quiet.eq(capture.rest.quiet), self.horizon.eq(capture.rest.horizon),
        ]
        if self.capture.geometry.halvings:
            m.d.comb += capture.early.eq(self.early)
        if self.capture.geometry.synced:
            m.d.comb += [capture.sync_in.eq(self.sync_in), self.sync_out.eq(capture.sync_out)]
        m.d.comb += _connected(capture, self.pins)
        if self.capture.geometry.links:
            self._connect_lines(m)
        stream = _buffer(m, capture, self.buffer, self.sdram)
        if between := self.buffer or self.external:
            waits = Signal()     # beats are between the core and the link
            m.d.sync += waits.eq(between.level != 0)
            m.d.comb += self.quiet.eq(capture.rest.quiet & ~waits & ~capture.stream.valid)
        if capture.geometry.narrow:
            m.submodules.to_16 = to_16 = BeatsTo16()
            wiring.connect(m, stream, to_16.i)
            stream = to_16.o
            gathered = Signal()
            m.d.sync += gathered.eq(capture.stream.valid | to_16.o.valid)
            m.d.comb += self.quiet.eq(capture.rest.quiet & ~gathered & ~capture.stream.valid)
        if self.external:
            m.submodules.external = external = self.external
            wiring.connect(m, capture.stream, external.i)
            stream = external.o
            memory = external.memory
            m.d.comb += [
                capture.external_level.eq(external.level), capture.external_high.eq(external.high),
                self.memory_command_valid.eq(memory.command.valid), memory.command.ready.eq(self.memory_command_ready),
                self.memory_command_write.eq(memory.command.p.write),
                self.memory_command_burst.eq(memory.command.p.burst),
                self.memory_write_valid.eq(memory.write.valid), memory.write.ready.eq(self.memory_write_ready),
                self.memory_write_data.eq(memory.write.p),
                memory.read.valid.eq(self.memory_read_valid), memory.read.p.eq(self.memory_read_data),
            ]
        m.d.comb += [
            self.stream_valid.eq(stream.valid), stream.ready.eq(self.stream_ready),
            self.stream_data.eq(stream.p.data), self.stream_last.eq(stream.p.last),
        ]
        return m


class LinkedTop(Elaboratable):
    """Common part of all boards with a link of their own.

    Ports: ``clk``, ``rst`` of the board; ``data``, ``strobe``, ``early`` (see :class:`PlainTop`); ``running`` (see
    :class:`~.capture.Capture`); ``sync_in``, ``sync_out``, ``pps_in``, ``trigger_in``, ``trigger_out`` on a board that
    has them; ``sdram_*``, see :func:`~.sdram_controller.sdram_signature`, on one with an SDRAM; ``line`` on one
    with links, see :class:`~.capture.Capture`.

    Parameters
    ----------
    geometry : the board's geometry.
    ram : kind of the large memories, see :class:`~.ram.Ram`.
    build : value of the BUILD register.
    pad_stage : see :class:`PlainTop`.
    sdram : the board's external memory.

    Raises
    ------
    ValueError
        for a geometry with external memory and no SDRAM, or the other way round.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, pad_stage: bool = True,
                 sdram: SdramPart | None = None):
        if geometry.external_depth and not sdram:
            raise ValueError(f"external_depth must be 0, not {geometry.external_depth!r}")
        self.buffer = DeepBuffer(geometry, sdram, ram) if sdram else None
        self.sdram = SdramWires(self.buffer)
        self.capture = Capture(geometry, ram, build, pad_stage)
        self.clk = Signal()
        self.rst = Signal()
        #: A reset of the board besides ``rst``, from a flip-flop in the board's clock.
        self.reset: Signal | None = None
        self.data = Signal(geometry.port_bits * geometry.nodes)
        self.strobe = Signal(geometry.nodes)
        self.early = Signal(geometry.nodes * max(geometry.phases - 1, 1))
        self.running = Signal()
        self.line = Signal(4 * geometry.links)
        self.sync_in = Signal()
        self.sync_out = Signal()
        self.pins = _extra_pins(geometry)

    def ports(self, *link: Signal) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog; ``link``: ports of the link."""
        return [
            self.clk, self.rst, self.data, self.strobe,
            *([self.early] if self.capture.geometry.halvings else []), self.running,
            *([self.line] if self.capture.geometry.links else []),
            *([self.sync_in, self.sync_out] if self.capture.geometry.synced else []), *self.pins.values(), *link,
            *self.sdram.ports,
        ]

    def core(self, m: Module) -> None:
        """Adds the board, whose clock is ``clk``, without the consumers of its bus and its stream."""
        m.domains.start = start = ClockDomain(local=True)    # its reset is passed on to the domains that need it
        m.domains.sync = sync = ClockDomain(local=True)
        m.submodules.capture = capture = self.capture
        m.submodules.sync_reset = ResetSynchronizer(self.rst, domain="start")
        m.submodules.reset_net = reset_net = ResetNet(capture.ram)
        m.d.comb += [
            start.clk.eq(self.clk), sync.clk.eq(self.clk),
            reset_net.i.eq(start.rst if self.reset is None else start.rst | self.reset), sync.rst.eq(reset_net.o),
            capture.data.eq(self.data), capture.strobe.eq(self.strobe),
            self.running.eq(capture.running),
        ]
        if capture.geometry.links:
            m.d.comb += capture.line.eq(self.line)
        if capture.geometry.halvings:
            m.d.comb += capture.early.eq(self.early)
        if capture.geometry.synced:
            m.d.comb += [capture.sync_in.eq(self.sync_in), self.sync_out.eq(capture.sync_out)]
        m.d.comb += _connected(capture, self.pins)

    def board(self, m: Module, link, domain: str, marked: bool = True, whole: bool = False) -> None:
        """Adds the board, and connects a link that is in ``domain``; ``marked``: see :class:`~.crossing.Crossing`;
        ``whole``: the link takes beats instead of bytes."""
        self.core(m)
        capture = self.capture
        beat_bytes = capture.geometry.stream_bytes
        m.submodules.crossing = DomainRenamer({"link": domain})(
            crossing := BeatCrossing(beat_bytes) if whole else Crossing(beat_bytes, marked))
        wiring.connect(m, _buffer(m, capture, self.buffer, self.sdram), crossing.stream)
        wiring.connect(m, crossing.bus, capture.bus)
        name = "beats" if whole else "bytes"
        wiring.connect(m, getattr(crossing, name), getattr(link, name))
        wiring.connect(m, link.command, crossing.command)
        wiring.connect(m, crossing.reply, link.reply)
