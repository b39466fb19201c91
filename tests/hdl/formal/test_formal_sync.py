"""Unbounded proofs of the time of several boards, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.accounts.marks import Marks
from hypermon.hdl.time.board_sync import BoardSync
from hypermon.hdl.time.echo import Echo
from hypermon.hdl.trigger.trigger_out import TriggerOut

from .prover import broken, proofs
from .specs.sync import EchoSpec, MarksSpec, OwnClockSpec, TriggerOutSpec

pytestmark = pytest.mark.formal


PROOFS = {
    "own clock": OwnClockSpec,
    "marks": lambda: MarksSpec(False),
    "marks of the drift": lambda: MarksSpec(True),
    "echo": EchoSpec,
    "trigger out": TriggerOutSpec,
}

REFUTED = {
    "own clock, any rise is reported": lambda: OwnClockSpec(
        broken(BoardSync, ("counts & (is_early | is_late) & (pause == 0)", "counts & (pause == 0)"))),
    "own clock, too often": lambda: OwnClockSpec(
        broken(BoardSync, ("pause.eq(self.spacing - 1)", "pause.eq(self.spacing - 2)"))),
    "own clock, and it is stepped": lambda: OwnClockSpec(
        broken(BoardSync, ("judged & ~begins & ~self.own if self.drifts", "judged & ~begins if self.drifts"))),
    "own clock, other way round": lambda: OwnClockSpec(
        broken(BoardSync, ("self.early.eq(is_early)", "self.early.eq(is_late)"))),
    "marks, a rise is stamped a clock late": lambda: MarksSpec(
        True, broken(Marks, ("Signal(MARK_LATENCY - 1 - (k == len(self.pins))", "Signal(MARK_LATENCY - 1"))),
    "marks, sent twice": lambda: MarksSpec(
        False, broken(Marks, ("m.Elif(queue.i.ready & first[k])", "m.Elif(queue.i.ready & first[k] & waits.all())"))),
    "marks, numbers stand still": lambda: MarksSpec(
        False, broken(Marks, ("number.eq(number + 1)", "number.eq(number)"))),
    "echo, a second one counts": lambda: EchoSpec(
        broken(Echo, ("m.d.sync += [awaits.eq(0), sum_", "m.d.sync += [awaits.eq(awaits), sum_"))),
    "echo, however late": lambda: EchoSpec(broken(Echo, ("clocks == ECHO_CLOCKS - 1", "clocks == ECHO_CLOCKS + 1"))),
    "trigger out, twice": lambda: TriggerOutSpec(
        broken(TriggerOut, ("self.fired & ~self.done & ~waits", "self.fired & ~waits"))),
    "trigger out, a clock too soon": lambda: TriggerOutSpec(
        broken(TriggerOut, ("self.time + windows", "self.time + windows - 1"))),
    "trigger out, late in silence": lambda: TriggerOutSpec(
        broken(TriggerOut, ("fresh & (passed != 0)", "fresh & (passed == 0)"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
