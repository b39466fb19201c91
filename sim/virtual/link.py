"""The virtual board: the verilated gateware, with the same link interface as a real board."""

import ctypes
import enum
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil

import numpy as np
from hypermon.hdl.layout import (
    BEAT_BYTES,
    FRONT_FRACTION_BITS,
    FRONT_SPAN_BITS,
    LATENCY,
    LINK_FRAME_CLOCKS,
    LINK_REPLAY_CLOCKS,
    LINK_SUPERFRAME,
    REGISTERS,
    Control,
    Front,
    Geometry,
    Window,
)
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.errors import HypermonError
from hypermon.host.link import Outage
from hypermon.sim.stimulus.other_reading import Reading, other_reading
from hypermon.sim.stimulus.other_wire import other_wire
from hypermon.sim.stimulus.picoseconds import LIMIT_PS
from hypermon.sim.stimulus.port_rule import complaints
from hypermon.sim.stimulus.stimulus import Edge, Sample, Stimulus
from hypermon.sim.virtual.build import Shell, library
from hypermon.sim.virtual.verilated import VerilatedBoard, declares

__all__ = ["APERTURE_PS", "Oscillator", "PlayedStimulus", "Rest", "VirtualLink"]

#: A port bit that changes less than this before a clock edge may be seen there or one edge later.
APERTURE_PS = 1000
#: Clocks for which :meth:`VirtualLink.stream` waits for data; skipped time does not count.
PATIENCE = 1 << 14
#: Clocks after which each regeneration board has reported all its counts: at most one superframe passes until its line
#: is locked, one until its age comes, and one until the last count.
_REPORTED = 3 * LINK_SUPERFRAME * LINK_FRAME_CLOCKS
#: More bits than a line of a front end must be idle.
_PAUSE_BITS = 12

#: A board that follows one in another process has no time until that one begins. Its process may take long to start.
_STARTS_LATE = 30.0
_CONTROL = REGISTERS["CONTROL"].offset
_WINDOW = REGISTERS["WINDOW"].offset


class _Config(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("aperture_ps", ctypes.c_uint64), ("rate", ctypes.c_uint64),
                ("settle", ctypes.c_int64), ("bus_delay", ctypes.c_int32), ("skip", ctypes.c_int32),
                ("rest", ctypes.c_int32)]


_board, _u32, _u64, _i64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
_load = declares((
    ("board_new", _board, ctypes.POINTER(_Config), _u64, _board, _board, _board, _board),
    ("board_free", None, _board),
    ("board_stall", None, _board, _i64, _i64),
    ("board_disturb", None, _board, _u64, _i64, _i64),
    ("board_window", None, _board, _i64),
    ("board_read", ctypes.c_int, _board, _u32, ctypes.POINTER(_u32)),
    ("board_write", ctypes.c_int, _board, _u32, _u32),
    ("board_burst", ctypes.c_int, _board, _u32, _u64, _board),
    ("board_stream", _u64, _board, _board, _u64, _u64),
    ("board_leap", None, _board, _i64),
    ("board_ended", ctypes.c_int, _board),
    ("board_fired", _i64, _board),
    ("board_cycles", _u64, _board),
    ("board_edge", _i64, _board),
    ("board_complaint", ctypes.c_char_p, _board),
    ("board_room", ctypes.c_char_p, _board, ctypes.c_int),
    ("board_rested", _u64, _board, ctypes.c_int),
))
_load_pulses = declares((("board_pulses", ctypes.c_int, _board, ctypes.c_char_p, _u64, _board),))
#: Of a library whose board has ``sync_in``.
_load_wired = declares((
    ("board_clock", None, _board, _i64, _i64),
    ("board_lead", None, _board, _board, _i64),
    ("board_lead_file", None, _board, ctypes.c_int),
    ("board_follow_file", None, _board, ctypes.c_int, _i64),
    ("board_common_ps", _i64, _board),
))


class Rest(enum.IntEnum):
    """Whether parts of the simulated gateware rest while nothing changes in them, see :mod:`.resting`: never; yes; or
    they are computed nevertheless, and it is checked that nothing changes.
    """

    OFF = 0
    ON = 1
    CHECKED = 2


@dataclass(frozen=True)
class Oscillator:
    """The clock of a board that is wired to others.

    Parameters
    ----------
    ppm : by which it is faster than its nominal frequency.
    wire_ps : delay of the wire to its ``sync_in``, and of the one back when it returns its wave.
    """

    ppm: float = 0.0
    wire_ps: int = 0


class PlayedStimulus:
    """A stimulus that a board plays; see :class:`hypermon.host.link.Played`.

    Parameters
    ----------
    stimulus : the stimulus itself.
    aperture_ps : time before a clock edge in which the board may see a change there or one edge later.
    fronts : how the nodes are wired; nodes after the last one listed have ports.
    """

    def __init__(self, stimulus: Stimulus, aperture_ps: int, fronts: tuple[Front, ...] = ()):
        self.stimulus, self._aperture_ps, self._fronts = stimulus, aperture_ps, fronts
        self.rising, self.falling, self.after = stimulus.rising, stimulus.falling, stimulus.after

    @property
    def end_ps(self) -> int | None:
        return int(self.stimulus.time_ps[-1]) if len(self.stimulus) else None

    def complaints(self, clock_hz: int, *, port_bits: int, rising: int | None, falling: int | None,
                   after: int | None, kept: int | None) -> list[str]:
        return complaints(self.stimulus, clock_hz, port_bits=port_bits, aperture_ps=self._aperture_ps, rising=rising,
                          falling=falling, after=after, kept=kept, fronts=self._fronts)

    def other_reading(self, modes: ItemModes, *, clock_hz: int, port_bits: int, timeout_ps: int, rising: int | None,
                      falling: int | None, after: int | None, lengths: dict[int, tuple[int, int]] | None) -> str | None:
        up, down, later = (own if given is None else given for own, given in (
            (self.rising, rising), (self.falling, falling), (self.after, after)))
        now = []
        for node in range(self.stimulus.nodes):
            edge = (Edge.BOTH if up >> node & 1 else Edge.FALLING) if down >> node & 1 else Edge.RISING
            fronted = node < len(self._fronts) and self._fronts[node] is not Front.PORT
            now.append(Reading(edge, Sample.AFTER if later >> node & 1 else Sample.BEFORE,
                               ItemMode.NIBBLE if fronted else modes[node]))
        return other_reading(self.stimulus, now, clock_hz=clock_hz, port_bits=port_bits, timeout_ps=timeout_ps,
                             lengths=lengths)

    def other_wire(self, node: int, front: str, bit_ps: float) -> str | None:
        return other_wire(self.stimulus, node, Front[front.upper()], bit_ps)


class VirtualLink(VerilatedBoard):
    """A link to a board that exists only while this object does; see :class:`hypermon.host.link.Link`.

    Board time advances only inside the methods. Time 0 is the first enable; until then the ports are at their initial
    levels. A change of the stimulus at t is visible at the first clock edge at or after t.

    Parameters
    ----------
    stimulus : what the nodes write; None: nothing.
    geometry : of the board.
    drain_rate : maximum bytes per second that the host reads, through the stream and :meth:`read_burst` together, from
        time 0; None: no limit. If it is more than accesses of single words carry (4 bytes in 14 clocks), frames are
        read from the registers in bursts.
    stalls : pairs (at, for) in milliseconds of board time in which the host reads nothing.
    seed : of a random delay in every synchronizer: a port bit that changes within :data:`APERTURE_PS` before a clock
        edge is seen there or at the next edge. None: no delay.
    skip : lets idle windows pass at once. The stream is the same.
    rest : lets parts of the board rest; None: with ``skip``. The stream is the same.
    bus_delay : the bus master waits up to this number of clocks, at random, in each phase of a handshake.
    name : the text after ``sim:`` in the URI.
    shell : the gateware in another form, with the same ports; see :class:`~.build.Shell`.
    oscillator : of a board that is wired to others; None: it is alone.

    Attributes
    ----------
    uri : name of the link.
    played : the stimulus, and how its ports are to be read.
    away : never.
    aperture_ps : :data:`APERTURE_PS` with a ``seed``, else 0.

    Raises
    ------
    ValueError
        for a stimulus of more nodes than the board has, a rate below one byte per second, a negative stall.
    HypermonError
        if the virtual board cannot be built.
    """

    away = False
    slowness = 1.0

    def __init__(self, stimulus: Stimulus | None, geometry: Geometry, *, drain_rate: int | None = None,
                 stalls: Iterable[tuple[float | str | Decimal, float | str | Decimal]] = (),
                 seed: int | None = None, skip: bool = True, rest: Rest | None = None, bus_delay: int = 0,
                 name: str = "", shell: Shell | None = None, oscillator: Oscillator | None = None):
        if drain_rate is not None and drain_rate < 1:
            raise ValueError(f"drain_rate must be at least 1 byte/s, not {drain_rate!r}")
        if bus_delay < 0:
            raise ValueError(f"bus_delay must not be negative: {bus_delay!r}")
        stimulus = Stimulus.idle(geometry.nodes) if stimulus is None else stimulus
        if stimulus.nodes > geometry.nodes or (len(stimulus) and stimulus.node.max() >= geometry.nodes):
            raise ValueError(f"a stimulus of {stimulus.nodes} nodes for a board of {geometry.nodes}")
        pauses = _joined(stalls)
        self.uri = f"sim:{name}"
        self._partners: list[VirtualLink] = []
        self.slow = False
        self.outages: list[Outage] = []
        longest = geometry.window_clocks(Window.NS800)
        self.aperture_ps = 0 if seed is None else APERTURE_PS
        self.played = PlayedStimulus(stimulus, self.aperture_ps, geometry.fronts)
        config = _Config(
            seed=(seed or 0) % (1 << 64), aperture_ps=self.aperture_ps,
            rate=0 if drain_rate is None else int(drain_rate),
            settle=LATENCY + 2 * longest + (2 * LINK_REPLAY_CLOCKS if geometry.links else 0)
            + (2 << FRONT_SPAN_BITS if geometry.fronted else 0), bus_delay=bus_delay,
            skip=skip, rest=(Rest.ON if skip else Rest.OFF) if rest is None else rest)
        path = library(geometry, shell)
        self._begin(_load(str(path)), "board", geometry, stimulus, ctypes.byref(config))
        for begin, end in pauses:
            self._dll.board_stall(self._board, begin, end)
        self._buffer = np.empty(0, np.uint8)
        self.oscillator = oscillator
        self._path = path
        self._wired = _load_wired(str(path)) if oscillator and geometry.synced else None
        if oscillator:
            self._wire(oscillator, seed or 0)
        self._follow()

    def _wire(self, oscillator: Oscillator, seed: int) -> None:
        if self._wired is None:
            raise HypermonError(f"{self.uri} has no sync_in; an extended board does")
        phase = random.Random(f"{seed} {self.uri} {oscillator.ppm}").randrange(1, self.geometry.ps(1))
        self._wired.board_clock(self._open, round(-1000 * oscillator.ppm), phase)

    def lead(self, follower: "VirtualLink", delay_ps: int) -> None:
        """Wires ``sync_out`` of this board to ``sync_in`` of another one in this process, with a delay.

        Both were made with an ``oscillator``. The board that leads all, which follows none, is wired first. Its time 0
        is that of the stimuli of all boards. Whenever one of them is used, the others advance as far as it needs.
        """
        if self._wired is None or follower._wired is None:
            raise ValueError("boards that are wired need an oscillator")
        self._wired.board_lead(self._open, follower._open, delay_ps)
        self._partners += [follower]
        follower._partners += [self]

    def echoes_to(self, leader: "VirtualLink") -> None:
        """Wires this board to one that leads, and its own wave back to that, both with the delay of its wire."""
        assert self.oscillator is not None
        leader.lead(self, self.oscillator.wire_ps)
        self.lead(leader, self.oscillator.wire_ps)

    def pulses(self, pin: str, times_ps: Sequence[int]) -> None:
        """Lets an extra pin rise at these times of the stimulus, in order, each time for 16 clocks.

        ``pin`` : a value of :data:`~.layout.EXTRA_PINS` that the board has.
        """
        times = np.ascontiguousarray(times_ps, np.int64)
        if not _load_pulses(str(self._path)).board_pulses(self._open, pin.encode(), len(times), times.ctypes.data):
            raise ValueError(f"{self.uri} has no pin {pin}")

    def lead_file(self, file: int) -> None:
        """Writes the wave of ``sync_out`` to a pipe, for a board in another process."""
        assert self._wired is not None
        self._wired.board_lead_file(self._open, file)

    def follow_file(self, file: int, delay_ps: int) -> None:
        """Wires ``sync_in`` to the board that writes its wave to a pipe."""
        assert self._wired is not None
        self._wired.board_follow_file(self._open, file, delay_ps)
        self.slowness = _STARTS_LATE

    @property
    def common_ps(self) -> int:
        """Time of the board that leads at the next clock edge of this one; 0 before."""
        return 0 if self._wired is None else int(self._wired.board_common_ps(self._open))

    def read(self, address: int) -> int:
        """Reads the register at a byte address."""
        value = ctypes.c_uint32()
        self._done(self._dll.board_read(self._open, address, ctypes.byref(value)), address)
        return value.value

    def write(self, address: int, value: int) -> None:
        """Writes the register at a byte address."""
        self._done(self._dll.board_write(self._open, address, value), address)
        if address == _CONTROL and value & Control.RESET:
            self._follow()

    def read_burst(self, address: int, words: int) -> bytes:
        """Reads ``words`` consecutive registers, as 32-bit little-endian words."""
        out = np.empty(words, "<u4")
        self._done(self._dll.board_burst(self._open, address, words, out.ctypes.data), address)
        return out.tobytes()

    def stream(self, limit: int) -> bytes:
        """Up to ``limit`` bytes of the stream, whole beats, in order.

        Board time advances until that many bytes are there, or :data:`PATIENCE` clocks have passed that could not be
        skipped, or the stimulus has just ended, or it had ended before and the board has no more data to send at once.
        In the last case board time can differ by one sweep of the counters, with skipped clocks and without; each beat
        leaves at the same clock.

        Raises
        ------
        ValueError
            for a limit below one beat.
        HypermonError
            if an SDRAM at its pins reports a violated rule, or a part has changed that should have rested.
        """
        if limit < BEAT_BYTES:
            raise ValueError(f"limit must be at least {BEAT_BYTES}, not {limit!r}")
        if len(self._buffer) < limit:
            self._buffer = np.empty(limit, np.uint8)
        count = self._dll.board_stream(self._open, self._buffer.ctypes.data, limit, PATIENCE)
        if complaint := self._dll.board_complaint(self._open):
            raise HypermonError(f"{self.uri}: {complaint.decode()}")
        return self._buffer[:count].tobytes()

    def discard(self) -> None:
        """No data arrives before the first run, and the remaining data of a run is the caller's.

        A line of a front end that is idle has been idle before time 0 for as long as a front end asks. A regeneration
        board has reported all its counts before time 0, as one does that was switched on a millisecond before.
        """
        if self.geometry.links:
            while self.cycles < _REPORTED:
                self.stream(BEAT_BYTES)
        if self.geometry.fronted:
            longest = max(2 * self.read(REGISTERS["FRONT_SPAN"].offset), *(
                _PAUSE_BITS * self.read(REGISTERS[name].offset) >> FRONT_FRACTION_BITS
                for name in ("UART_PERIOD", "SWO_PERIOD")))
            for _ in range(longest // PATIENCE + 1):
                self.stream(BEAT_BYTES)

    def disturb(self, errors: float = 0.0, pulled: tuple[int, int] | None = None) -> None:
        """Disturbs the lines of a board with links from now on.

        ``errors`` : share of bits that are wrong, independent of each other. ``pulled`` : picoseconds of board time
        between which the cables are pulled; the lines are then low.
        """
        self._dll.board_disturb(self._open, round(1 / errors) if errors else 0, *(pulled or (-1, -1)))

    def leap(self, windows: int) -> None:
        """Lets the given number of windows pass at once whatever is queued, and a few clocks more.

        For tests of long stalls, in which no observable state changes. The stimulus must be silent meanwhile, and the
        host reads nothing. Timers that become due expire at the end.
        """
        self._dll.board_leap(self._open, windows)

    @property
    def ended(self) -> bool:
        """The stimulus has been played, and two of the longest windows have passed since; on a board with links also
        the time of two replays, with front ends two of the longest spans. Its last edge has no further effect on the
        gate.
        """
        return bool(self._dll.board_ended(self._open))

    @property
    def cycles(self) -> int:
        """Clock edges that have been computed, including those before time 0; skipped ones are not counted."""
        return int(self._dll.board_cycles(self._open))

    @property
    def rested(self) -> dict[str, int]:
        """Clocks in which each part of the board rested, or would have; counted only with :attr:`Rest.CHECKED`."""
        found: dict[str, int] = {}
        while name := self._dll.board_room(self._open, len(found)):
            found[name.decode()] = int(self._dll.board_rested(self._open, len(found)))
        return found

    @property
    def fired(self) -> int | None:
        """The clock edge, since time 0, that is the first to see ``trigger_out`` high; None: there was none."""
        edge = int(self._dll.board_fired(self._open))
        return None if edge < 0 else edge

    @property
    def edge(self) -> int:
        """Clock edges since time 0, including skipped ones; 0 before."""
        return int(self._dll.board_edge(self._open))

    @property
    def board_ps(self) -> int:
        """Board time: that of the next clock edge, 0 before the first enable."""
        return self.geometry.ps(self.edge)

    @property
    def _open(self) -> int:
        if not self._board:
            raise HypermonError(f"{self.uri}: the link is closed")
        return int(self._board)

    def _follow(self) -> None:
        """Passes the window in force to the harness; a reset may change it."""
        self._dll.board_window(self._open, self.read(_WINDOW))

    def _done(self, answered: int, address: int) -> None:
        if not answered:
            raise HypermonError(f"{self.uri}: the board does not answer at {address:#x}")


def _joined(stalls: Iterable[tuple[float | str | Decimal, float | str | Decimal]]) -> list[tuple[int, int]]:
    """Stalls as spans of picoseconds, by time; those that touch or overlap are merged."""
    spans = []
    for at, length in stalls:
        start, span = (Fraction(str(value)) * 10**9 for value in (at, length))
        if start < 0 or span < 0:
            raise ValueError(f"a stall must not be negative: {at},{length}")
        # Rounded up, as all times of a stimulus are.
        spans.append((min(ceil(start), LIMIT_PS - 1), min(ceil(start + span), LIMIT_PS - 1)))
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
