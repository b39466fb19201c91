"""The event capture board: connects its stages, in one clock domain (section 3.2, Figure 2)."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .accounts.accounts import Accounts
from .control.pbx import Pbx, pbx_signature
from .control.registers import Registers
from .input.intake import Intake
from .layout import EXTRA_OUTPUTS, EXTRA_PINS, Geometry, Sink
from .lib.reset_net import ResetNet
from .lib.signatures import resting, skipping
from .merge.merge import Merge
from .regeneration.ports import Ports
from .sinks.sinks import Sinks
from .stream.blocker import Blocker, beat_layout
from .stream.buffer import Buffer
from .time.board_time import BoardTime

__all__ = ["Capture"]


class Capture(wiring.Component):
    """Turns raw port levels into blocks.

    Parameters
    ----------
    geometry : properties that are fixed when the board is built.
    ram : kind of the large memories, see :class:`~.lib.ram.Ram`.
    build : value of the BUILD register.
    pad_stage : False if the first flip-flop of every port bit is in its I/O cell; see ``geared`` of
        :class:`~.control.registers.Registers`.

    Members
    -------
    strobe, data : one bit and one nibble (of ``geometry.port_bits``) per node, asynchronous.
    early : only with several samples per clock, see :class:`~.input.strobe_synchronizer.StrobeSynchronizer`.
    bus : register bus of the host, asynchronous, see :func:`~.control.pbx.pbx_signature`.
    stream : blocks, in beats of ``geometry.stream_bytes``.
    external_level, external_high : levels of the buffer downstream of the stream, for the registers; 0 without one.
    line : only on a board with links: samples of their lines, four per link and clock, see
        :class:`~.regeneration.line_aligner.LineAligner`. Inputs ``strobe`` and ``data`` of their nodes have no effect.
    straps : with ``line``: the host's settings of these nodes, rising, falling, after, words, events, one bit each per
        node. The regeneration boards of a simulation use them as the levels of their configuration pins. In this board
        the first three have no effect.
    sync_in, sync_out : the wave by which several boards share one time, see :class:`~.time.board_sync.BoardSync`; only
        on a board that has it.
    pps_in, trigger_in, trigger_out : pins of extras, the inputs asynchronous; only on a board that has them.
    running : time runs; the first clock edge at which it is high is time 0.
    skip : a simulation skips idle time at this edge, see :func:`~.lib.signatures.skipping`; 0 in hardware.
    rest : when a simulation may skip idle time, see :func:`~.lib.signatures.resting`.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, pad_stage: bool = True):
        self.geometry, self.ram, self.build, self.pad_stage = geometry, ram, build, pad_stage
        super().__init__({
            "strobe": In(geometry.nodes), "data": In(geometry.port_bits * geometry.nodes),
            "bus": In(pbx_signature()), "stream": Out(stream.Signature(beat_layout(geometry.stream_bytes))),
            "external_level": In(32), "external_high": In(32),
            "running": Out(1), "skip": In(skipping()), "rest": Out(resting()),
            **({"sync_in": In(1), "sync_out": Out(1)} if geometry.synced else {}),
            **({"early": In(geometry.nodes * (geometry.phases - 1))} if geometry.halvings else {}),
            **{pin: In(1) for extra, pin in EXTRA_PINS.items() if extra in geometry.extras},
            **{pin: Out(1) for extra, pin in EXTRA_OUTPUTS.items() if extra in geometry.extras},
            **({"line": In(4 * geometry.links), "straps": Out(5 * geometry.linked_nodes)} if geometry.links else {}),
        })

    def elaborate(self, platform):
        m = Module()
        g, pads = self.geometry, self.pad_stage
        # The spine is the reset domain of the stages that queue items. A reset empties all of them; the blocker, at its
        # end, still finishes its block.
        m.domains.spine = spine = ClockDomain(local=True)
        m.submodules.spine_reset = spine_reset = ResetNet(self.ram)
        m.submodules.pbx = pbx = Pbx(direct=g.narrow)
        m.submodules.registers = registers = Registers(g, self.build, g.phases == 4 and not pads)
        m.submodules.time = time = BoardTime(g)
        m.submodules.ports = ports = Ports(g, pads, self.ram)
        m.submodules.intake = intake = Intake(g, pads)
        m.submodules.merge = merge = Merge(g, self.ram)
        m.submodules.sinks = sinks = Sinks(g, self.ram)
        m.submodules.accounts = accounts = Accounts(g, self.ram)
        sources = [*accounts.sources, *sinks.sources]
        m.submodules.blocker = blocker = Blocker(g, tuple(kind for kind, _ in sources), self.ram)
        m.submodules.buffer = buffer = Buffer(g, self.ram)

        # The host's access.
        wiring.connect(m, wiring.flipped(self.bus), pbx.bus)
        wiring.connect(m, pbx.access, registers.access)
        wiring.connect(m, registers.time, time.settings)
        wiring.connect(m, registers.intake, intake.settings)
        wiring.connect(m, registers.sinks, sinks.settings)
        wiring.connect(m, registers.accounts, accounts.settings)

        # Time, and a simulation's skips of it.
        wiring.connect(m, time.o, *(stage.time for stage in (intake, merge, sinks, accounts)),
                       *([ports.time] if g.links else []))
        wiring.connect(m, wiring.flipped(self.skip), time.skip, intake.skip, accounts.skip)
        wiring.connect(m, accounts.rest, wiring.flipped(self.rest))

        # The path of an item.
        wiring.connect(m, ports.front, intake.front)
        wiring.connect(m, ports.levels, intake.levels)
        wiring.connect(m, intake.items, merge.items)
        wiring.connect(m, merge.o, sinks.i)
        for k, (_, source) in enumerate(sources):
            wiring.connect(m, source, getattr(blocker, f"source{k}"))
        wiring.connect(m, blocker.o, buffer.i)
        wiring.connect(m, buffer.o, wiring.flipped(self.stream))

        # The counters.
        wiring.connect(m, intake.account, accounts.intake)
        wiring.connect(m, merge.account, accounts.merge)
        wiring.connect(m, sinks.account, accounts.sinks)

        m.d.comb += [
            spine.clk.eq(ClockSignal()), spine_reset.i.eq(registers.clear), spine.rst.eq(spine_reset.o),
            *(stage.clear.eq(registers.clear) for stage in (
                time, intake, accounts, blocker, buffer, *([ports] if g.links else []))),
            registers.now.eq(time.o.now), self.running.eq(time.o.running),
            ports.pad_strobe.eq(self.strobe), ports.pad_data.eq(self.data),
            merge.longer.eq(registers.sinks.words | registers.sinks.events), sinks.ending.eq(accounts.ending),

            registers.vector_level.eq(merge.account.level),
            registers.store_level.eq(buffer.level), registers.store_high.eq(buffer.high),
            registers.external_level.eq(self.external_level), registers.external_high.eq(self.external_high),
            accounts.leaves.eq(blocker.o.valid & blocker.o.ready),
            accounts.busy.eq(blocker.moving | buffer.moves | pbx.busy),
            blocker.epoch.eq(registers.epoch), blocker.window.eq(registers.window),
        ]
        if Sink.EXTENDED in g.sinks:
            m.d.comb += [blocker.extended.eq(registers.sinks.extended), blocker.items.eq(sinks.longer)]
        if g.guarded or g.synced:
            m.d.comb += blocker.latency.eq(registers.latency)
        if g.halvings:
            m.d.comb += [ports.pad_early.eq(self.early), blocker.half.eq(sinks.half)]
        if g.synced:
            m.d.comb += [time.sync_in.eq(self.sync_in), self.sync_out.eq(time.sync_out)]
        if g.links:
            straps = (getattr(registers.intake, name) for name in ("rising", "falling", "after", "words", "events"))
            m.d.comb += [ports.line.eq(self.line), self.straps.eq(Cat(nodes[:g.linked_nodes] for nodes in straps))]
        for k in range(g.links):
            wiring.connect(m, getattr(ports, f"account{k}"), getattr(accounts, f"link{k}"))
        if g.marked:
            wiring.connect(m, time.marks, accounts.moments)
            m.d.comb += [getattr(accounts, pin).eq(getattr(self, pin)) for pin in accounts.pins]
        m.d.comb += [getattr(self, pin).eq(getattr(sinks, pin)) for pin in sinks.pins]
        return m
