"""Finds port writes that the board may miss or misread, because levels do not last long enough.

The rule is the synchronizer's (:class:`~hypermon.hdl.input.strobe_synchronizer.StrobeSynchronizer`). A board samples
its ports once per clock, so each level of a strobe must last a clock, and the data must be stable while it is
sampled. With random delays in the synchronizer the flip-flops' aperture is added, as on a real board. A level that
begins and ends at one time, which only a file can contain, is the shortest of all.

Nodes with fewer wires have a rule of their own: each level of a clock or of the one wire must last a clock, and the
data must be stable while a clock edge is seen (:class:`~hypermon.hdl.input.two_wire.TwoWire`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Front
from hypermon.sim.stimulus.picoseconds import Times
from hypermon.sim.stimulus.rows import Rows, merged
from hypermon.sim.stimulus.stimulus import Stimulus

__all__ = ["Broken", "broken", "broken_fronts", "complaints", "unknown_data"]


@dataclass(frozen=True)
class Broken:
    """How often a rule is not kept, and where first: ``count``, ``node``, ``time_ps``.

    ``at_once`` : those whose data change exactly at the edge before which they are sampled. ``idle``: edges of the same
    nodes that are not active and at which the data change as well, as if each edge were a write.
    """

    count: int
    node: int
    time_ps: int
    at_once: int = 0
    idle: int = field(default=0, compare=False)


def complaints(stimulus: Stimulus, clock_hz: int, *, kept: int | None = None, fronts: Sequence[Front] = (),
               **reading: Any) -> list[str]:
    """Lines about what the board may miss, and about first edges that it cannot see.

    Parameters
    ----------
    fronts : how the nodes are wired; nodes after the last one listed have ports. The others are those of
        :func:`broken`.
    """
    aperture_ps = reading.get("aperture_ps", 0)
    fronted = sum(1 << node for node, front in enumerate(fronts) if front is not Front.PORT)
    all_kept = (1 << stimulus.nodes) - 1 if kept is None else kept
    short, unsteady = broken(stimulus, clock_hz, kept=all_kept & ~fronted, **reading)
    edges = {name: reading.get(name) for name in ("rising", "falling")}
    brief, torn = broken_fronts(stimulus, clock_hz, fronts, aperture_ps=aperture_ps, kept=all_kept, **edges)
    lasts = f"{_need(clock_hz, aperture_ps) / 1000:g} ns"
    parts = [f"{what}: {found.count:,}, the first {_place(stimulus, found)}{remedy(found)}" for found, what, remedy in (
        (short, f"levels of strobes shorter than {lasts}", _remedy),
        (unsteady, "strobes whose data change while they are read", _remedy),
        (brief, f"levels of clocks and lines shorter than {lasts}", _remedy),
        (torn, "clock edges whose data change while they are read", _clock_remedy)) if found is not None]
    lines = [f"a board of {clock_hz / 1e6:g} MHz may miss or misread items; {'; '.join(parts)}"] if parts else []
    unknown = [node for node in sorted(stimulus.unknown) if kept is None or kept >> node & 1]
    if unknown:
        files = dict.fromkeys(stimulus.source[node] for node in unknown)
        lines.append(f"strobes whose first level is unknown: {len(unknown)}, at {_nodes(unknown)}, in "
                     f"{', '.join(files)}; the first known level counts as the level at the start, so "
                     "the change to it makes no item")
    lapses = [Broken(count, node, first) for node, (count, first) in stimulus.lapses.items()
              if kept is None or kept >> node & 1]
    if lapses:
        first = min(lapses, key=lambda one: (one.time_ps, one.node))
        lines.append(f"strobes whose level becomes unknown: {sum(one.count for one in lapses):,}, the first "
                     f"{_place(stimulus, first)}; the level before it holds until the next known one, so edges in "
                     "between make no items")
    blank = unknown_data(stimulus, clock_hz, fronts, port_bits=reading.get("port_bits", 4), kept=all_kept,
                         after=reading.get("after"), **edges)
    if blank is not None:
        lines.append(f"active edges at which some data bit is unknown: {blank.count:,}, the first "
                     f"{_place(stimulus, blank)}; such a bit is read as its last known level, or as its first one if "
                     "there is none")
    return [*stimulus.notes, *lines]


def _place(stimulus: Stimulus, found: Broken) -> str:
    file = stimulus.source[found.node]
    return f"at node {found.node}, {found.time_ps / 1000:.3f} ns" + (f", in {file}" if file else "")


def _nodes(nodes: list[int]) -> str:
    return f"node{'s' * (len(nodes) > 1)} {', '.join(map(str, nodes))}"


def _remedy(found: Broken) -> str:
    if not found.at_once:
        return ""
    both = "; `--edge both` if each change of the strobe is a write" if 2 * found.idle >= found.at_once else ""
    return (f" ({found.at_once:,} with the strobe: `--sample after` reads the new data; `hypermon sim --delay data,NS` "
            f"or `strobe,NS` lets one of them change NS nanoseconds later{both})")


def _clock_remedy(found: Broken) -> str:
    return " (`hypermon sim --delay strobe,NS` lets the clock change NS nanoseconds later, `data,NS` the data)"


@dataclass(frozen=True)
class _Reading:
    """How the board reads its nodes. ``rising``, ``falling``, ``after``: of ports, one bit per node; ``falls``: of
    clocks, those that sample at their falling edge.
    """

    rising: int
    falling: int
    after: int
    falls: int
    port_bits: int
    fronts: Sequence[Front]

    @classmethod
    def of(cls, stimulus: Stimulus, rising: int | None, falling: int | None, after: int | None, port_bits: int = 4,
           fronts: Sequence[Front] = ()) -> "_Reading":
        """What is None is as the stimulus states."""
        falls = (stimulus.falling & ~stimulus.rising) if falling is None else falling & ~(rising or 0)
        rising, falling, after = (getattr(stimulus, name) if given is None else given for name, given in
                                  (("rising", rising), ("falling", falling), ("after", after)))
        return cls(rising, falling, after, falls, port_bits, fronts)

    def front(self, node: int) -> Front:
        return self.fronts[node] if node < len(self.fronts) else Front.PORT

    def edges(self, node: int, time: Times, port: npt.NDArray[np.int64],
              before: npt.NDArray[np.int64]) -> tuple[Times, Times]:
        """The edges of a node's strobe, clock or line that count, and the active ones among them."""
        front = self.front(node)
        strobe = self.port_bits if front is Front.PORT else 4
        turns, up = (port ^ before) >> strobe == 1, port >> strobe == 1
        if front is Front.PORT:
            active = up & bool(self.rising >> node & 1) | ~up & bool(self.falling >> node & 1)
        else:
            active = up ^ bool(self.falls >> node & 1)
        if front is Front.SELECTED:
            turns &= (port & before & 2) == 0
        return time[turns], time[turns & active]


def _need(clock_hz: int, aperture_ps: int) -> int:
    """Picoseconds that a level must last to be seen; rounded down, as the times of the board's clock edges may be."""
    return 10**12 // clock_hz + aperture_ps


def broken(stimulus: Stimulus, clock_hz: int, *, port_bits: int = 4, aperture_ps: int = 0, rising: int | None = None,
           falling: int | None = None, after: int | None = None,
           kept: int | None = None) -> tuple[Broken | None, Broken | None]:
    """Checks all port writes.

    Parameters
    ----------
    clock_hz, port_bits : of the board; data bits of its ports.
    aperture_ps : time before a clock edge in which a change may be seen there or one edge later.
    rising, falling, after : how the ports are read, one bit per node; None: as the stimulus states.
    kept : nodes that count, one bit per node; None: all.

    Returns
    -------
    strobe levels that are too short; active edges whose data changes within the time in which the board may read it.
    If the data are sampled before the edge, that includes a change exactly at the edge.
    The levels before the first and after the last change last without end.
    """
    need = _need(clock_hz, aperture_ps)
    reading = _Reading.of(stimulus, rising, falling, after, port_bits)
    short, unsteady = _First(), _First()
    for node, time, port, before in _by_node(stimulus, -1 if kept is None else kept):
        edges, active = reading.edges(node, time, port, before)
        short.add(node, edges[:-1][np.diff(edges) < need])
        changes = _changes(time, port, stimulus.initial[node], (1 << port_bits) - 1)
        if reading.after >> node & 1:
            # Read between one and two clocks after the edge.
            least = active + (10**12 // clock_hz - aperture_ps)
            bad = _some_between(changes, least, least + need + aperture_ps)
            at_once = 0
        else:
            at_edge = np.isin(active, changes)
            if node in stimulus.replayed and aperture_ps == 0:
                at_edge[:] = False
            bad = at_edge | _some_between(changes, active - need, active)
            at_once = int(at_edge.sum())
        idle = int(np.isin(np.setdiff1d(edges, active), changes).sum())
        unsteady.add(node, active[bad], at_once, idle)
    return short.found, unsteady.found


def broken_fronts(stimulus: Stimulus, clock_hz: int, fronts: Sequence[Front], *, aperture_ps: int = 0,
                  rising: int | None = None, falling: int | None = None, kept: int = -1,
                  ) -> tuple[Broken | None, Broken | None]:
    """Checks all changes of nodes with fewer wires than a port; parameters of :func:`broken` and :func:`complaints`.

    Returns
    -------
    levels of clocks and lines that are too short; sampling edges of clocks whose data changes within the time in which
    the board may read it, or exactly at the edge. Edges while a node is not selected do not count.
    """
    need = _need(clock_hz, aperture_ps)
    reading = _Reading.of(stimulus, rising, falling, None, fronts=fronts)
    brief, torn = _First(), _First()
    wired = {node: front for node, front in enumerate(fronts) if front is not Front.PORT}
    for node, time, port, before in _by_node(stimulus, kept & sum(1 << node for node in wired)):
        edges, active = reading.edges(node, time, port, before)
        brief.add(node, edges[:-1][np.diff(edges) < need])
        if wired[node] in (Front.TWO_WIRE, Front.SELECTED):
            changes = _changes(time, port, stimulus.initial[node], 1)
            at_once = np.isin(active, changes)
            bad = at_once | _some_between(changes, active - aperture_ps, active + need)
            torn.add(node, active[bad], int(at_once.sum()))
    return brief.found, torn.found


def unknown_data(stimulus: Stimulus, clock_hz: int, fronts: Sequence[Front] = (), *, port_bits: int = 4,
                 rising: int | None = None, falling: int | None = None, after: int | None = None,
                 kept: int = -1) -> Broken | None:
    """Active edges, of strobes and of clocks, at which data are read while some bit of them is unknown.

    Parameters as of :func:`broken` and :func:`complaints`. Data sampled before the edge are read just before it; those
    after it, between one and two clocks later; those of a clock, until one clock later.
    """
    reading = _Reading.of(stimulus, rising, falling, after, port_bits, fronts)
    clock_ps, found = 10**12 // clock_hz, _First()
    for node, time, port, before in _by_node(stimulus, kept & sum(1 << node for node in stimulus.blanks)):
        _, active = reading.edges(node, time, port, before)
        if reading.front(node) is not Front.PORT:
            low, high = 0, clock_ps
        else:
            low, high = (clock_ps, 2 * clock_ps) if reading.after >> node & 1 else (-1, -1)
        begins, ends = stimulus.blanks[node][::2], stimulus.blanks[node][1::2]
        found.add(node, active[np.searchsorted(begins, active + high, side="right")
                               > np.searchsorted(ends, active + low, side="right")])
    return found.found


def _by_node(stimulus: Stimulus, kept: int) -> Iterator[tuple[int, Times, npt.NDArray[np.int64],
                                                              npt.NDArray[np.int64]]]:
    """Of each node in the mask: its number, the times of its changes, the values after them, and before them."""
    rows = merged([stimulus.replaced, Rows(stimulus.time_ps, stimulus.node, stimulus.port)])
    order = np.argsort(rows.node, kind="stable")
    bounds = np.searchsorted(rows.node[order], np.arange(stimulus.nodes + 1))
    for node in range(stimulus.nodes):
        if kept >> node & 1:
            mine = order[bounds[node]:bounds[node + 1]]
            port = rows.port[mine].astype(np.int64)
            yield node, rows.time[mine], port, np.concatenate([np.array([stimulus.initial[node]], np.int64), port[:-1]])


def _changes(time: Times, port: npt.NDArray[np.int64], initial: int, bits: int) -> Times:
    """Times at which data change. If they change several times at one time, a board can see the last value."""
    last = np.append(time[1:] != time[:-1], True)[:len(time)]
    data = np.append(initial, port[last]) & bits
    return time[last][data[1:] != data[:-1]]


def _some_between(times: Times, low: Times, high: Times) -> npt.NDArray[np.bool_]:
    """For each pair, whether there is a time later than ``low`` and earlier than ``high``."""
    return np.searchsorted(times, low, side="right") < np.searchsorted(times, high, side="left")


class _First:
    """Counts, and keeps the earliest."""

    def __init__(self) -> None:
        self.found: Broken | None = None

    def add(self, node: int, times: Times, at_once: int = 0, idle: int = 0) -> None:
        """Adds the violations of a node, in order of time."""
        if len(times) == 0:
            return
        here = Broken(len(times), node, int(times[0]), at_once, idle)
        if self.found is not None:
            first = min(self.found, here, key=lambda one: one.time_ps)
            here = Broken(self.found.count + here.count, first.node, first.time_ps, self.found.at_once + at_once,
                          self.found.idle + idle)
        self.found = here
