"""The SDRAM's controller at a memory that checks its data sheet: bursts come back as they were written, whatever the
wires' delays, and at the rate that is said; no rule is broken, by nobody who asks for anything at any time."""

import functools
from collections import deque
from dataclasses import astuple, replace

import cocotb
import pytest
from hypermon.hdl.stream.external_fifo import BURST, command_layout
from hypermon.hdl.stream.sdram_controller import Sdram
from hypermon.hdl.stream.sdram_part import AS4C16M16SA_7, MT48LC16M16A2_75, SLOWEST_16M16, SdramPart
from hypermon.sim.virtual.memory.sdram_chip import Delays, Pins, SdramChip

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage, pack
from ..harness.rejects import rejects
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

PARTS = {part.name: part for part in (SLOWEST_16M16, AS4C16M16SA_7, MT48LC16M16A2_75)}
#: Rows enough for a bench to go round.
BURSTS = 64
#: The initialization takes 40,000 clocks and is the same thing in a hundredth of them.
SHORT = 2_000_000


def shortened(part: SdramPart) -> SdramPart:
    return replace(part, pause=SHORT)


class Wired:
    """The controller with the memory at its pins."""

    def __init__(self, dut, part, clock_hz, delays=None):
        self.stage = Stage(dut)
        self.chip = SdramChip(part, clock_hz, delays)
        self.layout = command_layout(CASE["bursts"])

    async def start(self):
        await self.stage.start(memory_command_valid=0, memory_command_payload=0, memory_write_valid=0,
                               memory_write_payload=0, pins_dq_i=0)

    async def clock(self, command=None, beat=None):
        """A clock in which it is offered a command (write, burst) and a beat; what it takes, and gives."""
        stage = self.stage
        stage.put(memory_command_valid=int(command is not None),
                  memory_command_payload=pack(self.layout, write=command[0], burst=command[1]) if command else 0,
                  memory_write_valid=int(beat is not None), memory_write_payload=beat or 0)
        await stage.settle()
        took = stage.get("memory_command_ready"), stage.get("memory_write_ready")
        read = stage.get("memory_read_payload") if stage.get("memory_read_valid") else None
        pins = Pins(*(stage.get(f"pins_{name}") for name in Pins.__dataclass_fields__))
        await stage.clock()
        stage.put(pins_dq_i=self.chip.clock(pins))
        assert not self.chip.complaint, self.chip.complaint
        return *took, read


def wired(dut):
    return Wired(dut, SdramPart(**CASE["part"]), CASE["clock_hz"], Delays(*CASE["delays"]))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def keeps(dut):
    """Random bursts, written and read, at random paces of all three streams."""
    bench, choose = wired(dut), rng()
    await bench.start()
    memory, writing, expected = {}, deque(), deque()
    wish, read_beats, paces, commands = None, 0, (1, 1), 0
    for clock in range(CASE["clocks"]):
        if clock % 500 == 0:
            paces = choose.choice([(1, 1), (0.02, 1), (1, 0.05), (0.3, 0.3), (0.005, 0.5)])
        if wish is None and choose.random() < paces[0] and clock < CASE["clocks"] - 2000:
            write = not memory or choose.random() < 0.5
            wish = int(write), choose.randrange(BURSTS) if write else choose.choice(list(memory))
            if write:
                beats = [choose.getrandbits(128) for _ in range(BURST)]
                memory[wish[1]] = beats
                writing.extend(beats)
            else:
                expected.extend(memory[wish[1]])
        beat = writing[0] if writing and choose.random() < paces[1] else None
        took, wrote, read = await bench.clock(wish, beat)
        if wish and took:
            wish, commands = None, commands + 1
        if beat is not None and wrote:
            writing.popleft()
        if read is not None:
            assert read == expected.popleft(), "another beat than was written there"
            read_beats += 1
    for _ in range(10_000):
        if not writing and not expected:
            break
        _, wrote, read = await bench.clock(wish, writing[0] if writing else None)
        if writing and wrote:
            writing.popleft()
        if read is not None:
            assert read == expected.popleft(), "another beat than was written there"
    cocotb.log.info("%d commands, %d beats read, %s", commands, read_beats, bench.chip.counts)
    assert not writing
    assert not expected
    assert commands > CASE["clocks"] // 1000
    assert read_beats > BURST


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def holds_pace(dut):
    """Everything is there at once: how long bursts take, written and read in turn."""
    bench, choose = wired(dut), rng()
    await bench.start()
    beat, expected = choose.getrandbits(128), deque()
    number, write, begun, done = 0, 1, None, 0
    for clock in range(CASE["clocks"]):
        took, wrote, read = await bench.clock((write, number % BURSTS), beat)
        if wrote:
            expected.append(beat)
            beat = choose.getrandbits(128)
        if took:
            number += not write
            write ^= 1
        if read is not None:
            assert read == expected.popleft()
            begun = clock if begun is None else begun
            done += 1
    took = (clock - begun) / (done / BURST) / 2
    cocotb.log.info("%.2f clocks a burst, %.1f MB/s at %g MHz, %s", took, 256 * CASE["clock_hz"] / took / 1e6,
                    CASE["clock_hz"] / 1e6, bench.chip.counts)
    assert done > CASE["clocks"] // 25
    low, high = CASE["expected"]
    assert low < took < high, "clocks a burst"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def waits_for_ever(dut):
    """A burst of which the last beat is not there: refreshes go on, and what has been written stands."""
    bench, choose = wired(dut), rng()
    await bench.start()
    beats = [choose.getrandbits(128) for _ in range(BURST)]
    command, left = (1, 5), deque(beats)
    for clock in range(10_000):
        beat = left[0] if len(left) > 1 or (left and clock > 9_000) else None
        took, wrote, _ = await bench.clock(command, beat)
        command = None if took else command
        if wrote and beat is not None:
            left.popleft()
    assert not left
    assert bench.chip.counts["refreshes"] >= 8 + 10
    command, expected = (0, 5), deque(beats)
    for _ in range(1000):
        took, _, read = await bench.clock(command)
        command = None if took else command
        if read is not None:
            assert read == expected.popleft()
    assert not expected


def inside(part, clock_hz, of=0.5):
    """Delays whose sum is in the middle of what may be, or ``of`` the way from its beginning to its end."""
    least, most = part.round_trip(clock_hz)
    both = round(least + of * (most - least))
    return Delays(out=both // 2, clock=both // 2, into=both - both // 2, window=0)


@functools.cache
def simulator(part, clock_hz):
    return component(Sdram(part, clock_hz, BURSTS), f"sdram{clock_hz // 1_000_000}")


def case(part, clock_hz=100_000_000, delays=None, **more):
    return {"part": part.__dict__, "clock_hz": clock_hz, "delays": astuple(delays or Delays()), "bursts": BURSTS} | more


def play(what, part=SLOWEST_16M16, clock_hz=100_000_000, seed=0, delays=None, believed=None, short=True, **more):
    """``believed`` : what the controller takes for the part's times. ``short`` : the memory's pause is."""
    part = shortened(part) if short else part
    run(simulator(believed or part, clock_hz), __name__, what, seed, **case(part, clock_hz, delays, **more))


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize(("part", "clock_hz"), [
    ("SDRAM 16M x 16", 100_000_000), pytest.param("AS4C16M16SA-7", 140_000_000, marks=pytest.mark.slow),
    pytest.param("MT48LC16M16A2-75", 50_000_000, marks=pytest.mark.slow),
    pytest.param("MT48LC16M16A2-75", 130_000_000, marks=pytest.mark.slow),
    pytest.param("AS4C16M16SA-7", 20_000_000, marks=pytest.mark.slow)])
def test_keeps(part, clock_hz, seed):
    play("keeps", PARTS[part], clock_hz, seed, inside(PARTS[part], clock_hz), clocks=10_000)


@pytest.mark.parametrize("of", [0.01, pytest.param(0.99, marks=pytest.mark.slow)])
def test_keeps_at_the_ends_of_the_window(of):
    play("keeps", delays=inside(SLOWEST_16M16, 100_000_000, of), clocks=6_000)


@pytest.mark.parametrize("of", [pytest.param(-0.01, marks=pytest.mark.slow), 1.01])
def test_not_beyond_it(of):
    with pytest.raises(AssertionError, match="another beat than was written there"):
        play("keeps", delays=inside(SLOWEST_16M16, 100_000_000, of), clocks=6_000)


#: What is wrong in the controller's times, and the rule that is broken then.
WRONG = {
    "tRCD": {"rcd": 10_000}, "tRP": {"rp": 20_000}, "tRFC": {"rfc": 60_000}, "tMRD": {"mrd": 0, "mrd_clocks": 1},
    "tREFI": {"refresh_window": 68_000_000_000}, "the pause after power-up": {},
}


@pytest.mark.parametrize("rule", ["tRCD", *(pytest.param(rule, marks=pytest.mark.slow) for rule in list(WRONG)[1:])])
def test_a_controller_that_breaks_a_rule_is_told(rule):
    believed = replace(shortened(SLOWEST_16M16), **WRONG[rule])
    with pytest.raises(AssertionError, match=f"AssertionError: {rule}"):
        play("keeps", believed=believed, short=bool(WRONG[rule]), clocks=20_000 if rule == "tREFI" else 4_000)


@pytest.mark.slow
def test_keeps_after_the_whole_pause():
    """Whose first command is 406 us after power-up."""
    play("keeps", short=False, clocks=60_000)


def test_holds_pace():
    """tRCD + 128 + tRP + 2 clocks, and refreshes: 184 MB/s."""
    play("holds_pace", clocks=10_000, expected=[137.0, 139.5])


def test_waits_for_ever():
    play("waits_for_ever")


def test_wrong_sizes_are_named():
    part = SLOWEST_16M16
    rejects(lambda: Sdram(part, 150_000_000, 64), 150_000_000)
    rejects(lambda: Sdram(part, 100_000_000, (1 << 17) + 1), (1 << 17) + 1)
    rejects(lambda: Sdram(part, 100_000_000, 64, burst=24), 24)
    rejects(lambda: Sdram(part, 100_000_000, 64, burst=128), 128)


def test_reset():
    """In the initialization, which is that of a slow clock and a short pause, and in bursts."""
    part = replace(SLOWEST_16M16, pause=SHORT)
    same_as_fresh(lambda: Sdram(part, 10_000_000, 16, 2), episodes=6, before=300, after=250)
