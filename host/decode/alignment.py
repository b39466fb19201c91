"""Converts the times of boards that were recorded together to the time of the first board.

A board's own times are multiples of its clock, so the gaps between its events recur, and take few bytes. Corrected for
drift to the picosecond, no gap would recur: the tables would be up to 16 % larger. Corrected times are therefore whole
ticks of an eighth of the board's clock, counted from the offset of its time. Different times of a board stay different,
and the uncertainty includes the rounding.

A board that keeps its own clock while it follows another one has a line with bends in place of offset and drift; see
:mod:`.drift`. Its times are whole ticks of a 32nd of the clock.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import SYNC_LAG, period_bits
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.drift import fit_drift
from hypermon.host.errors import InputError
from hypermon.host.recording.clock import CRYSTALS_PPM
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.drift_log import load_drift
from hypermon.host.text.json_file import integer, listed, maybe, number, one_of, table, text

__all__ = ["ALIGNMENT", "Alignment", "align", "offsets"]

Wires = Sequence[dict[str, Any] | None]
_Times = npt.NDArray[np.int64]
#: The shape of an :class:`Alignment`; ``decode.json`` has one per board.
ALIGNMENT = table({
    "board": text(1 << 16), "first_node": integer(0, 1 << 16), "nodes": integer(1, 1 << 16),
    "how": one_of("first", "wire", "host clock", "stated", "together"), "offset_ps": integer(-1 << 63, (1 << 63) - 1),
    "drift_ppm": number(-10**6, 10**6), "uncertainty_ns": maybe(integer(0, 1 << 63))},
    {"ticks_hz": integer(0, 1 << 40), "hops": integer(0, 1 << 12), "bends": listed(listed(
        integer(-1 << 63, (1 << 63) - 1), 2, 2), 0, 1 << 24)}, more=True)
#: Clocks by which a board's time may be off because of one wire: its phase wanders within a clock, and the synchronizer
#: may see a rise a clock late; without the mean of that phase, half a clock more.
_MEASURED, _UNMEASURED = 1.0, 1.5
#: The clock of a killed recording may have been saved this much before its last item: twice the time between savings.
_UNSAVED_NS = 2 * 10**9
#: Boards that are recorded together begin within seconds of each other, and times have 64 bits.
_APART_PS = 30 * 86_400 * 10**12
#: Ticks of a clock. Stamps are at least a quarter of a clock apart, so no two of them are rounded to the same tick.
_TICKS = 8
#: Ticks of a clock for the times of a board that keeps its own clock, because these are known better.
_FINE_TICKS = 32
#: Of numerator times denominator of a tick, so that :func:`_in_ticks` needs no more than 64 bits. Clocks of more digits
#: than any board's exceed it.
_MOST = 1 << 62


@dataclass(frozen=True)
class Alignment:
    """How a board's time is converted to the run's.

    Parameters
    ----------
    board : its URI; ``first_node``, ``nodes``: which nodes of the run belong to it.
    how : ``first``, ``wire``, ``host clock``; ``stated``: a user stated the offset, which counts as exact, but
        the clocks may drift apart; or
        ``together``: virtual boards begin together.
    offset_ps, drift_ppm : the run's time when the board's is 0, and how much faster the run's time passes.
    uncertainty_ns : of the alignment, during the recording; None: not known.
    ticks_hz : times that are corrected for drift are rounded to ticks of this frequency; 0: to picoseconds.
    hops : wires one after the other from the first board to this one; 0: it is not aligned by wire.
    bends : times of the board and of the run, in order, with straight lines between and beyond them; ``offset_ps`` and
        ``drift_ppm`` then describe the line from the first to the last. None: these two alone count.
    """

    board: str
    first_node: int
    nodes: int
    how: str
    offset_ps: int = 0
    drift_ppm: float = 0.0
    uncertainty_ns: int | None = 0
    ticks_hz: int = 0
    hops: int = 0
    bends: Sequence[Sequence[int]] = ()

    def times(self, times_ps: _Times) -> _Times:
        """Converts times to the run's; their order is preserved."""
        if len(self.bends):
            bent = self.exact(times_ps)
            return _in_ticks(bent, *_tick_ps(self.ticks_hz)) if self.ticks_hz else bent
        if self.drift_ppm:
            times_ps = times_ps + np.rint(times_ps * (self.drift_ppm * 1e-6)).astype(np.int64)
            if self.ticks_hz:
                times_ps = _in_ticks(times_ps, *_tick_ps(self.ticks_hz))
        moved: _Times = times_ps + self.offset_ps
        return moved

    def exact(self, times_ps: _Times) -> _Times:
        """Converts times to the run's, without rounding to ticks."""
        if not len(self.bends):
            return replace(self, ticks_hz=0).times(times_ps)
        own, run = np.array(self.bends, np.int64).T
        return _bent(times_ps, own, run)

    def as_text(self) -> str:
        """One line, for people."""
        if self.how == "first":
            way = "its time is the run's time"
        elif self.how == "stated":
            apart = (self.uncertainty_ns or 0) / 1000
            way = (f"by the offset that was stated: {self._offset_ms()} ms; since then, clocks drift by up to "
                   f"{apart:,.2f} us")
        elif self.how == "together":
            way = "virtual: not aligned; it begins with the first"
        elif self.how == "wire" and self.uncertainty_ns is None:
            way = "not aligned: the first board's wave never arrived, or it failed for a while"
        elif self.uncertainty_ns is None:
            way = "not aligned: the host's clock was not compared with the boards' (too short a recording)"
        else:
            way = (f"by {self._by_wire()}, to {self.uncertainty_ns:,} ns" if self.how == "wire"
                   else f"by {self._by_clock()}, to {self.uncertainty_ns / 1000:,.2f} us")
        return f"{self.board}: nodes {self.first_node} to {self.first_node + self.nodes - 1}, {way}"

    def _offset_ms(self) -> str:
        """To the nanosecond, in which offsets are stated."""
        return f"{self.offset_ps / 10**9:+,.6f}".rstrip("0").rstrip(".")

    def _by_wire(self) -> str:
        return "wire" if self.hops < 2 else f"{self.hops} wires in a chain"

    def _by_clock(self) -> str:
        # The alignment was measured, or it is exactly 0.
        drift = f"{self.drift_ppm:+.3f} ppm" if self.drift_ppm else "drift not measured"
        return f"the host's clock: {self.offset_ps / 1e12:+.6f} s, {drift}"


def _tick_ps(ticks_hz: int) -> tuple[int, int]:
    """Picoseconds of a tick, as numerator and denominator in lowest terms."""
    g = math.gcd(10**12, ticks_hz)
    return 10**12 // g, ticks_hz // g


def _in_ticks(times_ps: _Times, numerator: int, denominator: int) -> _Times:
    """Rounds times to ticks, and these down to picoseconds, without an intermediate result of more than 64 bits."""
    whole = times_ps // numerator
    rest = ((times_ps - whole * numerator) * denominator + numerator // 2) // numerator
    rounded: _Times = whole * numerator + rest * numerator // denominator
    return rounded


def _bent(times_ps: _Times, own: _Times, run: _Times) -> _Times:
    """Straight lines through points, at some times; exact to a picosecond near the points."""
    k = np.clip(np.searchsorted(own, times_ps, "right") - 1, 0, len(own) - 2)
    since = times_ps - own[k]
    slope = (np.diff(run) - np.diff(own)) / np.diff(own)
    bent: _Times = run[k] + since + np.rint(since * slope[k]).astype(np.int64)
    return bent


def offsets(parts: Sequence[RunDirectory], wires: Wires = ()) -> list[Alignment]:
    """How the times of recordings that were made together are converted to that of the first.

    It is known before anything is decoded. An alignment by wire has no uncertainty yet; see :func:`align`.

    Parameters
    ----------
    wires : those in ``recording.json`` of the run; none: each board that follows is wired to the first.
    """
    return [own for own, _ in _offsets(parts, wires)]


def _offsets(parts: Sequence[RunDirectory], wires: Wires,
             last: Sequence[int] = ()) -> list[tuple[Alignment, float | None]]:
    """Like :func:`offsets`; also by how many clocks the wire to each board is unsure, besides its delay; None: unknown.

    Parameters
    ----------
    last : the last window of each recording; none: not known yet.
    """
    found: list[tuple[Alignment, float | None]] = []
    first, base = parts[0], 0
    for board, part in enumerate(parts):
        info = part.info
        if part is first:
            found.append((Alignment(info.board, base, info.nodes, "first"), 0.0))
        elif part.clock.how == "stated":
            found.append((_stated(first, part, base), None))
        elif info.configuration.get("follow"):
            found.append(_by_wire(parts, board, wires, [own for own, _ in found], base, last[board] if last else 0))
        elif (info.board.startswith("sim:") and first.info.board.startswith("sim:")
              and None in (part.clock.uncertainty_ns, first.clock.uncertainty_ns)):
            found.append((Alignment(info.board, base, info.nodes, "together", uncertainty_ns=None), None))
        else:
            found.append((_by_host(first, part, base), None))
        base += info.nodes
    return found


def align(parts: Sequence[RunDirectory], done: Sequence[dict[str, Any]], wires: Wires = ()) -> list[Alignment]:
    """Like :func:`offsets`, with all uncertainties.

    Parameters
    ----------
    done : the :func:`.decode.summary` of each recording.
    """
    # A board is aligned by wires if all boards between the first and it report that they followed.
    followed = [bool(summary["followed"]) for summary in done]
    found = _offsets(parts, wires, [int(summary["last_time"]) for summary in done])
    aligned = []
    for board, (part, (own, _)) in enumerate(zip(parts, found, strict=True)):
        if own.how == "wire":
            above, led, clocks = board, True, 0.0
            while above:
                wandered = found[above][1]
                led &= followed[above] and wandered is not None
                clocks += (wandered or 0.0) + _untold_clocks(parts[above], done[above])
                above = _leader(wires, above)
            sure = _wired_uncertainty_ns(_chain(wires, board), part.info.scale, clocks) if led else None
            own = replace(own, uncertainty_ns=sure)
        elif own.how == "stated":
            own = replace(own, uncertainty_ns=_drifted_ns(part, int(done[board]["last_time"])))
        aligned.append(own)
    return aligned


def _untold_clocks(part: RunDirectory, summary: dict[str, Any]) -> float:
    """By how many clocks a board that corrects its time may be off because its recording ends without the last census.

    If the wave failed after the census before, nothing says so, and the board's time went on by its own crystal.
    """
    if summary["stopped"] or part.info.configuration.get("own_clock"):
        return 0.0
    windows = int(summary["last_time"]) - min(summary.get("counted_until") or [0])
    clocks: int = max(windows, 0) * part.info.scale.window_clocks
    return clocks * CRYSTALS_PPM * 1e-6


def _drifted_ns(part: RunDirectory, last_time: int) -> int:
    """By how much two crystals may differ at the end of a recording if they agreed at its beginning."""
    _, end = part.info.scale.span_ps(last_time, last_time)
    return -(-CRYSTALS_PPM * max(end, (part.info.end or {}).get("duration_ps") or 0) // 10**9)


def _leader(wires: Wires, board: int) -> int:
    wire = wires[board] if wires else None
    return 0 if wire is None else int(wire["follows"])


def _chain(wires: Wires, board: int) -> list[dict[str, Any]]:
    """The wires from the first board to another one; an unknown one is empty."""
    chain: list[dict[str, Any]] = []
    while board:
        chain.append((wires[board] if wires else None) or {})
        board = _leader(wires, board)
    return chain


def _wired_ps(chain: Sequence[dict[str, Any]], clock_hz: int) -> int:
    """The run's time at time 0 of a board at the end of a chain of wires, besides the lag of the last one, which is in
    its latency. Where the delay of a wire was measured, so was the mean of the lag: half a clock less.
    """
    clocks = sum((SYNC_LAG - (0.5 if "delay_ps" in wire else 0) for wire in chain), -SYNC_LAG)
    return round(clocks * 10**12 / clock_hz) + sum(int(wire.get("delay_ps", 0)) for wire in chain)


def _by_wire(parts: Sequence[RunDirectory], board: int, wires: Wires, above: Sequence[Alignment], base: int,
             last: int) -> tuple[Alignment, float | None]:
    """A board that follows one of those before it."""
    part, chain = parts[board], _chain(wires, board)
    info, wire, leader = part.info, chain[0], _leader(wires, board)
    own = Alignment(info.board, base, info.nodes, "wire", _wired_ps(chain, info.clock_hz), uncertainty_ns=None,
                    hops=len(chain))
    wandered: float | None = _MEASURED if "delay_ps" in wire else _UNMEASURED
    clock_ps = 10**12 / info.clock_hz
    # The wave begins with the own count of its board, whose time is ahead of that if it follows another one.
    ahead_ps = round((SYNC_LAG * bool(leader)) * clock_ps) + int(wire.get("delay_ps", 0))
    if info.configuration.get("own_clock"):
        marks = load_drift(part.path)
        if marks is None:
            return own, None
        clocks = info.scale.window_clocks
        until = (info.end or {}).get("duration_ps") or 0
        drift = fit_drift(marks, clocks << period_bits(clocks), round(until / clock_ps))
        # A killed recording has no duration. Its times are converted before its end is known.
        wandered = drift.unsure_until((last + 1) * clocks) + 0.5 / _FINE_TICKS
        mine = np.array([info.scale.clocks_ps(int(clock)) for clock in drift.own], np.int64)
        theirs = mine + np.rint(drift.ahead * clock_ps).astype(np.int64) + ahead_ps
    elif len(above[leader].bends):
        half_ps = round(clock_ps / 2) if "delay_ps" in wire else 0
        mine = np.array([row[0] for row in above[leader].bends], np.int64)
        theirs = mine + ahead_ps - half_ps
    else:
        return own, wandered
    return _composed(own, mine, theirs, above[leader], _FINE_TICKS * info.clock_hz), wandered


def _composed(own: Alignment, mine: _Times, theirs: _Times, leader: Alignment, ticks_hz: int) -> Alignment:
    """A board by way of the one that it follows, whose times are given for some of its own."""
    points = mine
    if len(leader.bends):
        bends = np.array([row[0] for row in leader.bends], np.int64)
        points = np.union1d(mine, _bent(bends, theirs, mine))
    run = leader.exact(_bent(points, mine, theirs))
    drift = float((run[-1] - run[0]) / (points[-1] - points[0]) - 1) * 1e6
    return replace(own, offset_ps=int(run[0] - points[0]), drift_ppm=drift, ticks_hz=ticks_hz,
                   bends=np.stack([points, run], 1).tolist())


def _wired_uncertainty_ns(chain: Sequence[dict[str, Any]], scale: TimeScale, clocks: float) -> int:
    """The sum of the unit of stamps, which is a window or a part of a clock; of ``clocks``, by which the times wander;
    and of the uncertainty of the delay of every wire. The delay of a wire that was not measured is not included.
    """
    clocks += scale.window_clocks / scale.phases
    unsure = sum(int(wire.get("uncertainty_ps", 0)) for wire in chain)
    return -(-(math.ceil(clocks * 10**12 / scale.clock_hz) + unsure) // 1000)


def _stated(first: RunDirectory, part: RunDirectory, base: int) -> Alignment:
    """By the offset that a user stated, in whole nanoseconds: the one from which the clock was made. That clock has the
    drift of the first one's, by which an offset may be half a nanosecond from what is computed back.
    """
    found = _by_host(first, part, base)
    rate, wanted = 1 + first.clock.drift_ppm * 1e-6, part.clock.utc_ns - first.clock.utc_ns
    near = round(found.offset_ps / 1000)
    offset = next((one for one in (near, near + 1, near - 1) if round(one * 1000 * rate / 1000) == wanted), near)
    return replace(found, how="stated", offset_ps=1000 * offset, uncertainty_ns=part.clock.uncertainty_ns)


def _by_host(first: RunDirectory, part: RunDirectory, base: int) -> Alignment:
    own, other = part.clock, first.clock
    # UTC is offset + time * (1 + drift) by either clock; solved for the time of the first.
    rate = 1 + other.drift_ppm * 1e-6
    offset = round((own.utc_ns - other.utc_ns) * 1000 / rate)
    if abs(offset) > _APART_PS:
        raise InputError(part.path, None, f"its clock is {abs(offset) / 86_400e12:.0f} days from that of "
                                          f"{first.path.name}: they are not of one run")
    drift = ((1 + own.drift_ppm * 1e-6) / rate - 1) * 1e6
    ticks = _TICKS * part.info.clock_hz
    if not drift or math.prod(_tick_ps(ticks)) > _MOST:
        ticks = 0
    sure = None
    if own.uncertainty_ns is not None and other.uncertainty_ns is not None:
        sure = own.uncertainty_ns + other.uncertainty_ns + (-(-10**9 // (2 * ticks)) if ticks else 0)
        sure += sum(_UNSAVED_NS * CRYSTALS_PPM // 10**6 for one in (first, part) if one.info.end is None)
    return Alignment(part.info.board, base, part.info.nodes, "host clock", offset, drift, sure, ticks)
