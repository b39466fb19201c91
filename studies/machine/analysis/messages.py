"""Messages of a RUN: senders, receivers, and latencies in board time."""

from dataclasses import dataclass

import numpy as np
from hypermon.studies.machine.analysis.reading import BEGIN, Floats, Ints, Program, Reading

__all__ = ["Messages", "matched", "portless", "torn"]

_SEND, _RECEIVED = 0x10, 0x13


@dataclass(frozen=True)
class Messages:
    """The messages of which both ends are there.

    Members
    -------
    source, target, size : of each. ``sent``, ``received``: the stamps, us.
    one_way : from the moment at which it left, which is the stamp of `send` and the event's own cost.
    cost_us : what a `send` costs.
    torn : the messages of which one end is missing, as source, target and size.
    """

    source: Ints
    target: Ints
    size: Ints
    sent: Floats
    received: Floats
    cost_us: float
    torn: Ints

    @property
    def one_way(self) -> Floats:
        return self.received - self.sent - self.cost_us

    def where(self, chosen: object) -> "Messages":
        """Some of them."""
        return Messages(*(getattr(self, name)[chosen] for name in ("source", "target", "size", "sent", "received")),
                        self.cost_us, self.torn)


def matched(reading: Reading, spans: list[Program] | None = None) -> Messages:
    """Every `received` with the `send` of the same ends and number that is nearest in time.

    ``spans``: programs whose messages are looked at; None: all.
    """
    inside = np.ones(len(reading.us), bool) if spans is None else np.zeros(len(reading.us), bool)
    for one in spans or ():
        inside |= (reading.port == one.port) & (reading.us >= one.from_us) & (reading.us <= one.to_us)
    ends = []
    for event, sending in ((_SEND, True), (_RECEIVED, False)):
        rows = reading.rows(event)
        own, peer = reading.node[rows], reading.field(event, "peer")
        source, target = (own, peer) if sending else (peer, own)
        known = (own >= 0) & inside[rows]
        ends.append([column[known] for column in (source, target, reading.field(event, "sequence"),
                                                  reading.us[rows], reading.field(event, "bytes"))])
    sent, received = (_sorted(end) for end in ends)
    at, back = _nearest(received, sent), _nearest(sent, received)
    whole = (at >= 0) & (back[at] == np.arange(len(at))) if len(back) else np.zeros(len(at), bool)
    lonely = np.ones(len(sent[0]), bool)
    lonely[at[whole]] = False
    torn = np.concatenate([np.column_stack([end[column][alone] for column in (0, 1, 4)]).astype(np.int64)
                           for end, alone in ((sent, lonely), (received, ~whole))])
    ported = set(np.unique(reading.node[reading.rows(BEGIN)]).tolist())
    torn = torn[[int(a) in ported and int(b) in ported for a, b, _ in torn]] if len(torn) else torn
    return Messages(received[0][whole], received[1][whole], received[4][whole], sent[3][at[whole]], received[3][whole],
                    reading.cost_us(_SEND), torn)


def _sorted(end: list[Ints]) -> list[Ints]:
    key = _key(end)
    order = np.lexsort((end[3], key))
    return [column[order] for column in end]


def _key(end: list[Ints]) -> Ints:
    return end[0] << 40 | end[1] << 20 | end[2]


def _nearest(of: list[Ints], among: list[Ints]) -> Ints:
    """For each message, the one of the same key, and -1 if there is none: in order where as many are on both sides, as
    numbers begin again with every program, and otherwise the nearest in time.
    """
    keys = _key(of), _key(among)
    if not len(keys[1]):
        return np.full(len(keys[0]), -1, np.int64)
    # One axis for both: the key's rank, then the time.
    _, rank = np.unique(np.concatenate(keys), return_inverse=True)
    span = 10 * (1 + max(of[3].max(initial=0), among[3].max(initial=0)))
    where, there = rank[:len(keys[0])] * span + of[3], rank[len(keys[0]):] * span + among[3]
    right = np.clip(np.searchsorted(there, where), 0, len(there) - 1)
    left = np.clip(right - 1, 0, len(there) - 1)
    best = np.where(np.abs(there[left] - where) < np.abs(there[right] - where), left, right)
    # Both sides are in the order of keys, then times.
    begin, end = (np.searchsorted(keys[1], keys[0], side) for side in ("left", "right"))
    mine, over = (np.searchsorted(keys[0], keys[0], side) for side in ("left", "right"))
    best = np.where(end - begin == over - mine, begin + np.arange(len(keys[0])) - mine, best)
    return np.where(keys[1][np.clip(best, 0, len(keys[1]) - 1)] == keys[0], best, -1)


def torn(messages: Messages) -> list[str]:
    """Messages of which one end is missing, as text."""
    rows, count = np.unique(messages.torn, axis=0, return_counts=True) if len(messages.torn) else ([], [])
    return [f"one way from {a} to {b}, {size} bytes: {number} of the messages"
            for (a, b, size), number in zip(rows, count, strict=True)]


def portless(reading: Reading, messages: Messages, spans: list[Program]) -> tuple[list[str], list[str]]:
    """What is left out because no message has both its ends, and warnings of ends at nodes without a port."""
    ported = set(reading.field(BEGIN, "own").tolist())
    count, absent = [0, 0], set()
    for one in spans:
        for at, event in enumerate((_SEND, _RECEIVED)):
            rows = reading.rows(event)
            own = (reading.port[rows] == one.port) & (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us)
            count[at] += int(own.sum())
            absent |= set(np.unique(reading.field(event, "peer")[own]).tolist()) - ported
    said = [f"messages of node{'s' * (len(absent) > 1)} {_some(absent)} have no one-way times: no port begins as such "
            "a node"] if absent else []
    if not any(count) or len(messages.size):
        return [], said
    return [f"all one-way times: none of {count[0]:,} `send` and {count[1]:,} `received` belong together. Both ends "
            "need ports, and fields the order of studies/machine/events.toml"], said


def _some(nodes: set[int]) -> str:
    """Some of the numbers, if there are many."""
    shown = ", ".join(map(str, sorted(nodes)[:5]))
    return shown + (f" and {len(nodes) - 5} more" if len(nodes) > 5 else "")
