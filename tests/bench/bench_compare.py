"""How `hypermon compare` decides on made-up samples, and how long it needs.

    make bench BENCH=compare                                    # all three, smaller: some minutes
    python -m tests.bench.bench_compare false --pairs 1000      # pairs without a difference: how many are alarms?
    python -m tests.bench.bench_compare planted --pairs 100     # 1 % more in 10^6 samples: how often found in p99?
    python -m tests.bench.bench_compare speed --events 1e7      # two runs of so many nibbles in total
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hypermon.host.compare.comparison import compare_measures
from hypermon.host.compare.estimates import Ratio, Samples
from hypermon.host.compare.measures import Measured
from hypermon.host.compare.recording import Measure

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.made_run import made_run

_SHAPES = {
    "normal, 10 % wide": lambda z: 10 + z,
    "log-normal, 0.3": lambda z: np.exp(0.3 * z),
    "log-normal, 0.5": lambda z: np.exp(0.5 * z),
    "of few values": lambda z: np.maximum(np.round(5 + z), 0),
}


def _samples(rng, shape, count, scale=1.0, slow=0.0):
    """Latencies; a part ``slow`` of their variance is the same for 200 neighbours."""
    z = rng.standard_normal(count)
    if slow:
        z = np.sqrt(1 - slow) * z + np.sqrt(slow) * np.repeat(rng.standard_normal(count // 200 + 1), 200)[:count]
    return Samples.of((_SHAPES[shape](z) * scale * 1e6).astype(np.int64),
                   (np.arange(count) * 100 // count).astype(np.uint16), 100)


def _without(rng, slow):
    return {Measure("latency", shape): _samples(rng, shape, 5000, slow=slow) for shape in _SHAPES} | {
        Measure("rate", "x"): Ratio(rng.poisson(50, 100).astype(float), np.full(100, 0.01))}


def false(asked, rng):
    for slow in (0.0, 0.2):
        found = [[figure.verdict for figure in compare_measures(_without(rng, slow), _without(rng, slow))]
                 for _ in range(asked.pairs)]
        print(f"{asked.pairs} pairs of 13 figures, {100 * slow:.0f} % of the variance slow: "
              f"{sum(set(one) != {'same'} for one in found)} pairs with an alarm", flush=True)


def planted(asked, rng):
    for shape in list(_SHAPES)[:3]:
        found = sum(compare_measures({Measure("latency", ""): _samples(rng, shape, 10**6)},
                                     {Measure("latency", ""): _samples(rng, shape, 10**6, 1.01)})[-1].verdict
                    == "higher" for _ in range(asked.pairs))
        print(f"{shape}: p99 + 1 % found in {found} of {asked.pairs} pairs", flush=True)


def speed(asked, rng):
    with tempfile.TemporaryDirectory() as folder:
        runs = [made_run(Path(folder) / name, int(asked.events / 2), seed=seed)
                for seed, name in enumerate(("first", "second"))]
        begun = time.perf_counter(), time.process_time()
        figures = compare_measures(Measured(runs[:1]), Measured(runs[1:]))
        print(f"{len(figures)} figures of {asked.events:,.0f} events: {time.perf_counter() - begun[0]:.1f} s, "
              f"{time.process_time() - begun[1]:.1f} s of a processor, "
              f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["false", "planted", "speed"])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--events", type=float, default=1e7)
    asked = parser.parse_args()
    every = {"false": false, "planted": planted, "speed": speed}
    for what in [asked.what] if asked.what else every:
        every[what](asked, np.random.default_rng(1))


if __name__ == "__main__":
    main()
