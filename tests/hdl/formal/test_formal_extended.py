"""Unbounded proofs of what the extended board counts and times, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.accounts.tally import Tally
from hypermon.hdl.items.halver import Halver
from hypermon.hdl.trigger.trigger import Trigger

from .prover import broken, proofs
from .specs.item_timeout import ItemTimeoutSpec, narrow
from .specs.sinks.phases import HalverSpec
from .specs.sinks.trigger import TriggerSpec
from .specs.tally import TallySpec

pytestmark = pytest.mark.formal

PROOFS = {
    "item time-out": ItemTimeoutSpec,
    "halver": HalverSpec,
    "halver, quarter clocks": lambda: HalverSpec(further=1),
    "tally": TallySpec,
    "trigger": TriggerSpec,
    "trigger, bytes": lambda: TriggerSpec(port_bits=8),
}

REFUTED = {
    "item time-out, early": lambda: ItemTimeoutSpec(narrow(("age > self.limit", "age + 8 > self.limit"))),
    "item time-out, a strobe at the end does not save": lambda: ItemTimeoutSpec(
        narrow(("& ~fresh & ~self.pulse", "& ~fresh"))),
    "item time-out, a strobe is forgotten": lambda: ItemTimeoutSpec(
        narrow(("(fresh & ~(1 << turn)) | self.pulse", "(fresh | self.pulse) & ~(1 << turn)"))),
    "item time-out, of what is not open": lambda: ItemTimeoutSpec(narrow(("is_open & ~is_fresh |", "~is_fresh |"))),
    "item time-out, of another node": lambda: ItemTimeoutSpec(narrow(("1 << node[3]", "1 << node[2]"))),
    "item time-out, late": lambda: ItemTimeoutSpec(
        narrow(("over.eq(age > self.limit)", "over.eq((age > self.limit) & clock[4])"))),
    "halver, the second half first": lambda: HalverSpec(
        broken(Halver, ("Mux(some_first, first, second)", "Mux(some_second, second, first)"))),
    "halver, the parts of a half are lost": lambda: HalverSpec(
        broken(Halver, ("parted.halves.eq(came.halves[nodes:])", "parted.halves.eq(came.halves[:nodes])")), further=1),
    "halver, a vector is lost": lambda: HalverSpec(
        broken(Halver, ("Mux(some_first & some_second, 0, ", "Mux(0, 0, "))),
    "halver, no room": lambda: HalverSpec(broken(Halver, ("_PLACES - 3", "_PLACES"))),
    "tally, the one before but two is not looked at": lambda: TallySpec(
        broken(Tally, ("same(1, 3), same(1, 4), same(1, 5)", "same(1, 3), same(1, 4), 0"))),
    "tally, the one before is not looked at": lambda: TallySpec(
        broken(Tally, ("Mux(nearest, new[0], before)", "before"))),
    "tally, a carry is lost": lambda: TallySpec(
        broken(Tally, ("middle_up = now.up & old.low_ones", "middle_up = now.up & old.low_ones & ~old.middle_ones"))),
    "tally, an increase is no copy": lambda: TallySpec(
        broken(Tally, ("(old.tag != now.tag))", "(old.tag != now.tag) & ~now.up)"))),
    "tally, a copy of what is counted already": lambda: TallySpec(
        broken(Tally, ("copies.w_data.eq(Cat(old.low,", "copies.w_data.eq(Cat(old.low ^ now.up,"))),
    "tally, a latch is over too soon": lambda: TallySpec(
        broken(Tally, ("self.latch | sweeping | settling.any()", "self.latch | sweeping"))),
    "tally, clears all but the last": lambda: TallySpec(
        broken(Tally, ("[issued.valid.eq(~place[-1]),", "[issued.valid.eq(place < self.depth - 1),"))),
    "tally, asks for no clock": lambda: TallySpec(
        broken(Tally, ("sweeping & (turn == 0)", "sweeping & (turn == 0) & place[0]"))),
    "trigger, the id is that of the nibble before": lambda: TriggerSpec(
        broken(Trigger, ("id_place, event_id = 2, Cat(", "id_place, event_id = 1, Cat("))),
    "trigger, any mode": lambda: TriggerSpec(
        broken(Trigger, ("is_value & (is_event == wanted.event)", "is_value"))),
    "trigger, the start is a stop, too": lambda: TriggerSpec(broken(
        Trigger, ("valid[4] & stops & ~waits &", "valid[4] & stops & ~(waits ^ triggers) &"))),
    "trigger, stops in the middle of a window": lambda: TriggerSpec(
        broken(Trigger, ("(stopping & item.first)", "stopping"))),
    "trigger, a late item of the stop's window is behind it": lambda: TriggerSpec(
        broken(Trigger, ("Cat(~older & ~same, is_later)", "Cat(~older, is_later)"))),
    "trigger, late items are compared too soon": lambda: TriggerSpec(
        broken(Trigger, ("self.i.p.begins & valid.any()", "self.i.p.begins & valid[:3].any()"))),
    "trigger, waits for what is passed over later": lambda: TriggerSpec(
        broken(Trigger, ("(owed | (~over).replicate(len(owed)))", "-1"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
