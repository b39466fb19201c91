"""Unbounded proofs of the SDRAM's controller, and broken twins that are refuted."""

import pytest
from hypermon.hdl.stream.sdram_controller import Sdram

from .prover import broken, proofs
from .specs.sdram import SdramSpec

pytestmark = pytest.mark.formal

PROOFS = {"SDRAM": SdramSpec}

TWINS = {
    "a row is used too soon": ("say(Command.ACTIVE, clocks.rcd,", "say(Command.ACTIVE, clocks.rcd - 1,"),
    "a row is opened too soon": (
        'say(Command.PRECHARGE, clocks.rp, address=_ALL_BANKS)\n                m.next = "CLOSED"',
        'say(Command.PRECHARGE, clocks.rp - 1, address=_ALL_BANKS)\n                m.next = "CLOSED"'),
    "a row is closed too soon": ("clocks.cl, clocks.ras - clocks.rcd)", "clocks.cl)"),
    "a refresh ends too soon": ("say(Command.REFRESH, clocks.rfc), due", "say(Command.REFRESH, clocks.rfc - 1), due"),
    "a refresh is left out": ("with m.If(tick):\n            m.d.sync += due.eq(1)",
                              "with m.If(tick & ~write.valid):\n            m.d.sync += due.eq(1)"),
    "refreshes come too seldom": ("tick.eq(until == 0)", "tick.eq((until == 0) & ~write.valid)"),
    "a refresh waits for a burst": ("m.If(done | due)", "m.If(done | (due & ~there))"),
    "a beat is written twice": ("full.eq(0), sending", "full.eq(at[0]), sending"),
    "a beat is taken too soon": ("(sending < 2)", "(sending < 3)"),
    "a burst goes on in another row": ("there.eq(there & ~done), done.eq(0)", "there.eq(there & ~done)"),
    "the banks are rows": ("bank=bank)", "bank=row[0])"),
    "words come late": ("1 + clocks.cl + _PADS + WORDS", "2 + clocks.cl + _PADS + WORDS"),
    "the data are driven too long": ("pins.dq_oe.eq(writing)", "pins.dq_oe.eq(pins.dq_oe | writing)"),
}

REFUTED = {f"SDRAM, {name}": (lambda change=change: SdramSpec(broken(Sdram, change))) for name, change in TWINS.items()}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
