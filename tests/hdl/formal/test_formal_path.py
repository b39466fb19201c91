"""Unbounded proofs of the way from gate to link, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.gate.gate_room import GateRoom
from hypermon.hdl.gate.node_fifo import NodeFifos
from hypermon.hdl.merge.window import Window
from hypermon.hdl.sinks.classic.frame_builder import FrameBuilder
from hypermon.hdl.sinks.classic.frame_fifo import FrameFifo
from hypermon.hdl.sinks.classic.frame_port import FramePort
from hypermon.hdl.sinks.classic.frames_source import FrameSource
from hypermon.hdl.time.timebase import Timebase

from .prover import broken, proofs
from .runs import RunsSpec
from .specs.path import BuilderSpec, PathSpec, RoomSpec, WindowSpec
from .specs.port import FramePortSpec, FrameSourceSpec
from .specs.windows import DisciplineSpec, WindowLengthSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "gate to frame, two nodes": PathSpec,
    "room for vectors, two nodes": RoomSpec,
    "window's accounts": WindowSpec,
    "window's accounts, half clocks": lambda: WindowSpec(halvings=1),
    "window's accounts, quarter clocks": lambda: WindowSpec(halvings=2),
    "length of windows": WindowLengthSpec,
    "a time that is led": DisciplineSpec,
    "frame builder, four words": BuilderSpec,
    "frame builder, six words": lambda: BuilderSpec(nodes=17),
    "frame builder and frame FIFO": RunsSpec,
    "frame port, four words": FramePortSpec,
    "frame port, six words": lambda: FramePortSpec(nodes=17),
    "frame source, four words": FrameSourceSpec,
    "frame source, six words": lambda: FrameSourceSpec(nodes=17),
}

REFUTED = {
    "gate to frame, admits to a full FIFO": lambda: PathSpec(
        gate=broken(DropGate, ("self.closed | self.node_full | self.node_misfit | (", "self.closed | ("))),
    "gate to frame, second strobe in a window forgotten": lambda: PathSpec(
        window=broken(Window, ("entered.eq(self.admitted)", "entered.eq(self.admitted & ~some)"))),
    "gate to frame, reads two at once": lambda: PathSpec(
        fifos=broken(NodeFifos, ("lfsr_next(read.addr)", "lfsr_next(read.addr) ^ at[top][i]"))),
    "gate to frame, pops every node": lambda: PathSpec(
        builder=broken(FrameBuilder, ("self.pop.eq(at_pop)", "self.pop.eq(at_pop.any().replicate(nodes))"))),
    "gate to frame, nibbles without their bit": lambda: PathSpec(
        builder=broken(FrameBuilder, ("vector[i].replicate(PORT_BITS)", "Const(15)"))),
    "gate to frame, no slot kept": lambda: PathSpec(
        builder=broken(FrameBuilder, ("slot & ~(start & last)", "slot"))),
    "room for vectors, none in reserve for the node FIFOs": lambda: RoomSpec(
        broken(GateRoom, ("depth - self.geometry.node_depth - VECTOR_MARGIN", "depth - VECTOR_MARGIN"))),
    "room for vectors, none in reserve for those on their way": lambda: RoomSpec(
        broken(GateRoom, ("VECTOR_MARGIN = 4", "VECTOR_MARGIN = 1"))),
    "window's accounts, the first of a window is carried": lambda: WindowSpec(
        broken(Window, ("reduce(or_, waiting[1:]))", "reduce(or_, waiting))"))),
    "window's accounts, largest lag one short": lambda: WindowSpec(
        broken(Window, ("init=-(b == 1)", "init=-(b == 0)"))),
    "window's accounts, a wrap is forgotten": lambda: WindowSpec(
        broken(Window, ("wrapped.eq(self.wrap | unsaid)", "wrapped.eq(self.wrap)"))),
    "window's accounts, the part of the clock of the next strobe": lambda: WindowSpec(
        broken(Window, ("entry.halves.eq(half[1])", "entry.halves.eq(half[0])")), halvings=2),
    "a time that is led, steps back": lambda: DisciplineSpec(
        broken(Timebase, ("quarters[0][:2].eq(2)", "quarters[0][:2].eq(0)"))),
    "a time that is led, leaves out a number anywhere": lambda: DisciplineSpec(
        broken(Timebase, ("self.corrected.eq(self.now[:4] == 0)", "self.corrected.eq(1)"))),
    "a time that is led, as long as ever": lambda: DisciplineSpec(
        broken(Timebase, ("longer.eq(reload + 1)", "longer.eq(reload)"))),
    "length of windows, one clock short": lambda: WindowLengthSpec(
        broken(Timebase, ("ends.eq(left == 1)", "ends.eq(left == 2)"))),
    "length of windows, one clock long": lambda: WindowLengthSpec(
        broken(Timebase, ("Const(n - 1, len(reload))", "Const(n, len(reload))"))),
    "frame builder, time of the next one": lambda: BuilderSpec(
        broken(FrameBuilder, ("frame.high.eq(time_mask[32:])", "frame.high.eq(time_pop[32:])"))),
    "frame builder, rows the wrong way round": lambda: BuilderSpec(
        broken(FrameBuilder, ("for k in reversed(range(row", "for k in (range(row"))),
    "frame FIFO, one that comes as a run begins is not counted": lambda: RunsSpec(
        broken(FrameFifo, ("self.run.eq(newer + came)", "self.run.eq(newer)"))),
    "frame FIFO, a run takes in the next one": lambda: RunsSpec(
        broken(FrameFifo, ("came & ~self.split & ~(wrapped & some_run)", "came & ~(wrapped & some_run)"))),
    "frame builder, a third run": lambda: RunsSpec(
        builder=broken(FrameBuilder, ("(no_wrap | wrap_started[0])", "wrap_started.any()"))),
    "frame builder, one slot too many": lambda: RunsSpec(
        builder=broken(FrameBuilder, ("last.eq(Mux(started[0], slots == 2, slots == 1))", "last.eq(slots == 1)"))),
    "frame port, the stream sends the rest of a frame": lambda: FramePortSpec(
        broken(FramePort, ("m.d.sync += self.position.eq(0)", "m.d.sync += self.position.eq(self.position)"))),
    "frame port, a frame leaves a word early": lambda: FramePortSpec(
        broken(FramePort, ("self.position == words - 1", "self.position == words - 2"))),
    "frame port, an empty read counts": lambda: FramePortSpec(
        broken(FramePort, ("self.read & shown[1]", "self.read"))),
    "frame source, one frame too many": lambda: FrameSourceSpec(
        broken(FrameSource, ("some_owed.eq(owed != 1)", "some_owed.eq(owed != 0)"))),
    "frame source, asks without a frame": lambda: FrameSourceSpec(
        broken(FrameSource, ("& self.i.valid & ~self.hold", "& ~self.hold"))),
    "frame source, wrong third of a frame": lambda: FrameSourceSpec(
        broken(FrameSource, ("rest.eq(frame[128:])", "rest.eq(frame[:64])")), nodes=17),
    "frame source, no padding": lambda: FrameSourceSpec(
        broken(FrameSource, ("Mux(some_owed, frame[:64], Const(0, 64))", "frame[:64]")), nodes=17),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
