"""LOSS records: every refused item in exactly one record, whatever happens to the queue after it; in both forms."""

import functools
import itertools
from dataclasses import dataclass, field

import cocotb
import pytest
from hypermon.hdl.accounts.counters import counter_rows
from hypermon.hdl.accounts.loss_records import QUEUE_DEPTH, LossRecords
from hypermon.hdl.accounts.loss_records_narrow import VISIT, NarrowLossRecords
from hypermon.hdl.layout import BEAT_BYTES, GATE_CAUSES, LOSS_RECORD, NARROW_BYTES, SLIM_BYTES, Cause

from ..benches.case import CASE, met, rng
from ..benches.cocotb_stage import Stage
from ..benches.source import Link
from ..harness.runner import component, run, seeds

#: Clocks behind a visit of the sweep until its record is in the queue.
PIPELINE = 6


@dataclass
class Refusal:
    """One refused item: clock, window, cause and number of its outage.

    Since the refusal before it, up to its own clock, the outage was over for ``over`` clocks on
    end, and for ``free`` clocks on end while the queue had room.
    """

    clock: int
    window: int
    cause: Cause
    outage: int
    over: int
    free: int


@dataclass
class Node:
    """A gate, seen from behind: it is closed from its first refusal on, and the last one of an
    outage may come in the clock in which it is open again."""

    closed_for: int = 0
    reopened: bool = False
    rate: float = 0
    cause: Cause = Cause.FRAME_FIFO
    outage: int = -1
    refusals: list[Refusal] = field(default_factory=list)
    #: Present and longest run of clocks, see :class:`Refusal`.
    over: tuple[int, int] = 0, 0
    free: tuple[int, int] = 0, 0

    def pass_clock(self, over: bool, room: bool) -> None:
        """One clock in which its outage, if there is one, is over, and the queue has room."""
        def longer(runs: tuple[int, int], on: bool) -> tuple[int, int]:
            run = runs[0] + 1 if on else 0
            return run, max(runs[1], run)
        self.over, self.free = longer(self.over, over), longer(self.free, over and room)

    def refuse(self, clock: int, window: int) -> None:
        self.refusals.append(Refusal(clock, window, self.cause, self.outage, self.over[1], self.free[1]))
        self.over = self.free = 0, 0


class Epoch:
    """What has been refused since the last reset, and all that has been said of it."""

    def __init__(self, nodes: int):
        self.nodes = [Node() for _ in range(nodes)]
        self.refused = 0
        self.off: list[int] = []        # number of clocks, up to each one, in which capture was off
        self.settled: set[tuple[int, int]] = set()  # "not open": items refused, records queued until then

    def verify(self, data: bytes, sweep: int, *, whole: bool) -> tuple[int, int]:
        """Hold the records against the refusals; returns how many outages had been taken in by the record
        of an earlier one, and how many records name several causes."""
        records = [LOSS_RECORD.unpack(data, at * LOSS_RECORD.bytes) for at in range(len(data) // LOSS_RECORD.bytes)]
        at = [0] * len(self.nodes)
        grown = mixed = 0
        sums = [0]
        for record in records:
            node, number = self.nodes[record["node"]], at[record["node"]]
            sums.append(sums[-1] + record["lost"])
            part = node.refusals[number:number + record["lost"]]
            assert 0 < record["lost"] == len(part), record
            assert record["first"] == part[0].window, record
            assert record["last"] == part[-1].window, record
            causes = functools.reduce(lambda a, b: a | b, (r.cause for r in part))
            assert record["causes"] == causes, record
            assert record["zero_1"] == record["zero_2"] == 0, record
            mixed += causes.bit_count() > 1
            for one, two in itertools.pairwise(part):
                assert two.free <= sweep + PIPELINE, f"{one} and {two} in one record, and the queue had room: {record}"
                grown += two.over > sweep + PIPELINE
            if number and node.refusals[number - 1].outage == part[0].outage and not part[0].over:
                # Whether capture is off is looked at two clocks late.
                before, after = node.refusals[number - 1].clock, min(part[0].clock + 2, len(self.off) - 1)
                assert self.off[after] != self.off[before], f"an outage in two records: {record}"
            at[record["node"]] += record["lost"]
        if whole:
            assert at == [len(node.refusals) for node in self.nodes], "items that no record tells of"
        for refused, queued in self.settled:
            if queued < len(sums):
                assert sums[queued] == refused, f"not open after {refused} refusals, {sums[queued]} recorded"
        return grown, mixed


#: What a run must contain, or of many runs some: one that grows from sweep to sweep is rare.
OCCASIONS = ("full", "grown", "mixed", "off", "jumps", "records")
# Clocks; how often a gate closes, for how long at most; how ready the link is to begin and to take.
PHASES = {
    "calm": (700, 0.004, 60, 0.2, 0.7),
    "storm": (700, 0.05, 40, 0.02, 0.5),
    "blocked": (600, 0.03, 30, 0.0, 0.0),
    "long": (500, 0.01, 400, 0.1, 0.3),
    "silent": (500, 0.0, 0, 0.2, 0.7),
}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def records(dut):
    stage, choose = Stage(dut), rng()
    count = CASE["nodes"]
    sweep = counter_rows(count) * (VISIT if CASE["serial"] else 1)
    await stage.start(refused_by_0=0, refused_by_1=0, refused_by_2=0, some=0, closed=0, now=0, live=1, clear=1,
                      source_grant=0, source_beats_ready=0)
    link, epoch = Link(stage, choose, CASE["wide"]), Epoch(count)
    now = choose.choice([0, 2**32 - 300, choose.getrandbits(60)])
    clock = 0                   # of this epoch
    live_for = 10**6            # clocks since capture was switched on; below 0: off
    calm = 0                    # clocks without a refusal
    over = 0                    # clocks since all outages were over and the queue had room
    totals = {"full": 0, "grown": 0, "mixed": 0, "off": 0, "jumps": 0, "cleared": 0, "records": 0}

    def said() -> bytes:
        return b"".join(beat for block in link.blocks for beat in block.beats)

    async def clear() -> None:
        """A reset; what the gate refused in the clocks before may still come."""
        nonlocal epoch, clock, now, calm, over
        stage.put(clear=1, live=0, closed=0)
        link.cut()
        for k in range(2 * sweep + choose.randint(2, 16)):
            late = choose.getrandbits(count) if k < 2 else 0
            stage.put(refused_by_0=late, refused_by_1=0, refused_by_2=0, some=int(late != 0))
            await stage.clock()
            assert not stage.get("open")
            assert not stage.get("source_request")
        now = choose.choice([0, 2**32 - 300])
        stage.put(clear=0, live=1, now=now)
        await stage.settle()
        epoch, clock, calm, over = Epoch(count), 0, 0, 0

    def gates(rate: float, longest: int, room: bool) -> list[int]:
        """The gates of this clock; returns what is refused by cause."""
        refused = [0, 0, 0]
        closed = 0
        for n, node in enumerate(epoch.nodes):
            item = False
            if node.closed_for:
                node.closed_for -= 1
                node.reopened = not node.closed_for
                item = live_for > -4 and choose.random() < node.rate
            elif node.reopened:
                node.reopened = False
            elif live_for > 3 and choose.random() < rate:
                node.closed_for = choose.choice([1, 2, choose.randint(1, longest)])
                node.rate = choose.choice([0.0, 0.05, 0.5, 1.0])
                node.cause = choose.choice(GATE_CAUSES)
                node.outage += 1
                item = True
            node.pass_clock(not node.closed_for or live_for < 0, room)
            closed |= bool(node.closed_for) << n
            if item:
                node.refuse(clock, now)
                epoch.refused += 1
                refused[GATE_CAUSES.index(node.cause)] |= 1 << n
        stage.put(closed=closed)
        return refused

    async def step(rate: float, longest: int, patience: float, ready: float, span: int) -> None:
        nonlocal now, clock, calm, over, live_for
        # Before the edge: what the stage says of everything up to now.
        await stage.settle()
        inside = stage.get("source_length") // LOSS_RECORD.bytes
        epoch.off.append((epoch.off[-1] if epoch.off else 0) + (live_for < 0))
        if not stage.get("open") and not link.busy:
            epoch.settled.add((epoch.refused, len(said()) // LOSS_RECORD.bytes + inside))
        if over > 3 * sweep + 2 * PIPELINE:
            assert not stage.get("open"), "open, and nothing is to be recorded any more"
        refused = gates(rate, longest, inside < QUEUE_DEPTH)
        stage.put(**{f"refused_by_{k}": r for k, r in enumerate(refused)}, some=int(any(refused)), now=now,
                  live=int(live_for >= 0))
        link.offer(patience, ready)
        await stage.settle()
        link.take()
        if stage.get("source_grant"):
            assert link.blocks[-1].length % LOSS_RECORD.bytes == 0
            assert link.blocks[-1].length <= QUEUE_DEPTH * LOSS_RECORD.bytes
            assert link.blocks[-1].time == now
        await stage.clock()
        if any(refused):
            assert stage.get("open"), "not open after a refusal"
        calm = 0 if any(refused) else calm + 1
        idle = live_for < -4 or not any(node.closed_for for node in epoch.nodes)
        over = over + 1 if idle and not any(refused) and inside < QUEUE_DEPTH else 0
        clock, live_for = clock + 1, live_for + 1
        now += choose.random() * span < 1

    def finish(whole: bool) -> None:
        grown, mixed = epoch.verify(said(), sweep, whole=whole)
        totals["grown"] += grown
        totals["mixed"] += mixed
        totals["records"] += len(said()) // LOSS_RECORD.bytes

    await clear()
    for _ in range(2):
        order = list(PHASES)
        choose.shuffle(order)
        for name in order:
            length, rate, longest, patience, ready = PHASES[name]
            span = choose.choice([1, 1, 3, 20, 80])
            blocked = name == "blocked"
            full = 0    # clocks for which the queue has been full
            while length > 0 or (blocked and full < 600):
                length -= 1
                full += stage.get("source_length") == QUEUE_DEPTH * LOSS_RECORD.bytes
                assert length > -5000, "the queue does not get full"
                if calm > 16 and not stage.get("open") and choose.random() < 0.05:
                    # Idle time is skipped.
                    now, calm = now + choose.choice([64, 1000, choose.randint(1, 2**31 - 1)]), -16
                    totals["jumps"] += 1
                if live_for >= 0 and choose.random() < 0.002:
                    live_for = -choose.choice([1, 10, 200])
                    totals["off"] += 1
                await step(rate if calm >= 0 else 0, longest, patience, ready, span)
            totals["full"] += blocked
            if choose.random() < 0.3 and not blocked:
                finish(False)
                await clear()
                totals["cleared"] += 1
        # Gates open, the link goes on: everything is said.
        for _ in range(1500):
            await step(0, 0, 0.2, 0.7, 5)
        assert not stage.get("open")
        assert not stage.get("source_request")
        assert not any(node.closed_for for node in epoch.nodes)
        finish(True)
        await clear()
    cocotb.log.info("%s", totals)
    met({name: totals[name] for name in OCCASIONS})


@functools.cache
def simulator(nodes, serial, wide):
    return component(NarrowLossRecords(nodes) if serial else LossRecords(nodes, beat_bytes=wide))


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize(("nodes", "serial", "wide"), [
    (1, False, 16), (16, False, 16), (17, False, 16), (3, False, 4), (17, False, 4), (3, True, 2), (16, True, 2)])
def test_records(nodes, serial, wide, seed):
    run(simulator(nodes, serial, wide), __name__, "records", seed, nodes=nodes, serial=serial, wide=wide)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(30, 1000))
def test_many_seeds(seed, occasions):
    nodes = (2, 16, 17, 32)[seed % 4]
    serial = seed % 8 > 3
    wide = NARROW_BYTES if serial else (BEAT_BYTES, SLIM_BYTES)[seed // 8 % 2]
    run(simulator(nodes, serial, wide), __name__, "records", seed, nodes=nodes, serial=serial, wide=wide,
        totals=occasions(seed))


@pytest.mark.slow
def test_many_seeds_have_every_occasion(occasions):
    occasions.complete(30)
