"""Registers: section 3.3's control, status, frame count and frame FIFO, and the registers that this project adds."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..accounts.accounts import account_settings
from ..accounts.counters import ROW, counter_rows
from ..input.glitch_filter import LASTING_BITS
from ..input.intake import intake_settings
from ..input.rate_limit import ITEMS_BITS, SPAN_BITS
from ..layout import (
    ABSENT_SHIFT,
    FORMAT_VERSION,
    FRONT_REGISTERS,
    GATE_CAUSES,
    IDENTITY_MAGIC,
    LATENCY,
    PORT_BITS,
    PRETRIGGER_MAX,
    REDUCTION_BASE,
    REGISTER_VERSION,
    REGISTERS,
    SYNC_LAG,
    Extra,
    Geometry,
    Option,
    Sink,
    Window,
)
from ..sinks.sinks import sink_settings
from ..time.board_time import time_settings
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
        readable = self._readable(m, host, index)
        settable = self._settable(host, host_flush, index)
        self._serve(m, reset, has_set, readable, settable)
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

    def _readable(self, m: Module, host: dict[str, Signal], index: Signal) -> dict[str, ValueLike]:
        """The value that each register shows."""
        geometry, intake, time, sinks = self.geometry, self.intake, self.time, self.sinks
        emulator, shown = intake.emulator, sinks.frames
        sticky = Signal(len(GATE_CAUSES))
        m.d.sync += sticky.eq(sticky | self.accounts.refused)
        m.d.comb += self.accounts.status.eq(Cat(sticky, shown.ready))
        frames, now = Signal(64), Signal(64)
        with m.If(self.accounts.latch):
            m.d.sync += [frames.eq(shown.generated), now.eq(self.now)]
        # One clock late, because `clear` has a long way to everything else.
        cleared = Signal()
        m.d.sync += cleared.eq(self.clear)
        with m.If(cleared):
            m.d.sync += [sticky.eq(0), frames.eq(0), now.eq(0)]
        if Sink.EXTENDED in geometry.sinks:
            m.d.sync += self.accounts.trigger.eq(
                Cat(sinks.start[31] & ~sinks.triggered, sinks.triggered, sinks.stopped))
        readable = {
            "STATUS": self.accounts.status,
            "FRAME_COUNT": shown.generated[:12],
            "FRAME_POS": Cat(shown.position, Const(0, 13), self.epoch),
            **self._identity(),
            "MODE": host["MODE"], "WORD_NODES": host["WORD_NODES"], "EVENT_NODES": host["EVENT_NODES"],
            "ITEM_TIMEOUT": intake.timeout,
            "EMULATOR": Cat(emulator.run, emulator.pattern),
            "EMULATOR_PERIOD": emulator.period, "EMULATOR_COUNT": emulator.count,
            "WINDOW": Array(Const(geometry.window_clocks(w), 16) for w in Window)[self.window],
            "EDGE_RISING": intake.rising, "EDGE_FALLING": intake.falling, "SAMPLE_AFTER": intake.after,
            "NODE_MASK": time.mask, "FLUSH": sinks.flush, "CENSUS": self.accounts.slow,
            "LEVEL": Cat(shown.level, self.vector_level), "RUN": shown.run, "FRAME_HIGH": shown.high,
            "TIME_LOW": now[:32], "TIME_HIGH": now[32:],
            "FRAMES_LOW": frames[:32], "FRAMES_HIGH": frames[32:],
            "REDUCTION_INDEX": index,
            "TRIGGER_START": sinks.start, "TRIGGER_STOP": sinks.stop, "PRETRIGGER": sinks.before,
            "TRIGGER_STATE": self.accounts.trigger,
            "DISCARDED_LOW": sinks.discarded[:32], "DISCARDED_HIGH": sinks.discarded[32:],
            "GLITCH": host["GLITCH"], "RATE_LIMIT": host["RATE_LIMIT"], "NIBBLE_MASK": intake.mask,
            "SYNC": Cat(host["SYNC"], time.waits, time.missing,
                        *([host["own"]] if Extra.DRIFT in geometry.extras else [])),
            "SYNC_STEPS": Cat(time.longer_count, time.shorter_count),
            "STORE_LEVEL": Cat(self.store_level, self.store_high),
            "EXTRAS": Const(sum(1 << extra for extra in geometry.extras), 8),
            "SYNC_ECHO": time.echo if Extra.ECHO in geometry.extras else Const(0, 32),
            "TRIGGER_PIN": time.pin if Extra.TRIGGER_IN in geometry.extras else Const(0, 2),
            **({"TRIGGER_OUT": Cat(sinks.out_done, sinks.out_late)} if Extra.TRIGGER_OUT in geometry.extras else {}),
            "EXTERNAL_LEVEL": self.external_level, "EXTERNAL_HIGH": self.external_high,
            **({"PHASES": host["PHASES"]} if geometry.phases == 4 else {}),
            **({"LINKS": Cat(Const(geometry.links, 8), self.accounts.links)} if geometry.links else {}),
            **(self._fronts() if geometry.fronts else {}),
        }
        missing = {name for name in self._names() if "R" in REGISTERS[name].access} - set(readable) - {"FRAME_FIFO"}
        assert not missing, missing
        return readable

    def _names(self) -> list[str]:
        """The registers that this board has: those of few boards are no part of others, which keep their netlist."""
        has = {"LINKS": self.geometry.links, "PHASES": self.geometry.phases == 4,
               "TRIGGER_OUT": Extra.TRIGGER_OUT in self.geometry.extras,
               **dict.fromkeys(FRONT_REGISTERS, bool(self.geometry.fronts))}
        return [name for name in REGISTERS if has.get(name, True)]

    def _fronts(self) -> dict[str, ValueLike]:
        """Registers of front ends."""
        kinds = Const(sum(front << 4 * node for node, front in enumerate(self.geometry.fronts)), 128)
        front = self.intake.front
        values = [front.span, front.uart, front.swo, front.lowest, *(kinds.word_select(k, 32) for k in range(4))]
        return dict(zip(FRONT_REGISTERS, values, strict=True))

    def _identity(self) -> dict[str, ValueLike]:
        """Identity of the board: constants, except for the latency."""
        geometry = self.geometry
        sinks = sum(1 << sink for sink in geometry.sinks)
        absent = sum(1 << option for option in geometry.absent)
        external = max(geometry.external_depth.bit_length() - 1, 0)
        return {
            "MAGIC": Const(IDENTITY_MAGIC, 32),
            "VERSION": Const(REGISTER_VERSION << 8 | FORMAT_VERSION, 16),
            "BUILD": Const(self.build, 32),
            "GEOMETRY": Cat(Const(
                geometry.nodes | geometry.port_bits << 8 | sinks << 16 | absent << ABSENT_SHIFT
                | (geometry.phases > 1) << 23 | (geometry.phases > 2) << 22, 24), self.latency),
            "CLOCK_HZ": Const(geometry.clock_hz, 32),
            "NODE_DEPTH": Const(geometry.node_depth, 16),
            "VECTOR_DEPTH": Const(geometry.vector_depth, 16),
            "FRAME_DEPTH": Const(geometry.frame_depth if Sink.CLASSIC in geometry.sinks else 0, 16),
            "STORE_DEPTH": Const(geometry.store_depth | external << 16, 32),
        }

    def _settable(self, host: dict[str, Signal], flush: Signal, index: Signal) -> dict[str, ValueLike]:
        """The settings that each register holds, of those that this board has."""
        geometry, intake, sinks = self.geometry, self.intake, self.sinks
        settable = {
            "EDGE_RISING": intake.rising, "EDGE_FALLING": intake.falling, "SAMPLE_AFTER": intake.after,
            "NODE_MASK": self.time.mask, "CENSUS": self.accounts.slow, "FLUSH": flush,
        }
        if Sink.EXTENDED in geometry.sinks:
            if len(geometry.sinks) > 1:
                settable["MODE"] = host["MODE"]
            settable |= {
                "WORD_NODES": host["WORD_NODES"], "EVENT_NODES": host["EVENT_NODES"], "ITEM_TIMEOUT": intake.timeout,
                "TRIGGER_START": sinks.start, "TRIGGER_STOP": sinks.stop, "PRETRIGGER": sinks.before,
            }
            if geometry.has(Option.REDUCTION):
                settable["REDUCTION_INDEX"] = index
        if geometry.emulated:
            emulator = intake.emulator
            settable |= {
                "EMULATOR": Cat(emulator.run, emulator.pattern),
                "EMULATOR_PERIOD": emulator.period, "EMULATOR_COUNT": emulator.count,
            }
        if geometry.guarded:
            settable["GLITCH"] = host["GLITCH"]
            if geometry.has(Option.RATE_LIMIT):
                settable["RATE_LIMIT"] = host["RATE_LIMIT"]
            if geometry.port_bits == PORT_BITS:
                settable["NIBBLE_MASK"] = intake.mask
        if geometry.synced:
            settable["SYNC"] = Cat(host["SYNC"], host["own"]) if Extra.DRIFT in geometry.extras else host["SYNC"]
        if geometry.phases == 4:
            settable["PHASES"] = host["PHASES"]
        if Extra.TRIGGER_IN in geometry.extras:
            settable["TRIGGER_PIN"] = self.time.pin
        if geometry.fronts:
            settable |= {name: value for name, value in self._fronts().items() if "W" in REGISTERS[name].access}
        return settable

    def _serve(self, m: Module, reset: Signal, has_set: Signal, readable: dict[str, ValueLike],
               settable: dict[str, ValueLike]) -> None:
        """Accesses. Reading takes several clocks, in stages of little logic each: one bit per register, the registers
        in groups of eight, the value."""
        access, accounts, shown = self.access, self.accounts, self.sinks.frames
        addr = Signal.like(access.addr)
        chosen = {name: Signal(name=f"at_{name.lower()}") for name in self._names()}
        names = list(readable)
        groups = [Signal(32, name=f"group{k}") for k in range(-(-len(names) // 8))]
        is_burst, is_counter, is_reduction = Signal(), Signal(), Signal()
        value = Signal(32)
        m.d.comb += accounts.reduction_address.eq(Cat(addr[3:5], readable["REDUCTION_INDEX"]))
        m.d.sync += accounts.reading.eq(access.start | (accounts.reading & ~access.done))
        with m.If(accounts.reading):
            m.d.sync += [
                addr.eq(access.addr), accounts.address.eq(addr[3:]),
                *(mine.eq(addr[2:] == REGISTERS[name].offset >> 2) for name, mine in chosen.items()),
                *(group.eq(reduce(or_, (Mux(chosen[n], readable[n], 0) for n in names[8 * k:8 * k + 8])))
                  for k, group in enumerate(groups)),
                is_burst.eq(addr[12]), is_counter.eq(addr[11] & ~addr[12] & (addr[6:11] < self.geometry.nodes)),
                is_reduction.eq(addr[5:] == REDUCTION_BASE >> 5), value.eq(reduce(or_, groups)),
            ]
        written = Signal()    # settings and `done` follow a clock later
        self._set(m, written, chosen, has_set, settable)
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

    def _set(self, m: Module, written: Signal, chosen: dict[str, Signal], has_set: Signal,
             settable: dict[str, ValueLike]) -> None:
        """A write is accepted by the register that is chosen."""
        wdata, sinks, emulator = self.access.wdata, self.sinks, self.intake.emulator
        # More than the trigger's memory holds would stop it for ever.
        values = {"PRETRIGGER": Mux(wdata > PRETRIGGER_MAX, PRETRIGGER_MAX, wdata)}
        if Extra.DRIFT in self.geometry.extras:
            values["SYNC"] = Cat(wdata[0], wdata[3])
        for name, setting in settable.items():
            with m.If(written & chosen[name]):
                m.d.sync += setting.eq(values.get(name, wdata))
        with m.If(written & chosen["FLUSH"]):
            m.d.sync += has_set.eq(1)
        if Sink.EXTENDED in self.geometry.sinks:
            m.d.comb += [sinks.load.eq(written & chosen["EVENT_MASK"]), sinks.entry.eq(wdata)]
        if self.geometry.emulated:
            m.d.comb += [emulator.load.eq(written & chosen["EMULATOR_REPLAY"]), emulator.entry.eq(wdata)]


def _half(word, addr):
    """The half of a word of 64 bits that the address names."""
    return Mux(addr[2], word[32:], word[:32])
