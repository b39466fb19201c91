"""SDRAM: controller of a single-data-rate SDRAM with 16 data pins, on the burst port of external memory."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES
from .block_source import BEAT_BITS
from .external_fifo import BURST, memory_signature
from .sdram_part import WORD_BYTES, SdramPart

__all__ = ["WORDS", "Command", "Sdram", "sdram_signature"]

_WORD_BITS = 8 * WORD_BYTES
#: Words per beat, and per burst of the memory itself.
WORDS = BEAT_BYTES // WORD_BYTES
#: Clocks from a command at the outputs to the first word at the input, in addition to the CAS latency: see
# Sdram.
_PADS = 2
#: Refreshes of the initialization.
_FIRST_REFRESHES = 8
_ALL_BANKS = 1 << 10
#: Mode register: bursts of 8, sequential, for writes too; the CAS latency is above these bits.
_MODE_BURST_8, _MODE_CL = 0b011, 4


class Command(enum.Enum, shape=3):
    """Commands, as levels of RAS, CAS, WE (bits 0, 1, 2), 1 for asserted."""

    NOP = 0b000
    ACTIVE = 0b001
    READ = 0b010
    PRECHARGE = 0b101
    WRITE = 0b110
    REFRESH = 0b011
    MODE = 0b111


def sdram_signature(part: SdramPart) -> wiring.Signature:
    """Pins of a part, as seen from its controller, with a flip-flop in the I/O cells in front of them.

    command : see :class:`Command`. cke : clock enable. mask : both DQM. dq_oe : ``dq_o`` is driven, from where a row
        is opened to be written to where the next one is opened.
    """
    return wiring.Signature({
        "cke": Out(1), "command": Out(Command), "bank": Out(part.bank_bits), "address": Out(part.row_bits),
        "mask": Out(1, init=1), "dq_o": Out(_WORD_BITS), "dq_oe": Out(1), "dq_i": In(_WORD_BITS),
    })


class Sdram(wiring.Component):
    """Bursts of beats in an SDRAM.

    Each burst is in one row, which is opened for it and closed after it. A beat is a burst of eight words of the
    memory, the lowest first; beats of one burst follow each other without a gap as long as they are available. Bursts
    are consecutive within a row; rows of one number in all banks come before the next row. Neighbouring bursts of a
    FIFO are therefore neighbours in the memory.

    A pending refresh waits for no more than the end of a beat, whatever else waits: then the row is closed, and
    reopened after the refresh. A beat to be written may therefore come any time after its command. Commands that come
    before the memory is initialized wait. Initialization consists of :attr:`SdramPart.pause` with the clock enable low,
    the same time with it high, the precharge, eight refreshes and the mode register.

    A burst of sixteen takes tRCD + 128 + tRP clocks and 2, at 100 MHz 136, and refreshes 15 of 780: 184 MB/s.

    The pads have flip-flops in both directions, and the memory's clock is the inverse of ``sync``'s: its rising edge
    is in the middle of each level it samples. ``dq_i`` has a word CL + 2 clocks after ``command`` had its read: one
    clock to the pads, CL in the memory, half a clock for its inverted clock, and half a clock for the routes to and
    from the pads. These routes must take the time of :meth:`.sdram_part.SdramPart.round_trip`: at 100 MHz from 2.5 to
    9 ns.

    Parameters
    ----------
    part : the memory, with its times.
    clock_hz : frequency of ``sync``.
    bursts : number of bursts it is to hold, from its address 0 on.
    burst : beats per burst, a power of two whose words fit a row.

    Members
    -------
    memory : the port, see :func:`~.external_fifo.memory_signature`.
    pins : see :func:`sdram_signature`.

    Raises
    ------
    ValueError
        for a clock that is too fast for the part, more bursts than it holds, or a burst that fits no row.
    """

    def __init__(self, part: SdramPart, clock_hz: int, bursts: int, burst: int = BURST):
        self.part, self.burst = part, burst
        self.clocks = part.clocks(clock_hz)
        if burst < 2 or burst & (burst - 1) or burst * WORDS > 1 << part.column_bits or part.column_bits > 10:
            raise ValueError(f"a row of {1 << part.column_bits} words has no room for bursts of {burst!r} beats")
        if bursts * burst * BEAT_BYTES > part.bytes:
            raise ValueError(f"{part.name} holds {part.bytes // BEAT_BYTES // burst} bursts, not {bursts!r}")
        super().__init__({"memory": In(memory_signature(bursts)), "pins": Out(sdram_signature(part))})

    def elaborate(self, platform):
        m = Module()
        part, clocks, pins = self.part, self.clocks, self.pins
        command, write, read = self.memory.command, self.memory.write, self.memory.read

        # Refreshes are due at a fixed rate; before the initialization they measure the time.
        until = Signal(range(clocks.interval), init=clocks.interval - 1)
        due = Signal()          # a refresh is to be done
        tick = Signal()
        m.d.comb += tick.eq(until == 0)
        m.d.sync += until.eq(Mux(tick, clocks.interval - 1, until - 1))
        with m.If(tick):
            m.d.sync += due.eq(1)

        # The present burst, and its progress.
        there = Signal()
        writing = Signal()
        number = Signal.like(command.p.burst)
        at = Signal(range(self.burst))
        done = Signal()         # all of its commands have been issued
        m.d.comb += command.ready.eq(~there)
        with m.If(command.valid & command.ready):
            m.d.sync += [there.eq(1), writing.eq(command.p.write), number.eq(command.p.burst), at.eq(0)]
        place = Cat(Const(0, WORDS.bit_length() - 1), at, number)
        column = place[:part.column_bits]
        bank = place[part.column_bits:part.column_bits + part.bank_bits]
        row = place[part.column_bits + part.bank_bits:]

        # A beat on its way out: one word per clock.
        words = Signal(BEAT_BITS)
        full = Signal()                 # it is all there
        sending = Signal(range(WORDS))  # words of one that are to follow
        m.d.comb += write.ready.eq(~full & (sending < 2))
        m.d.sync += [words.eq(words >> _WORD_BITS), pins.dq_o.eq(words[:_WORD_BITS])]
        with m.If(sending != 0):
            m.d.sync += sending.eq(sending - 1)
        with m.If(full):
            m.d.sync += words.eq(words)
        with m.If(write.valid & write.ready):
            m.d.sync += [full.eq(1), words.eq(write.p)]

        # A beat on its way in.
        asked = Signal()
        coming = Signal(1 + clocks.cl + _PADS + WORDS)
        m.d.sync += [coming.eq(Cat(asked, coming)), read.p.eq(Cat(read.p[_WORD_BITS:], pins.dq_i))]
        m.d.comb += read.valid.eq(coming[-1])

        # Commands to the memory, each issued the required time after the one before.
        recover = max(clocks.wr - 1, clocks.cl, clocks.ras - clocks.rcd)
        wait = Signal(range(max(clocks.rfc, clocks.rcd, clocks.rp, clocks.mrd, recover, WORDS)))
        go = Signal()
        pauses = -(-clocks.pause // clocks.interval)
        passed = Signal(range(2 * pauses))
        first = Signal(range(_FIRST_REFRESHES))
        m.d.comb += go.eq(wait == 0)
        m.d.sync += [wait.eq(Mux(go, 0, wait - 1)), pins.command.eq(Command.NOP)]

        def say(what: Command, then: int, **more) -> list:
            return [pins.command.eq(what), wait.eq(then - 1), *(getattr(pins, k).eq(v) for k, v in more.items())]

        with m.FSM():
            with m.State("POWER"):
                m.d.sync += [due.eq(0), pins.mask.eq(1)]
                with m.If(tick):
                    m.d.sync += passed.eq(passed + 1)
                    with m.If(passed == pauses - 1):
                        m.d.sync += pins.cke.eq(1)
                    with m.If(passed == 2 * pauses - 1):
                        m.next = "FIRST_PRECHARGE"
            with m.State("FIRST_PRECHARGE"):
                m.d.sync += say(Command.PRECHARGE, clocks.rp, address=_ALL_BANKS)
                m.next = "FIRST_REFRESH"
            with m.State("FIRST_REFRESH"), m.If(go):
                m.d.sync += [*say(Command.REFRESH, clocks.rfc), first.eq(first + 1)]
                with m.If(first == _FIRST_REFRESHES - 1):
                    m.next = "MODE"
            with m.State("MODE"), m.If(go):
                m.d.sync += [
                    *say(Command.MODE, clocks.mrd, address=_MODE_BURST_8 | clocks.cl << _MODE_CL, bank=0),
                    pins.mask.eq(0), due.eq(0)]
                m.next = "CLOSED"
            with m.State("CLOSED"), m.If(go):
                with m.If(due):
                    m.d.sync += [*say(Command.REFRESH, clocks.rfc), due.eq(0)]
                with m.Elif(there):
                    m.d.sync += [*say(Command.ACTIVE, clocks.rcd, address=row, bank=bank), pins.dq_oe.eq(writing)]
                    m.next = "OPEN"
            with m.State("OPEN"), m.If(go):
                with m.If(done | due):
                    m.d.sync += [wait.eq(recover - 1), there.eq(there & ~done), done.eq(0)]
                    m.next = "CLOSE"
                with m.Elif(~writing | full):
                    with m.If(writing):
                        m.d.sync += [
                            *say(Command.WRITE, WORDS, address=column), full.eq(0), sending.eq(WORDS - 1),
                            words.eq(words >> _WORD_BITS)]
                    with m.Else():
                        m.d.sync += say(Command.READ, WORDS, address=column)
                        m.d.comb += asked.eq(1)
                    m.d.sync += [at.eq(at + 1), done.eq(at == self.burst - 1)]
            with m.State("CLOSE"), m.If(go):
                m.d.sync += say(Command.PRECHARGE, clocks.rp, address=_ALL_BANKS)
                m.next = "CLOSED"
        return m
