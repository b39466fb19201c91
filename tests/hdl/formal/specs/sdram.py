"""Specification of the SDRAM's controller, at reduced sizes: what it says to the memory, when, and with which words."""

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.stream.sdram_controller import Command, Sdram
from hypermon.hdl.stream.sdram_part import SdramPart

from ..prover import Spec, exposing, opened, using

__all__ = ["SdramSpec"]

#: Words of a beat, of one bit each; beats of a burst; bursts, two a row, in two rows of two banks.
WORDS, BURST, BURSTS = 4, 2, 8
HZ = 100_000_000
#: Times of as many clocks as keep them apart; a refresh every 39.
PART = SdramPart(
    "small", bank_bits=1, row_bits=11, column_bits=4, ck2=10_000, ck3=10_000, rcd=20_000, rp=30_000, ras=60_000,
    ras_max=0, rc=80_000, rrd=20_000, rfc=40_000, mrd=20_000, mrd_clocks=2, wr=20_000, ac2=0, ac3=0, oh=0, hz=0, su=0,
    hd=0, refresh_window=800_000, refreshes=2, pause=300_000)


def _memory(bursts: int) -> wiring.Signature:
    command = data.StructLayout({"write": 1, "burst": (bursts - 1).bit_length()})
    return wiring.Signature({
        "command": Out(stream.Signature(command)), "write": Out(stream.Signature(WORDS)),
        "read": In(stream.Signature(WORDS, always_ready=True)),
    })


class SdramSpec(Spec):
    """Rows are opened, used, closed and refreshed as the data sheet says, and no sooner; a command's burst is all its
    columns in order, in its row and bank, and nothing else; a beat that was taken is written once, word by word; what
    is read comes when it is to come; no refresh is left out, whatever is waited for; both sides never drive at once.
    """

    def __init__(self, sdram=Sdram):
        super().__init__()
        sdram, self.signals = exposing(sdram)
        self.sdram = using(sdram, WORDS=WORDS, _WORD_BITS=1, BEAT_BITS=WORDS, BEAT_BYTES=1, _FIRST_REFRESHES=2,
                           memory_signature=_memory)

    def specify(self, m: Module) -> None:
        dut = self.sdram(PART, HZ, BURSTS, BURST)
        m.submodules.dut = opened(dut)
        command, write, read, pins = dut.memory.command, dut.memory.write, dut.memory.read, dut.pins
        m.d.comb += [
            command.valid.eq(self.free(1, "valid")), command.p.eq(self.free(4, "command")),
            write.valid.eq(self.free(1, "beats")), write.p.eq(self.free(WORDS, "beat")),
            pins.dq_i.eq(self.free(1, "dq_i")),
        ]
        said = {what: Signal(name=f"says_{what.name.lower()}") for what in Command}
        m.d.comb += [signal.eq(pins.command.as_value() == what.value) for what, signal in said.items()]
        active, reads, writes = said[Command.ACTIVE], said[Command.READ], said[Command.WRITE]
        precharge, refresh, mode = said[Command.PRECHARGE], said[Command.REFRESH], said[Command.MODE]
        self._times(m, said)
        access = reads | writes

        # The row that is open, and the burst in hand.
        is_open, bank, row = Signal(), Signal(), Signal(PART.row_bits)
        there, writing, burst, at = Signal(), Signal(), Signal(range(BURSTS)), Signal(range(BURST + 1))
        with m.If(active):
            m.d.sync += [is_open.eq(1), bank.eq(pins.bank), row.eq(pins.address)]
        with m.If(precharge):
            m.d.sync += is_open.eq(0)
        with m.If(access):
            m.d.sync += at.eq(at + 1)
        with m.If(command.valid & command.ready):
            m.d.sync += [there.eq(1), writing.eq(command.p.write), burst.eq(command.p.burst), at.eq(0)]
        m.d.comb += [
            Assert(~active | ~is_open), Assert(~access | is_open), Assert(~(refresh | mode) | ~is_open),
            Assert(~precharge | pins.address[10]),
            Assert(~(command.valid & command.ready) | ~there | (at == BURST), "one burst after the other"),
            Assert(~access | (there & (at != BURST) & (writing == writes)), "what was asked for"),
            Assert(~access | (pins.address == Cat(Const(0, 2), at[0], burst[0])), "the next column"),
            Assert(~access | ((bank == burst[1]) & (row == burst[2])), "in its row"),
            Assert(~access | (pins.bank == bank)),
        ]

        # Its beats.
        has, latest, now, words = Signal(), Signal(WORDS), Signal(WORDS), Signal(range(WORDS))
        took = write.valid & write.ready
        m.d.comb += [Assert(~writes | has, "a beat that is there"), Assert(~took | ~has | writes, "and only once"),
                     Assert(~(writes & (words != 0)), "whole")]
        m.d.sync += [has.eq(took | (has & ~writes)), words.eq(Mux(writes, WORDS - 1, Mux(words == 0, 0, words - 1)))]
        with m.If(took):
            m.d.sync += latest.eq(write.p)
        with m.If(writes):
            m.d.sync += now.eq(latest >> 1)
        with m.Else():
            m.d.sync += now.eq(now >> 1)
        m.d.comb += [
            Assert(~writes | (pins.dq_oe & (pins.dq_o == latest[0]))),
            Assert((words == 0) | (pins.dq_oe & (pins.dq_o == now[0]))),
        ]
        late = dut.clocks.cl + 2 + WORDS
        line, came = Signal(late), Signal(WORDS)
        m.d.sync += [line.eq(Cat(reads, line)), came.eq(Cat(came[1:], pins.dq_i))]
        m.d.comb += [
            Assert(read.valid == line[-1], "in time"), Assert(~read.valid | (read.p == came), "as it came"),
            Assert(~(pins.dq_oe & line[:dut.clocks.cl + WORDS].any()), "both sides drive"),
        ]

        # Refreshes.
        interval, tick = dut.clocks.interval, self.signals["tick"]
        ready, owed, age = Signal(), Signal(), Signal(range(interval + 1))
        with m.If(mode):
            m.d.sync += ready.eq(1)
        m.d.sync += [owed.eq(ready & (tick | (owed & ~refresh))), age.eq(Mux(tick, 0, age + 1))]
        m.d.comb += [Assert(age < interval, "one is due in each interval"), Assert(~(tick & owed), "and none left out"),
                     Assert(~active | ready), Assert(~(ready & mode))]

    def _times(self, m: Module, said: dict[Command, Signal]) -> None:
        """Each command as long behind others as it must be."""
        clocks = PART.clocks(HZ)
        least = {
            Command.ACTIVE: {Command.ACTIVE: clocks.rc, Command.PRECHARGE: clocks.rp, Command.REFRESH: clocks.rfc,
                             Command.MODE: clocks.mrd},
            Command.READ: {Command.ACTIVE: clocks.rcd, Command.READ: WORDS, Command.WRITE: WORDS},
            Command.WRITE: {Command.ACTIVE: clocks.rcd, Command.READ: WORDS + clocks.cl, Command.WRITE: WORDS},
            Command.PRECHARGE: {Command.ACTIVE: clocks.ras, Command.READ: WORDS,
                                Command.WRITE: WORDS - 1 + clocks.wr},
            Command.REFRESH: {Command.PRECHARGE: clocks.rp, Command.REFRESH: clocks.rfc, Command.MODE: clocks.mrd},
            Command.MODE: {Command.PRECHARGE: clocks.rp, Command.REFRESH: clocks.rfc},
        }
        most = max(max(after.values()) for after in least.values())
        for first in Command:
            if first is Command.NOP:
                continue
            since = Signal(range(most + 1), init=most, name=f"since_{first.name.lower()}")
            m.d.sync += since.eq(Mux(said[first], 1, Mux(since == most, most, since + 1)))
            for then, after in least.items():
                if first in after:
                    m.d.comb += Assert(~said[then] | (since >= after[first]), f"{then.name} after {first.name}")
