"""The whole board on the bench: clock, ports, host bus and link around it."""

import random
from collections.abc import Sequence

import cocotb
from cocotb.clock import Clock
from cocotb.task import Task
from cocotb.triggers import ClockCycles, RisingEdge, Timer, with_timeout
from hypermon.hdl.layout import (
    CENSUS_BOARD,
    LATENCY,
    REGISTERS,
    BlockType,
    CensusFlag,
    Control,
    Geometry,
    Sink,
    Window,
)
from hypermon.sim.bench.cocotb_models import Pads, PbxMaster, StreamSink, now_ps, stalls
from hypermon.sim.bench.port_models import Board, NodeClock, Port, Program, program, settle

from ..harness.blocks import Run, parse, runs
from ..harness.scoreboard import Item, Levels, items
from .case import CASE, rng

__all__ = ["Bench", "Stimulus", "random_port"]


def random_port(choose: random.Random, skew: int) -> Port:
    """Any active edge, any sample point."""
    rising, falling = choose.choice([(True, False), (False, True), (True, True)])
    return Port(rising, falling, choose.random() < 0.5, choose.randint(0, skew))


class Stimulus:
    """What all nodes do, and what the board's first flip-flops see of it."""

    def __init__(self, settling: random.Random, board: Board, ports: Sequence[Port], programs: Sequence[Program]):
        self.ports, self.programs = ports, programs
        self.writes, seen = settle(settling, board, programs)
        self.levels = [Levels(p.initial, s) for p, s in zip(programs, seen, strict=True)]
        self.end = max((time for time, _, _ in self.writes), default=0)

    def offered(self, start: int = 0, stop: int | None = None) -> dict[int, list[Item]]:
        """Items of every node, in clock edges from ``start``."""
        return {n: items(levels, rising=port.rising, falling=port.falling, after=port.after, start=start, stop=stop)
                for n, (levels, port) in enumerate(zip(self.levels, self.ports, strict=True))}

    def meant(self, node: int) -> list[int]:
        """The nibbles that the node meant to write."""
        return self.programs[node].nibbles


class Bench:
    """A board that is being tested."""

    def __init__(self, dut):
        self.dut = dut
        given = dict(CASE["geometry"])
        given["sinks"] = tuple(Sink(s) for s in given.get("sinks", (0,)))
        given |= {name: tuple(given[name]) for name in ("absent", "extras", "fronts") if name in given}
        self.geometry = Geometry(**given | {name: tuple(given.get(name, ())) for name in ("absent", "extras")})
        self.nodes = self.geometry.nodes
        self.period = 10**12 // self.geometry.clock_hz
        assert 10**12 % self.geometry.clock_hz == 0, "the bench keeps time in picoseconds"
        self.board = Board(self.period, aperture=min(800, self.period // 8))
        self.rng = rng("bench")
        delays = rng("bus")
        slow = delays.choice([0, self.period, 10 * self.period])
        self.bus = PbxMaster(dut, lambda: delays.randint(0, slow))
        ready = CASE.get("ready", delays.choice([1.0, 0.9, 0.5]))
        self.sink = StreamSink(dut, stalls(rng("stalls"), ready))
        self.pads: Pads | None = None
        self.zero = 0

    async def start(self, initial: Sequence[int] | None = None) -> None:
        """Clock and power-up reset; ``initial`` levels stand at the ports from the beginning."""
        dut = self.dut
        dut.rst.value = 1
        dut.advance.value = 0
        self.pads = Pads(dut.strobe, dut.data, initial or [0] * self.nodes)
        Clock(dut.clk, self.period, "step").start(start_high=False)
        await ClockCycles(dut.clk, 3)
        await Timer(self.period // 2, "step")
        dut.rst.value = 0

    async def clocks(self, number: int) -> None:
        await Timer(number * self.period, "step")

    # ------------------------------------------------------------------------------------ registers

    async def read(self, name: str) -> int:
        return await self.bus.read(REGISTERS[name].offset)

    async def write(self, name: str, value: int) -> None:
        await self.bus.write(REGISTERS[name].offset, value)

    async def control(self, flags: Control, window: Window) -> None:
        await self.write("CONTROL", flags | window << 2)

    async def configure(self, ports: Sequence[Port], flush: int, mask: int | None = None) -> None:
        """Edges, sample points, idle flush (windows) and nodes that take part."""
        for name, bit in (("EDGE_RISING", "rising"), ("EDGE_FALLING", "falling"), ("SAMPLE_AFTER", "after")):
            await self.write(name, sum(getattr(p, bit) << n for n, p in enumerate(ports)))
        await self.write("FLUSH", flush)
        if mask is not None:
            await self.write("NODE_MASK", mask)

    # ----------------------------------------------------------------------------------------- time

    async def time_zero(self) -> int:
        """Wait for time 0; returns its simulation time, a clock ahead."""
        if not self.dut.running.value:
            await RisingEdge(self.dut.running)
        self.zero = now_ps() + self.period
        return self.zero

    def play(self, stimulus: Stimulus) -> Task:
        """Play it from the next time 0 on."""
        async def player() -> None:
            await self.pads.play(stimulus.writes, await self.time_zero())
        return cocotb.start_soon(player())

    async def stopped(self, timeout_ns: int = 2_000_000) -> None:
        """Wait for the CENSUS of the stop."""
        async def wait() -> None:
            while not self._stop_seen():
                self.sink.arrived.clear()
                await self.sink.arrived.wait()
        await with_timeout(wait(), timeout_ns, "ns")

    def _stop_seen(self) -> bool:
        if not self.sink.blocks:
            return False
        block = parse(self.sink.blocks[-1], self.geometry)
        return (block.type is BlockType.CENSUS and not block.cut
                and bool(CENSUS_BOARD.unpack(block.payload)["flags"] & CensusFlag.STOP))

    def runs(self) -> list[Run]:
        """Everything the stream has said, by epochs."""
        return runs(self.sink.blocks, self.geometry)

    async def run(self, stimulus: Stimulus, window: Window, *, flush: int, mask: int | None = None,
                  stream: bool = True, after: int = 0) -> Run:
        """A whole run: reset, enable, the stimulus from time 0, disable, drained."""
        flags = Control.STREAM if stream else Control(0)
        await self.configure(stimulus.ports, flush, mask)
        await self.control(Control.RESET, window)
        playing = self.play(stimulus)
        await self.control(flags | Control.ENABLE, window)
        await playing
        await self.clocks(2 * LATENCY + after)
        await self.control(flags, window)
        await self.stopped()
        return self.runs()[-1]

    # ------------------------------------------------------------------------------------- stimulus

    def random_stimulus(self, window: Window, count: int, *, load: float | None = None, tight: bool = False,
                        ports: Sequence[Port] | None = None) -> Stimulus:
        """Constrained-random traffic of asynchronous, drifting nodes: about ``count`` nibbles in all.

        ``load`` : items per node and window in the mean; by default another one for every node.
        ``tight`` : every change at the documented limit.
        """
        choose = rng("traffic")
        span = self.geometry.window_clocks(window) * self.period
        ports = ports or [random_port(choose, self.period // 2) for _ in range(self.nodes)]
        programs = []
        duration = None
        loads = [load or choose.choice([0.05, 0.3, 0.8, 1.0, 1.5]) for _ in range(self.nodes)]
        duration = count * span / sum(loads)
        for port, each in zip(ports, loads, strict=True):
            clock = None if tight else NodeClock(choose, choose.choice([2_100, 8_333, 20_000, 62_500]),
                                                 choose.choice([20, 200, 20_000]))
            initial = choose.getrandbits(5)
            number = max(1, min(int(duration * each / span), 3 * count // self.nodes + 1))
            spacing = span / each - 2 * (self.period + self.board.aperture)
            bursty = choose.random() < 0.5
            gaps = []
            for _ in range(number):
                if tight:
                    gaps.append(0)
                elif bursty and choose.random() < 0.8:
                    gaps.append(choose.randint(0, self.period))
                else:
                    gaps.append(int(choose.expovariate(1 / max(1.0, spacing * (5 if bursty else 1)))))
            programs.append(program(choose, self.board, port, clock, gaps, initial=initial,
                                    start=choose.randint(0, 4 * self.period)))
        return Stimulus(rng("settle"), self.board, ports, programs)
