"""Registers: section 3.3's control, status, frame count and frame FIFO, and the registers that this project adds."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..accounts.accounts import account_settings
from ..accounts.counters import ROW, counter_rows
from ..input.glitch_filter import LASTING_BITS
from ..input.intake import intake_settings
from ..input.rate_limit import ITEMS_BITS, SPAN_BITS
from ..layout import (
    LATENCY,
    PRETRIGGER_MAX,
    REDUCTION_BASE,
    REGISTERS,
    SYNC_LAG,
    Extra,
    Geometry,
    Sink,
    Window,
)
from ..sinks.sinks import sink_settings
from ..time.board_time import time_settings
from .bindings import Binding, bindings, present
from .pbx import access_signature

__all__ = ["Registers"]


class Registers(wiring.Component):
    """The register file of :data:`~.layout.REGISTERS`.

    An access takes eight clocks, ten on a board with narrow beats; a repeated one of FRAME_FIFO takes three, or four
    for the first word of a frame. A write of CONTROL with reset ends with the reset; a write of LATCH ends when the
    copies are complete. A read of an address without a register returns 0; a write to it has no effect.

    Parameters
    ----------
    geometry : the board's geometry.
    build : value of BUILD.
    geared : cells outside take four samples of each strobe per clock, whose phases have to be proven.

    Members
    -------
    access : from the bus.
    clear : reset in progress: high for a sweep of the counters and longer, at power-up too.
    epoch, window : CONTROL, for the blocks' headers.
    latency : clocks from pad to window, as in force.
    intake, time, sinks, accounts : settings for these stages, and the state that they show.
    now : the window's number.
    vector_level : the value that LEVEL shows.
    store_level, store_high, external_level, external_high : data that wait for the link.
    """

    def __init__(self, geometry: Geometry, build: int = 0, geared: bool = False):
        self.geometry, self.build, self.geared = geometry, build, geared
        super().__init__({
            "access": In(access_signature()), "clear": Out(1, init=1), "epoch": Out(16), "window": Out(2),
            "latency": Out(8, init=LATENCY),
            "intake": Out(intake_settings(geometry)), "time": Out(time_settings(geometry)),
            "sinks": Out(sink_settings(geometry)), "accounts": Out(account_settings(geometry)),
            "now": In(64), "vector_level": In(16),
            "store_level": In(16), "store_high": In(16), "external_level": In(32), "external_high": In(32),
        })

    def elaborate(self, platform):
        m = Module()
        reset = Signal()
        has_set = Signal()      # the host has set FLUSH
        host = self._reset(m, reset)
        host_flush = self._flush(m, has_set)
        index = Signal(11)      # index of the reduction
        self._serve(m, reset, has_set, bindings(self, m, host, host_flush, index))
        m.d.comb += [
            *(copy.eq(self.window) for copy in (self.time.window, self.sinks.window, self.accounts.window)),
            self.accounts.enable.eq(self.time.enable), self.accounts.follow.eq(self.time.follow),
            self.accounts.missing.eq(self.time.missing),
            self.intake.words.eq(self.sinks.words), self.intake.events.eq(self.sinks.events),
        ]
        return m

    def _reset(self, m: Module, reset: Signal) -> dict[str, Signal]:
        """Resets: each lasts for a sweep of the counters and a few clocks, so that every swept memory is zeroed.
        Returns, by register, the settings that take effect only at the next reset, as the window does."""
        geometry, nodes = self.geometry, self.geometry.nodes
        elapsed = Signal((ROW * counter_rows(nodes) + 8).bit_length() + 1)
        m.d.sync += [reset.eq(0), elapsed.eq(elapsed + ~elapsed[-1])]
        with m.If(reset):
            m.d.sync += [
                self.clear.eq(1), elapsed.eq(0), self.epoch.eq(self.epoch + 1),
                self.window.eq(self.access.wdata[2:4]),
            ]
        with m.Elif(elapsed[-1] & ~self.accounts.clearing):
            m.d.sync += self.clear.eq(0)

        mode = Signal(init=geometry.first_sink)
        words, events = Signal(nodes), Signal(nodes)
        with m.If(reset & (Sink.EXTENDED in geometry.sinks)):
            m.d.sync += [
                self.sinks.extended.eq(mode),
                self.sinks.words.eq(words & mode.replicate(nodes)),
                self.sinks.events.eq(events & mode.replicate(nodes)),
            ]
        # The filter affects the latency; so does time that follows another board's.
        glitch = Signal(LASTING_BITS)
        limit = Signal(ITEMS_BITS + SPAN_BITS)
        if geometry.guarded:
            with m.If(reset):
                m.d.sync += [
                    Cat(self.intake.items, self.intake.span).eq(limit),
                    self.intake.more.eq(Mux(glitch == 0, 0, glitch - 1)),
                ]
        follow = Signal()
        if geometry.synced:
            with m.If(reset):
                m.d.sync += self.time.follow.eq(follow)
        own = Signal()
        if Extra.DRIFT in geometry.extras:
            with m.If(reset):
                m.d.sync += self.time.own.eq(own & follow)
        if geometry.guarded or geometry.synced:
            m.d.sync += self.latency.eq(self.intake.more + Mux(self.time.follow, LATENCY - SYNC_LAG, LATENCY))
        proven = Signal(init=not self.geared)
        if geometry.phases == 4:
            with m.If(reset):
                m.d.sync += self.sinks.fine.eq(proven)
        return {"MODE": mode, "WORD_NODES": words, "EVENT_NODES": events, "GLITCH": glitch, "RATE_LIMIT": limit,
                "SYNC": follow, "own": own, "PHASES": proven}

    def _flush(self, m: Module, has_set: Signal) -> Signal:
        """FLUSH: one millisecond in windows, for the setting in force; kept when the host has set another value.
        Returns that value."""
        geometry, flush = self.geometry, self.sinks.flush
        each = Array(Const(geometry.clock_hz // 1000 // geometry.window_clocks(w), 32) for w in Window)[self.window]
        if geometry.narrow:
            with m.If(~has_set):
                m.d.sync += flush.eq(each)
            return flush
        host_flush = Signal(32)
        millisecond = Signal(32)
        m.d.sync += [millisecond.eq(each), flush.eq(Mux(has_set, host_flush, millisecond))]
        return host_flush

    def _serve(self, m: Module, reset: Signal, has_set: Signal, bound: dict[str, Binding]) -> None:
        """Accesses. Reading takes several clocks, in stages of little logic each: one bit per register, the registers
        in groups of eight, the value."""
        access, accounts, shown = self.access, self.accounts, self.sinks.frames
        addr = Signal.like(access.addr)
        chosen = {name: Signal(name=f"at_{name.lower()}") for name in present(self.geometry)}
        names = list(bound)
        groups = [Signal(32, name=f"group{k}") for k in range(-(-len(names) // 8))]
        is_burst, is_counter, is_reduction = Signal(), Signal(), Signal()
        value = Signal(32)
        m.d.comb += accounts.reduction_address.eq(Cat(addr[3:5], bound["REDUCTION_INDEX"].shows))
        m.d.sync += accounts.reading.eq(access.start | (accounts.reading & ~access.done))
        with m.If(accounts.reading):
            m.d.sync += [
                addr.eq(access.addr), accounts.address.eq(addr[3:]),
                *(mine.eq(addr[2:] == REGISTERS[name].offset >> 2) for name, mine in chosen.items()),
                *(group.eq(reduce(or_, (Mux(chosen[n], bound[n].shows, 0) for n in names[8 * k:8 * k + 8])))
                  for k, group in enumerate(groups)),
                is_burst.eq(addr[12]), is_counter.eq(addr[11] & ~addr[12] & (addr[6:11] < self.geometry.nodes)),
                is_reduction.eq(addr[5:] == REDUCTION_BASE >> 5), value.eq(reduce(or_, groups)),
            ]
        written = Signal()    # settings and `done` follow a clock later
        self._accept(m, written, chosen, has_set, bound)
        steps = Signal(3)
        settled = Signal()    # value and counter are valid
        finished = Signal()   # so is a reset, or a latch
        m.d.sync += [
            access.done.eq(written), shown.read.eq(0), accounts.latch.eq(0), written.eq(0), finished.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [steps.eq(0), settled.eq(0)]
                with m.If(access.start):
                    m.next = "SELECT"
                    with m.If(access.again & (is_burst | chosen["FRAME_FIFO"])):
                        m.next = "AGAIN"
            with m.State("AGAIN"):
                # Four clocks after the last read the next word has settled; a frame's first one, a clock later.
                m.next = "READ"
                with m.If(shown.position == 0):
                    m.next = "FIRST"
            with m.State("FIRST"):
                m.next = "READ"
            with m.State("SELECT"):
                # addr, address and chosen, groups, value and counter, which comes later if the latches share a memory
                m.d.sync += [steps.eq(steps + 1), settled.eq(steps == (5 if self.geometry.narrow else 3))]
                with m.If(settled):
                    m.next = "READ"
                    with m.If(access.write):
                        m.next = "WRITE"
            with m.State("READ"):
                m.d.sync += [access.rdata.eq(value), access.done.eq(1)]
                with m.If(is_burst | chosen["FRAME_FIFO"]):
                    m.d.sync += [access.rdata.eq(shown.word), shown.read.eq(1)]
                with m.Elif(is_counter):
                    m.d.sync += access.rdata.eq(_half(accounts.counter, addr))
                with m.Elif(is_reduction):
                    m.d.sync += access.rdata.eq(_half(accounts.reduction_word, addr))
                m.next = "IDLE"
            with m.State("WRITE"):
                m.d.sync += written.eq(1)
                m.next = "IDLE"
                with m.If(chosen["CONTROL"]):
                    # With a reset, time must not start before it is over.
                    wdata = access.wdata
                    m.d.sync += [
                        self.time.enable.eq(wdata[1] & ~wdata[0]), self.sinks.stream.eq(wdata[4]), reset.eq(wdata[0]),
                        written.eq(0),
                    ]
                    m.next = "RESET"
                with m.If(chosen["LATCH"]):
                    m.d.sync += [accounts.latch.eq(1), written.eq(0)]
                    m.next = "LATCH"
            with m.State("RESET"):
                m.d.sync += finished.eq(~self.clear & ~reset)
                with m.If(finished):
                    m.d.sync += [self.time.enable.eq(access.wdata[1]), access.done.eq(1)]
                    m.next = "IDLE"
            with m.State("LATCH"):
                m.d.sync += finished.eq((accounts.latched & ~accounts.latch) | self.clear)
                with m.If(finished):
                    m.d.sync += access.done.eq(1)
                    m.next = "IDLE"

    def _accept(self, m: Module, written: Signal, chosen: dict[str, Signal], has_set: Signal,
                bound: dict[str, Binding]) -> None:
        """A write is accepted by the register that is chosen."""
        wdata, sinks, emulator = self.access.wdata, self.sinks, self.intake.emulator
        # More than the trigger's memory holds would stop it for ever.
        values = {"PRETRIGGER": Mux(wdata > PRETRIGGER_MAX, PRETRIGGER_MAX, wdata)}
        if Extra.DRIFT in self.geometry.extras:
            values["SYNC"] = Cat(wdata[0], wdata[3])
        for name, binding in bound.items():
            if binding.sets is not None:
                with m.If(written & chosen[name]):
                    m.d.sync += binding.sets.eq(values.get(name, wdata))
        with m.If(written & chosen["FLUSH"]):
            m.d.sync += has_set.eq(1)
        if Sink.EXTENDED in self.geometry.sinks:
            m.d.comb += [sinks.load.eq(written & chosen["EVENT_MASK"]), sinks.entry.eq(wdata)]
        if self.geometry.emulated:
            m.d.comb += [emulator.load.eq(written & chosen["EMULATOR_REPLAY"]), emulator.entry.eq(wdata)]


def _half(word, addr):
    """The half of a word of 64 bits that the address names."""
    return Mux(addr[2], word[32:], word[:32])
