"""A board on a link: its identity, setup, start and stop."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypermon.hdl.layout import (
    ABSENT_SHIFT,
    FORMAT_VERSION,
    IDENTITY_MAGIC,
    POS_EPOCH_SHIFT,
    REGISTER_VERSION,
    REGISTERS,
    Control,
    Extra,
    Front,
    Geometry,
    Option,
    Sink,
    Window,
    front_latency,
)
from hypermon.host.blocks.times import TimeScale
from hypermon.host.device.settings import (
    Identity,
    Settings,
    event_mask_rows,
    front_registers,
    guard_registers,
    in_force,
    item_registers,
    keeps_clock,
    pin_registers,
    port_registers,
    refuse_settings,
    timing_registers,
    trigger_registers,
)
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import Link

__all__ = ["Device", "Identity", "Settings"]

#: Of register GEOMETRY, bits 23..22: two and four samples of a strobe per clock.
_HALF_CLOCK, _QUARTER_CLOCK = 2, 3
#: Of register SYNC.
_OWN_CLOCK = 1 << 3


def _geometry(identity: Identity) -> Geometry:
    """The geometry that a board states. Raises ValueError if there is no such board."""
    sinks = tuple(Sink[name.upper()] for name in identity.sinks)
    if Sink.CLASSIC in sinks and not identity.frame_depth:
        raise ValueError("the classic configuration needs a frame FIFO, and frame_depth is 0")
    if unknown := [name for name in identity.fronts if name.upper() not in Front.__members__]:
        raise ValueError(f"a front end of {unknown[0]}")
    # A board without frames has no frame FIFO.
    return Geometry(identity.nodes, identity.clock_hz, identity.node_depth, identity.vector_depth,
                    identity.frame_depth or Geometry.frame_depth, sinks, phases=identity.phases,
                    port_bits=identity.data_bits, store_depth=identity.store_depth,
                    external_depth=identity.external_depth,
                    absent=tuple(Option[name.upper()] for name in identity.absent),
                    extras=tuple(Extra[name.upper()] for name in identity.extras), links=identity.links,
                    fronts=tuple(Front[name.upper()] for name in identity.fronts))


class Device:
    """An open board.

    Parameters
    ----------
    link : to it.

    Members
    -------
    identity : its description.
    epoch : resets since power-up; blocks of a run carry the one of its start.

    Raises
    ------
    HypermonError
        if the other side is not a board, or is one that this version does not know.
    """

    def __init__(self, link: Link):
        self.link = link
        self.epoch = 0
        try:
            self.identity = self._identify()
        except BaseException:
            link.close()    # nobody else has it
            raise
        self._control = Control(0)
        self._window = Window.NS800
        self._latency = self.identity.latency
        self._phases = 1

    def read(self, name: str) -> int:
        """Reads a register by name."""
        return self.link.read(REGISTERS[name].offset)

    def write(self, name: str, value: int) -> None:
        """Sets a register by name."""
        self.link.write(REGISTERS[name].offset, value)

    def _identify(self) -> Identity:
        uri = self.link.uri
        magic = self.read("MAGIC")
        if magic != IDENTITY_MAGIC:
            raise HypermonError(f"{uri} answers, but is not a HYPERMON board (its MAGIC is {magic:#010x}, not "
                                f"{IDENTITY_MAGIC:#010x}); load the gateware: hypermon flash BOARD")
        version = self.read("VERSION")
        format_version, register_version = version & 0xff, version >> 8 & 0xff
        for what, found, known in (("format", format_version, FORMAT_VERSION),
                                   ("register map", register_version, REGISTER_VERSION)):
            if found > known:
                raise HypermonError(f"{uri} has gateware newer than this program ({what} {found}, not {known}): "
                                    "pip install --upgrade hypermon")
            if found < known:
                raise HypermonError(f"{uri} has gateware older than this program ({what} {found}, not {known}); "
                                    "load new gateware: hypermon flash BOARD")
        identity = self._described(format_version, register_version)
        try:
            self.geometry = _geometry(identity)
        except ValueError as error:
            raise HypermonError(f"{uri} reports impossible values ({error}); "
                                "switch it off and on, then: hypermon flash BOARD") from None
        return identity

    def _described(self, format_version: int, register_version: int) -> Identity:
        """The identity registers as they are read; nothing is checked."""
        geometry = self.read("GEOMETRY")
        store = self.read("STORE_DEPTH")
        external_log = store >> 16
        extras = self.read("EXTRAS")    # a board of before has no such register: 0
        kinds = sum(self.read(f"FRONTS_{k}") << 32 * k for k in range(4)) if geometry >> 17 & 1 else 0   # likewise
        known = {int(front): front.name.lower() for front in Front}
        fronts = [known.get(kinds >> 4 * n & 15, f"unknown kind {kinds >> 4 * n & 15}")
                  for n in range(-(-kinds.bit_length() // 4))]
        return Identity(
            nodes=geometry & 0xff, data_bits=geometry >> 8 & 0xff,
            sinks=tuple(s.name.lower() for s in Sink if geometry >> 16 & 1 << s), latency=geometry >> 24,
            clock_hz=self.read("CLOCK_HZ"), node_depth=self.read("NODE_DEPTH"),
            vector_depth=self.read("VECTOR_DEPTH"), frame_depth=self.read("FRAME_DEPTH"),
            build=self.read("BUILD"), format_version=format_version, register_version=register_version,
            absent=tuple(o.name.lower() for o in Option if geometry >> ABSENT_SHIFT & 1 << o),
            extras=tuple(extra.name.lower() for extra in Extra if extras >> extra & 1), links=self.read("LINKS") & 7,
            half_clock=geometry >> 22 & 3 == _HALF_CLOCK, quarter_clock=geometry >> 22 & 3 == _QUARTER_CLOCK,
            store_depth=store & 0xffff, fronts=tuple(fronts),
            # An exponent beyond any memory becomes a depth that is rejected, and not a number of 20,000 digits.
            external_depth=1 << min(external_log, 32) if external_log else 0)

    @property
    def scale(self) -> TimeScale:
        """The time base of the run that was prepared last."""
        return TimeScale(self.identity.clock_hz, self._window, self._latency, self._phases)

    @property
    def phases_known(self) -> bool:
        """Whether the phases of the samples are known to be right. If not, stamps count whole clocks; a self-test finds
        out, see :mod:`hypermon.host.diagnose.phases`."""
        return self.identity.phases < 4 or bool(self.read("PHASES"))

    def prepare(self, settings: Settings) -> dict[str, Any]:
        """Resets the board and sets it up. The board does not capture yet, and no data of earlier runs arrives any
        more.

        Returns
        -------
        the settings in force, as plain values.

        Raises
        ------
        HypermonError
            if the board rejects a setting, or does not have the sink.
        """
        board, modes = self.identity, settings.modes.on(self.identity.nodes)
        refuse_settings(settings, board, self.geometry, self.link.uri)
        items = {} if settings.sink is Sink.CLASSIC else item_registers(settings, board)
        wanted = {**port_registers(settings, board, self.link.played),
                  **timing_registers(settings, self.geometry, self.link.slow), **items}
        if Sink.EXTENDED in self.geometry.sinks:
            wanted |= trigger_registers(settings)
        if Extra.TRIGGER_IN in self.geometry.extras:
            wanted |= pin_registers(settings)
        wanted |= front_registers(settings, self.geometry, self.link.uri)
        self._window = settings.window
        fine = settings.window is Window.CLOCK and settings.sink is Sink.EXTENDED and self.phases_known
        self._phases = board.phases if fine else 1
        self._control = Control(settings.window * Control.WINDOW_0)
        self._set_before_reset(settings, items, event_mask_rows(settings) if modes.events else [])
        self.link.write(REGISTERS["CONTROL"].offset, self._control | Control.RESET)
        self.epoch = self.read("FRAME_POS") >> POS_EPOCH_SHIFT
        self._latency = self.read("GEOMETRY") >> 24  # settings that are taken at the reset may change it
        for name, value in wanted.items():
            if name not in items:
                self.write(name, value)
            if (found := self.read(name)) != value:
                raise self._stubborn(f"register {name} was set to {value:#x} and reads {found:#x}")
        if (found := self.read("MODE")) != settings.sink:
            raise self._stubborn(f"the configuration should be {settings.sink.name.lower()} and MODE reads {found}")
        window_clocks = self.geometry.window_clocks(settings.window)
        if (found := self.read("WINDOW")) != window_clocks:
            raise self._stubborn(f"the window should be {window_clocks} clocks and is {found}")
        self.link.discard()
        return {"sink": settings.sink.name.lower(), "window": settings.window.name, "window_clocks": window_clocks,
                "half_clock": self._phases == 2,
                **({"quarter_clock": True} if self._phases == 4 else {}), **in_force(settings, board, wanted),
                **self._front_latencies(modes.longer)}

    def _front_latencies(self, longer: int) -> dict[str, list[int]]:
        """Of each node, the number of clocks from the first edge of an item to its stamp, beyond those of a node with a
        port; only if there are front ends. Nibbles have no such constant.

        Parameters
        ----------
        longer : nodes whose items have more than one nibble, one bit each.
        """
        fronts = self.geometry.fronts
        if not self.geometry.fronted & longer:
            return {}
        registers = {Front.TWO_WIRE: "FRONT_SPAN", Front.SELECTED: "FRONT_SPAN", Front.UART: "UART_PERIOD",
                     Front.SWO: "SWO_PERIOD"}
        late = {front: front_latency(front, self.read(registers[front])) for front in {*fronts} - {Front.PORT}}
        return {"front_late_clocks": [late.get(front, 0) if longer >> node & 1 else 0 for node, front in enumerate(
            fronts)] + [0] * (self.geometry.nodes - len(fronts))}

    def _set_before_reset(self, settings: Settings, items: Mapping[str, int], event_mask: Sequence[int]) -> None:
        """Sets what the board takes at its reset. Raises HypermonError if it has no ``sync_in`` but should follow."""
        if len(self.geometry.sinks) > 1:
            self.write("MODE", settings.sink)
        if self.geometry.guarded:
            for name, value in guard_registers(settings).items():
                self.write(name, value)
        if self.geometry.synced:
            self.write("SYNC", int(settings.follow) | _OWN_CLOCK * keeps_clock(settings, self.identity))
        if settings.follow and not self.read("SYNC") & 1:
            raise HypermonError(f"{self.link.uri} has no sync_in; an extended board does")
        for name, value in items.items():
            self.write(name, value)
        for row in event_mask:
            self.write("EVENT_MASK", row)

    def _stubborn(self, what: str) -> HypermonError:
        return HypermonError(f"{self.link.uri} does not accept a setting: {what}; switch the board off and on")

    def start(self, stream: bool = True) -> None:
        """Starts the capture: this is time 0.

        Parameters
        ----------
        stream : the link's stream carries the frames; else they wait until FRAME_FIFO is read.
        """
        self._control |= Control.ENABLE
        if stream:
            self._control |= Control.STREAM
        self.link.write(REGISTERS["CONTROL"].offset, self._control)

    def stop(self) -> int:
        """Stops the capture. Queued data still arrives, and at the end a CENSUS marked STOP.

        Returns
        -------
        picoseconds from start to stop. The time is read after the stop: the stamp of everything that a board sent
        before it is earlier, however long the line is.

        Raises
        ------
        LinkError
            as registers do, or if the board states an impossible time. Even then, the stop has been written to it.
        """
        board_ps = self.link.board_ps
        self._control &= ~Control.ENABLE
        self.link.write(REGISTERS["CONTROL"].offset, self._control)
        if board_ps is None:
            board_ps = self.scale.clocks_ps(self.windows() * self.scale.window_clocks)
        return board_ps

    def latched_windows(self) -> int:
        """Windows since time 0 at the last LATCH. Raises LinkError if that is not a valid time: 106 days, or more."""
        windows = self.read("TIME_HIGH") << 32 | self.read("TIME_LOW")
        if windows > self.scale.window_max:
            raise LinkError(f"{self.link.uri} reports an impossible time: {windows:,} windows since its start")
        return windows

    def windows(self) -> int:
        """Windows since time 0, now. Latches the counters. Raises as :meth:`latched_windows` does."""
        self.write("LATCH", 1)
        return self.latched_windows()

    def same_run(self) -> bool:
        """The board has not been reset or switched off since :meth:`prepare`."""
        return self.read("BUILD") == self.identity.build and self.read("FRAME_POS") >> POS_EPOCH_SHIFT == self.epoch

    def close(self) -> None:
        self.link.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
