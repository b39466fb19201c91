"""The blocker, as far as a source of blocks sees it."""

import random
from dataclasses import dataclass, field

from hypermon.hdl.layout import BEAT_BYTES, padded

from .cocotb_stage import Stage

__all__ = ["Link", "Taken"]

#: Clocks that the blocker takes between two blocks, and from a request to its grant, at least.
BETWEEN, ASKED = 8, 2


@dataclass
class Taken:
    """A block that has been granted: what its header says, and the beats so far."""

    length: int
    time: int
    beats: list[bytes] = field(default_factory=list)
    beat_bytes: int = BEAT_BYTES

    @property
    def complete(self) -> bool:
        return len(self.beats) * self.beat_bytes == padded(self.length)

    @property
    def payload(self) -> bytes:
        """Without the padding, which must be zeros; AssertionError if a beat is still owed."""
        assert self.complete
        data = b"".join(self.beats)
        assert not any(data[self.length:]), "the padding is not zero"
        return data[:self.length]


class Link:
    """Grants what the stage's ``source`` asks for, and takes as many beats as it then owes.

    A clock goes: :meth:`offer`, settle, :meth:`take`. A request that goes away again without a
    grant is an AssertionError. ``beat_bytes`` : of a beat.
    """

    def __init__(self, stage: Stage, choose: random.Random, beat_bytes: int = BEAT_BYTES):
        self.stage, self.choose, self.beat_bytes = stage, choose, beat_bytes
        self.blocks: list[Taken] = []
        self.asked = 0      # clocks for which the request has stood
        self.gap = 0

    @property
    def busy(self) -> bool:
        """A block is under way, or has only just ended."""
        return bool(self.gap or (self.blocks and not self.blocks[-1].complete))

    def offer(self, patience: float, ready: float) -> None:
        """Inputs of this clock: how readily blocks are begun, and beats are taken."""
        stage, owing = self.stage, bool(self.blocks) and not self.blocks[-1].complete
        request = stage.get("source_request")
        if not self.busy:
            assert request or not self.asked, "a request has been withdrawn"
            self.asked = self.asked + 1 if request else 0
        grant = self.asked > ASKED and not self.busy and self.choose.random() < patience
        stage.put(source_grant=int(grant), source_beats_ready=int(owing and self.choose.random() < ready))

    def take(self) -> Taken | None:
        """Outputs of this clock; returns a block when it is complete."""
        stage = self.stage
        self.gap -= self.gap > 0
        if stage.get("source_grant"):
            self.asked = 0
            self.blocks.append(
                Taken(stage.get("source_length"), stage.get("source_time"), beat_bytes=self.beat_bytes))
            assert self.blocks[-1].length, "a block of nothing"
        elif stage.get("source_beats_ready") and stage.get("source_beats_valid"):
            block = self.blocks[-1]
            block.beats.append(stage.get("source_beats_payload").to_bytes(self.beat_bytes, "little"))
            if block.complete:
                self.gap = BETWEEN
                return block
        return None

    def cut(self) -> None:
        """A reset: nothing is asked for or owed any more; the blocks are forgotten."""
        self.blocks, self.asked, self.gap = [], 0, BETWEEN
        self.stage.put(source_grant=0, source_beats_ready=0)
