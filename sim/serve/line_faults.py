"""Simulates a faulty serial line."""

import random

__all__ = ["LineFaults"]


class LineFaults:
    """Loses, damages and adds bytes, at random.

    Parameters
    ----------
    lose, flip, add : share of the bytes to which that happens; ``flip`` changes one bit.
    seed : of the random choice.

    Members
    -------
    counts : bytes passed in, lost, changed and added.
    """

    def __init__(self, lose: float = 0.0, flip: float = 0.0, add: float = 0.0, seed: int = 0):
        self._shares = lose, flip, add
        self._random = random.Random(seed)
        self.counts = {"bytes": 0, "lost": 0, "changed": 0, "added": 0}

    def pass_on(self, data: bytes) -> bytes:
        """The bytes that pass the line."""
        self.counts["bytes"] += len(data)
        if not any(self._shares):
            return data
        lose, flip, add = self._shares
        out = bytearray()
        choose = self._random
        for byte in data:
            if choose.random() < add:
                out.append(choose.randrange(256))
                self.counts["added"] += 1
            if choose.random() < lose:
                self.counts["lost"] += 1
            elif choose.random() < flip:
                out.append(byte ^ 1 << choose.randrange(8))
                self.counts["changed"] += 1
            else:
                out.append(byte)
        return bytes(out)
