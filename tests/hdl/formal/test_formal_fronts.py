"""Proofs about front ends: the bytes that are received, and the framing of events."""

import pytest
from hypermon.hdl.input.byte_items import ByteItems
from hypermon.hdl.input.itm_items import ItmItems
from hypermon.hdl.input.one_wire import OneWire
from hypermon.hdl.input.two_wire import TwoWire

from .prover import broken, proofs
from .specs.fronts import FramingSpec
from .specs.receivers import OneWireSpec, TwoWireSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "checked events": FramingSpec, "packets": lambda: FramingSpec(ItmItems, itm=True),
    "two wires": TwoWireSpec, "two wires, chip select": lambda: TwoWireSpec(selected=True), "one wire": OneWireSpec,
}

REFUTED = {
    "checked events, without the check": lambda: FramingSpec(
        broken(ByteItems, ("(left == 0) & (crc != self.byte)", "(left == 0) & (crc == 0)"))),
    "checked events, an error goes by": lambda: FramingSpec(
        broken(ByteItems, ("self.expired | (self.valid & (left == 0)", "(self.valid & (left == 0)"))),
    "checked events, an abort at once": lambda: FramingSpec(
        broken(ByteItems, ("with m.If(self.settle == 0):", "with m.If(self.settle != 0):"))),
    "single bytes, without their length": lambda: FramingSpec(
        broken(ByteItems, ("Cat(one, self.byte), self.byte)", "Cat(self.byte, one), self.byte)"))),
    "packets, one byte more": lambda: FramingSpec(
        broken(ItmItems, ("left.eq(Cat(size[1], size == 3))", "left.eq(size)")), itm=True),
    "packets, an error goes by": lambda: FramingSpec(
        broken(ItmItems, ("wrong.eq(self.fault | self.expired), self.load", "wrong.eq(self.expired), self.load")),
        itm=True),
    "two wires, a byte that takes too long": lambda: TwoWireSpec(
        broken(TwoWire, ("broken.eq((count != 0) & (over | idle))", "broken.eq((count != 0) & idle)"))),
    "two wires, two bytes in one place": lambda: TwoWireSpec(
        broken(TwoWire, ("m.If(failed | (holds & ~due))", "m.If(failed)")), clocks=40),
    "two wires, a fault before the byte before it": lambda: TwoWireSpec(
        broken(TwoWire, ("self.fault.eq(failed & ~holds)", "self.fault.eq(failed)")), selected=True, clocks=24),
    "two wires, a byte that is rejected comes": lambda: TwoWireSpec(
        broken(TwoWire, ("complete.eq(edge & (count == 7) & ~broken)", "complete.eq(edge & (count == 7))")), clocks=24),
    "two wires, a pause that was long ago": lambda: TwoWireSpec(
        broken(TwoWire, ("m.Elif(self.valid | (edge & (count == 0) & ~holds))", "m.Elif(self.valid)")), selected=True,
        clocks=40),
    "two wires, the pause forgets a fault": lambda: TwoWireSpec(
        broken(TwoWire, ("done = ~(broken | holds", "done = ~(holds")), selected=True),
    "two wires, the rest of a byte begins the next": lambda: TwoWireSpec(
        broken(TwoWire, ("(over | idle))", "over)")), selected=True),
    "one wire, any stop bit": lambda: OneWireSpec(
        broken(OneWire, ("self.valid.eq(self.level), self.fault.eq(~self.level)", "self.valid.eq(1)"))),
    "one wire, a sample late": lambda: OneWireSpec(
        broken(OneWire, ("now.eq(left < 2 * one)", "now.eq(left < one)"))),
    "one wire, nine bits": lambda: OneWireSpec(broken(OneWire, ("_STOP = 9", "_STOP = 8"))),
    "one wire, a break is a start bit": lambda: OneWireSpec(
        broken(OneWire, ('m.next = "LOW"', 'm.next = "HIGH"'))),
    "one wire, a pause is a bit short": lambda: OneWireSpec(
        broken(OneWire, ("self.pause.eq(count == _PAUSE_BITS - 1)", "self.pause.eq(count == _PAUSE_BITS - 2)"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
