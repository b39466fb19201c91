"""How fast the virtual board is: computed clocks per second of processor time, and how much faster than real time.

    dense    16 nodes strobe at random, once a window each on average
    busiest  the same with windows of one clock: four times as many frames as strobes a window
    sparse   a node writes now and then, and idle windows are skipped

The same gateware under the same dense strobes, in the same minute: amaranth.sim and cocotb on
Verilator, both with Python at every clock.

``--config extended`` measures the extended board of an ECP5-25F with its extended sink, once with parts that rest while
nothing changes in them and once with all computed; neither of the other two simulators.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hypermon.hdl.layout import REGISTERS, Control, Geometry, Sink, Window
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import Rest, VirtualLink

#: Computed clocks a second.
GOAL = 3e6
CONTROL = REGISTERS["CONTROL"].offset
PERIOD_PS = 10_000
GEOMETRY = Geometry()
#: Clocks of a strobe, high and low together, at least.
STROBE = 8


def strobes(edges: np.ndarray, node: np.ndarray, rng: np.random.Generator) -> Stimulus:
    """Nodes strobe at these clock edges, four clocks long; those too near the one before are left out."""
    rows = []
    for n in range(GEOMETRY.nodes):
        mine = np.unique(edges[node == n])
        while (near := np.flatnonzero(np.diff(mine) < STROBE)).size:
            mine = np.delete(mine, near[::2] + 1)
        nibble = rng.integers(0, 16, len(mine))
        rows += [(mine, nibble, n), (mine + STROBE // 2, nibble | 16, n)]
    time_ps = np.concatenate([k for k, _, _ in rows]) * PERIOD_PS
    node = np.concatenate([np.full(len(k), n) for k, _, n in rows])
    port = np.concatenate([p for _, p, _ in rows])
    order = np.lexsort((node, time_ps))
    return Stimulus(time_ps[order].astype(np.int64), node[order].astype(np.int16), port[order].astype(np.uint8),
                    [0] * GEOMETRY.nodes)


def dense(cycles: int, rng: np.random.Generator) -> Stimulus:
    count = cycles * GEOMETRY.nodes // GEOMETRY.window_clocks(Window.NS800)
    return strobes(rng.integers(10, cycles - STROBE, count), rng.integers(0, GEOMETRY.nodes, count), rng)


def sparse(seconds: float, a_second: int, rng: np.random.Generator) -> Stimulus:
    count = int(seconds * a_second)
    return strobes(rng.integers(10, int(seconds * GEOMETRY.clock_hz), count),
                   rng.integers(0, GEOMETRY.nodes, count), rng)


def virtual(stimulus: Stimulus, window: Window, geometry: Geometry = GEOMETRY,
            rest: Rest = Rest.ON) -> tuple[float, int, float]:
    """Processor seconds, computed clocks, seconds of board time. If the board has the extended sink, with that."""
    with VirtualLink(stimulus, geometry, rest=rest) as link:
        link.write(REGISTERS["MODE"].offset, max(geometry.sinks))
        link.write(CONTROL, Control.RESET | window << 2)
        before, began = link.cycles, time.process_time()
        link.write(CONTROL, Control.ENABLE | Control.STREAM | window << 2)
        while not link.ended:
            link.stream(1 << 20)
        return time.process_time() - began, link.cycles - before, link.board_ps / 1e12


def levels(stimulus: Stimulus, cycles: int) -> list[tuple[int, int, int]]:
    """Clock edge, data and strobes of all nodes, wherever they change."""
    data, strobe, out = 0, 0, []
    rows = zip(stimulus.time_ps.tolist(), stimulus.node.tolist(), stimulus.port.tolist(), strict=True)
    for t, group in itertools.groupby(rows, key=lambda row: row[0]):
        for _, n, port in group:
            data = data & ~(15 << 4 * n) | (port & 15) << 4 * n
            strobe = strobe & ~(1 << n) | (port >> 4) << n
        out.append((t // PERIOD_PS, data, strobe))
    return [change for change in out if change[0] < cycles]


def amaranth_sim(stimulus: Stimulus, cycles: int) -> float:
    """Clocks a second of amaranth.sim."""
    from amaranth.sim import Simulator
    from hypermon.hdl.capture import Capture

    board = Capture(GEOMETRY)
    changes = {k: (data, strobe) for k, data, strobe in levels(stimulus, cycles)}
    rates = []

    async def write(ctx, value):
        ctx.set(board.bus.addr, CONTROL)
        ctx.set(board.bus.wdata, int(value))
        ctx.set(board.bus.write, 1)
        for level in (1, 0):
            ctx.set(board.bus.req, level)
            await ctx.tick().until(board.bus.ack == level)

    async def bench(ctx):
        ctx.set(board.stream.ready, 1)
        await write(ctx, Control.RESET)
        await write(ctx, Control.ENABLE | Control.STREAM)
        beats, began = 0, time.perf_counter()
        for k in range(cycles):
            await ctx.tick()
            if k in changes:
                ctx.set(board.data, changes[k][0])
                ctx.set(board.strobe, changes[k][1])
            beats += ctx.get(board.stream.valid)
        rates.append(cycles / (time.perf_counter() - began))
        assert beats

    simulator = Simulator(board)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return rates[0]


def cocotb(stimulus: Stimulus, cycles: int) -> float:
    """Clocks a second of cocotb on Verilator."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.hdl.harness.runner import board, run

    simulator = board(GEOMETRY)  # compiled the first time: half a minute or more
    with tempfile.TemporaryDirectory() as folder:
        changes, result = Path(folder, "changes"), Path(folder, "rate")
        changes.write_text(json.dumps(levels(stimulus, cycles)))
        run(simulator, "tests.bench.under_cocotb.every_clock", "dense", 0,
            cycles=cycles, result=str(result), changes=str(changes))
        return float(result.read_text())


def extended(cycles: int, seconds: float, rng: np.random.Generator) -> None:
    """The table of the extended board: the best of three runs, in turns."""
    geometry = Geometry.extended()
    virtual(dense(100_000, rng), Window.NS800, geometry)  # built and warm
    runs = [
        ("idle", Window.CLOCK, stepping(cycles)), ("dense", Window.NS800, dense(cycles, rng)),
        ("busiest", Window.CLOCK, dense(cycles, rng)),
        ("1 us", Window.CLOCK, sparse(0.4 * seconds / 20, 1_000_000, rng)),
        *((f"{rate:,}/s", Window.CLOCK, sparse(seconds, rate, rng)) for rate in (1000, 20_000)),
    ]
    for name, window, stimulus in runs:
        done = [(rest, virtual(stimulus, window, geometry, rest)) for _ in range(3) for rest in (Rest.OFF, Rest.ON)]
        for rest in (Rest.OFF, Rest.ON):
            wall, clocks, board_s = min(figures for mode, figures in done if mode is rest)
            print(f"{name:10} {'rests' if rest else 'computed':9} {clocks / wall / 1e6:6.2f} M clocks/s  "
                  f"{board_s:.3f} s in {wall:7.2f} s, {clocks / max(1, len(stimulus) / 2):,.0f} clocks a strobe")


def stepping(cycles: int) -> Stimulus:
    """Data lines that change and strobe nothing: no clock can be skipped."""
    edges = np.arange(10, cycles, 16)
    return Stimulus(edges * PERIOD_PS, np.zeros(len(edges), np.int16), (np.arange(len(edges)) % 2).astype(np.uint8),
                    [0] * GEOMETRY.nodes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=3_000_000, help="clocks of a dense run (default 3 million)")
    parser.add_argument("--seconds", type=float, default=20.0, help="board time of the sparse run (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the strobes (default 1)")
    parser.add_argument("--alone", action="store_true", help="leave amaranth.sim and cocotb out")
    parser.add_argument("--config", choices=[sink.name.lower() for sink in Sink], default="classic",
                        help="the board (default classic)")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    if args.config == "extended":
        print(f"seed {args.seed}; load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        extended(args.cycles, args.seconds, rng)
        return 0
    print(f"seed {args.seed}; the board is the classic one: {GEOMETRY.nodes} nodes, {GEOMETRY.clock_hz / 1e6:g} MHz; "
          f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    stimulus = dense(args.cycles, rng)
    virtual(dense(100_000, rng), Window.NS800)  # built and warm
    best = 0.0
    for name, window in (("dense", Window.NS800), ("busiest", Window.CLOCK)):
        wall, cycles, _ = min(virtual(stimulus, window) for _ in range(3))
        rate = cycles / wall
        best = max(best, rate)
        print(f"virtual board, {name:8} {rate / 1e6:8.2f} M clocks/s"
              f"  {len(stimulus) / 2 / wall / 1e6:6.2f} M strobes/s")
    if not args.alone:
        for name, other, fewer in (("cocotb", cocotb, 60), ("amaranth.sim", amaranth_sim, 1000)):
            cycles = max(args.cycles // fewer, 2000)
            rate = other(dense(cycles, rng), cycles)
            print(f"{name:23} {rate / 1e6:8.4f} M clocks/s  virtual board: {best / rate:.0f} times that")
    for a_second in (10, 1000, 20_000):
        wall, cycles, board_s = virtual(sparse(args.seconds, a_second, rng), Window.NS800)
        print(f"virtual board, sparse   {board_s / wall:8.2f} x real time  {a_second:,} strobes/s of all nodes; "
              f"{board_s:.0f} s in {wall:.2f} s, one clock of {board_s * GEOMETRY.clock_hz / cycles:,.0f} computed")
    print(f"goal: {GOAL / 1e6:g} M clocks/s dense: {'reached' if best >= GOAL else 'not reached here'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
