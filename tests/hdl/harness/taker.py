"""The blocker at a source of blocks, in Amaranth's simulator: grants what is requested, and takes its beats."""

__all__ = ["Taker"]


class Taker:
    """Payloads of one source with their times, in ``blocks``, as they are complete."""

    def __init__(self, source, rng):
        self.source, self.rng = source, rng
        self.asked = self.owed = 0
        self.blocks: list[tuple[int, bytes]] = []

    def step(self, ctx, grant: float, take: float) -> None:
        """A clock, in which it grants and takes with these probabilities; a request is looked at before the grant."""
        source, rng = self.source, self.rng
        self.asked = self.asked + 1 if ctx.get(source.request) and not self.owed else 0
        grants, takes = self.asked > 2 and rng.random() < grant, bool(self.owed) and rng.random() < take
        ctx.set(source.grant, grants)
        ctx.set(source.beats.ready, takes)
        if grants:
            self.owed, self.time, self.data = ctx.get(source.length), ctx.get(source.time), b""
        elif takes and ctx.get(source.beats.valid):
            self.data += ctx.get(source.beats.p).to_bytes(len(source.beats.p) // 8, "little")
            if len(self.data) >= self.owed:
                self.blocks.append((self.time, self.data[:self.owed]))
                self.owed = 0
