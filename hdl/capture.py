"""The event capture board, a list of connects in one clock domain (section 3.2, Figure 2)."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .activity import Activity
from .blocker import Blocker, beat_layout
from .census import Census
from .compact_sink import CompactSink
from .counters import SWEPT, Counters
from .fifo import StreamFifo
from .frame_builder import FrameBuilder
from .frame_fifo import FrameFifo
from .frame_port import FramePort
from .frame_source import FrameSource
from .gate import Gate
from .intake import Intake
from .layout import COUNTER_BITS, BlockType, Cause, Counter, Geometry, Sink
from .layout import Window as WindowSetting
from .loss import Loss
from .node_fifo import NodeFifos
from .pbx import Pbx, pbx_signature
from .reduction import Reduction
from .registers import Registers
from .reset_net import ResetNet
from .room import Room
from .serial_loss import SerialLoss
from .store import Store
from .sync import Sync
from .timebase import Timebase
from .window import Window, vector_layout

__all__ = ["Capture"]


class Capture(wiring.Component):
    """From raw port levels to blocks.

    Parameters
    ----------
    geometry : what is fixed when it is built.
    ram : kind of the large memories, see :class:`~.ram.Ram`.
    build : value of the BUILD register.
    pad_stage : False if the first flip-flop of every port bit stands in its I/O cell.

    Members
    -------
    strobe, data : a bit and a nibble (of ``geometry.port_bits``) a node, asynchronous.
    early : only on a board with half clocks: levels of the strobes half a clock before ``strobe``.
    bus : PBX-like host bus, asynchronous.
    stream : blocks, in beats of ``geometry.beat_bytes``.
    external_level, external_high : of what waits behind the stream, for the registers; 0 if nothing does.
    sync_in, sync_out : the time of several boards, see :class:`~.sync.Sync`; only on a board that has it.
    running : time runs; the first clock edge that sees it high is time 0.
    advance, quiet, horizon : for simulations that skip idle time: when nothing is in flight
        (``quiet``), no strobe edge has come for the last 16 clocks and none comes in the next 16,
        ``advance`` may skip up to ``horizon`` less 8 windows and the stream stays the same, if
        their clocks are a multiple of the counters' sweep. ``advance`` is 0 otherwise.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, pad_stage: bool = True):
        self.geometry, self.ram, self.build, self.pad_stage = geometry, ram, build, pad_stage
        nodes = geometry.nodes
        super().__init__({
            "strobe": In(nodes), "data": In(geometry.port_bits * nodes),
            "bus": In(pbx_signature()), "stream": Out(stream.Signature(beat_layout(geometry.beat_bytes))),
            "external_level": In(32), "external_high": In(32),
            "running": Out(1), "advance": In(32), "quiet": Out(1), "horizon": Out(32),
            **({"sync_in": In(1), "sync_out": Out(1)} if geometry.synced else {}),
            **({"early": In(nodes)} if geometry.half_clock else {}),
        })

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        nodes = g.nodes
        classic = Sink.CLASSIC in g.sinks

        m.submodules.pbx = pbx = Pbx(direct=g.narrow)
        m.submodules.registers = registers = Registers(g, self.build)
        m.submodules.intake = intake = Intake(g, self.pad_stage)
        # A reset discards what is queued, up to the blocker, which finishes its block: the spine
        # runs on the same clock in a domain of its own, whose reset is the host's (and power-up's).
        clear = registers.clear
        m.domains.spine = spine = ClockDomain(local=True)
        m.submodules.spine_reset = spine_reset = ResetNet(self.ram)
        m.d.comb += [spine.clk.eq(ClockSignal()), spine_reset.i.eq(clear), spine.rst.eq(spine_reset.o)]
        in_spine = DomainRenamer("spine")
        m.submodules.timebase = in_spine(timebase := Timebase(g, g.synced))
        m.submodules.gate = in_spine(gate := Gate(nodes))
        m.submodules.node_fifos = in_spine(node_fifos := NodeFifos(
            nodes, g.node_depth, intake.framed, g.port_bits, self.ram))
        m.submodules.window = in_spine(window := Window(nodes, g.node_depth, g.half_clock, g.narrow))
        m.submodules.vector_fifo = in_spine(vector_fifo := StreamFifo(
            vector_layout(nodes, g.half_clock), g.vector_depth, self.ram, skid=not g.narrow))
        if classic:
            m.submodules.frame_builder = in_spine(builder := FrameBuilder(g))
            m.submodules.frame_fifo = in_spine(frame_fifo := FrameFifo(g, self.ram))
            m.submodules.frame_port = in_spine(port := FramePort(g))
            m.submodules.frame_source = in_spine(frames := FrameSource(g))
        m.submodules.census = in_spine(census := Census(g))
        m.submodules.room = in_spine(room := Room(g))
        m.submodules.loss = loss = SerialLoss(nodes, self.ram) if g.narrow else Loss(nodes)
        m.submodules.counters = counters = Counters(
            nodes, window.bits, self.ram, g.guarded, shared=g.narrow, doubled=g.guarded and g.half_clock)
        m.submodules.activity = activity = Activity()
        types = [BlockType.LOSS, BlockType.CENSUS]
        if classic:
            types.append(BlockType.FRAMES)
        if Sink.EXTENDED in g.sinks:
            types.append(BlockType.COMPACT)
        m.submodules.blocker = blocker = Blocker(g, tuple(types), self.ram)

        wiring.connect(m, wiring.flipped(self.bus), pbx.bus)
        wiring.connect(m, pbx.access, registers.access)
        wiring.connect(m, registers.emulator, intake.emulator)

        # The spine.
        wiring.connect(m, window.o, vector_fifo.i)
        if classic:
            wiring.connect(m, builder.o, frame_fifo.i)
            wiring.connect(m, frame_fifo.o, port.i)
            wiring.connect(m, port.o, frames.i)
        wiring.connect(m, loss.source, blocker.source0)
        wiring.connect(m, census.source, blocker.source1)
        if classic:
            wiring.connect(m, frames.source, blocker.source2)

        # Behind the blocker everything is whole blocks, which wait for the link.
        stored = Signal()
        if g.store_depth:
            m.submodules.store = store = Store(g.store_depth, self.ram)
            wiring.connect(m, blocker.o, store.i)
            wiring.connect(m, store.o, wiring.flipped(self.stream))
            m.d.comb += [
                store.clear.eq(clear),
                registers.store_level.eq(store.level), registers.store_high.eq(store.high),
            ]
            m.d.sync += stored.eq(store.level != 0)
        else:
            wiring.connect(m, blocker.o, wiring.flipped(self.stream))
        m.d.comb += [
            registers.external_level.eq(self.external_level), registers.external_high.eq(self.external_high)]

        # The window's time; a clock later if items come a clock later.
        live = Signal(nodes)
        time = Signal(data.StructLayout({"end": 1, "now": 64, "wrap": 1, "live": nodes, "enable": 1}))
        admitted = Signal(nodes)
        starts = Signal()        # time does
        waits = Signal()         # ... not, though capture is enabled
        m.d.sync += live.eq(registers.mask & (registers.enable & ~clear & ~waits).replicate(nodes))
        domain = m.d.sync if intake.framed else m.d.comb
        domain += [
            time.end.eq(timebase.end), time.now.eq(timebase.now), time.wrap.eq(timebase.wrap), time.live.eq(live),
            time.enable.eq(registers.enable),
        ]
        m.d.comb += [
            intake.strobe.eq(self.strobe), intake.data.eq(self.data),
            intake.rising.eq(registers.rising), intake.falling.eq(registers.falling),
            intake.after.eq(registers.after), intake.more.eq(registers.more),
            intake.items.eq(registers.items), intake.span.eq(registers.span),
            intake.words.eq(registers.words), intake.events.eq(registers.events), intake.mask.eq(registers.nibble_mask),
            intake.timeout.eq(registers.timeout), intake.live.eq(time.live), intake.clear.eq(clear),

            timebase.start.eq(starts), timebase.window.eq(registers.window),
            timebase.advance.eq(self.advance), self.running.eq(timebase.running),

            gate.pulse.eq(intake.start), gate.live.eq(time.live & intake.allow), intake.admit.eq(gate.admit),
            gate.node_full.eq(node_fifos.full), gate.node_half.eq(node_fifos.half),

            node_fifos.admit.eq(intake.push), node_fifos.data.eq(intake.nibble),
            *([builder.nibble.eq(node_fifos.nibble)] if classic else []),

            window.admitted.eq(admitted), window.end.eq(time.end), window.now.eq(time.now), window.wrap.eq(time.wrap),

            *([builder.hold_wrap.eq(frame_fifo.split), builder.freed.eq(port.freed)] if classic else []),
        ]
        if g.half_clock:
            # One clock later, as what is admitted.
            half = Signal(nodes)
            m.d.sync += half.eq(intake.half)
            m.d.comb += [intake.early.eq(self.early), window.half.eq(half)]

        # Whoever follows another board waits for it.
        if g.synced:
            m.submodules.sync = sync = in_spine(Sync(g))
            m.d.comb += [
                sync.sync_in.eq(self.sync_in), self.sync_out.eq(sync.sync_out),
                sync.follow.eq(registers.follow), sync.enable.eq(registers.enable), sync.window.eq(registers.window),
                sync.now.eq(timebase.now), sync.running.eq(timebase.running),
                timebase.longer.eq(sync.longer), timebase.shorter.eq(sync.shorter),
                sync.corrected.eq(timebase.corrected), starts.eq(sync.start), waits.eq(sync.waits),
                registers.waits.eq(waits), registers.missing.eq(sync.missing),
                registers.longer_count.eq(sync.longer_count), registers.shorter_count.eq(sync.shorter_count),
                census.follows.eq(registers.follow), census.strayed.eq(sync.missing),
            ]
        else:
            m.d.comb += starts.eq(registers.enable)

        m.d.comb += [
            room.vector_level.eq(vector_fifo.level),
            gate.vector_room.eq(room.room), gate.vector_half.eq(room.half), gate.backed_up.eq(room.backed_up),
        ]

        # Registers behind the gate. What it refused goes on for one clock more to the outages, to be
        # there when its window is the current one.
        refused_by = [Signal(nodes, name=f"refused_by{c}") for c in range(len(Cause))]
        closed = Signal(nodes)
        m.d.sync += [
            admitted.eq(gate.admit),
            *(r.eq(gate.refused_by[c]) for c, r in enumerate(refused_by)),
            *(loss.refused_by[c].eq(r) for c, r in enumerate(refused_by)),
            loss.some.eq(Cat(refused_by).any()), closed.eq(gate.closed), loss.closed.eq(closed),
        ]
        m.d.comb += [
            loss.now.eq(time.now), loss.live.eq(time.enable), loss.clear.eq(clear),
        ]

        # Counters and their two readers.
        delivered = Signal(nodes)
        horizon = Signal(32)     # until the sink does something by itself
        waiting = Signal()       # the extended one has something
        latched = Signal()       # so is the reduction
        owing = Signal()         # items were passed over and have not come yet
        events = {
            Counter.ACCEPTED: admitted, Counter.DELIVERED: delivered,
            Counter.LOST_FRAME_FIFO: refused_by[0], Counter.LOST_NODE_FIFO: refused_by[1],
            Counter.LOST_VECTOR_FIFO: refused_by[2], Counter.CARRIED: window.carried, Counter.REJECTED: intake.rejected,
        }
        m.d.comb += [
            *(counters.event[k].eq(events[c]) for k, c in enumerate(SWEPT)),
            *(counters.beyond[k].eq(window.beyond[k]) for k in range(window.bits)),
            *([counters.twice.eq(intake.twice)] if counters.doubled else []),
            counters.clear.eq(clear),
            counters.latch.eq(Cat(census.latch, registers.latch)),
            census.copying.eq(counters.copying[0]), registers.latched.eq(counters.latched[1] & latched),
            counters.reading.eq(Cat(census.reading, registers.reading)),
            counters.address[0].eq(census.address), counters.address[1].eq(registers.address),
            census.word.eq(counters.word[0]), registers.counter.eq(counters.word[1]),
        ]
        generated = Signal(COUNTER_BITS if g.narrow else 64)
        with m.If(clear):
            m.d.sync += generated.eq(0)
        with m.Elif(builder.o.valid if classic else 0):
            m.d.sync += generated.eq(generated + 1)

        # Whoever is not tied to the window looks at a copy of the time; that goes a long way.
        now = Signal(64)
        domain = m.d.comb if g.narrow else m.d.sync
        domain += now.eq(timebase.now)
        m.d.comb += intake.now.eq(now)
        if g.guarded or g.synced:
            m.d.comb += blocker.latency.eq(registers.latency)

        # The frame's ways out.
        m.d.comb += ([
            port.stream_enable.eq(registers.stream), port.hold.eq(frames.hold),
            port.read.eq(registers.read), registers.word.eq(port.word), registers.position.eq(port.position),
            registers.ready.eq(frame_fifo.o.valid & ~port.begun),
            registers.high.eq(Mux(frame_fifo.o.valid, frame_fifo.o.p.high, 0)),
            registers.run.eq(frame_fifo.run), registers.level.eq(frame_fifo.level),
        ] if classic else []) + [
            registers.vector_level.eq(vector_fifo.level), registers.frames.eq(generated),
            registers.now.eq(now),
            registers.refused.eq(Cat(r.any() for r in refused_by)),
        ] + ([
            frames.level.eq(frame_fifo.level), frames.run.eq(frame_fifo.run), frames.split.eq(frame_fifo.split),
            # A block may be asked for only if the stream will still drain at the next clock.
            frames.streaming.eq(port.streaming & registers.stream),
            frames.now.eq(now), frames.flush.eq(registers.flush), frames.ending.eq(activity.ending),
        ] if classic else [])

        # The sinks: the extended one takes the vectors if it is there and chosen.
        if Sink.EXTENDED in g.sinks:
            extended = registers.extended
            ended = Signal(nodes)
            longer = Signal()    # some items are of more than one nibble
            m.submodules.compact_sink = compact = in_spine(CompactSink(g, self.ram))
            wiring.connect(m, compact.source, getattr(blocker, f"source{types.index(BlockType.COMPACT)}"))
            if classic:
                for sink, chosen in ((builder, ~extended), (compact, extended)):
                    m.d.comb += [
                        sink.i.valid.eq(vector_fifo.o.valid & chosen),
                        sink.i.p.eq(vector_fifo.o.p.as_value()),    # a frame has no halves, which stand on top
                    ]
                m.d.comb += vector_fifo.o.ready.eq(Mux(extended, compact.i.ready, builder.i.ready))
            else:
                wiring.connect(m, vector_fifo.o, compact.i)
            m.d.comb += [
                compact.words.eq(registers.words), compact.events.eq(registers.events), compact.ended.eq(ended),
                compact.nibble.eq(node_fifos.nibble), compact.mark.eq(node_fifos.mark),
                node_fifos.pop.eq(builder.pop | compact.pop if classic else compact.pop),
                node_fifos.fresh.eq(compact.fresh),
                node_fifos.cut.eq(intake.cut), node_fifos.items.eq(registers.words | registers.events),
                *(n.eq(its) for n, its in zip(node_fifos.need, intake.need, strict=True)),
                gate.node_misfit.eq(node_fifos.misfit),
                compact.streaming.eq(registers.stream), compact.now.eq(now), compact.limit.eq(registers.flush),
                delivered.eq(port.delivered | compact.delivered if classic else compact.delivered),
                census.counting.eq(compact.counting),
                room.builder_busy.eq(vector_fifo.o.valid | compact.busy | (builder.busy if classic else 0)),
                room.stuck.eq(builder.stuck | compact.stuck if classic else compact.stuck),
                blocker.extended.eq(extended), waiting.eq(compact.waiting), owing.eq(compact.owing),
                blocker.items.eq(longer),
            ]
            m.d.sync += longer.eq((registers.words | registers.events).any())
            if g.half_clock:
                halving = Signal()
                m.d.sync += halving.eq(extended & (registers.window == WindowSetting.CLOCK))
                m.d.comb += [compact.halving.eq(halving), blocker.half.eq(halving)]
            # Others fill up while an item is waited for.
            filling = Signal(nodes)
            m.d.sync += [
                ended.eq(intake.push & intake.ends), filling.eq(~node_fifos.half),
                compact.pressed.eq(filling.any() | ~room.half),
            ]
            if classic:
                m.d.sync += horizon.eq(Mux(compact.horizon < frames.horizon, compact.horizon, frames.horizon))
            else:
                m.d.sync += horizon.eq(compact.horizon)
            m.d.comb += [
                compact.ending.eq(activity.ending), compact.start.eq(registers.trigger_start),
                compact.stop.eq(registers.trigger_stop), compact.before.eq(registers.pretrigger),
                registers.triggered.eq(compact.triggered), registers.stopped.eq(compact.stopped),
                registers.discarded.eq(compact.discarded), compact.load.eq(registers.mask_load),
                compact.entry.eq(registers.mask_entry), census.trigger.eq(registers.trigger),
                census.discarded.eq(compact.discarded),
            ]
            m.submodules.reduction = reduction = Reduction(g, self.ram)
            m.d.comb += [
                reduction.clear.eq(clear), registers.clearing.eq(reduction.clearing),
                reduction.item.eq(compact.tap & compact.tapped.begins),
                reduction.nibble.eq(compact.tap & ~compact.tapped.begins),
                reduction.node.eq(compact.tapped.node), reduction.time.eq(compact.tapped.time),
                reduction.last.eq(compact.tapped.last), compact.free.eq(reduction.free),
                reduction.enters.eq(node_fifos.enters),
                *(mine.eq(its) for mine, its in zip(reduction.level, node_fifos.level, strict=True)),
                reduction.vector_level.eq(vector_fifo.level), reduction.store_level.eq(compact.level),
                reduction.latch.eq(registers.latch), latched.eq(reduction.latched),
                reduction.address.eq(registers.reduction_address), registers.reduction_word.eq(reduction.word),
            ]
        else:
            wiring.connect(m, vector_fifo.o, builder.i)
            m.d.comb += [
                node_fifos.pop.eq(builder.pop), delivered.eq(port.delivered),
                room.builder_busy.eq(builder.busy), room.stuck.eq(builder.stuck), horizon.eq(frames.horizon),
                latched.eq(1),
            ]

        # What happened, by stages: these are wide sums.
        happened = Signal(4)
        changed = Signal()
        m.d.sync += [
            happened.eq(Cat(admitted.any(), Cat(refused_by).any(), delivered.any(), intake.rejected.any())),
            changed.eq(happened.any()),
        ]
        m.d.comb += [
            activity.enable.eq(registers.enable), activity.strobed.eq(intake.busy),
            activity.changed.eq(changed | happened.any()), activity.pending.eq(window.pending | ~room.gone | owing),
            activity.frames.eq((frame_fifo.level != 0) | waiting if classic else waiting),
            activity.outages.eq(loss.open | loss.source.request),
            activity.busy.eq(blocker.busy | stored | pbx.busy | clear),
        ]
        m.d.comb += [
            census.now.eq(now), census.window.eq(registers.window),
            census.running.eq(timebase.running), census.slow.eq(registers.slow),
            census.enable.eq(registers.enable), census.drained.eq(activity.drained),
            census.changed.eq(changed), census.leaves.eq(blocker.o.valid & blocker.o.ready),
            census.frames.eq(generated), census.frame_level.eq(frame_fifo.level if classic else 0),
            census.vector_level.eq(vector_fifo.level), census.status.eq(registers.status),

            blocker.epoch.eq(registers.epoch), blocker.window.eq(registers.window), blocker.clear.eq(clear),
            self.quiet.eq(activity.quiet & timebase.running & ~census.owed & ~registers.follow),
        ]
        m.d.sync += self.horizon.eq(Mux(census.horizon < horizon, census.horizon, horizon))
        return m
