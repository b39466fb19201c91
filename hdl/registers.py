"""Registers: section 3.3's control, status, frame count and frame FIFO, and the rebuild's own."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .counters import ROW, counter_rows
from .emulator import emulator_settings
from .event_mask import mask_entry
from .glitch import LASTING_BITS
from .layout import (
    COUNTER_BITS,
    FORMAT_VERSION,
    IDENTITY_MAGIC,
    LATENCY,
    PORT_BITS,
    PRETRIGGER_MAX,
    REDUCTION_BASE,
    REGISTER_VERSION,
    REGISTERS,
    SYNC_LAG,
    Geometry,
    Sink,
    Window,
)
from .limiter import ITEMS_BITS, SPAN_BITS
from .pbx import access_signature

__all__ = ["Registers"]


class Registers(wiring.Component):
    """The register file of :data:`~.layout.REGISTERS`.

    An access takes eight clocks, ten on a board with narrow beats; a write of CONTROL with reset, and of LATCH, until
    it is done.
    A read of an address without a register gives 0, a write to it does nothing.

    Parameters
    ----------
    geometry : of the board.
    build : value of BUILD.

    Members
    -------
    access : from the bus.
    clear : reset in progress: high for a sweep of the counters and longer, at power-up too.
    epoch, enable, stream, window : CONTROL.
    rising, falling, after, mask, flush, slow : the settings.
    extended : the sink in force is the extended one.
    words, events : item modes in force, none but with the extended sink.
    timeout : ITEM_TIMEOUT.
    emulator : settings of the node emulator.
    more, items, span : of the glitch filter and the rate limit in force; 0 on a board without them.
    follow : time follows another board's, as in force; 0 on a board that cannot.
    waits, missing, longer_count, shorter_count : of it, see :class:`~.sync.Sync`.
    latency : clocks from pad to window, as in force.
    nibble_mask : NIBBLE_MASK.
    trigger_start, trigger_stop, pretrigger, triggered, stopped : to and from the trigger.
    trigger : what TRIGGER_STATE shows.
    mask_load, mask_entry : a write of EVENT_MASK. ``discarded``: see :class:`~.compact_sink.CompactSink`.
    refused : causes of refusals at present, ORed into STATUS.
    ready, word, position, read : to the frame port.
    high, run, level, vector_level, frames, now, window_clocks : what the read-only ones show.
    store_level, store_high, external_level, external_high : likewise, of what waits for the link.
    latch, latched, reading, address, counter : to the counters.
    clearing : a reset is to last on, for what is zeroed elsewhere.
    reduction_address, reduction_word : to the reduction; the word comes three clocks later.
    status : STATUS.
    """

    def __init__(self, geometry: Geometry, build: int = 0):
        self.geometry, self.build = geometry, build
        nodes = geometry.nodes
        super().__init__({
            "access": In(access_signature()),
            "clear": Out(1, init=1), "epoch": Out(16), "enable": Out(1), "stream": Out(1), "window": Out(2),
            "rising": Out(nodes, init=-1 % (1 << nodes)), "falling": Out(nodes), "after": Out(nodes),
            "mask": Out(nodes, init=-1 % (1 << nodes)), "flush": Out(32), "slow": Out(1),
            "extended": Out(1, init=geometry.first_sink), "words": Out(nodes), "events": Out(nodes),
            "timeout": Out(32, init=geometry.clock_hz // 100), "emulator": Out(emulator_settings()),
            "more": Out(LASTING_BITS), "items": Out(ITEMS_BITS), "span": Out(SPAN_BITS),
            "latency": Out(8, init=LATENCY), "nibble_mask": Out(16, init=0xffff),
            "trigger_start": Out(32), "trigger_stop": Out(32), "pretrigger": Out(9),
            "triggered": In(1), "stopped": In(1), "trigger": Out(3), "discarded": In(COUNTER_BITS), "follow": Out(1),
            "mask_load": Out(1), "mask_entry": Out(mask_entry()),
            "waits": In(1), "missing": In(1), "longer_count": In(16), "shorter_count": In(16),
            "refused": In(3), "ready": In(1), "status": Out(4),
            "word": In(32), "position": In(3), "read": Out(1),
            "high": In(32), "run": In(16), "level": In(16), "vector_level": In(16),
            "frames": In(64), "now": In(64),
            "store_level": In(16), "store_high": In(16), "external_level": In(32), "external_high": In(32),
            "latch": Out(1), "latched": In(1),
            "reading": Out(1), "address": Out(range(ROW * counter_rows(nodes))), "counter": In(COUNTER_BITS),
            "clearing": In(1), "reduction_address": Out(13), "reduction_word": In(COUNTER_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        geometry, access, emulator = self.geometry, self.access, self.emulator
        nodes = geometry.nodes

        addr = Signal.like(access.addr)

        # Reset: a sweep of the counters and a few clocks, so that every swept memory is zeroed.
        new_window = access.wdata[2:4]
        elapsed = Signal((ROW * counter_rows(nodes) + 8).bit_length() + 1)
        reset = Signal()
        m.d.sync += [reset.eq(0), elapsed.eq(elapsed + ~elapsed[-1])]
        with m.If(reset):
            m.d.sync += [self.clear.eq(1), elapsed.eq(0), self.epoch.eq(self.epoch + 1), self.window.eq(new_window)]
        with m.Elif(elapsed[-1] & ~self.clearing):
            m.d.sync += self.clear.eq(0)

        # The sink and the item modes asked for, taken at the next reset, as the window is.
        mode = Signal(init=geometry.first_sink)
        words = Signal(nodes)
        events = Signal(nodes)
        with m.If(reset & (Sink.EXTENDED in geometry.sinks)):
            m.d.sync += [
                self.extended.eq(mode),
                self.words.eq(words & mode.replicate(nodes)), self.events.eq(events & mode.replicate(nodes)),
            ]

        # So are those of the glitch filter, which has to do with the latency, and of the rate limit.
        glitch = Signal(LASTING_BITS)
        limit = Signal(ITEMS_BITS + SPAN_BITS)
        if geometry.guarded:
            with m.If(reset):
                m.d.sync += [Cat(self.items, self.span).eq(limit), self.more.eq(Mux(glitch == 0, 0, glitch - 1))]
        follow = Signal()
        if geometry.synced:
            with m.If(reset):
                m.d.sync += self.follow.eq(follow)
        if geometry.guarded or geometry.synced:
            m.d.sync += self.latency.eq(self.more + Mux(self.follow, LATENCY - SYNC_LAG, LATENCY))

        # A millisecond in windows, for the setting in force; kept when the host has set another.
        window_clocks = Array(Const(geometry.window_clocks(w), 16) for w in Window)[self.window]
        host_flush = Signal(32)
        host_has_set = Signal()
        millisecond = Signal(32)
        each = Array(Const(geometry.clock_hz // 1000 // geometry.window_clocks(w), 32) for w in Window)[self.window]
        if geometry.narrow:
            host_flush = self.flush
            with m.If(~host_has_set):
                m.d.sync += self.flush.eq(each)
        else:
            m.d.sync += [millisecond.eq(each), self.flush.eq(Mux(host_has_set, host_flush, millisecond))]

        sticky = Signal(3)
        m.d.sync += sticky.eq(sticky | self.refused)
        m.d.comb += self.status.eq(Cat(sticky, self.ready))

        frames = Signal(64)
        now = Signal(64)
        with m.If(self.latch):
            m.d.sync += [frames.eq(self.frames), now.eq(self.now)]
        # A clock late, for `clear` has a long way to everything else.
        cleared = Signal()
        m.d.sync += cleared.eq(self.clear)
        with m.If(cleared):
            m.d.sync += [sticky.eq(0), frames.eq(0), now.eq(0)]

        index = Signal(11)     # of the reduction
        m.d.comb += self.reduction_address.eq(Cat(addr[3:5], index))

        readable = {
            "STATUS": self.status,
            "FRAME_COUNT": self.frames[:12],
            "FRAME_POS": Cat(self.position, Const(0, 13), self.epoch),
            "MAGIC": Const(IDENTITY_MAGIC, 32),
            "VERSION": Const(REGISTER_VERSION << 8 | FORMAT_VERSION, 16),
            "BUILD": Const(self.build, 32),
            "GEOMETRY": Cat(
                Const(nodes | geometry.port_bits << 8 | sum(1 << s for s in geometry.sinks) << 16
                      | geometry.half_clock << 23, 24), self.latency),
            "CLOCK_HZ": Const(geometry.clock_hz, 32),
            "NODE_DEPTH": Const(geometry.node_depth, 16),
            "VECTOR_DEPTH": Const(geometry.vector_depth, 16),
            "FRAME_DEPTH": Const(geometry.frame_depth if Sink.CLASSIC in geometry.sinks else 0, 16),
            "MODE": mode, "WORD_NODES": words, "EVENT_NODES": events, "ITEM_TIMEOUT": self.timeout,
            "EMULATOR": Cat(emulator.run, emulator.pattern),
            "EMULATOR_PERIOD": emulator.period, "EMULATOR_COUNT": emulator.count,
            "WINDOW": window_clocks,
            "EDGE_RISING": self.rising, "EDGE_FALLING": self.falling, "SAMPLE_AFTER": self.after,
            "NODE_MASK": self.mask, "FLUSH": self.flush, "CENSUS": self.slow,
            "LEVEL": Cat(self.level, self.vector_level),
            "RUN": self.run, "FRAME_HIGH": self.high,
            "TIME_LOW": now[:32], "TIME_HIGH": now[32:],
            "FRAMES_LOW": frames[:32], "FRAMES_HIGH": frames[32:],
            "REDUCTION_INDEX": index,
            "TRIGGER_START": self.trigger_start, "TRIGGER_STOP": self.trigger_stop, "PRETRIGGER": self.pretrigger,
            "TRIGGER_STATE": self.trigger,
            "DISCARDED_LOW": self.discarded[:32], "DISCARDED_HIGH": self.discarded[32:],
            "GLITCH": glitch, "RATE_LIMIT": limit, "NIBBLE_MASK": self.nibble_mask,
            "SYNC": Cat(follow, self.waits, self.missing), "SYNC_STEPS": Cat(self.longer_count, self.shorter_count),
            "STORE_DEPTH": Const(geometry.store_depth | max(geometry.external_depth.bit_length() - 1, 0) << 16, 32),
            "STORE_LEVEL": Cat(self.store_level, self.store_high),
            "EXTERNAL_LEVEL": self.external_level, "EXTERNAL_HIGH": self.external_high,
        }
        missing = {r.name for r in REGISTERS.values() if "R" in r.access} - set(readable) - {"FRAME_FIFO"}
        assert not missing, missing

        # Reading takes its time, in stages of little logic each: one bit a register, the registers
        # in eights, what it was.
        offsets = {r.offset: r.name for r in REGISTERS.values()}
        chosen = {name: Signal(name=f"at_{name.lower()}") for name in REGISTERS}
        names = list(readable)
        groups = [Signal(32, name=f"group{k}") for k in range(-(-len(names) // 8))]
        is_burst = Signal()
        is_counter = Signal()
        is_reduction = Signal()
        value = Signal(32)
        m.d.sync += self.reading.eq(access.start | (self.reading & ~access.done))
        with m.If(self.reading):
            m.d.sync += [
                addr.eq(access.addr), self.address.eq(addr[3:]),
                *(chosen[name].eq(addr[2:] == offset >> 2) for offset, name in offsets.items()),
                *(group.eq(reduce(or_, (Mux(chosen[n], readable[n], 0) for n in names[8 * k:8 * k + 8])))
                  for k, group in enumerate(groups)),
                is_burst.eq(addr[12]), is_counter.eq(addr[11] & ~addr[12] & (addr[6:11] < nodes)),
                is_reduction.eq(addr[5:] == REDUCTION_BASE >> 5), value.eq(reduce(or_, groups)),
            ]
        steps = Signal(3)
        settled = Signal()    # value and counter are
        finished = Signal()   # so is a reset, or a latch

        written = Signal()    # settings and `done` follow a clock later
        settings = {
            "EDGE_RISING": self.rising, "EDGE_FALLING": self.falling, "SAMPLE_AFTER": self.after,
            "NODE_MASK": self.mask, "CENSUS": self.slow, "FLUSH": host_flush,
        }
        if Sink.EXTENDED in geometry.sinks:
            if len(geometry.sinks) > 1:
                settings["MODE"] = mode
            settings |= {
                "WORD_NODES": words, "EVENT_NODES": events, "ITEM_TIMEOUT": self.timeout,
                "REDUCTION_INDEX": index, "TRIGGER_START": self.trigger_start, "TRIGGER_STOP": self.trigger_stop,
                "PRETRIGGER": self.pretrigger,
            }
            m.d.comb += [
                self.mask_load.eq(written & chosen["EVENT_MASK"]), self.mask_entry.eq(access.wdata),
            ]
            m.d.sync += self.trigger.eq(
                Cat(self.trigger_start[31] & ~self.triggered, self.triggered, self.stopped))
        if geometry.emulated:
            settings |= {
                "EMULATOR": Cat(emulator.run, emulator.pattern),
                "EMULATOR_PERIOD": emulator.period, "EMULATOR_COUNT": emulator.count,
            }
            m.d.comb += [
                emulator.load.eq(written & chosen["EMULATOR_REPLAY"]), emulator.entry.eq(access.wdata),
            ]
        if geometry.guarded:
            settings |= {"GLITCH": glitch, "RATE_LIMIT": limit}
            if geometry.port_bits == PORT_BITS:
                settings["NIBBLE_MASK"] = self.nibble_mask
        if geometry.synced:
            settings["SYNC"] = follow
        # More than the trigger's memory is made for would stop it for ever.
        too_many = access.wdata > PRETRIGGER_MAX
        values = {"PRETRIGGER": Mux(too_many, PRETRIGGER_MAX, access.wdata)}
        for name, setting in settings.items():
            with m.If(written & chosen[name]):
                m.d.sync += setting.eq(values.get(name, access.wdata))
        with m.If(written & chosen["FLUSH"]):
            m.d.sync += host_has_set.eq(1)
        m.d.sync += [access.done.eq(written), self.read.eq(0), self.latch.eq(0), written.eq(0)]
        m.d.sync += finished.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [steps.eq(0), settled.eq(0)]
                with m.If(access.start):
                    m.next = "SELECT"
            with m.State("SELECT"):
                # addr, address and chosen, groups, value and counter, which comes later if the latches share a memory
                m.d.sync += [steps.eq(steps + 1), settled.eq(steps == (5 if geometry.narrow else 3))]
                with m.If(settled):
                    m.next = "READ"
                    with m.If(access.write):
                        m.next = "WRITE"
            with m.State("READ"):
                m.d.sync += [access.rdata.eq(value), access.done.eq(1)]
                with m.If(is_burst | chosen["FRAME_FIFO"]):
                    m.d.sync += [access.rdata.eq(self.word), self.read.eq(1)]
                with m.Elif(is_counter):
                    m.d.sync += access.rdata.eq(Mux(addr[2], self.counter[32:], self.counter[:32]))
                with m.Elif(is_reduction):
                    m.d.sync += access.rdata.eq(Mux(addr[2], self.reduction_word[32:], self.reduction_word[:32]))
                m.next = "IDLE"
            with m.State("WRITE"):
                m.d.sync += written.eq(1)
                m.next = "IDLE"
                with m.If(chosen["CONTROL"]):
                    # With a reset, time must not start before it is over.
                    wdata = access.wdata
                    m.d.sync += [
                        self.enable.eq(wdata[1] & ~wdata[0]), self.stream.eq(wdata[4]), reset.eq(wdata[0]),
                        written.eq(0),
                    ]
                    m.next = "RESET"
                with m.If(chosen["LATCH"]):
                    m.d.sync += [self.latch.eq(1), written.eq(0)]
                    m.next = "LATCH"
            with m.State("RESET"):
                m.d.sync += finished.eq(~self.clear & ~reset)
                with m.If(finished):
                    m.d.sync += [self.enable.eq(access.wdata[1]), access.done.eq(1)]
                    m.next = "IDLE"
            with m.State("LATCH"):
                m.d.sync += finished.eq((self.latched & ~self.latch) | self.clear)
                with m.If(finished):
                    m.d.sync += access.done.eq(1)
                    m.next = "IDLE"
        return m
