"""A link to a board that is so slow that most reads bring nothing."""


class Halting:
    """A link whose stream brings nothing for this many reads before each piece."""

    def __init__(self, link, reads, slowness):
        self._link, self._reads, self._left, self.slowness = link, reads, reads, slowness

    def __getattr__(self, name):
        return getattr(self._link, name)

    def stream(self, limit):
        self._left -= 1
        if self._left >= 0:
            return b""
        self._left = self._reads
        return self._link.stream(limit)
