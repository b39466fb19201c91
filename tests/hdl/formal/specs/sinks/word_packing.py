"""Specification of the packer with short beats: a queue of groups, which eight leave as soon as there are eight."""

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from amaranth.lib import data
from hypermon.hdl.layout import GROUP_BITS, Geometry
from hypermon.hdl.sinks.extended.word_packer import WordPacker

from ...prover import Spec, exposing, opened, using

__all__ = ["WordPackerSpec"]

#: Groups of a beat and of 16 bytes, of a code at most, of a block at most; one bit of a group represents all four.
BEAT, ROW, CODE, BLOCK = 8, 32, 10, 64
#: Clocks without a code after the end of a block; clocks from a beat's departure from the queue until it is out.
CLOSING, LATE = 4, 4


class WordPackerSpec(Spec):
    """Groups leave in their order, none lost, doubled or swapped; what fills a block up to 16 bytes is 0; a block is
    said once, after its last beat, with its bytes, items and time.

    The environment promises what the encoder keeps: a pause after a code of more than a beat and after the end of a
    block, groups of 0 after a code's last one, and blocks that are not too long.
    """

    induction = 2

    def __init__(self, packer=WordPacker):
        super().__init__()
        packer, self.signals = exposing(packer)
        def layout(_):
            return data.StructLayout({
                "groups": GROUP_BITS * CODE, "count": CODE.bit_length(), "opens": 1, "closes": 1, "item": 1, "node": 1,
                "time": 2})

        self.packer = using(packer, BEAT_GROUPS=ROW, COMPACT_BEATS=BLOCK // ROW, code_groups=lambda _: CODE,
                            code_layout=layout)

    def specify(self, m: Module) -> None:
        dut = self.packer(Geometry(nodes=1, beat_bytes=4))
        m.submodules.dut = opened(dut)
        groups, valid = self.free(CODE, "groups"), self.free(1, "valid")
        m.d.comb += [dut.i.groups[GROUP_BITS * k].eq(groups[k]) for k in range(CODE)]
        m.d.comb += dut.valid.eq(valid)
        m.d.comb += [getattr(dut.i, n).eq(self.free(b, n)) for n, b in (
            ("count", CODE.bit_length()), ("opens", 1), ("closes", 1), ("item", 1), ("time", 2))]
        count, closes, opens = dut.i.count, dut.i.closes, dut.i.opens
        code = Signal()
        m.d.comb += code.eq(valid & ~closes)

        # The environment.
        length, items, time = Signal(range(BLOCK + 1)), Signal(range(BLOCK + 1)), Signal(2)
        is_open, pause = Signal(), Signal(range(CLOSING + 1))
        m.d.comb += [
            Assume(~valid | (pause == 0)), Assume(count <= CODE), Assume(~code | ((groups >> count) == 0)),
            Assume(~valid | (opens == ~is_open)), Assume(~(opens & closes)), Assume(~code | (length + count <= BLOCK)),
            Assume(~code | (count != 0)),
        ]
        with m.If(valid):
            m.d.sync += [
                is_open.eq(~closes), pause.eq(Mux(closes, CLOSING, count > BEAT)),
                length.eq(Mux(closes, 0, length + count)), items.eq(Mux(closes, 0, items + dut.i.item))]
            with m.If(opens):
                m.d.sync += time.eq(dut.i.time)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)

        # The queue: eight groups leave when they are there; at the end of a block, as many as there are, and then rows
        # of zeros up to 16 bytes.
        queue, inside, ends = Signal(BEAT + CODE), Signal(range(BEAT + CODE)), Signal()
        lane = Signal(range(ROW // BEAT))
        leaves, over = Signal(), Signal()
        m.d.comb += [
            leaves.eq((inside >= BEAT) | (ends & ((inside != 0) | (lane != 0)))), over.eq(ends & ~leaves)]
        left = Signal.like(inside)
        m.d.comb += left.eq(Mux(inside >= BEAT, inside - BEAT, Mux(leaves, 0, inside)))
        m.d.sync += [
            lane.eq(lane + leaves), ends.eq((valid & closes) | (ends & ~over)),
            queue.eq(Mux(leaves, queue >> BEAT, queue) | Mux(code, groups << left, 0)),
            inside.eq(left + Mux(code, count, 0)),
        ]
        m.d.comb += [
            Assert((queue >> inside) == 0), Assert(~valid | (left < BEAT), "a code begins in the open beat"),
            Assert(~ends | (is_open == 0) | over), Assert(inside < BEAT + CODE),
        ]

        # What has left is out so many clocks later, and nothing else.
        old = [Cat(leaves, queue[:BEAT])]
        for k in range(LATE):
            old.append(Signal(1 + BEAT, name=f"left{k}"))
            m.d.sync += old[-1].eq(old[-2])
        bits = Cat(dut.beats.p[GROUP_BITS * k] for k in range(BEAT))
        m.d.comb += [
            Assert(dut.beats.valid == old[LATE][0], "a beat as soon as it is complete"),
            Assert(~dut.beats.valid | (bits == old[LATE][1:]), "each group in its place"),
        ]

        # A block is said after its last beat.
        said, waits, ago = [Signal.like(v, name=f"said{k}") for k, v in enumerate((length, items, time))], Signal(), []
        for k in range(LATE + 1):
            ago.append(Signal(name=f"over{k}") if k else over)
            if k:
                m.d.sync += ago[k].eq(ago[k - 1])
        with m.If(valid & closes):
            m.d.sync += [new.eq(v) for new, v in zip(said, (length, items, time), strict=True)]
            m.d.sync += waits.eq(1)
        with m.Elif(over):
            m.d.sync += waits.eq(0)
        told = [Signal.like(v, name=f"told{k}") for k, v in enumerate(said)]
        with m.If(over):
            m.d.sync += [new.eq(v) for new, v in zip(told, said, strict=True)]
        block = dut.blocks.p
        m.d.comb += [
            Assert(dut.blocks.valid == ago[LATE], "each block once, after its last beat"),
            Assert(~dut.blocks.valid | (
                (block.length == (told[0] + 1) >> 1) & (block.items == told[1]) & (block.time == told[2]))),
        ]
        # Pauses are long enough.
        needs = Signal(range(CLOSING + 1))      # beats of the block that has ended
        m.d.comb += [
            needs.eq((inside != 0) + (0 - lane - (inside != 0))[:2]),
            Assert(~ends | ((inside < BEAT) & (needs <= pause))), Assert((pause != 0) | (inside < 2 * BEAT)),
            Assert(ends | (pause < 2) | (inside == 0)),
        ]
        n = self.signals
        self._stages(m, code, groups, left, queue, old)
        m.d.comb += [
            Assert(n["fill"] == inside), Assert(n["lane"] == lane), Assert(n["closing"] == ends),
            Assert(n["finished"] == Cat(ago[1:])), Assert(ends == waits), Assert(~(ends & is_open)),
            *(Assert(~which | ((n["length"] == values[0]) & (n["block"].items == values[1])
                               & (n["block"].time == values[2])))
              for which, values in ((is_open, (length, items, time)), (ends, said))),
            Assert(~Cat(ago[1:]).any() | ((n["ended"].length == (told[0] + 1) >> 1) & (n["ended"].items == told[1])
                                          & (n["ended"].time == told[2]))),
            Assert(~(over & Cat(ago[1:]).any()), "the block before has been said"),
            *(Assert(~ago[k] | ((lane < k) & (~(is_open | ends) | (inside != 0) | (lane != 0))))
              for k in range(1, LATE + 1)),
        ]

    def _stages(self, m, code, groups, left, queue, old):
        """The stages hold codes and the queue of some clocks ago."""
        n = self.signals

        def before(value, clocks, name):
            value = [value]
            for k in range(clocks):
                value.append(Signal.like(value[0], name=f"{name}{k}"))
                m.d.sync += value[-1].eq(value[-2])
            return value

        placed, now, codes = Signal(CODE + BEAT), Signal.like(queue), Signal()
        m.d.comb += [placed.eq(Mux(code, groups << left, 0)), now.eq(queue), codes.eq(code)]
        was, coming = before(now, 3, "queue_before"), before(placed, 3, "placed_before")
        given, at, there = before(Cat(groups), 2, "groups_before"), before(Cat(left)[:3], 2, "left_before"), before(
            codes, 2, "code_before")

        def ones(name, width):
            value = n[name]
            return Cat(value.word_select(k, GROUP_BITS)[0] for k in range(width))

        still = Signal(CODE + BEAT)
        m.d.comb += still.eq(Mux(there[2], given[2] << at[2][:2], 0))
        m.d.comb += [
            Assert(n["valid"] == Cat(there[1], there[2])),
            Assert(~there[1] | ((ones("groups", CODE) == given[1]) & (n["at"] == at[1]))),
            Assert(ones("shifted", CODE + 3) == still), Assert(~there[2] | (n["upper"] == at[2][2])),
            Assert(coming[2] == Mux(there[2], given[2] << at[2], 0)),
            Assert(coming[1] == Mux(there[1], given[1] << at[1], 0)),
            Assert(ones("placed", CODE + 7) == coming[3]),
            Assert(ones("pending", CODE + 7) == was[3]),
            *(Assert(n["leaves"][k] == old[k][0]) for k in range(LATE)),
            *(Assert(old[k][1:] == was[k][:BEAT]) for k in range(LATE)),
            *(Assert(was[k] == Mux(old[k + 1][0], was[k + 1] >> BEAT, was[k + 1]) | coming[k + 1]) for k in range(3)),
        ]
