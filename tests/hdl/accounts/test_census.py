"""Census: who asks for it and when, the flags of a run, rows of one copy.

Nothing is queued here: while the link stalls one census is asked for, and when it is granted at
last it tells of everything until then.
"""

import functools
from collections import deque

import cocotb
import pytest
from hypermon.hdl.accounts.census import Census
from hypermon.hdl.accounts.counters import ROW, counter_rows
from hypermon.hdl.layout import (
    BLOCK_HEADER,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_NODE,
    COUNTER_BITS,
    CensusFlag,
    Counter,
    Geometry,
    Window,
)

from ..benches.case import CASE, met, rng
from ..benches.cocotb_stage import Stage
from ..benches.source import Link
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

CLOCK_HZ = 5_000_000
#: Clocks from a reason to its request.
PROMPT = 10
#: Clocks around a grant in which what happens may be told in that block or in the next one.
NEAR = 2
#: Clocks from the last that has been counted to the copy, at least.
SETTLED = 6
#: Beats around the number that makes a stream busy, of which nobody knows when they are counted.
VAGUE = 4
#: Bytes between two censuses for each of a census; few, to be reached often.
SHARE = 1
NEVER = 10**9
HEAD = {"frames": 64, "frame_level": 16, "vector_level": 16, "status": 4, "discarded": COUNTER_BITS}
#: ... and among its flags, from bit 2 on.
FLAGS = {"follows": 1, "strayed": 1, "trigger": 3}


class Rows:
    """The counters, by their contract: a latch starts a copy, a word a clock, that a reader may follow;
    words come two clocks after their address."""

    def __init__(self, stage: Stage, choose, nodes: int):
        self.stage, self.choose, self.nodes = stage, choose, nodes
        self.sweep = ROW * counter_rows(nodes)
        self.words = [choose.getrandbits(COUNTER_BITS) for _ in range(self.sweep)]
        self.told: list[list[int]] = []     # the rows of the last copy
        self.wait = 0                       # clocks until the copy begins
        self.at = self.sweep                # the word that is being copied
        self.latch = self.output = 0
        self.latches = 0

    def offer(self) -> None:
        """Inputs of this clock."""
        self.stage.put(copying=int(self.at < self.sweep and not self.wait), word=self.output)

    def take(self) -> None:
        """Outputs of this clock."""
        stage, choose = self.stage, self.choose
        if stage.get("reading"):
            self.output, self.latch = self.latch, self.words[stage.get("address")]
        if self.wait:
            self.wait -= 1
        elif self.at < self.sweep:
            node, counter = divmod(self.at, ROW)
            there = node < self.nodes and counter < len(Counter)
            self.words[self.at] = self.told[node][counter] if there else 0
            self.at += 1
        if stage.get("latch"):
            assert self.at == self.sweep, "latched again, and the copy before is still being made"
            self.told = [[choose.getrandbits(COUNTER_BITS) for _ in Counter] for _ in range(self.nodes)]
            self.at, self.wait = 0, choose.choice([1, 20, 2 * self.sweep])
            self.latches += 1


# Clocks; how often a counter changes; how ready the link is to begin and to take; how often capture is
# switched on or off.
PHASES = {
    "busy": (1200, 0.2, 0.3, 0.9, 0.0),
    "silent": (1200, 0.0, 0.3, 0.9, 0.0),
    "rare": (1200, 0.004, 0.1, 0.3, 0.004),
    "stalled": (300, 0.1, 0.0, 0.0, 0.003),
    "switching": (2500, 0.05, 0.5, 0.9, 0.02),
}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def reports(dut):
    stage, choose = Stage(dut), rng()
    geometry = Geometry(nodes=CASE["nodes"], clock_hz=CLOCK_HZ, beat_bytes=CASE["wide"])
    nodes, collide = geometry.nodes, CASE["collide"]
    window = choose.choice(list(Window))
    per_ms = CLOCK_HZ // 1000 // geometry.window_clocks(window)
    length = CENSUS_BOARD.bytes + nodes * CENSUS_NODE.bytes
    # Beats since the last census was granted, its own among them, that let the next one come early.
    enough = (SHARE + 1) * (BLOCK_HEADER.bytes + length + BLOCK_TRAILER.bytes) // geometry.beat_bytes
    await stage.start(now=0, window=window, running=0, changed=0, slow=0, leaves=0, enable=0, drained=1, copying=0,
                      counting=0, word=0, source_grant=0, source_beats_ready=0, **dict.fromkeys(HEAD | FLAGS, 0))
    link, rows = Link(stage, choose, CASE["wide"]), Rows(stage, choose, nodes)
    for _ in range(50):
        await stage.settle()
        assert not stage.get("source_request"), "a census, and time does not run"
        await stage.clock()

    now, last, running, enable, slow, slow_before = 0, 0, 0, 0, 0, 0
    noticed = 0                 # window of the last census, or one later
    dirty = False
    beats, rate_of_beats = 0, 0.0
    drains_in = 0               # clocks until all is drained, once capture is off
    begun: list[int] = []       # clocks of the enables that no census has told of
    ended: int | None = None    # clock of a disable, likewise
    past: list[tuple[bool, bool]] = []              # by clock: a stop is owed; drained
    since = dict.fromkeys(("jump", "change", "census", "beats", "slow"), 0)
    reasons, recent = 0, deque([False] * PROMPT, PROMPT)
    granted, collides = 0, NEVER
    head: list[dict[str, int]] = []                 # what stood at the inputs since the grant
    requested = False
    counted, counts_on = 0, 0   # clock in which something was still being counted; clocks for which it goes on
    totals = {"START": 0, "STOP": 0, "busy": 0, "thin": 0, "second": 0, "cancelled": 0, "jumps": 0, "collisions": 0}

    def switch(clock: int, on: int) -> None:
        nonlocal enable, ended, drains_in
        enable = on
        if on:
            totals["cancelled"] += ended is not None
            begun.append(clock)
            ended = None
        else:
            ended, drains_in = clock, choose.choice([0, 1, 60, 300])

    async def step(rate: float, patience: float, ready: float, switching: float) -> None:
        nonlocal now, last, noticed, running, dirty, drains_in, ended, reasons, granted, requested, collides, beats
        nonlocal counted, counts_on
        clock = len(past)
        started = running
        running |= enable
        link.offer(patience, ready)
        grants = stage.get("source_grant")
        if grants:
            collides = clock + choose.randrange(NEAR + 1)
        near = (link.asked and grants) or clock - granted <= NEAR
        if started and not near and choose.random() < switching:
            switch(clock, 1 - enable)
        if collide and started and clock >= collides:
            # In the very clock of a grant, or near it.
            switch(clock, 1 - enable)
            totals["collisions"] += 1
            collides = NEVER
        drains_in -= drains_in > 0
        drained = drains_in == 0 and not (enable and recent_change and not collide)
        changed = choose.random() < rate and bool(started) and not grants and clock - granted > NEAR
        values = {name: choose.getrandbits(bits) if choose.random() < 0.1 else stage.get(name)
                  for name, bits in (HEAD | FLAGS).items() if not (geometry.narrow and name == "discarded")}
        values.setdefault("discarded", 0)
        leaves = choose.random() < rate_of_beats
        stage.put(now=now, running=running, changed=int(changed), slow=slow, enable=enable, drained=int(drained),
                  leaves=int(leaves), counting=int(counts_on > 0), **values)
        rows.offer()
        await stage.settle()
        past.append((ended is not None, drained))
        head.append(values)

        # Is there a reason to ask?
        # A setting that has just been changed takes some clocks.
        paces = {slow, slow if clock - since["slow"] > PROMPT else slow_before}
        shorter, period = (per_ms * ((10 if beats + vague >= enough else 100) * 10**pace if dirty else 1000)
                           for vague, pace in ((VAGUE, min(paces)), (-VAGUE, max(paces))))
        due = now - last >= shorter
        reason = bool(running) and (bool(begun) or due or (ended is not None and drained))
        recent.append(reason)
        noticed = now if clock - granted <= NEAR else noticed
        must = reason and (not due or now - noticed >= period)
        reasons = reasons + 1 if must and not link.busy and not stage.get("source_request") else 0
        assert reasons <= PROMPT, f"no census: enabled {begun}, disabled {ended}, {now - last} of {period} windows"
        request = stage.get("source_request")
        assert not request or requested or any(recent), "a census without a reason"
        requested = request
        if ended is not None and clock - ended > NEAR and not link.busy:
            assert stage.get("owed")
        if abs(beats - enough) <= VAGUE:
            since["beats"] = clock
        if running and min(clock - k for k in since.values()) > PROMPT and not link.busy:
            left = max(0, period - (now - last))
            horizon = stage.get("horizon")
            # What has been requested waits for the blocker, and for no timer.
            waits = horizon == 2**32 - 1 and (request or clock - granted <= NEAR)
            assert waits or left <= horizon <= left + 6, f"horizon {horizon}, {left} windows left"

        # The latch waits until all that has left is counted.
        if stage.get("latch"):
            assert clock - counted > SETTLED, "latched, and some of what has left is not counted yet"
        counted, counts_on = clock if counts_on else counted, max(0, counts_on - 1)
        done = link.take()
        if grants:
            counts_on = choose.choice([0, 0, 5, 40])
            block = link.blocks[-1]
            assert block.length == length
            assert block.time == now
            totals["second" if not dirty else "busy" if beats > enough else "thin"] += due
            beats = 0
            granted, last, dirty = clock, now, False
            since["census"] = clock
            del head[:-1]
        rows.take()
        beats += leaves
        if changed:
            since["change"] = since["change"] if dirty else clock
            dirty = True
        if done:
            check(done.payload, clock)
            link.blocks.clear()
            since["census"] = clock
        await stage.clock()
        now += choose.random() < 0.3

    def check(payload: bytes, clock: int) -> None:
        nonlocal ended
        board = CENSUS_BOARD.unpack(payload)
        for name in HEAD:
            assert board[name] in {values[name] for values in head}, f"{name} is not of this block"
        assert board["flags"] >> 2 in {
            values["follows"] | values["strayed"] << 1 | values["trigger"] << 2 for values in head}
        assert rows.latches == 1, f"latched {rows.latches} times for a block"
        rows.latches = 0
        for node in range(nodes):
            row = CENSUS_NODE.unpack(payload, CENSUS_BOARD.bytes + node * CENSUS_NODE.bytes)
            assert list(row.values()) == rows.told[node], f"node {node}: {row}, latched {rows.told[node]}"
        flags = CensusFlag(board["flags"])
        around = past[max(0, granted - NEAR):granted + NEAR + 1]
        if CensusFlag.START in flags:
            assert begun, "START, and nobody has enabled anything"
            assert begun[0] <= granted + NEAR
            begun[:] = [k for k in begun if k > granted + NEAR]
        else:
            assert not begun or begun[0] >= granted - NEAR, "no START after an enable"
        if CensusFlag.STOP in flags:
            assert any(stop and drained for stop, drained in around), "STOP before all had left"
            if ended is not None and ended <= granted + NEAR:
                ended = None
                assert not stage.get("owed")
        else:
            assert not all(stop and drained for stop, drained in around), "no STOP, and all has left"
        totals["START"] += CensusFlag.START in flags
        totals["STOP"] += CensusFlag.STOP in flags

    recent_change = False
    switch(0, 1)
    for dense in (1, 0):
        order = list(PHASES)
        choose.shuffle(order)
        for name in order:
            clocks, rate, patience, ready, switching = PHASES[name]
            slow_before, since["slow"] = slow, len(past)
            slow, rate_of_beats = choose.getrandbits(1), choose.choice([0, 0.2, 1, 1])
            if name == "busy":
                rate_of_beats = dense
            since["change"] = len(past)
            for _ in range(clocks):
                horizon = stage.get("horizon")
                calm = len(past) - since["jump"] > 24 and not link.busy and not requested
                # A busy stream has time to be one.
                calm &= rate_of_beats < 1 or beats > enough + VAGUE
                if calm and horizon > 60 and choose.random() < 0.1:
                    # Time is skipped, up to what the stage allows.
                    now += choose.choice([horizon - 8, horizon - 8, choose.randint(1, horizon - 8)])
                    since["jump"] = len(past)
                    totals["jumps"] += 1
                recent_change = choose.random() < 0.3
                await step(rate, patience, ready, 0 if collide else switching)
    # The last word.
    collide = False
    if not enable:
        switch(len(past), 1)
        for _ in range(1500):
            await step(0, 1, 1, 0)
    switch(len(past), 0)
    for _ in range(1500):
        await step(0, 1, 1, 0)
    assert not begun, "the START has not come"
    assert ended is None, "the STOP has not come"
    assert not stage.get("owed")
    assert not stage.get("source_request")
    cocotb.log.info("%s", totals)
    wanted = ("START", "STOP", "busy", "thin", "second", "jumps", "collisions" if CASE["collide"] else "cancelled")
    met({name: totals[name] for name in wanted})


@functools.cache
def simulator(nodes, wide):
    return component(Census(Geometry(nodes=nodes, clock_hz=CLOCK_HZ, beat_bytes=wide), SHARE))


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize(("nodes", "wide"), [(1, 16), (16, 16), (17, 16), (1, 2), (3, 2), (1, 4), (3, 4)])
def test_reports(nodes, wide, seed):
    run(simulator(nodes, wide), __name__, "reports", seed, nodes=nodes, collide=False, wide=wide)


@pytest.mark.parametrize("seed", seeds(2))
def test_capture_switched_in_the_clock_of_a_grant(seed):
    run(simulator(3, 16), __name__, "reports", seed, nodes=3, collide=True, wide=16)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(30, 1000))
def test_many_seeds(seed, occasions):
    nodes = (2, 16, 17, 32)[seed % 4]
    run(simulator(nodes, 16), __name__, "reports", seed, nodes=nodes, collide=False, wide=16, totals=occasions(seed))


@pytest.mark.slow
def test_many_seeds_have_every_occasion(occasions):
    occasions.complete(30)


def test_reset():
    same_as_fresh(lambda: Census(Geometry.extended(2)), episodes=6, after=120)
