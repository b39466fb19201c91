"""The event capture board, a list of connects in one clock domain (section 3.2, Figure 2)."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .accounts.accounts import Accounts
from .control.pbx import Pbx, pbx_signature
from .control.registers import Registers
from .input.intake import Intake
from .layout import BlockType, Geometry, Sink
from .lib.reset_net import ResetNet
from .merge.board_time import BoardTime
from .merge.merge import Merge
from .sinks.sinks import Sinks
from .stream.blocker import Blocker, beat_layout
from .stream.store import Store

__all__ = ["Capture"]


class Capture(wiring.Component):
    """From raw port levels to blocks.

    Parameters
    ----------
    geometry : properties that are fixed when the board is built.
    ram : kind of the large memories, see :class:`~.ram.Ram`.
    build : value of the BUILD register.
    pad_stage : False if the first flip-flop of every port bit is in its I/O cell.

    Members
    -------
    strobe, data : one bit and one nibble (of ``geometry.port_bits``) per node, asynchronous.
    early : only on a board with half clocks: levels of the strobes half a clock before ``strobe``.
    bus : PBX-like host bus, asynchronous.
    stream : blocks, in beats of ``geometry.beat_bytes``.
    external_level, external_high : levels of the buffer downstream of the stream, for the registers; 0 if there is
        none.
    sync_in, sync_out : the time of several boards, see :class:`~.board_sync.BoardSync`; only on a board that has it.
    running : time runs; the first clock edge at which it is high is time 0.
    advance, shift, slip : a simulation skips idle time at this edge; else 0. The number of windows whose ends are
        skipped; clocks in addition to these whole windows, modulo 2**16; all the clocks, modulo 256, by which the
        sweeps over the nodes move on.
    quiet, horizon, left : when it may. The stream remains the same if nothing moves (``quiet``), the host takes
        nothing meanwhile, no port has changed for the last 12 clocks and none does in the next 6, 32 clocks or more
        are skipped, and fewer windows end than ``horizon``, minus 8 if windows of one clock end all the time.
        ``left`` is the number of clocks to the end of the window. A skip with ``shift`` begins with at least
        two and ends with at least one.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, pad_stage: bool = True):
        self.geometry, self.ram, self.build, self.pad_stage = geometry, ram, build, pad_stage
        nodes = geometry.nodes
        super().__init__({
            "strobe": In(nodes), "data": In(geometry.port_bits * nodes),
            "bus": In(pbx_signature()), "stream": Out(stream.Signature(beat_layout(geometry.beat_bytes))),
            "external_level": In(32), "external_high": In(32),
            "running": Out(1), "advance": In(32), "shift": In(16), "slip": In(8),
            "quiet": Out(1), "horizon": Out(32), "left": Out(16),
            **({"sync_in": In(1), "sync_out": Out(1)} if geometry.synced else {}),
            **({"early": In(nodes)} if geometry.half_clock else {}),
        })

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        # The spine: a reset discards everything queued there, up to the blocker, which finishes its block.
        m.domains.spine = spine = ClockDomain(local=True)
        m.submodules.spine_reset = spine_reset = ResetNet(self.ram)
        m.submodules.pbx = pbx = Pbx(direct=g.narrow)
        m.submodules.registers = registers = Registers(g, self.build)
        m.submodules.time = time = BoardTime(g)
        m.submodules.intake = intake = Intake(g, self.pad_stage)
        m.submodules.merge = merge = Merge(g, self.ram)
        m.submodules.sinks = sinks = Sinks(g, self.ram)
        m.submodules.accounts = accounts = Accounts(g, self.ram)
        sources = {BlockType.LOSS: accounts.loss, BlockType.CENSUS: accounts.census}
        if Sink.CLASSIC in g.sinks:
            sources[BlockType.FRAMES] = sinks.frames
        if Sink.EXTENDED in g.sinks:
            sources[BlockType.COMPACT] = sinks.compact
        m.submodules.blocker = blocker = Blocker(g, tuple(sources), self.ram)

        # The host's access.
        wiring.connect(m, wiring.flipped(self.bus), pbx.bus)
        wiring.connect(m, pbx.access, registers.access)
        wiring.connect(m, registers.time, time.settings)
        wiring.connect(m, registers.intake, intake.settings)
        wiring.connect(m, registers.sinks, sinks.settings)
        wiring.connect(m, registers.accounts, accounts.settings)

        # The path of an item.
        wiring.connect(m, intake.items, merge.items)
        wiring.connect(m, merge.o, sinks.i)
        for k, source in enumerate(sources.values()):
            wiring.connect(m, source, getattr(blocker, f"source{k}"))
        moves = self._store(m, blocker, registers)

        # The counters.
        wiring.connect(m, merge.account, accounts.merge)
        wiring.connect(m, sinks.account, accounts.sinks)

        clear = registers.clear
        m.d.comb += [
            spine.clk.eq(ClockSignal()), spine_reset.i.eq(clear), spine.rst.eq(spine_reset.o),
            *(stage.clear.eq(clear) for stage in (time, intake, accounts, blocker)),
            *(stage.now.eq(time.now) for stage in (intake, sinks, accounts, registers)),
            time.advance.eq(self.advance), time.shift.eq(self.shift), self.left.eq(time.left),
            intake.slip.eq(self.slip), accounts.slip.eq(self.slip), self.running.eq(time.running),
            merge.time.eq(time.merge), accounts.time.eq(time.merge), accounts.running.eq(time.running),

            intake.strobe.eq(self.strobe), intake.data.eq(self.data), intake.live.eq(time.merge.live),
            accounts.strobed.eq(intake.busy), accounts.rejected.eq(intake.rejected),
            merge.longer.eq(registers.sinks.words | registers.sinks.events), sinks.ending.eq(accounts.ending),

            registers.vector_level.eq(merge.o.level), accounts.vector_level.eq(merge.o.level),
            accounts.frames.eq(sinks.settings.frames.generated),
            accounts.frame_level.eq(sinks.settings.frames.level), accounts.discarded.eq(sinks.settings.discarded),
            accounts.leaves.eq(blocker.o.valid & blocker.o.ready), accounts.busy.eq(blocker.moving | moves | pbx.busy),

            blocker.epoch.eq(registers.epoch), blocker.window.eq(registers.window),
            self.quiet.eq(accounts.quiet), self.horizon.eq(accounts.horizon),
        ]
        if Sink.EXTENDED in g.sinks:
            m.d.comb += [
                blocker.extended.eq(registers.sinks.extended), blocker.items.eq(sinks.longer),
                accounts.enters.eq(merge.o.enters),
                *(mine.eq(its) for mine, its in zip(accounts.fill, merge.o.fill, strict=True)),
            ]
        if g.guarded or g.synced:
            m.d.comb += blocker.latency.eq(registers.latency)
        if g.half_clock:
            m.d.comb += [intake.early.eq(self.early), blocker.half.eq(sinks.half)]
            if g.guarded:
                m.d.comb += accounts.twice.eq(intake.twice)
        if g.synced:
            m.d.comb += [time.sync_in.eq(self.sync_in), self.sync_out.eq(time.sync_out)]
        return m

    def _store(self, m: Module, blocker: Blocker, registers: Registers) -> Signal:
        """Buffers whole blocks for the link, in a store if the board has one. Returns whether a beat leaves."""
        moves = Signal()
        m.d.comb += [
            registers.external_level.eq(self.external_level), registers.external_high.eq(self.external_high)]
        if not self.geometry.store_depth:
            wiring.connect(m, blocker.o, wiring.flipped(self.stream))
            return moves
        m.submodules.store = store = Store(self.geometry.store_depth, self.ram)
        wiring.connect(m, blocker.o, store.i)
        wiring.connect(m, store.o, wiring.flipped(self.stream))
        m.d.comb += [
            store.clear.eq(registers.clear),
            registers.store_level.eq(store.level), registers.store_high.eq(store.high),
        ]
        m.d.sync += moves.eq(store.o.valid & store.o.ready)
        return moves
