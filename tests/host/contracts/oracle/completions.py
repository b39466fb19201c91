"""Small traces, and the complete traces that agree with one: drawn at random, or found step by step.

Times are small numbers. An item is (time, node, event, key); the times of a node's items differ. A recorded trace
states stamps: an item came up to ``slack`` after its stamp.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["EVENTS", "Completion", "Recorded", "climbed", "completion", "made_up"]

EVENTS = "abc"
#: Times of a node's items differ by that much at least.
_LEAST = 1 / 64
#: Of items before the start and after the end: how far from it they are, and how many there are.
_FAR, _OUTSIDE = (*range(1, 9), 20), 12
#: Steps from one beginning.
_CLIMB = 150


@dataclass
class Recorded:
    """A trace that was recorded from ``start`` to ``end``. ``losses``: node, from, to, at most how many items."""

    items: list
    losses: list
    start: int
    end: int
    nodes: int
    slack: int


class Completion(list):
    """Items in order: (time, stamp, node, event, key).

    started : the nodes that may have been inside at the start.
    first, last : when the recording began and ended: as uncertain as a stamp.
    """

    def __init__(self, items, started, first, last):
        super().__init__(items)
        self.started, self.first, self.last = started, first, last


def made_up(rng: random.Random, events: str = EVENTS) -> Recorded:
    """A small trace: at most 12 items and 3 losses."""
    end, nodes = rng.choice([8, 15, 30]), rng.choice([1, 2, 2, 3])
    items, weights = {}, [rng.random() ** 2 + 0.05 for _ in events]
    regular = rng.random() < 0.5
    for _ in range(rng.randint(0, 12)):
        node = rng.randrange(nodes)
        if regular:
            # Something like a program: the events take turns.
            own = [one for (_, at), one in items.items() if at == node]
            event, key = events[len(own) % len(events)], len(own) // len(events) % 2
            late = max([t for t, at in items if at == node], default=0) + rng.randint(1, 4)
            if late <= end:
                items[late, node] = event, key
        else:
            items[rng.randint(0, end), node] = rng.choices(events, weights)[0], rng.randrange(2)
    losses = []
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        lo = rng.randint(0, end)
        node, hi, lost = rng.randrange(nodes), min(lo + rng.choice([0, 1, 2, 3]), end), rng.choice([1, 1, 2])
        # As many as there were: the stamps of a node differ.
        free = [t for t in range(lo, hi + 1) if (t, node) not in items]
        lost = min(lost, len(free) - sum(own[3] for own in losses if own[0] == node and lo <= own[2] and own[1] <= hi))
        if lost > 0:
            losses.append((node, lo, hi, lost))
    return Recorded([(t, node, *of) for (t, node), of in sorted(items.items())], losses, 0, end, nodes,
                    rng.choice([0, 0, 1, 2]))


def completion(rng: random.Random, trace: Recorded, events: str = EVENTS) -> Completion | None:
    """One complete trace, at random; None if the lost items do not fit."""
    stamps = {(t, node): of for t, node, *of in trace.items}

    def add(node, lo, hi):
        at = (rng.randint(lo, hi), node)
        if at not in stamps:
            stamps[at] = [rng.choice(events), rng.randrange(3)]

    for node, lo, hi, most in trace.losses:
        for _ in range(rng.randint(0, most)):
            add(node, lo, hi)
    if rng.random() < 0.3:
        _continued(rng, trace, stamps)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        add(rng.randrange(trace.nodes), trace.start - 4, trace.start - 1)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        add(rng.randrange(trace.nodes), trace.end + 1, trace.end + 5)
    shift = rng.choice([0.0, 0.5, 1.0])
    found = []
    for (stamp, node), of in stamps.items():
        late = rng.choice([0.0, 1.0, rng.random()]) if rng.random() < 0.7 else shift
        found.append((stamp + trace.slack * late, stamp, node, *of))
    # The order of equal times is anybody's guess, but a node's items come in the order of their stamps.
    rng.shuffle(found)
    found.sort(key=lambda item: item[0])
    for node in range(trace.nodes):
        own = [item for item in found if item[2] == node]
        if any(one[0] == other[0] or one[1] > other[1] for one, other in pairwise(own)):
            return None
    return Completion(found, {node for node in range(trace.nodes) if rng.random() < 0.5},
                      *(edge + trace.slack * rng.choice([0.0, 0.0, 1.0, rng.random()])
                        for edge in (trace.start, trace.end)))


def _continued(rng, trace, stamps):
    """Adds what a program whose events take turns may have done before the recording, and may do after it."""
    own = sorted(stamps.items())
    for node in range(trace.nodes):
        for key in range(2):
            seen = [event for (_, at), (event, one) in own if at == node and one == key]
            before = EVENTS[:EVENTS.index(seen[0])] if seen and seen[0] in EVENTS else rng.choice(["", "b"])
            after = EVENTS[EVENTS.index(seen[-1]) + 1:] if seen and seen[-1] in EVENTS else rng.choice(["", "a"])
            for k, event in enumerate(before if rng.random() < 0.8 else ""):
                stamps[trace.start - 6 + 2 * k + key, node] = [event, key]
            for k, event in enumerate(after if rng.random() < 0.8 else ""):
                stamps[trace.end + 1 + 2 * k + key, node] = [event, key]


class _Draft:
    """A complete trace that can be changed. Each change leaves one that agrees with what was recorded.

    ``added``: the items that were not recorded: where they come from (the number of a loss, or "before" or "after"),
    and what they are. ``late``: by how much of the slack each item is later than its stamp; a node's order is kept.
    """

    def __init__(self, rng: random.Random, trace: Recorded, events: str):
        self.rng, self.trace, self.events = rng, trace, events
        self.added: dict[tuple[int, int], tuple] = {}
        self.seen = {(t, node) for t, node, *_ in trace.items}
        self.started = {node for node in range(trace.nodes) if rng.random() < 0.5}
        for loss, (*_, most) in enumerate(trace.losses):
            for _ in range(rng.choice([0, most, rng.randint(0, most)])):
                self._add(loss)
        for place in ("before", "after"):
            self._around(place)
        self.ties: dict[tuple[int, int], float] = {}
        self.late: dict[tuple[int, int], float] = {}
        self.edges = [rng.choice([0.0, 1.0]) for _ in range(2)]
        self._hurry(list(self._places()))

    def copy(self) -> "_Draft":
        other = object.__new__(_Draft)
        other.__dict__.update(self.__dict__, added=dict(self.added), late=dict(self.late), ties=dict(self.ties),
                              started=set(self.started), edges=list(self.edges))
        return other

    def whole(self) -> Completion:
        items = [(t, node, event, key) for t, node, event, key in self.trace.items]
        items += [(t, node, event, key) for (t, node), (_, event, key) in self.added.items()]
        items.sort()
        newest, found = [-1e9] * self.trace.nodes, []
        for stamp, node, event, key in items:
            place = stamp, node
            if place not in self.late:
                self.late[place] = self.rng.choice([0.0, 1.0, self.rng.random()])
            newest[node] = max(stamp + self.trace.slack * self.late[place], newest[node] + _LEAST)
            found.append((newest[node], self.ties.setdefault(place, self.rng.random()), stamp, node, event, key))
        found.sort()
        first, last = (edge + self.trace.slack * late
                       for edge, late in zip((self.trace.start, self.trace.end), self.edges, strict=True))
        return Completion([(at, *item) for at, _, *item in found], self.started, first, last)

    def change(self) -> None:
        """One change, or a few, at random."""
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            kind = self.rng.random()
            if kind < 0.3 and self.trace.losses:
                self._change(self.rng.randrange(len(self.trace.losses)))
            elif kind < 0.6:
                self._change(self.rng.choice(["before", "after"]))
            elif kind < 0.65:
                self._around(self.rng.choice(["before", "after"]))
            elif kind < 0.7:
                self.started ^= {self.rng.randrange(self.trace.nodes)}
            elif kind < 0.75:
                self.edges[self.rng.randrange(2)] = self.rng.choice([0.0, 1.0, self.rng.random()])
            elif self.trace.slack or kind < 0.8:
                self._hurry(self._some())

    def _places(self):
        return self.seen | self.added.keys()

    def _some(self):
        """Some items: one, those of a node, those of an event, or all."""
        every = sorted(self._places())
        how = self.rng.random()
        if not every or how < 0.5:
            return self.rng.sample(every, min(len(every), 1))
        node, since = self.rng.randrange(self.trace.nodes), self.rng.choice(every)
        return [place for place in every if (how < 0.7 or place[1] == node) and (how > 0.85 or place >= since)]

    def _hurry(self, places) -> None:
        """Sets by how much items are late: all the same, at random, or more and more, or less and less."""
        how, same = self.rng.randrange(4), self.rng.choice([0.0, 0.5, 1.0, self.rng.random()])
        for k, place in enumerate(sorted(places)):
            self.late[place] = (same, self.rng.choice([0.0, 1.0]), (k + 1) / (len(places) + 1),
                                1 - (k + 1) / (len(places) + 1))[how]
            self.ties[place] = self.rng.random()

    def _change(self, source) -> None:
        """Adds an item, removes one, or changes one."""
        own = [place for place, of in self.added.items() if of[0] == source]
        full = len(own) >= (_OUTSIDE if isinstance(source, str) else self.trace.losses[source][3])
        how = self.rng.random()
        if own and (full or how < 0.6):
            place = self.rng.choice(own)
            _, event, key = self.added.pop(place)
            if how < 0.2:
                return
            self._add(source, *((event, key) if how < 0.4 else (None, key) if how < 0.5 else ()))
        else:
            self._add(source)

    def _add(self, source, event=None, key=None) -> None:
        if isinstance(source, str):
            node, off = self.rng.randrange(self.trace.nodes), self.rng.choice(_FAR)
            place = (self.trace.start - off if source == "before" else self.trace.end + off), node
        else:
            node, lo, hi, _ = self.trace.losses[source]
            place = self.rng.choice([lo, hi, self.rng.randint(lo, hi)]), node
        if place not in self.seen and place not in self.added:
            self.added[place] = (source, self.rng.choice(self.events) if event is None else event,
                                 self.rng.randrange(3) if key is None else key)

    def _around(self, place) -> None:
        """What was before the start, or after the end: nothing, or the same events of each node and key."""
        self.added = {at: of for at, of in self.added.items() if of[0] != place}
        events, near = self.rng.choices(self.events, k=self.rng.randrange(4)), self.rng.random() < 0.5
        keys = self.rng.choice([[0], [0, 1], [0, 1, 2]])
        for node in range(self.trace.nodes):
            if self.rng.random() < 0.3:
                events = self.rng.choices(self.events, k=self.rng.randrange(4))
            off = 0
            for event in events:
                for key in keys:
                    off += 1 if near else self.rng.choice([1, 1, 2, 5])
                    at = self.trace.start - off if place == "before" else self.trace.end + off
                    self.added[at, node] = (place, event, key)


def climbed(rng: random.Random, cost: Callable[[Completion], float], trace: Recorded, events: str, steps: int,
            found: set[bool]) -> set[bool]:
    """Adds the truth values that are found from step to step: towards fewer violations, and then to the first ones.

    ``cost``: how grave the violations are in a complete trace, 0 if there are none.
    """
    draft, least = None, 0.0
    for step in range(steps):
        if len(found) == 2:
            break
        if draft is None or step % _CLIMB == 0:
            draft = _Draft(rng, trace, events)
            least = cost(draft.whole())
            found.add(not least)
            continue
        other = draft.copy()
        other.change()
        now = cost(other.whole())
        found.add(not now)
        if now <= least or rng.random() < 0.02:
            draft, least = other, now
    return found
