"""The model of an SDRAM complains of every rule of its data sheet that is broken, and of nothing else."""

from dataclasses import replace

import pytest
from hypermon.hdl.stream.sdram_part import AS4C16M16SA_7, MT48LC16M16A2_75, SLOWEST_16M16
from hypermon.sim.virtual.memory.sdram_chip import Delays, Pins, SdramChip

NOP, ACTIVE, READ, REFRESH, PRECHARGE, WRITE, MODE = 0, 1, 2, 3, 5, 6, 7
CLOCK_HZ = 100_000_000
#: With a pause of a microsecond.
PART = replace(SLOWEST_16M16, pause=1_000_000)
CLOCKS = PART.clocks(CLOCK_HZ)
ALL = 1 << 10
BURSTS_OF_8, CL = 3, 16


class Player:
    """Says commands, and what the FPGA takes."""

    def __init__(self, part=PART, delays=None, clock_hz=CLOCK_HZ):
        self.chip = SdramChip(part, clock_hz, delays)
        self.clocks = part.clocks(clock_hz)

    def say(self, command=NOP, then=1, **pins):
        """A command, and clocks until the next one; the words taken at each."""
        words = [self.chip.clock(Pins(**{"cke": 1} | pins, command=command))]
        rest = {name: pins[name] for name in ("dq_oe", "mask", "cke") if name in pins}
        return words + [self.chip.clock(Pins(**{"cke": 1} | rest)) for _ in range(then - 1)]

    def begin(self, refreshes=8, mode=None, pause=None):
        self.say(then=self.clocks.pause + 2 if pause is None else pause, cke=0)
        self.say(then=2)
        self.say(PRECHARGE, self.clocks.rp, address=ALL)
        for _ in range(refreshes):
            self.say(REFRESH, self.clocks.rfc)
        self.say(MODE, self.clocks.mrd, address=BURSTS_OF_8 | self.clocks.cl * CL if mode is None else mode)

    def write(self, words, column=0):
        self.say(WRITE, address=column, dq_o=words[0], dq_oe=1)
        for word in words[1:]:
            self.say(dq_o=word, dq_oe=1)

    def read(self, column=0):
        """The words come CL and two clocks later, one of them the pads'."""
        return self.say(READ, 8 + self.clocks.cl + 1, address=column)[self.clocks.cl + 1:]


@pytest.fixture
def player():
    made = Player()
    made.begin()
    return made


@pytest.mark.parametrize("part", [SLOWEST_16M16, AS4C16M16SA_7, MT48LC16M16A2_75])
@pytest.mark.parametrize("clock_hz", [100_000_000, 133_000_000])
def test_keeps_what_it_is_told(part, clock_hz):
    part = replace(part, pause=1_000_000)
    least, most = part.round_trip(clock_hz)
    half = (least + most) // 4
    player = Player(part, Delays(half, half, half, 0), clock_hz)
    player.begin()
    words = {bank: [bank << 12 | k << 4 | 5 for k in range(16)] for bank in range(4)}
    for bank in range(4):
        player.say(ACTIVE, player.clocks.rcd, bank=bank, address=bank * 2047)
        for column in (0, 8):
            for k, word in enumerate(words[bank][column:column + 8]):
                player.say(NOP if k else WRITE, bank=bank, address=0 if k else 496 + column, dq_o=word, dq_oe=1)
    player.say(then=player.clocks.wr)
    for bank in range(4):
        got = player.say(READ, 8, bank=bank, address=496) + player.say(READ, 24, bank=bank, address=504)
        assert got[player.clocks.cl + 1:][:16] == words[bank]
    assert player.chip.complaint == ""
    assert player.chip.counts == {"rows_opened": 4, "refreshes": 8, "bursts": 16}


def test_a_masked_word_is_not_written(player):
    player.say(ACTIVE, CLOCKS.rcd)
    player.write(list(range(100, 108)))
    player.say(WRITE, 8, dq_oe=1, mask=1, dq_o=7)
    assert player.read() == list(range(100, 108))
    assert player.chip.complaint == ""


def test_rows_and_banks_are_different_places(player):
    places = [(bank, row) for bank in range(4) for row in (0, 1, 4095, 8191)]
    for write in (True, False):
        for bank, row in places:
            player.say(ACTIVE, CLOCKS.rcd, bank=bank, address=row)
            if write:
                player.say(WRITE, 8, bank=bank, address=8, dq_oe=1, dq_o=bank << 14 | row)
                player.say(then=CLOCKS.wr)
            else:
                assert player.say(READ, 12, bank=bank, address=8)[CLOCKS.cl + 1] == bank << 14 | row
            player.say(PRECHARGE, CLOCKS.rp, bank=bank)
            player.say(REFRESH, CLOCKS.rfc)
    assert player.chip.complaint == ""


def rows(*commands):
    """What is said to a memory that is set up: commands, each with clocks until the next, and pins."""
    return lambda player: [player.say(command, then, **pins) for command, then, pins in commands]


def written(then):
    return [(WRITE, 8, {"dq_oe": 1}), (NOP, then, {})]


#: Each rule: what keeps it just so, and what breaks it by a clock, or plainly.
RULES = {
    "tRCD": (rows((ACTIVE, 3, {}), (READ, 12, {})), rows((ACTIVE, 2, {}), (READ, 12, {}))),
    "tRP": (rows((ACTIVE, 5, {}), (PRECHARGE, 3, {}), (ACTIVE, 5, {})),
            rows((ACTIVE, 5, {}), (PRECHARGE, 2, {}), (ACTIVE, 5, {}))),
    "tRC": (rows((ACTIVE, 5, {}), (PRECHARGE, 4, {}), (ACTIVE, 5, {})),
            rows((ACTIVE, 5, {}), (PRECHARGE, 3, {}), (ACTIVE, 5, {}))),
    "tRAS": (rows((ACTIVE, 5, {}), (PRECHARGE, 3, {})), rows((ACTIVE, 4, {}), (PRECHARGE, 3, {}))),
    "tRRD": (rows((ACTIVE, 2, {}), (ACTIVE, 1, {"bank": 1})), rows((ACTIVE, 1, {}), (ACTIVE, 1, {"bank": 1}))),
    "tRFC": (rows((REFRESH, 7, {}), (ACTIVE, 1, {})), rows((REFRESH, 6, {}), (ACTIVE, 1, {}))),
    "tRP before a refresh": (rows((ACTIVE, 5, {}), (PRECHARGE, 3, {}), (REFRESH, 1, {})),
                             rows((ACTIVE, 5, {}), (PRECHARGE, 2, {}), (REFRESH, 1, {}))),
    "refresh of an open bank": (rows((REFRESH, 1, {})), rows((ACTIVE, 9, {}), (REFRESH, 1, {}))),
    "tMRD in clocks": (rows((MODE, 2, {"address": 0x23}), (ACTIVE, 1, {})),
                       rows((MODE, 1, {"address": 0x23}), (ACTIVE, 1, {}))),
    # The last word is written seven clocks after its command; a clock more, and tWR has passed.
    "tWR": (rows((ACTIVE, 3, {}), *written(1), (PRECHARGE, 1, {})),
            rows((ACTIVE, 3, {}), (WRITE, 8, {"dq_oe": 1}), (PRECHARGE, 1, {}))),
    "tRAS, the longest": (rows((ACTIVE, 500, {}), (PRECHARGE, 1, {})), rows((ACTIVE, 501, {}), (PRECHARGE, 1, {}))),
    "activate of an open bank": (rows((ACTIVE, 9, {}), (ACTIVE, 9, {"bank": 1})),
                                 rows((ACTIVE, 9, {}), (ACTIVE, 9, {}))),
    "access to a closed bank": (rows((ACTIVE, 9, {}), (READ, 9, {})), rows((ACTIVE, 9, {}), (READ, 9, {"bank": 1}))),
    "auto precharge": (rows((ACTIVE, 9, {}), (READ, 9, {})), rows((ACTIVE, 9, {}), (READ, 9, {"address": ALL}))),
    "a column that is not there": (rows((ACTIVE, 9, {}), (READ, 9, {"address": 511})),
                                   rows((ACTIVE, 9, {}), (READ, 9, {"address": 512}))),
    "a burst is cut short": (rows((ACTIVE, 9, {}), (READ, 8, {}), (PRECHARGE, 9, {})),
                             rows((ACTIVE, 9, {}), (READ, 7, {}), (PRECHARGE, 9, {}))),
    "a read that is masked": (rows((ACTIVE, 9, {}), (READ, 9, {})), rows((ACTIVE, 9, {}), (READ, 9, {"mask": 1}))),
    "nobody drives a word that is to be written": (rows((ACTIVE, 9, {}), (WRITE, 8, {"dq_oe": 1})),
                                                   rows((ACTIVE, 9, {}), (WRITE, 8, {}))),
    "both sides drive DQ": (rows((ACTIVE, 9, {}), (READ, 11, {}), (WRITE, 8, {"dq_oe": 1})),
                            rows((ACTIVE, 9, {}), (READ, 8, {}), (WRITE, 8, {"dq_oe": 1}))),
    "a command while CKE is low": (rows((NOP, 9, {"cke": 0}), (NOP, 1, {}), (REFRESH, 1, {})),
                                   rows((NOP, 9, {"cke": 0}), (REFRESH, 1, {}))),
    "a command that is none": (rows((REFRESH, 1, {})), rows((4, 1, {}))),
    "a mode that is not bursts of eight in sequence": (rows((MODE, 2, {"address": 0x33})),
                                                       rows((MODE, 2, {"address": 0x32}))),
    "a CAS latency that it has not got": (rows((MODE, 2, {"address": 0x33})), rows((MODE, 2, {"address": 0x43}))),
    "mode register set with an open bank": (rows((MODE, 2, {"address": 0x23})),
                                            rows((ACTIVE, 9, {}), (MODE, 2, {"address": 0x23}))),
    "tRP before the mode register is set": (
        rows((ACTIVE, 9, {}), (PRECHARGE, 3, {}), (MODE, 2, {"address": 0x23})),
        rows((ACTIVE, 9, {}), (PRECHARGE, 2, {}), (MODE, 2, {"address": 0x23}))),
    "tREFI: refreshes are missing": (rows(*[(REFRESH, 780, {})] * 20), rows(*[(REFRESH, 860, {})] * 30)),
}

#: Parts of which another rule is not in the way of that one.
PARTS = {
    "tRC": replace(PART, rc=90_000), "tMRD in clocks": replace(PART, mrd=1),
    "tRAS, the longest": replace(PART, ras_max=5_000_000),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule):
    for breaks, said in enumerate(RULES[rule]):
        player = Player(PARTS.get(rule, PART))
        player.begin()
        said(player)
        assert player.chip.complaint.partition(" at ")[0] == (rule if breaks else ""), ("kept", "broken")[breaks]


#: Of the initialization: what is different, and what that breaks.
BEGINNINGS = {
    "the pause after power-up": {"pause": 96},
    "fewer than eight refreshes before the mode register is set": {"refreshes": 7},
    "a mode that is not bursts of eight in sequence": {"mode": 0x2b},
}


@pytest.mark.parametrize("rule", BEGINNINGS)
def test_rule_of_the_beginning(rule):
    player = Player()
    player.begin(**BEGINNINGS[rule])
    assert player.chip.complaint.startswith(rule)


def test_rules_before_the_beginning_is_over():
    player = Player()
    player.say(then=110)
    player.say(ACTIVE)
    assert player.chip.complaint.startswith("activate before the mode register is set")
    player = Player()
    player.say(then=110)
    player.say(REFRESH)
    assert player.chip.complaint.startswith("refresh before all banks are precharged")


def test_all_rows_in_time():
    """Refreshes keep their rate, but one round of all rows takes too long."""
    part = replace(PART, refreshes=64, refresh_window=64 * 7_812_500)
    player = Player(part)
    player.begin()
    for _ in range(70):
        player.say(REFRESH, 770)
    assert player.chip.complaint == ""
    for _ in range(70):
        player.say(REFRESH, 785)
    assert player.chip.complaint.startswith("tREF: ")


@pytest.mark.parametrize(("rule", "delays"), [
    ("", Delays()), ("", Delays(6_999, 3_500)), ("set-up", Delays(7_001, 3_500)),
    ("", Delays(0, 4_199)), ("hold", Delays(0, 4_201 + 5_000))])
def test_set_up_and_hold(rule, delays):
    """Inputs change half a clock before the memory's edge, or as the wires have it."""
    player = Player(delays=delays)
    player.begin()
    assert player.chip.complaint.partition(" at ")[0] == rule


def test_clock():
    player = Player(replace(PART, ck2=10_001, ck3=7_000))
    player.clocks = CLOCKS          # with a CAS latency of 2
    player.begin()
    player.say(then=3)
    assert player.chip.complaint.startswith("tCK")
