"""What the board has to say, predicted from the levels at its ports.

Written from the paper and from the board's documented timing, not from the gateware: there is no
pipeline here, no counter and no FIFO, only arithmetic on clock edges.

- Section 3.1: an active strobe edge offers one nibble.
- Section 3.2.1: strobes are collected in successive windows; a window with at least one strobe
  makes one event frame, with one nibble of each node whose vector bit is set.
- Of two strobes of one node in one window the second goes into the next window.
- A node that is refused loses whole nibbles, and every one of them is in a LOSS record.

Times are counted in clock edges: edge 0 is board time 0.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hypermon.hdl.layout import LATENCY

__all__ = ["Explanation", "Frame", "Item", "Levels", "Loss", "UnexplainedError", "explain", "frames", "items", "stamps"]

STROBE = 0x10
DATA = 0x0F


class UnexplainedError(AssertionError):
    """What the board said cannot follow from what its ports saw."""


class Levels:
    """The 5-bit value of one port at every clock edge.

    Parameters
    ----------
    initial : value until the first change.
    changes : pairs of clock edge and value, edges strictly increasing: from that edge on the port
        shows that value.
    """

    def __init__(self, initial: int, changes: Iterable[tuple[int, int]]):
        pairs = list(changes)
        self.edges = [edge for edge, _ in pairs]
        self.values = [initial, *(value for _, value in pairs)]
        if any(b <= a for a, b in pairwise(self.edges)):
            raise ValueError("the edges of a port's changes must increase")

    def at(self, edge: int) -> int:
        """Value at that clock edge."""
        return self.values[bisect_right(self.edges, edge)]


@dataclass(frozen=True)
class Item:
    """One nibble offered by a node: clock edge at which its strobe is first seen, and value.

    ``optional``: so close to the start of capture that the board may or may not have taken it.
    """

    edge: int
    nibble: int
    optional: bool = False

    def window(self, clocks: int) -> int:
        """The window of ``clocks`` clock edges that its strobe falls into."""
        return (self.edge + LATENCY) // clocks


def items(levels: Levels, *, rising: bool = True, falling: bool = False, after: bool = False,
          start: int = 0, stop: int | None = None) -> list[Item]:
    """Nibbles that a port offers, in order.

    The nibble is what the port showed one clock edge before the strobe was first seen (``after``:
    one clock edge after). Edges are counted from ``start``: it becomes 0, items before it are left
    out but for those on their way to the gate, which are optional; so are the last ones before
    ``stop``.
    """
    found = []
    for edge, old, new in zip(levels.edges, levels.values, levels.values[1:], strict=False):
        went = (new & STROBE) - (old & STROBE)
        if not ((went > 0 and rising) or (went < 0 and falling)):
            continue
        if edge < start - LATENCY or (stop is not None and edge >= stop):
            continue
        optional = edge < start or (stop is not None and edge >= stop - LATENCY)
        found.append(Item(edge - start, levels.at(edge + 1 if after else edge - 1) & DATA, optional))
    return found


def stamps(windows: Iterable[int]) -> list[int]:
    """Stamps of one node's nibbles that fell into ``windows``: one nibble a window, in order, none
    before its own."""
    result: list[int] = []
    for window in windows:
        result.append(window if not result else max(window, result[-1] + 1))
    return result


@dataclass(frozen=True)
class Frame:
    """An event frame: 64-bit stamp and the nibble of each node whose vector bit is set."""

    stamp: int
    nibbles: Mapping[int, int]

    @property
    def vector(self) -> int:
        return sum(1 << node for node in self.nibbles)


def frames(offered: Mapping[int, Sequence[Item]], clocks: int) -> list[Frame]:
    """All frames of a run in which nothing is refused, in order of time."""
    rows: dict[int, dict[int, int]] = {}
    for node, found in offered.items():
        for item, stamp in zip(found, stamps(i.window(clocks) for i in found), strict=True):
            rows.setdefault(stamp, {})[node] = item.nibble
    return [Frame(stamp, rows[stamp]) for stamp in sorted(rows)]


@dataclass(frozen=True)
class Loss:
    """A LOSS record of one node: items refused, windows of the first and the last of them."""

    lost: int
    first: int
    last: int


@dataclass
class Explanation:
    """One way in which a node's nibbles can have become what the board said.

    offered, accepted, lost : items, those of uncertain capture apart.
    carried, lag : sets of the possible numbers of carried items and of their largest lag.
    """

    offered: int = 0
    accepted: int = 0
    lost: int = 0
    outcomes: set[tuple[int, int]] = field(default_factory=set)


def explain(offered: Sequence[Item], delivered: Sequence[tuple[int, int]], losses: Sequence[Loss], clocks: int,
            *, merged: int = 0, grown: bool = False, cut: bool = False) -> Explanation:
    """Find out which of a node's offered items were accepted.

    Every delivered nibble must be an accepted item with the stamp that the window rule gives it,
    in order; every item that was not accepted must be in a LOSS record whose count, first and last
    window are right. With no record that leaves exactly one way.

    Parameters
    ----------
    offered : items, in order.
    delivered : stamp and nibble of each of the node's nibbles, in order.
    losses : its LOSS records, in order.
    clocks : in a window.
    merged : clocks in which a node's outages are looked at: an outage that begins again sooner is still the same.
    grown : an outage may have grown while records could not be queued, so items may have been
        accepted in between.
    cut : the run was cut by a reset: items that are neither delivered nor in a record may have been
        anywhere on the board.

    Raises
    ------
    UnexplainedError
        if there is no way, with the first item that fits nowhere.
    """
    bounds = [0]
    for record in losses:
        if record.lost <= 0 or record.first > record.last:
            raise UnexplainedError(f"a LOSS record that makes no sense: {record}")
        bounds.append(bounds[-1] + record.lost)
    for one, two in pairwise(losses):
        if two.first < one.last:
            raise UnexplainedError(f"LOSS records out of order: {one}, {two}")

    def refusal(window: int, refused: int) -> bool:
        """May the item of ``window`` be the refused one of that index?"""
        which = bisect_right(bounds, refused) - 1
        if which >= len(losses):
            return False
        record = losses[which]
        if not record.first <= window <= record.last:
            return False
        if refused == bounds[which] and window != record.first:
            return False
        return refused != bounds[which + 1] - 1 or window == record.last

    # A state: delivered so far, refused so far, carried, largest lag, and the edge of the first item that was accepted
    # within a record since its last refusal, or -1. Optional items may vanish.
    states = {(0, 0, 0, 0, -1)}
    for position, item in enumerate(offered):
        window = item.window(clocks)
        following: set[tuple[int, int, int, int, int]] = set()
        for taken, refused, carried, lag, since in states:
            if item.optional:
                following.add((taken, refused, carried, lag, since))
            if taken < len(delivered):
                stamp = window if taken == 0 else max(window, delivered[taken - 1][0] + 1)
                between = (item.edge if since < 0 else since) if refused not in bounds else -1
                if delivered[taken] == (stamp, item.nibble) and (grown or merged or between < 0):
                    late = stamp - window
                    following.add((taken + 1, refused, carried + (late > 0), max(lag, late), between))
            # Refused without a record, or accepted and then discarded: nothing is delivered after it.
            if cut and (refused == bounds[-1] or taken == len(delivered)):
                following.add((taken, refused, carried, lag, since))
            if refusal(window, refused) and (grown or since < 0 or item.edge - since <= merged):
                following.add((taken, refused + 1, carried, lag, -1))
        if not following:
            best = max(states)
            near = delivered[best[0]:best[0] + 3]
            raise UnexplainedError(
                f"item {position} of {len(offered)} ({item}, window {window}) is neither delivered nor lost: "
                f"{best[0]} delivered, {best[1]} lost before it, then {near} of {len(delivered)}; records {losses}")
        states = following
    final = {s for s in states if s[0] == len(delivered) and (cut or s[1] == bounds[-1])}
    if not final:
        best = max(states)
        raise UnexplainedError(
            f"after all {len(offered)} items {best[0]} of {len(delivered)} delivered nibbles "
            f"and {best[1]} of {bounds[-1]} losses are explained; next {delivered[best[0]:best[0] + 3]}")
    return Explanation(
        offered=len(delivered) + bounds[-1], accepted=len(delivered), lost=bounds[-1],
        outcomes={(carried, lag) for _, _, carried, lag, _ in final})
