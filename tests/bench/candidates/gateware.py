"""Three ways to write single nibbles as a compact stream, as gateware made alike, to compare what they cost.

=========  =======================================================================================
unit       an item is
=========  =======================================================================================
group      of 4 bits: gap in groups of three bits and one that says whether more follow; node; nibble
byte       of node and nibble; then the gap in bytes of seven bits and one that says whether more follow
halfword   of a gap of eight bits, node and nibble; a gap of 255 there is in the halfwords behind it, 15 bits
           each and one that says whether more follow
=========  =======================================================================================

The first is what ``docs/frame-format.md`` says, without its codes. The other two have none, so their gaps
can stand last, where they need no shifting. Behind each stands the board's own
:class:`~hypermon.hdl.sinks.extended.packer.Packer`, told how large a unit is and how many the longest item has.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import NamedTuple
from unittest.mock import patch

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from hypermon.hdl.layout import BEAT_BYTES, GAP_GROUPS, GROUP_BITS, Geometry
from hypermon.hdl.sinks.extended import packer

__all__ = ["CANDIDATES", "GAP_BITS", "Candidate", "beats", "netlist"]

#: Bits of the longest gap.
GAP_BITS = (GROUP_BITS - 1) * GAP_GROUPS
#: Node and nibble.
OWNER_BITS = 8


class Candidate(NamedTuple):
    """Bits of a unit; whether the gap stands in front of node and nibble, and if not, how many bits of a small gap
    stand beside them."""

    unit: int
    gap_first: bool
    beside: int = 0

    @property
    def pieces(self) -> int:
        """Units of the longest gap."""
        return -(-GAP_BITS // (self.unit - 1))

    @property
    def longest(self) -> int:
        """Units of the longest item."""
        return self.pieces + (OWNER_BITS + self.beside) // self.unit


CANDIDATES = {
    "groups of 4 bits": Candidate(4, gap_first=True),
    "bytes": Candidate(8, gap_first=False),
    "halfwords": Candidate(16, gap_first=False, beside=8),
}


def code_layout(candidate: Candidate) -> data.StructLayout:
    """What the packer takes, see :func:`~hypermon.hdl.sinks.extended.encoder.code_layout`."""
    return data.StructLayout({
        "groups": candidate.unit * candidate.longest, "count": candidate.longest.bit_length(),
        "opens": 1, "closes": 1, "item": 1, "node": 1, "time": 64})


class Coder(wiring.Component):
    """An item a clock to its units, three clocks later: gap, node and nibble; ``close`` ends the block."""

    def __init__(self, candidate: Candidate):
        self.candidate = candidate
        super().__init__({
            "gap": In(GAP_BITS), "owner": In(OWNER_BITS), "valid": In(1), "close": In(1),
            "o": Out(code_layout(candidate)), "o_valid": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        unit, gap_first, beside = self.candidate
        pieces = self.candidate.pieces
        bits = unit - 1

        # Pieces of the gap, and whether there are more behind each.
        gap = Signal(GAP_BITS)
        owner = Signal(OWNER_BITS)
        flags = [Signal(2, name=f"flags{k}") for k in range(2)]     # valid, close
        alone = Signal()    # the gap is beside node and nibble
        direct = (1 << beside) - 1
        m.d.sync += [
            gap.eq(self.gap), owner.eq(self.owner), flags[0].eq(Cat(self.valid, self.close)), flags[1].eq(flags[0]),
            alone.eq(self.gap < direct),
        ]
        number = Signal(unit * pieces)
        last = Signal(pieces)   # one bit; none if the gap is beside
        front = Signal(OWNER_BITS + beside)
        digits = [gap[bits * k:bits * (k + 1)] for k in range(pieces)]
        beyond = [gap[bits * (k + 1):].any() if k + 1 < pieces else Const(0) for k in range(pieces)]
        m.d.sync += [
            number.eq(Mux(alone, 0, Cat(
                Cat(digit, Const(0, bits - len(digit)), more) for digit, more in zip(digits, beyond, strict=True)))),
            last.eq(Mux(alone, 0, Cat(
                (digits[k].any() if k else 1) & ~beyond[k] for k in range(pieces)))),
            front.eq(Cat(Mux(alone, gap[:beside], direct), owner) if beside else owner),
        ]

        # Both together.
        fronts = len(front) // unit
        m.d.sync += [
            self.o.groups.eq(
                number | reduce(or_, (Mux(last[k], front << unit * (k + 1), 0) for k in range(pieces))) if gap_first
                else Cat(front, number)),
            self.o.count.eq(Mux(flags[1][1], 0, fronts + reduce(or_, (Mux(last[k], k + 1, 0) for k in range(pieces))))),
            self.o.closes.eq(flags[1][1]), self.o.item.eq(1), self.o_valid.eq(flags[1].any()),
        ]
        return m


class CodedBeats(wiring.Component):
    """Coder and packer: items in, full beats of 16 bytes out."""

    def __init__(self, candidate: Candidate):
        self.candidate = candidate
        super().__init__({
            "gap": In(GAP_BITS), "owner": In(OWNER_BITS), "valid": In(1), "close": In(1),
            "beat": Out(8 * BEAT_BYTES), "beat_valid": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.coder = coder = Coder(self.candidate)
        m.submodules.packer = packed = packer.Packer(Geometry())
        m.d.comb += [
            coder.gap.eq(self.gap), coder.owner.eq(self.owner), coder.valid.eq(self.valid), coder.close.eq(self.close),
            packed.i.eq(coder.o), packed.valid.eq(coder.o_valid),
            self.beat.eq(packed.beats.p), self.beat_valid.eq(packed.beats.valid),
        ]
        return m


class Shell(Elaboratable):
    """A candidate behind shift registers, so that it has pins enough and nothing is optimized away; or, with none,
    the shift registers alone."""

    def __init__(self, candidate: Candidate | None):
        self.candidate = candidate
        self.clk = Signal()
        self.serial_in = Signal()
        self.serial_out = Signal()

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        shift_in = Signal(GAP_BITS + OWNER_BITS + 2)
        shift_out = Signal(8 * BEAT_BYTES)
        beat = Signal.like(shift_out)
        m.d.comb += [sync.clk.eq(self.clk), self.serial_out.eq(shift_out[0])]
        m.d.sync += [shift_in.eq(Cat(self.serial_in, shift_in)), shift_out.eq(shift_out[1:] ^ beat)]
        if self.candidate:
            m.submodules.room = room = CodedBeats(self.candidate)
            m.d.comb += Cat(room.gap, room.owner, room.valid, room.close).eq(shift_in)
            m.d.sync += beat.eq(room.beat ^ room.beat_valid)
        else:
            m.d.sync += beat.eq(Cat(shift_in[-1], beat))
        return m


def told(candidate: Candidate):
    """A context in which the packer packs units of this candidate."""
    return patch.multiple(
        packer, GROUP_BITS=candidate.unit, _SHIFT=candidate.unit.bit_length() - 1,
        BEAT_GROUPS=8 * BEAT_BYTES // candidate.unit,
        code_groups=lambda _: candidate.longest, code_layout=lambda _: code_layout(candidate))


def beats(candidate: Candidate, items: Iterable[tuple[int, int]]) -> bytes:
    """What comes of a block of items, gap and owner each, one a clock."""
    with told(candidate):
        room = CodedBeats(candidate)
        simulator = Simulator(room)
    out = b""

    async def give(ctx):
        for gap, owner in items:
            ctx.set(room.gap, gap)
            ctx.set(room.owner, owner)
            ctx.set(room.valid, 1)
            await ctx.tick()
        ctx.set(room.valid, 0)
        ctx.set(room.close, 1)
        await ctx.tick()
        ctx.set(room.close, 0)
        await ctx.tick().repeat(12)

    async def take(ctx):
        nonlocal out
        async for _, _, valid, beat in ctx.tick().sample(room.beat_valid, room.beat):
            if valid:
                out += beat.to_bytes(BEAT_BYTES, "little")

    simulator.add_clock(1e-8)
    simulator.add_testbench(give)
    simulator.add_testbench(take, background=True)
    simulator.run()
    return out


def netlist(candidate: Candidate | None) -> str:
    """RTLIL of the shell around a candidate."""
    shell = Shell(candidate)
    with told(candidate or CANDIDATES["bytes"]):
        return rtlil.convert(shell, name="top", ports=[shell.clk, shell.serial_in, shell.serial_out], emit_src=False)
