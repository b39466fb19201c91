"""FIFO in external memory: every beat comes out once and in order, whatever memory and link do; it never
stops for good; when full it waits; block ends stand where they stood."""

import functools
from collections import deque

import cocotb
import pytest
from hypermon.hdl.layout import BLOCK_HEADER, BLOCK_MAGIC
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.stream.external_fifo import BURST, ExternalFifo, command_layout
from hypermon.sim.virtual.memory.sdram import Sdram, Timing

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage, fields, pack
from ..harness.rejects import rejects
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

#: Beats of head and tail.
AHEAD = 4 * BURST


class Moody:
    """A memory that does everything right, at the worst times."""

    def __init__(self, choose, burst):
        self.choose, self.burst = choose, burst
        self.memory, self.commands, self.at = {}, deque(), 0
        self.command_ready = self.write_ready = False
        self.read = None
        self.mood = 0.5
        self.counts = {"written": 0, "read": 0}

    def clock(self, command, beat):
        choose = self.choose
        if command is not None and self.command_ready:
            self.commands.append(command)
        if beat is not None and self.write_ready:
            self.memory[self.commands[0][1], self.at] = beat
            self._next("written")
        self.read = self.read_ahead = None
        if choose.random() < 0.01:
            self.mood = choose.choice([0.02, 0.3, 0.9, 1.0])
        if self.commands and not self.commands[0][0] and choose.random() < self.mood:
            self.read = self.memory[self.commands[0][1], self.at]
            self._next("read")
        self.command_ready = len(self.commands) < 6 and choose.random() < self.mood
        self.write_ready = bool(self.commands) and bool(self.commands[0][0]) and choose.random() < self.mood

    def _next(self, what):
        self.at += 1
        if self.at == self.burst:
            self.at = 0
            self.commands.popleft()
            self.counts[what] += 1


def blocks(choose):
    """Beats of blocks of all lengths: value, and whether it ends its block."""
    while True:
        length = choose.choice([1, 15, 16, 17, 300, choose.randrange(1, 4000)])
        head = int.from_bytes(BLOCK_HEADER.pack(magic=BLOCK_MAGIC, length=length, sequence=choose.getrandbits(32)),
                              "little")
        yield head & (1 << 128) - 1, 0
        yield head >> 128, 0
        for _ in range(-(-length // 16)):
            yield choose.getrandbits(128), 0
        yield choose.getrandbits(128), 1


#: Beats given and taken a clock.
PHASES = [(0.3, 0.3), (0.9, 0.0), (0.1, 1.0), (0.0, 1.0), (0.5, 0.05), (0.05, 0.5), (1.0, 1.0), (0.02, 1.0)]


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def keeps(dut):
    stage, choose, depth = Stage(dut), rng(), CASE["depth"]
    memory = Moody(rng("memory"), BURST) if CASE["moody"] else Sdram(Timing(**CASE["timing"]), BURST)
    await stage.start(i_valid=0, i_payload=0, o_ready=0, memory_command_ready=0, memory_write_ready=0,
                      memory_read_valid=0, memory_read_payload=0)
    source, inside = blocks(rng("blocks")), deque()
    offered, high, given, taken = None, 0, 0, 0
    rates, until = (0.5, 0.5), 0
    stuck = idle = full = 0
    highest = 0
    for clock in range(CASE["clocks"]):
        if clock == until:
            rates = choose.choice(PHASES)
            until = clock + choose.choice([100, 1000, 3000])
        if offered is None and choose.random() < rates[0]:
            data, last = next(source)
            offered = pack(beat_layout(), data=data, last=last)
        ready = choose.random() < rates[1]
        read = memory.read
        await stage.step(
            i_valid=int(offered is not None), i_payload=offered or 0, o_ready=int(ready),
            memory_command_ready=int(memory.command_ready), memory_write_ready=int(memory.write_ready),
            memory_read_valid=int(read is not None), memory_read_payload=read or 0)
        level = stage.get("level")
        assert level == len(inside), "the level is exact"
        assert stage.get("high") in (high, max(high, level))
        high = max(high, level)
        highest = max(highest, level)
        takes, gives = stage.get("i_ready"), stage.get("o_valid")
        if gives:
            assert inside, "a beat that it has not got"
            assert stage.get("o_payload") == inside[0], "another beat, or another end"
        command = None
        if stage.get("memory_command_valid"):
            found = fields(command_layout(depth // BURST), stage.get("memory_command_payload"))
            command = found["write"], found["burst"]
        beat = stage.get("memory_write_payload") if stage.get("memory_write_valid") else None
        # It is never at a loss: with room there, it takes; with beats inside, it gives.
        stuck = 0 if takes else stuck + 1
        if level > depth:
            full += 1
            stuck = 0
        idle = 0 if gives or not inside else idle + 1
        assert stuck < 4000, f"refuses with {level} of {depth} inside"
        assert idle < 4000, f"keeps {level} beats back"
        if gives and ready:
            inside.popleft()
            taken += 1
        if takes and offered is not None:
            inside.append(offered)
            offered = None
            given += 1
        memory.clock(command, beat)
        await stage.clock()
    stage.put(i_valid=0, o_ready=1)
    for _ in range(60 * len(inside) + 2000):
        read = memory.read
        await stage.step(memory_command_ready=int(memory.command_ready), memory_write_ready=int(memory.write_ready),
                         memory_read_valid=int(read is not None), memory_read_payload=read or 0)
        if stage.get("o_valid"):
            assert stage.get("o_payload") == inside.popleft()
        command = None
        if stage.get("memory_command_valid"):
            found = fields(command_layout(depth // BURST), stage.get("memory_command_payload"))
            command = found["write"], found["burst"]
        memory.clock(command, stage.get("memory_write_payload") if stage.get("memory_write_valid") else None)
        await stage.clock()
    await stage.settle()
    assert not inside
    assert not stage.get("level")
    cocotb.log.info("%d given, %d taken, highest %d, full %d clocks, %s", given, taken, highest, full, memory.counts)
    assert given > 1000
    assert highest > depth, "never full"
    assert full > 50
    assert memory.counts["written"] == memory.counts["read"] > depth // BURST, "once round at least"


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def keeps_pace(dut):
    """A link that takes a beat in 32 clocks, 50 MB/s at 100 MHz, gets one each time while as many come in and the
    memory is in use; and the memory keeps what comes at that pace if the link takes nothing."""
    stage, depth = Stage(dut), CASE["depth"]
    memory = Sdram(Timing(), BURST)
    await stage.start(i_valid=0, i_payload=0, o_ready=0, memory_command_ready=0, memory_write_ready=0,
                      memory_read_valid=0, memory_read_payload=0)
    source, inside = blocks(rng("blocks")), deque()
    owing = late = 0
    for clock in range(40_000):
        stalled = clock < 10_000
        if clock % 32 == 0 and len(inside) < depth:
            data, last = next(source)
            stage.put(i_valid=1, i_payload=pack(beat_layout(), data=data, last=last))
        read = memory.read
        stage.put(o_ready=int(not stalled and owing > 0), memory_command_ready=int(memory.command_ready),
                  memory_write_ready=int(memory.write_ready), memory_read_valid=int(read is not None),
                  memory_read_payload=read or 0)
        await stage.settle()
        if stage.get("i_valid") and stage.get("i_ready"):
            inside.append(stage.get("i_payload"))
            came = True
        else:
            came = False
        assert came or not stage.get("i_valid"), "it is not taken at once"
        owing += clock % 32 == 0 and not stalled
        if stage.get("o_ready"):
            if stage.get("o_valid"):
                assert stage.get("o_payload") == inside.popleft()
                owing -= 1
            else:
                late += 1
        command = None
        if stage.get("memory_command_valid"):
            found = fields(command_layout(depth // BURST), stage.get("memory_command_payload"))
            command = found["write"], found["burst"]
        memory.clock(command, stage.get("memory_write_payload") if stage.get("memory_write_valid") else None)
        await stage.clock()
        stage.put(i_valid=0)
    assert owing <= 1
    assert memory.counts["read"] > 30, memory.counts
    assert memory.counts["refreshes"] > 40
    assert late < 10, f"{late} clocks too late"


@functools.cache
def simulator(depth):
    return component(ExternalFifo(depth), f"external{depth}")


@pytest.mark.parametrize("seed", seeds(3))
def test_keeps_whatever_the_memory_does(seed):
    run(simulator(256), __name__, "keeps", seed, depth=256, moody=True, clocks=20_000)


@pytest.mark.parametrize("timing", [{}, {"beat": 1, "interval": 50}, {"beat": 2, "row": 1, "latency": 9, "turn": 20}])
def test_keeps_in_sdram(timing):
    run(simulator(1024), __name__, "keeps", 0, depth=1024, moody=False, timing=timing, clocks=60_000)


def test_keeps_pace():
    run(simulator(1024), __name__, "keeps_pace", 0, depth=1024)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(10, 1000))
def test_many_seeds(seed):
    run(simulator(256), __name__, "keeps", seed, depth=256, moody=bool(seed % 4), timing={}, clocks=200_000)


def test_a_wrong_size_is_named():
    rejects(lambda: ExternalFifo(48), 48)
    rejects(lambda: ExternalFifo(16), 16)
    rejects(lambda: ExternalFifo(1024, burst=2), 2)
    rejects(lambda: ExternalFifo(1024, ahead=16), 16)


def test_reset():
    """The memory reads as many beats as it is asked for."""
    def memory():
        owed = 0

        def play(traffic):
            nonlocal owed
            rng = traffic.rng
            owed = owed if traffic.values else 0
            reads, ready = owed > 0 and rng.random() < 0.6, int(rng.random() < 0.3)
            owed -= reads
            if traffic.get("memory.command.valid") and ready and not traffic.get("memory.command.payload") & 1:
                owed += 4
            return {"memory.command.ready": ready, "memory.read.valid": int(reads)}
        return play

    same_as_fresh(lambda: ExternalFifo(32, 4, 8), player=memory, episodes=12, before=300)
