"""Ring: every beat once, in order, inside the ring, never over one that was not consumed, and before the head."""

import functools

import cocotb
import pytest
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.transport.pcie.ring import Ring
from hypermon.hdl.transport.pcie.tlp import mps_beats, write_layout

from ...benches.case import CASE, met, rng
from ...benches.cocotb_stage import Stage, fields, pack
from ...harness.resets import same_as_fresh
from ...harness.runner import component, run, seeds

PAGE = 256


class Host:
    """The host's memory: takes writes, reads the head from it, consumes and moves the tail."""

    def __init__(self, page, pages, mps):
        self.base, self.size, self.most = page * PAGE, PAGE << pages, mps_beats(mps)
        self.memory, self.got, self.tail, self.head = {}, [], 0, 0
        self.written = 0                 # beats since the start
        self.write = None                # its header, and beats so far
        self.reports = self.starts = 0
        self.lengths = set()

    def beat(self, o):
        header = (o["address"], o["beats"])
        if self.write is None:
            self.write = [header, 0]
            assert 1 <= o["beats"] <= self.most
            assert o["address"] % PAGE + o["beats"] <= PAGE, "a write crosses a page"
        assert header == self.write[0], "the header is held"
        at = o["address"] + self.write[1]
        self.write[1] += 1
        ends = self.write[1] == o["beats"]
        assert o["last"] == ends
        if ends:
            self.write = None
        if at == self.base + self.size:
            self.report(o)
            return
        assert self.base <= at < self.base + self.size, "outside the ring"
        assert at == self.base + self.written % self.size
        self.memory[at] = o["data"]
        self.written += 1
        assert self.written - self.tail <= self.size, "over what was not consumed"
        assert self.written - self.head <= min(self.size // 4, 4096) + 3 * self.most, "reported in time"
        self.lengths.add(o["beats"])

    def cut(self):
        """A reset: a write that is not complete never reaches the memory."""
        if self.write:
            self.written -= self.write[1] if self.write[0][0] != self.base + self.size else 0
            self.write = None

    def report(self, o):
        head = o["data"] & 0xffffffff
        assert head % 16 == 0
        assert o["data"] >> 32 == self.starts & 0xffff
        assert self.head < head // 16 <= self.written, "the head is visible before its data"
        self.head, self.reports = head // 16, self.reports + 1

    def drain(self, most=1 << 30):
        for _ in range(min(most, self.head - self.tail)):
            self.got.append(self.memory[self.base + self.tail % self.size])
            self.tail += 1

    def restart(self):
        self.written = self.head = self.tail = 0
        self.starts += 1


async def _started(dut, page, pages, mps, flush):
    stage = Stage(dut)
    await stage.start(i_valid=0, i_payload=0, o_ready=0, settings_enable=0, settings_page=page, settings_pages=pages,
                      settings_tail=0, settings_flush=flush, mps=mps, permitted=1, room=1, down=0)
    return stage


class Source:
    """Beats of blocks, numbered; ``ends`` says how often a block ends."""

    def __init__(self, choose, beats, rate, ends):
        self.choose, self.rate = choose, rate
        self.beats = [(k + 1, int(choose.random() < ends)) for k in range(beats)]
        self.at, self.offered, self.pause = 0, False, 0

    def before(self, stage):
        if not self.offered and self.at < len(self.beats):
            self.pause = max(0, self.pause - 1)
            self.offered = self.pause == 0 and self.choose.random() < self.rate
            if not self.pause and self.choose.random() < 0.002:
                self.pause = self.choose.choice([5, 300])
        number, last = self.beats[self.at] if self.offered else (self.choose.getrandbits(128), 1)
        stage.put(i_valid=int(self.offered), i_payload=pack(beat_layout(), data=number, last=last))

    def after(self, stage):
        if self.offered and stage.get("i_ready"):
            self.at, self.offered = self.at + 1, False


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def traffic(dut):
    """Random stalls of everything; with ``faults``, stops by the host, by its permission and by resets of the link."""
    choose, faults = rng(), CASE["faults"]
    pages, mps = choose.choice([0, 0, 1, 10]), choose.randrange(4)
    host = Host(choose.getrandbits(52) - 4096 if choose.random() < 0.9 else 0, pages, mps)
    host.base = max(0, host.base)
    stage = await _started(dut, host.base // PAGE, pages, mps, choose.choice([20, 100, 400]))
    source = Source(choose, CASE["beats"], choose.choice([0.1, 0.6, 1]), choose.choice([0.002, 0.02, 0.2]))
    taking, draining = choose.choice([0.3, 0.9, 1]), choose.choice([0.001, 0.01, 0.2])
    counts = dict.fromkeys(("full", "waits", "off", "restarts", "resets", "cut"), 0)
    enabled, permitted, room, down, cut_before, limit = 0, 1, 1, 0, 0, 400 * CASE["beats"]
    lost, shown, may_begin, reporting = 0, False, False, False
    held = 0                     # clocks for which the block has no room
    while host.got[-1:] != [len(source.beats)] and stage.now < limit:
        source.before(stage)
        if choose.random() < 0.002 and room:
            room, held = 0, choose.randrange(1, 200)
            counts["waits"] += 1
        held = max(0, held - 1)
        room = room or held == 0
        restart = enabled and faults and choose.random() < 0.005
        down, permitted = max(0, down - 1), 1
        if restart and (how := choose.randrange(3)):
            if how == 1:
                down = choose.randrange(40, 80)
            else:
                permitted = 0
            counts["resets" if how == 1 else "off"] += 1
        if restart:
            enabled = 0
        elif not enabled and not down and not stage.get("state_running"):
            # The host starts again: what it had not consumed is in its memory, and it does not forget it.
            host.drain()
            host.restart()
            enabled, counts["restarts"] = 1, counts["restarts"] + 1
        if choose.random() < draining:
            host.drain(choose.choice([1, 40, 1 << 20]))
        await stage.step(settings_enable=int(enabled), settings_tail=host.tail, permitted=permitted, room=int(room),
                         down=int(down > 0), o_ready=int(choose.random() < taking))
        source.after(stage)
        counts["full"] += stage.get("state_full")
        if stage.get("o_valid"):
            o = fields(write_layout(), stage.get("o_payload"))
            assert shown or may_begin, "a write begins that is not permitted"
            shown = True
            if stage.get("o_ready"):
                host.beat(o)
                shown = not o["last"]
            reporting = shown and o["address"] == host.base + host.size
        may_begin = permitted and room and enabled and not down
        await stage.clock()
        if down:
            shown = False
            host.cut()
        if restart:
            # When the ring has stopped, register and memory state all that was written, if that was permitted.
            asked, was_down, head = permitted, down, host.head
            off = 0 if permitted else choose.choice([0, 3, 40])
            while stage.get("state_running") or down:
                off = max(0, off - 1)
                await stage.step(i_valid=0, settings_enable=0, down=int(down > 0), permitted=int(off == 0), room=1,
                                 o_ready=int(choose.random() < taking))
                down = max(0, down - 1)
                if stage.get("o_valid") and stage.get("o_ready"):
                    host.beat(fields(write_layout(), stage.get("o_payload")))
                await stage.clock()
                if down:
                    host.cut()
            shown = False
            cut = stage.get("state_cut")
            lost += cut - cut_before
            counts["cut"] += cut - cut_before
            cut_before = cut
            assert stage.get("state_written") == host.written
            assert asked or reporting or host.head == head, "no report after the permission has fallen"
            assert host.head == host.written or not asked or was_down
            host.head = host.written
            source.offered = source.offered and source.at < len(source.beats)
    wanted = list(range(1, len(source.beats) + 1))
    assert len(host.got) + lost == len(wanted), (len(host.got), lost, stage.now, counts)
    assert host.got == sorted(set(host.got)), "in order, and none twice"
    if not faults:
        assert host.got == wanted
        counts = {"full": counts["full"] if pages == 0 and draining < 0.01 else 1, "reports": host.reports}
    met(counts if not faults else {k: counts[k] for k in ("off", "waits", "restarts")})


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def rate(dut):
    """Share of clocks that carry data, if each write costs a clock for its header and nothing else waits.

    No block ends, and nothing is flushed, so that only the limit of 64 KiB causes reports.
    """
    mps, pages = CASE["mps"], 10
    host = Host(1 << 20, pages, mps)
    host.restart()
    stage = await _started(dut, 1 << 20, pages, mps, 1 << 20)
    at, clocks, first, header = 0, 0, None, True
    while host.written < 20_000:
        await stage.step(i_valid=1, i_payload=pack(beat_layout(), data=at, last=0),
                         settings_enable=1, settings_tail=host.tail, o_ready=int(not header))
        at += stage.get("i_ready")
        if stage.get("o_valid"):
            if header:
                header = False
            else:
                o = fields(write_layout(), stage.get("o_payload"))
                host.beat(o)
                header = bool(o["last"])
            first = stage.now if first is None else first
        host.drain()
        await stage.clock()
    clocks = stage.now - first
    share = host.written / clocks
    dut._log.info("share of data %.4f at %d bytes", share, 16 * mps_beats(mps))
    assert share >= CASE["share"], share


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def flushes(dut):
    """What does not fill a write and ends no block is in memory and reported after ``flush`` and a few clocks; what
    ends a block at once."""
    host = Host(7, 0, 1)
    host.restart()
    stage = await _started(dut, 7, 0, 1, CASE["flush"])
    for last in (0, 1) * 4:
        for _ in range(2 * CASE["flush"]):       # an idle ring is not late
            await stage.step(i_valid=0, settings_enable=1, settings_tail=host.tail, o_ready=1)
            assert not stage.get("o_valid")
            await stage.clock()
        before, reports = stage.now, host.reports
        offered = 3
        while host.reports == reports:
            ends = last * (offered == 1)
            await stage.step(i_valid=int(offered > 0), i_payload=pack(beat_layout(), data=1, last=ends),
                             settings_enable=1, settings_tail=host.tail, o_ready=1)
            offered -= bool(offered and stage.get("i_ready"))
            if stage.get("o_valid"):
                host.beat(fields(write_layout(), stage.get("o_payload")))
            await stage.clock()
            assert stage.now - before < 1000
        took = stage.now - before
        host.drain()
        if last:
            assert took < 40, took
        else:
            assert CASE["flush"] <= took < CASE["flush"] + 40, took
    assert len(host.got) == 24


@functools.cache
def simulator():
    return component(Ring(), "pcie_ring")


@pytest.mark.parametrize("seed", seeds(20, fast=4))
def test_traffic(seed):
    run(simulator(), __name__, "traffic", seed, faults=False, beats=6000)


@pytest.mark.parametrize("seed", seeds(20, fast=4))
def test_faults(seed):
    run(simulator(), __name__, "traffic", seed, faults=True, beats=4000)


@pytest.mark.parametrize(("mps", "share"), [(0, 0.88), (1, 0.94)])
def test_rate(mps, share):
    run(simulator(), __name__, "rate", 0, mps=mps, share=share)


@pytest.mark.parametrize("flush", [100, 400])
def test_flushes(flush):
    run(simulator(), __name__, "flushes", 0, flush=flush)


def test_reset():
    """A function-level reset does this, with a stopped ring; here it may run."""
    same_as_fresh(Ring, {"down": lambda rng: rng.random() < 0.005, "permitted": lambda rng: rng.random() < 0.99,
                         "settings.enable": lambda rng: rng.random() < 0.97, "settings.tail": lambda rng: 0,
                         "room": lambda rng: 1}, episodes=10, after=200,
                  settings={"settings.pages": lambda rng: rng.randrange(2), "mps": lambda rng: rng.randrange(3),
                            "settings.flush": lambda rng: rng.randrange(5, 40)})
