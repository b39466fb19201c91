"""Servers that do one thing at a time: a job takes the first gap that is long enough."""

__all__ = ["Calendar"]


class Calendar:
    """When one server is busy. Calls are in the order of ``now``; a job may ask for a later begin than others do."""

    def __init__(self) -> None:
        self._busy: list[tuple[float, float]] = []

    def book(self, now: float, earliest: float, us: float) -> float:
        """The begin of a job of the given length, in microseconds, not before ``earliest``.

        Jobs that ended by ``now`` are forgotten, because no later job can begin before it.
        """
        over = 0
        while over < len(self._busy) and self._busy[over][1] <= now:
            over += 1
        del self._busy[:over]
        begin, place = max(earliest, now), len(self._busy)
        for at, (from_us, to_us) in enumerate(self._busy):
            if begin + us <= from_us:
                place = at
                break
            begin = max(begin, to_us)
        self._busy.insert(place, (begin, begin + us))
        return begin
