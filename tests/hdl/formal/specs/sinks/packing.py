"""Specification of the packer, with small groups and beats."""

from amaranth.hdl import Array, Assert, Assume, Cat, Module, Mux, Signal
from amaranth.lib import data
from hypermon.hdl.layout import GROUP_BITS, Geometry
from hypermon.hdl.sinks.extended.packer import Packer

from ...prover import Spec, exposing, opened, using

__all__ = ["PackedBlocksSpec", "PackerSpec"]

#: Groups of a beat, of a code at most, of a block at most; one bit of a group represents all four.
BEAT, CODE, BLOCK = 8, 5, 32
#: Clocks from a code to the beat that is complete with it.
LATE = 4


class _Packing(Spec):
    """A packer, and codes for it.

    The environment promises what :class:`~.coding.EncoderSpec` proves: no code has more groups than a code can have,
    what is behind a code's groups is 0, and a block has no more than a block can have.
    """

    def __init__(self, packer=Packer):
        super().__init__()
        packer, self.signals = exposing(packer)
        def layout(_):
            return data.StructLayout({
                "groups": GROUP_BITS * CODE, "count": CODE.bit_length(), "opens": 1, "closes": 1, "item": 1, "node": 1,
                "time": 2})

        self.packer = using(packer, BEAT_GROUPS=BEAT, BEAT_BITS=GROUP_BITS * BEAT, COMPACT_BEATS=BLOCK // BEAT,
                            code_groups=lambda _: CODE, code_layout=layout)

    def specify(self, m: Module) -> None:
        self.dut = dut = self.packer(Geometry(nodes=1))
        m.submodules.dut = opened(dut)
        groups, valid = self.free(CODE, "groups"), self.free(1, "valid")
        m.d.comb += [dut.i.groups[GROUP_BITS * k].eq(groups[k]) for k in range(CODE)]
        m.d.comb += [dut.valid.eq(valid)]
        m.d.comb += [getattr(dut.i, n).eq(self.free(b, n)) for n, b in (
            ("count", CODE.bit_length()), ("opens", 1), ("closes", 1), ("item", 1), ("time", 2))]
        count, closes, opens = dut.i.count, dut.i.closes, dut.i.opens
        length, items = Signal(range(BLOCK + 1)), Signal(range(BLOCK + 1))
        time, is_open = Signal(2), Signal()
        m.d.comb += [
            Assume(count <= CODE), Assume((groups >> count) == 0), Assume(~valid | ~closes | (count == 0)),
            Assume(~valid | (opens == ~is_open)), Assume(~(opens & closes)), Assume(length + count <= BLOCK),
            Assume(~opens | (count != 0)),
        ]
        with m.If(valid):
            m.d.sync += [
                is_open.eq(~closes), length.eq(Mux(closes, 0, length + count)),
                items.eq(Mux(closes, 0, items + dut.i.item))]
            with m.If(opens):
                m.d.sync += time.eq(dut.i.time)
        self.groups, self.valid, self.length, self.items, self.time = groups, valid, length, items, time


class PackerSpec(_Packing):
    """Groups leave in their order, none lost, doubled or swapped: each in the beat and at the place that the groups
    before it in its block leave to it; behind a block's last one is 0."""

    induction = 2

    def specify(self, m: Module) -> None:
        super().specify(m)
        dut, groups, valid, length = self.dut, self.groups, self.valid, self.length
        count, closes = dut.i.count, dut.i.closes

        # Beats that are complete, and not out.
        place = length[:3]
        ends = (place + count)[:4]
        completes = valid & Mux(closes, place != 0, ends >= BEAT)
        due = Signal(range(LATE + 2))
        complete = Signal(LATE)
        m.d.sync += [due.eq(due + completes - dut.beats.valid), complete.eq(Cat(completes, complete))]
        m.d.comb += [
            Assert(dut.beats.valid == complete[-1], "a beat as soon as it is complete"),
            Assert(due == sum(complete)),
        ]

        # A group, any one, or one of those that fill up.
        which = self.free(range(BEAT), "which")
        chosen = self.free(1, "choose") & valid & Mux(closes, (place != 0) & (which >= place), which < count)
        at = (place + which)[:4]
        followed, value, ahead, lane, fills, number, spot = (Signal(s, name=n) for s, n in (
            (1, "followed"), (1, "value"), (range(LATE + 2), "ahead"), (3, "lane"), (1, "fills"), (3, "number"),
            (4, "spot")))
        with m.If(chosen & ~followed):
            m.d.sync += [
                followed.eq(1), value.eq(~closes & groups.bit_select(which, 1)),
                lane.eq(Mux(closes, which, at)), fills.eq(closes), number.eq(which), spot.eq(Mux(closes, which, at)),
                ahead.eq(due - dut.beats.valid + (~closes & (at >= BEAT))),
            ]
        with m.Elif(followed & dut.beats.valid):
            m.d.sync += [ahead.eq(ahead - 1), followed.eq(ahead != 0)]
        out = Array(dut.beats.p[GROUP_BITS * k] for k in range(BEAT))[lane]
        m.d.comb += Assert(~(followed & dut.beats.valid & (ahead == 0)) | (out == value), "each in its place")

        # Where it is, stage by stage: in its code, on its way to its place, there, in its beat.
        n = self.signals
        stage = Signal(3)
        code = [None, Cat(n["groups"].word_select(k, GROUP_BITS)[0] for k in range(CODE))]
        places, codes = [None, n["at"]], [None, Signal(1, name="valid1")]
        counts, closing = [count], [closes]
        m.d.sync += [stage.eq(Cat(chosen & ~followed, stage)), codes[1].eq(valid)]
        for k in (1, 2, 3):
            counts.append(Signal(3, name=f"count{k}"))
            closing.append(Signal(1, name=f"closes{k}"))
            m.d.sync += [counts[k].eq(counts[k - 1]), closing[k].eq(closing[k - 1])]
        for k in (2, 3):
            code.append(Signal(CODE, name=f"code{k}"))
            places.append(Signal(3, name=f"place{k}"))
            codes.append(Signal(1, name=f"valid{k}"))
            m.d.sync += [code[k].eq(code[k - 1]), places[k].eq(places[k - 1]), codes[k].eq(codes[k - 1])]
        landed = followed & (stage == 0)
        first = Signal()        # it has just
        m.d.sync += first.eq(stage[2])
        bits = [Cat(v.word_select(k, GROUP_BITS)[0] for k in range(len(v) // GROUP_BITS))
                for v in (n["shifted"], Cat(n[f"quad{k}"] for k in range(3)), n["pending"], dut.beats.p)]
        moved = [code[k] << places[k] for k in (2, 3)]
        m.d.comb += [
            Assert(n["place"] == place), Assert(~codes[2] | (bits[0] << Mux(n["to_quad"][1], 4, 0) == moved[0])),
            Assert(~codes[2] | (n["to_quad"] == Mux(places[2][2], 2, 1))), Assert(~codes[3] | (bits[1] == moved[1])),
            Assert((bits[2] >> places[3]) == 0),
            *(Assert(~(followed & stage[k - 1])
                     | ((Mux(fills, 0, code[k].bit_select(number, 1)) == value)
                        & (spot == Mux(fills, number, places[k] + number))
                        & codes[k] & (fills == closing[k])
                        & Mux(fills, (number >= places[k]) & (places[k] != 0) & ~value, number < counts[k])
                        & (ahead == sum(complete[j] for j in range(k, LATE)) + spot[3]))) for k in (1, 2, 3)),
            Assert(~landed | (ahead == (first & spot[3]))), Assert(sum(stage) <= followed),
            Assert(~(landed & first & spot[3]) | dut.beats.valid),
            Assert(~landed | (dut.beats.valid & ~(first & spot[3])) | (lane < places[3])),
            Assert(~landed | (
                Mux(dut.beats.valid & ~(first & spot[3]), bits[3], bits[2]).bit_select(lane, 1) == value)),
            *(Assert(~codes[k] | ((counts[k] <= CODE) & (Mux(closing[k], code[k], code[k] >> counts[k]) == 0)
                                  & ((counts[k] == 0) | ~closing[k])))
              for k in (1, 2, 3)),
            *(Assert((places[k - 1] if k > 1 else place) == Mux(
                codes[k], Mux(closing[k], 0, (places[k] + counts[k])[:3]), places[k])) for k in (1, 2, 3)),
            *(Assert(complete[k - 1] == (codes[k] & Mux(closing[k], places[k] != 0, places[k] + counts[k] >= BEAT)))
              for k in (1, 2, 3)),
            Assert(n["completes"] == complete[:3]), Assert(n["valid"] == Cat(codes[1:])),
            Assert(lane == spot[:3]),
        ]


class PackedBlocksSpec(_Packing):
    """A block is said to have as many bytes, as many items and the time that it has, so many clocks after its end: with
    or behind its last beat."""

    def specify(self, m: Module) -> None:
        super().specify(m)
        dut, valid = self.dut, self.valid
        said = [valid & dut.i.closes, (self.length + 1) >> 1, self.items, self.time]
        for k in range(LATE):
            later = [Signal.like(value, name=f"said{k}_{j}") for j, value in enumerate(said)]
            m.d.sync += [new.eq(old) for new, old in zip(later, said, strict=True)]
            said = later
        block = dut.blocks.p
        m.d.comb += [
            Assert(dut.blocks.valid == said[0], "each block once, with its last beat"),
            Assert(~said[0] | ((block.length == said[1]) & (block.items == said[2]) & (block.time == said[3]))),
        ]
