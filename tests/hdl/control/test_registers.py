"""Registers: every access against a table; reset, latch and FRAME_FIFO by their contracts.

Nothing is queued here: one access is under way at a time. A FIFO that is full shows its depth in
LEVEL, to the last bit, and its cause in STATUS until the next reset.
"""

import functools

import cocotb
import pytest
from hypermon.hdl.accounts.counters import ROW, counter_rows
from hypermon.hdl.control.registers import Registers
from hypermon.hdl.layout import (
    ADDRESS_BITS,
    BURST_BASE,
    BURST_END,
    COUNTER_BITS,
    COUNTERS_BASE,
    COUNTERS_STRIDE,
    FORMAT_VERSION,
    IDENTITY_MAGIC,
    LATENCY,
    NARROW_BYTES,
    PORT_BITS,
    REDUCTION_BASE,
    REDUCTION_GROUP,
    REGISTER_VERSION,
    REGISTERS,
    Control,
    Counter,
    Geometry,
    Sink,
    Window,
)

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds
from ..harness.stage import run as simulate

BUILD = 0x12345678
#: Clocks of an access at most; two more than most boards take, for narrow ones.
ACCESS = 12
#: What the board shows to the registers: names of inputs and their widths.
SHOWN = {"ready": 1, "position": 3, "high": 32, "run": 16, "level": 16, "vector_level": 16,
         "store_level": 16, "store_high": 16, "external_level": 32, "external_high": 32}
#: What waits for the link on the boards with 16 nodes: a store, and external memory behind it.
WAITING = {"store_depth": 3072, "external_depth": 1 << 20}
SETTINGS = {"EDGE_RISING": "rising", "EDGE_FALLING": "falling", "SAMPLE_AFTER": "after", "NODE_MASK": "mask",
            "FLUSH": "flush", "CENSUS": "slow"}
#: Boards with the extended sink, with glitch filter and rate limit: settings that are taken at the next reset.
GUARDED = {"GLITCH": 4, "RATE_LIMIT": 13}
#: Ports of the signatures, by the names that this bench uses.
PORTS = {
    **{name: f"intake_{name}" for name in ("rising", "falling", "after", "more", "items", "span")},
    **{name: f"time_{name}" for name in ("enable", "mask")},
    **{name: f"sinks_{name}" for name in ("stream", "flush")},
    **{name: f"sinks_frames_{name}" for name in ("read", "word", "position", "ready", "high", "run", "level")},
    "frames": "sinks_frames_generated",
    **{name: f"accounts_{name}" for name in (
        "slow", "status", "refused", "latch", "latched", "reading", "address", "counter", "reduction_address",
        "reduction_word")},
}


class Bench(Stage):
    """The stage, with ports by those names."""

    def _handle(self, name: str):
        return super()._handle(PORTS.get(name, name))


def reduced(place: int) -> int:
    """The reduction's word at a place: any number, of which each bit depends on the place."""
    return (place + 1) * 0x9e3779b97f4a7c15 >> 7 & (1 << COUNTER_BITS) - 1


class Board:
    """What stands around the registers: frame port, counters, time. It does its part at every clock."""

    def __init__(self, stage: Stage, choose, geometry: Geometry):
        self.stage, self.choose, self.geometry = stage, choose, geometry
        self.rows = ROW * counter_rows(geometry.nodes)
        self.words = [0] * self.rows            # the copy of the counters
        self.pipe = [0, 0]
        self.reduced = [0, 0, 0]                # words of the reduction that are on their way
        self.copied_in = 0                      # clocks until a copy is complete
        self.word = self.before = 0x101         # what FRAME_FIFO shows, and showed a clock ago
        self.taken: list[int] = []
        self.since_read = 99
        self.reads = self.latches = 0
        self.time = 0                           # windows; three frames a window
        self.at_latch: set[int] = set()
        self.clear_for = 0
        self.least_clear = 0
        self.enabled_in_reset = False

    async def clock(self) -> None:
        stage = self.stage
        await stage.settle()
        if stage.get("reading"):
            self.pipe = [self.words[stage.get("address")], self.pipe[0]]
        if len(self.geometry.sinks) > 1:
            self.reduced = [reduced(stage.get("reduction_address")), *self.reduced[:2]]
            stage.put(reduction_word=self.reduced[2])
        if stage.get("read"):
            assert self.since_read >= 4, "FRAME_FIFO is read faster than the frame port shows"
            self.reads += 1
            self.taken.append(self.before)
            self.since_read = 0
        self.since_read += 1
        self.before = self.word
        # The next word, or, at any time, the first one of a frame that has come.
        if self.since_read == 3 or (self.word == 0 and self.choose.random() < 0.1):
            self.word = self.choose.choice([0, self.choose.getrandbits(32)])
        if self.copied_in:
            self.copied_in -= 1
            if not self.copied_in:
                self.words = [self.choose.getrandbits(COUNTER_BITS) if k % ROW < len(Counter) else 0
                              for k in range(self.rows)]
        if stage.get("latch"):
            self.latches += 1
            self.copied_in = self.choose.randint(1, 3 * self.rows)
            self.at_latch = {self.time - 1, self.time, self.time + 1}
        if stage.get("clear"):
            self.clear_for += 1
            self.enabled_in_reset |= bool(stage.get("enable"))
        elif self.clear_for:
            self.least_clear = self.clear_for
            self.clear_for = 0
        self.time += 1
        await stage.clock()
        stage.put(counter=self.pipe[1], word=self.word, latched=int(not self.copied_in and self.latches > 0),
                  now=self.time, frames=3 * self.time)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def serves(dut):
    stage, choose = Bench(dut), rng()
    guarded = CASE["guarded"]
    geometry = Geometry(nodes=CASE["nodes"], **CASE["options"], sinks=tuple(Sink) if guarded else (Sink.CLASSIC,))
    nodes = geometry.nodes
    every = (1 << nodes) - 1
    in_force = dict.fromkeys(GUARDED, 0)
    board = Board(stage, choose, geometry)
    await stage.start(access_start=0, access_write=0, access_addr=0, access_wdata=0, refused=0, word=board.word,
                      frames=0, now=0, latched=0, counter=0, **dict.fromkeys(SHOWN, 0))
    assert stage.get("clear"), "no reset at power-up"
    settings = {"EDGE_RISING": every, "EDGE_FALLING": 0, "SAMPLE_AFTER": 0, "NODE_MASK": every, "FLUSH": None,
                "CENSUS": 0, **(dict.fromkeys(GUARDED, 0) if guarded else {})}
    state = {"enable": 0, "stream": 0, "window": Window.NS800, "epoch": 0, "sticky": 0, "time": 0}
    totals = dict.fromkeys(("reset", "latch", "frame word", "counter", "burst", "again", "nothing", "written",
                            *["reduction"] * guarded), 0)

    async def access(address: int, value: int | None = None, longest: int = ACCESS, again: bool = False,
                     more: bool = False) -> int:
        """A read, or a write of ``value``; ``again``: a repeated read, while the bundle is held; ``more`` follow."""
        await stage.settle()
        stage.put(access_start=1, access_write=int(value is not None), access_addr=address, access_again=int(again),
                  access_wdata=choose.getrandbits(32) if value is None else value)
        await board.clock()
        stage.put(access_start=0)
        for _ in range(longest):
            await stage.settle()
            if stage.get("access_done"):
                break
            await board.clock()
        else:
            raise AssertionError(f"access of {address:#x} not done after {longest} clocks")
        result = stage.get("access_rdata")
        await board.clock()
        await stage.settle()
        assert not stage.get("access_done"), "done twice"
        if more:
            return result
        # The bundle may change now.
        stage.put(access_again=0, access_write=choose.getrandbits(1), access_addr=choose.getrandbits(ADDRESS_BITS),
                  access_wdata=choose.getrandbits(32))
        return result

    def flush() -> int:
        millisecond = geometry.clock_hz // 1000 // geometry.window_clocks(state["window"])
        return millisecond if settings["FLUSH"] is None else settings["FLUSH"]

    def more() -> int:
        return max(0, in_force["GLITCH"] - 1)

    def expected(name: str) -> int | None:
        """What a read gives; None for what has a case of its own."""
        shown = {k: stage.get(k) for k in SHOWN}
        told = {
            "STATUS": shown["ready"] << 3 | state["sticky"],
            "FRAME_POS": shown["position"] | state["epoch"] % 65536 << 16,
            "MAGIC": IDENTITY_MAGIC, "VERSION": REGISTER_VERSION << 8 | FORMAT_VERSION, "BUILD": BUILD,
            "GEOMETRY": nodes | PORT_BITS << 8 | (3 if guarded else 1) << 16 | (LATENCY + more()) << 24,
            "CLOCK_HZ": geometry.clock_hz, "NODE_DEPTH": geometry.node_depth,
            "VECTOR_DEPTH": geometry.vector_depth, "FRAME_DEPTH": geometry.frame_depth,
            **({} if guarded else dict.fromkeys(("MODE", *GUARDED), 0)),
            "WINDOW": geometry.window_clocks(state["window"]), **settings, "FLUSH": flush(),
            "LEVEL": shown["vector_level"] << 16 | shown["level"], "RUN": shown["run"],
            "FRAME_HIGH": shown["high"], "CONTROL": 0, "LATCH": 0,
            "STORE_DEPTH": 20 << 16 | 3072 if geometry.store_depth else 0,
            "STORE_LEVEL": shown["store_high"] << 16 | shown["store_level"],
            "EXTERNAL_LEVEL": shown["external_level"], "EXTERNAL_HIGH": shown["external_high"],
            "TIME_LOW": state["time"], "TIME_HIGH": 0, "FRAMES_LOW": 3 * state["time"], "FRAMES_HIGH": 0,
        }
        return told.get(name)

    def outputs() -> None:
        for name in ("enable", "stream", "window"):
            assert stage.get(name) == state[name], name
        assert stage.get("epoch") == state["epoch"] % 65536
        assert not stage.get("clear")
        assert stage.get("status") == stage.get("ready") << 3 | state["sticky"]
        for name, port in SETTINGS.items():
            assert stage.get(port) == (flush() if name == "FLUSH" else settings[name]), name
        assert stage.get("more") == more()
        assert stage.get("latency") == LATENCY + more()
        assert stage.get("span") << 8 | stage.get("items") == in_force["RATE_LIMIT"]

    async def control(reset: int) -> None:
        enable, window, stream = choose.getrandbits(1), choose.choice(list(Window)), choose.getrandbits(1)
        board.enabled_in_reset = False
        await access(REGISTERS["CONTROL"].offset, reset | enable << 1 | window << 2 | stream << 4,
                     8 * board.rows if reset else ACCESS)
        state.update(enable=enable, stream=stream)
        if reset:
            totals["reset"] += 1
            state.update(window=window, epoch=state["epoch"] + 1, sticky=0, time=0)
            in_force.update((name, settings.get(name, 0)) for name in GUARDED)
            assert board.least_clear >= board.rows + 8, "too short a reset for all that is swept"
            assert not board.enabled_in_reset, "capture is enabled while the reset goes on"

    # At power-up a reset goes on; the registers answer all the same.
    assert await access(REGISTERS["MAGIC"].offset) == IDENTITY_MAGIC
    assert stage.get("clear")
    await access(REGISTERS["CONTROL"].offset, 0, 8 * board.rows)
    outputs()
    for number in range(450):
        if number % 8 == 0:
            stage.put(**{name: choose.choice([0, (1 << bits) - 1, choose.getrandbits(bits)])
                         for name, bits in SHOWN.items()})
        for _ in range(choose.choice([0, 0, 3, 20])):
            refused = choose.getrandbits(3) if choose.random() < 0.02 else 0
            stage.put(refused=refused)
            state["sticky"] |= refused
            await board.clock()
        stage.put(refused=0)
        await board.clock()
        outputs()
        reads, latches = board.reads, board.latches
        kind = "reset" if number % 60 == 59 else choose.choice([
            "read", "read", "setting", "setting", "counter", "fifo", "control", "latch", "nothing", "futile",
            *["reduction"] * guarded])
        popped = latched = 0
        if kind == "read":
            name = choose.choice(list(REGISTERS))
            value = expected(name)
            if value is not None:
                assert await access(REGISTERS[name].offset) == value, name
        elif kind == "setting":
            name, value = choose.choice(list(settings)), choose.getrandbits(32)
            await access(REGISTERS[name].offset, value)
            widths = {"FLUSH": 32, "CENSUS": 1, **GUARDED}
            settings[name] = value & (1 << widths.get(name, nodes)) - 1
            totals["written"] += 1
        elif kind == "counter":
            row = choose.choice([choose.randrange(nodes), choose.randrange(32)])
            column, half = choose.randrange(ROW), choose.getrandbits(1)
            value = await access(COUNTERS_BASE + COUNTERS_STRIDE * row + 8 * column + 4 * half)
            whole = board.words[ROW * row + column] if row < nodes else 0
            assert value == (whole >> 32 * half) & 0xFFFFFFFF, f"counter {column} of node {row}"
            totals["counter"] += row < nodes
        elif kind == "reduction":
            index, word, half = choose.getrandbits(11), choose.randrange(REDUCTION_GROUP), choose.getrandbits(1)
            await access(REGISTERS["REDUCTION_INDEX"].offset, index)
            value = await access(REDUCTION_BASE + 8 * word + 4 * half)
            assert value == reduced(REDUCTION_GROUP * index + word) >> 32 * half & 0xFFFFFFFF
            totals["reduction"] += 1
        elif kind == "fifo":
            burst, words = choose.getrandbits(1), choose.choice([1, 5])
            at = choose.randrange(BURST_BASE, BURST_END, 4) if burst else REGISTERS["FRAME_FIFO"].offset
            repeats = choose.getrandbits(1)
            for k in range(words):
                word = await access(at, again=bool(repeats and k), more=bool(repeats and k + 1 < words))
                assert word == board.taken[-1]
                popped += 1
                totals["again" if repeats and k else "burst" if burst else "frame word"] += 1
        elif kind == "latch":
            await access(REGISTERS["LATCH"].offset, choose.getrandbits(32), 4 * board.rows)
            assert not board.copied_in, "done before the copy is complete"
            time = await access(REGISTERS["TIME_LOW"].offset)
            assert time in board.at_latch
            state["time"] = time
            latched = 1
            totals["latch"] += 1
        elif kind == "nothing":
            known = {r.offset for r in REGISTERS.values()}
            known |= set(range(REDUCTION_BASE, REDUCTION_BASE + 8 * REDUCTION_GROUP, 4))
            at = choose.choice([k for k in range(0, COUNTERS_BASE, 4) if k not in known])
            assert await access(at) == 0
            await access(at, choose.getrandbits(32))
            totals["nothing"] += 1
        elif kind == "futile":
            # Writes to what can only be read, and to FRAME_FIFO, do nothing.
            name = choose.choice([n for n, r in REGISTERS.items() if r.access == "R"] + ["MODE"] * (not guarded))
            burst = choose.randrange(COUNTERS_BASE, BURST_END, 4)
            await access(choose.choice([REGISTERS[name].offset, burst]), choose.getrandbits(32))
        else:
            await control(int(kind == "reset"))
        assert board.reads - reads == popped, f"{kind}: {board.reads - reads} words taken"
        assert board.latches - latches == latched
        outputs()
    cocotb.log.info("%s", totals)
    assert all(totals.values()), totals


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def counts(dut):
    """FRAME_COUNT is the frames generated modulo 4096, live; the latched ones have all 64 bits."""
    stage, choose = Bench(dut), rng()
    board = Board(stage, choose, Geometry(nodes=CASE["nodes"]))
    await stage.start(access_start=0, access_write=0, access_addr=0, access_wdata=0, refused=0, word=0,
                      frames=0, now=0, latched=0, counter=0, **dict.fromkeys(SHOWN, 0))
    while stage.get("clear"):
        await stage.clock()

    async def access(name: str, write: int = 0) -> int:
        stage.put(access_start=1, access_write=write, access_addr=REGISTERS[name].offset)
        await stage.clock()
        stage.put(access_start=0)
        for _ in range(ACCESS):
            await stage.settle()
            if stage.get("latch"):
                break
            if stage.get("access_done"):
                value = stage.get("access_rdata")
                await stage.clock()
                return value
            await stage.clock()
        assert write
        stage.put(latched=0)
        await stage.clock()
        await stage.clock()
        stage.put(latched=1)
        await stage.clock()
        await stage.clock()
        return 0

    for _ in range(50):
        frames, now = choose.getrandbits(64), choose.getrandbits(64)
        stage.put(frames=frames, now=now)
        await access("LATCH", 1)
        stage.put(frames=choose.getrandbits(64), now=choose.getrandbits(64))
        assert await access("FRAME_COUNT") == stage.get("frames") % 4096
        for name, value in (("FRAMES", frames), ("TIME", now)):
            assert await access(f"{name}_LOW") == value & 0xFFFFFFFF
            assert await access(f"{name}_HIGH") == value >> 32
    assert board.geometry.nodes == CASE["nodes"]


#: Boards by how many nodes they have; what is said of none is classic, with nothing that waits.
BOARDS: dict[int, dict] = {4: {"beat_bytes": NARROW_BYTES, "sync": False}, 16: WAITING}


@functools.cache
def simulator(nodes, guarded=False):
    sinks = tuple(Sink) if guarded else (Sink.CLASSIC,)
    return component(Registers(Geometry(nodes=nodes, **BOARDS.get(nodes, {}), sinks=sinks), BUILD))


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize(("nodes", "guarded"), [
    (1, False), (4, False), (16, False), (17, False), (32, False), (5, True)])
def test_serves(nodes, guarded, seed):
    run(simulator(nodes, guarded), __name__, "serves", seed, nodes=nodes, options=BOARDS.get(nodes, {}),
        guarded=guarded)


@pytest.mark.parametrize("seed", seeds(1))
def test_counts(seed):
    run(simulator(16), __name__, "counts", seed, nodes=16)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(30, 1000))
def test_many_seeds(seed):
    nodes = (5, 16, 17, 31, 4)[seed % 5]
    run(simulator(nodes, nodes == 5), __name__, "serves", seed, nodes=nodes, options=BOARDS.get(nodes, {}),
        guarded=nodes == 5)


@pytest.mark.parametrize(("phases", "geared"), [(4, False), (4, True), (2, False)])
def test_phases(phases, geared):
    """PHASES takes effect at a reset; after power-up it is 0 if the phases have to be proven. Other boards have no such
    register."""
    geometry = Geometry(2, sinks=(Sink.EXTENDED,), phases=phases)
    dut = Registers(geometry, geared=geared)

    async def bench(ctx):
        async def access(name, value=None):
            ctx.set(dut.access.addr, REGISTERS[name].offset)
            ctx.set(dut.access.write, value is not None)
            ctx.set(dut.access.wdata, value or 0)
            ctx.set(dut.access.start, 1)
            await ctx.tick()
            ctx.set(dut.access.start, 0)
            (result,) = await ctx.tick().sample(dut.access.rdata).until(dut.access.done)
            return result

        def fine():
            return ctx.get(dut.sinks.fine) if phases == 4 else None

        await ctx.tick().until(~dut.clear)
        known = int(phases == 4 and not geared)
        assert await access("PHASES") == known
        assert (await access("GEOMETRY")) >> 22 & 3 == {2: 2, 4: 3}[phases]
        await access("CONTROL", Control.RESET)
        assert fine() == (known if phases == 4 else None)
        before = fine()
        await access("PHASES", 1 - known)
        assert await access("PHASES") == (1 - known if phases == 4 else 0)
        assert fine() == before
        await access("CONTROL", Control.RESET)
        assert fine() == (1 - known if phases == 4 else None)

    simulate(dut, bench, clocks=5000)


def host():
    """Sets the inputs of one access after the other, each held until it is done; reads of frames are repeated."""
    access = {}

    def play(traffic):
        nonlocal access
        rng = traffic.rng
        if access and traffic.values and not traffic.get("access.done"):
            access = {**access, "access.start": 0}
        elif access and not access["access.write"] and rng.random() < 0.6:
            access = {**access, "access.start": 1, "access.again": 1}
        else:
            name = rng.choice((*REGISTERS, "CONTROL", "LATCH", *["FRAME_FIFO"] * 6))
            access = {"access.start": 1, "access.again": 0, "access.write": rng.getrandbits(1),
                      "access.addr": REGISTERS[name].offset, "access.wdata": rng.getrandbits(32)}
        return access
    return play


def test_reset_in_the_middle_of_an_access():
    same_as_fresh(lambda: Registers(Geometry.extended(2)), {"sinks.frames.position": lambda rng: rng.randrange(2)},
                  player=host, calm=True, episodes=4, after=300)
