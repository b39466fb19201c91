"""The order in which the nodes of an emulated machine act, and the messages between them.

A program is a generator. It yields a wish (:class:`Send`, :class:`Receive`, :class:`Meet`) whenever it uses what nodes
share; the kernel continues the member whose time is earliest, so wishes meet in the order of time.
"""

import heapq
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Kernel", "Leg", "Meet", "Member", "Message", "Receive", "Send", "Steps"]

#: Type of a program: the kernel handles its yields; its result is the member's.
Steps = Generator[Any, Any, Any]


class Member(Protocol):
    """Who runs a program. ``us``: its time, true microseconds."""

    us: float


@dataclass(frozen=True)
class Leg:
    """A part of a message, in microseconds.

    Parameters
    ----------
    hold : for which the path is held, from the moment at which it is free.
    hop : for which it is held in addition, per edge.
    before : software of the sending end before the path is asked for. ``after``: of the receiving end, afterwards.
    back : from the message's target to its source.
    """

    hold: float
    hop: float = 0.0
    before: float = 0.0
    after: float = 0.0
    back: bool = False


@dataclass
class Message:
    """A message on its way; ``arrival`` is set when its last leg is."""

    sequence: int
    size: int
    value: Any = None
    arrival: float = 0.0


@dataclass(frozen=True)
class Send:
    """Sends a message, leg after leg; the answer is the time at which the last path is free again."""

    peer: int
    legs: tuple[Leg, ...]
    message: Message


@dataclass(frozen=True)
class Receive:
    """Waits for a message; the answer is the message."""

    peer: int


@dataclass(frozen=True)
class Meet:
    """Takes part in a collective operation; the answer is the time of its end.

    Parameters
    ----------
    group : who meets; None: all members.
    """

    kind: int
    number: int
    group: tuple[int, ...] | None = None


class Kernel:
    """The loop that continues members in the order of their times.

    Parameters
    ----------
    members, steps : each member, and its program.
    traverse : ``(at, source, target, leg)``: when the leg's path is free again.
    release : ``(kind, number, last)``: end of a collective operation to which the last member came at that time.
    """

    def __init__(self, members: Mapping[int, Member], steps: Mapping[int, Steps],
                 traverse: Callable[[float, int, int, Leg], float],
                 release: Callable[[int, int, float], float] = lambda kind, number, last: last):
        self._members, self._steps = members, steps
        self._traverse, self._release = traverse, release
        self._mail: dict[tuple[int, int], deque[Message]] = {}
        self._waiting: dict[int, int] = {}
        self._meeting: dict[tuple[int, ...] | None, dict[int, Meet]] = {}
        # A member that is ready to continue, at which time, and the value that it receives or the message it sends.
        self._ready: list[tuple[float, int, Any]] = []

    def run(self) -> dict[int, Any]:
        """Runs all programs to their ends; returns their results.

        Raises
        ------
        RuntimeError
            if members wait for one another for ever.
        """
        results: dict[int, Any] = {}
        for number, member in self._members.items():
            self._push(member.us, number, None)
        while self._ready:
            at, number, told = heapq.heappop(self._ready)
            if isinstance(told, Send):
                told = self._leg(at, number, told)
                if told is None:
                    continue
            try:
                wish = self._steps[number].send(told)
            except StopIteration as done:
                results[number] = done.value
                continue
            self._take(number, wish)
        if self._waiting or self._meeting:
            raise RuntimeError(f"nodes wait for messages that never come: {self._waiting or self._meeting}")
        return results

    def _push(self, at: float, number: int, told: Any) -> None:
        heapq.heappush(self._ready, (at, number, told))

    def _take(self, number: int, wish: Any) -> None:
        if isinstance(wish, Send):
            self._push(self._members[number].us + wish.legs[0].before, number, wish)
        elif isinstance(wish, Receive):
            self._fetch(number, wish.peer)
        else:
            self._meet(number, wish)

    def _leg(self, at: float, source: int, send: Send) -> float | None:
        """The next leg of a message; its end if it was the last."""
        leg, *left = send.legs
        ends = (send.peer, source) if leg.back else (source, send.peer)
        end = self._traverse(at, *ends, leg)
        if left:
            self._push(end + leg.after + left[0].before, source, Send(send.peer, tuple(left), send.message))
            return None
        send.message.arrival = end + leg.after
        self._mail.setdefault((send.peer, source), deque()).append(send.message)
        if self._waiting.get(send.peer) == source:
            del self._waiting[send.peer]
            self._fetch(send.peer, source)
        return end

    def _fetch(self, number: int, peer: int) -> None:
        mail = self._mail.get((number, peer))
        if not mail:
            self._waiting[number] = peer
            return
        message = mail.popleft()
        self._push(max(self._members[number].us, message.arrival), number, message)

    def _meet(self, number: int, wish: Meet) -> None:
        here = self._meeting.setdefault(wish.group, {})
        here[number] = wish
        if len(here) < len(self._members if wish.group is None else wish.group):
            return
        del self._meeting[wish.group]
        if len({(one.kind, one.number) for one in here.values()}) > 1:
            raise RuntimeError(f"nodes meet in different operations: {here}")
        last = max(self._members[one].us for one in here)
        end = self._release(wish.kind, wish.number, last) if wish.group is None else last
        for one in sorted(here):
            self._push(end, one, end)
