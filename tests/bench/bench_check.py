"""How long `hypermon check RUN RULES` needs: five rules of each kind on a RUN with losses, in one process.

    make bench BENCH=check ARGS="--events 1e7"
    python tests/bench/bench_check.py --run RUN --kinds period,rate --json verdicts.json

Prints for each kind its slowest rule and the sum of its rules, elapsed and in processor time; the same for the stages
of all rules; and the largest memory of the process. The RUN is written by another process.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

from hypermon.host.contracts import judge
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.contracts.rules import KINDS, load_rules
from hypermon.host.contracts.trace import Trace
from hypermon.host.contracts.verdicts import as_dict, junit
from hypermon.host.run import Run

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.made_run import IDS, made_events

#: Rules of each kind.
_EACH = 5


def _rule(kind: str, k: int) -> str:
    """The k-th rule of a kind, on events of its own ids: event ``a``, 8 us later ``b``, again 8 us later ``c``."""
    a, b, c, d, e = (f'"event:{(2 * k + off) % IDS}"' for off in (0, 1, 2, 4, 5))
    own = "same_node = true\n" if k % 2 == 0 else ""
    bounds = ("max = 12", "max = 11\nmin = 5", "min = 8", "max = 20", "max = 12")[k]
    return {
        "response": f'after = {a}\nexpect = {b}\nmax = "20 us"\n{own}',
        "precedence": f'event = {b}\nneeds = {a}\nwithin = "20 us"\n{own}',
        "absence": (f'event = "event:{200 + k}"', f'event = {a}\nafter = {b}\nwithin = "50 us"\n',
                    f'event = {d}\nbetween = [{a}, {c}]\n{own}', f'event = {c}\nafter = {d}\nwithin = "30 us"\n',
                    f'event = {e}\nbetween = [{a}, {b}]\n{own}')[k],
        "period": f'event = {a}\nevery = "96 us"\ntolerance = "{1 if k == 3 else 5} us"',
        "duration": f'begin = {a}\nend = {c}\nmax = "30 us"' + ("\nquantile = 0.99" if k == 4 else ""),
        "rate": f'event = {a}\nper = "1 ms"\n{bounds}',
        "exclusion": f"spans = [[{a}, {b}], [{d}, {e}]]",
        "together": f'event = {a}\nwithin = "10 us"',
        "order": f"events = [{a}, {b}, {c}]",
        "share": f"begin = {a}\nend = {c}\nmax = 0.5",
    }[kind]


class Clock:
    """Sums of elapsed and processor times, by name; the largest of each; and a part without its own parts."""

    def __init__(self):
        self.sums = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._inner = [0.0]

    @contextmanager
    def over(self, name: str):
        begun = time.perf_counter(), time.process_time()
        self._inner.append(0.0)
        yield
        took = time.perf_counter() - begun[0]
        inner = self._inner.pop()
        self._inner[-1] += took
        sums = self.sums[name]
        sums[0] += took - inner
        sums[1] += time.process_time() - begun[1]
        sums[2] = max(sums[2], took)


def _watched(clock: Clock, owner, name: str, stage: str) -> None:
    if not hasattr(owner, name):
        return
    inner = getattr(owner, name)

    def timed(*given, **named):
        with clock.over(stage):
            return inner(*given, **named)
    setattr(owner, name, timed)


def measure(run: Run, rules: Path, asked) -> None:
    kinds, stages = Clock(), Clock()
    if asked.queries:
        Trace.lines = lambda trace, rule: None
        Trace._kinds = lambda trace, rule: None
    for name, stage in (("select", "reading events"), ("lines", "reading events"), ("gaps", "losses")):
        _watched(stages, Trace, name, stage)
    begun = time.perf_counter(), time.process_time()
    found = load_rules(rules)
    with stages.over("opening, extents, gaps"):
        opened = opened_trace(run)
        trace, dictionary = opened.__enter__()
    with stages.over("checking the rules"):
        ready = judge.fitted(trace, found, dictionary)
        trace.share(ready)
    judged = []
    for rule in ready:
        with kinds.over(rule.kind), stages.over("judging"):
            judged.append(judge._judged(trace, found, rule))
        if asked.rules:
            print(f"  {rule.name:14} {judged[-1].verdict:9} {judged[-1].instances:>11,} instances", flush=True)
    opened.__exit__(None, None, None)
    with stages.over("output"):
        text = json.dumps(as_dict(judged, True), indent=1)
        rules.with_name("junit.xml").write_bytes(junit(judged, Path("RUN")))
    took = time.perf_counter() - begun[0], time.process_time() - begun[1]
    if asked.json:
        asked.json.write_text(text + rules.with_name("junit.xml").read_text())
    for title, clock in (("kind", kinds), ("stage", stages)):
        print(f"{title:24} {'elapsed':>9} {'processor':>10} {'slowest':>9}")
        for name, (elapsed, processor, slowest) in clock.sums.items():
            print(f"{name:24} {elapsed:7.2f} s {processor:8.2f} s {slowest:7.2f} s")
    print(f"{len(judged)} rules, {run.decode()['events']:,} events: {took[0]:.1f} s, {took[1]:.1f} s of a processor, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=float, default=1e6)
    parser.add_argument("--run", type=Path, help="a RUN that made_events() wrote; else one is written, and removed")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rules", action="store_true", help="print a line for each rule")
    parser.add_argument("--queries", action="store_true", help="judge by queries alone, not by lines")
    parser.add_argument("--json", type=Path, help="write the verdicts there, to compare them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.run is None:
            # In a process of its own, whose memory does not count.
            made = multiprocessing.get_context("spawn").Process(target=made_events, args=(folder / "RUN",
                                                                                          int(asked.events)))
            made.start()
            made.join()
        (folder / "rules.toml").write_text("".join(
            f'[[rule]]\nname = "{kind} {k}"\nkind = "{kind}"\n{_rule(kind, k)}\n'
            for kind in asked.kinds.split(",") for k in range(_EACH)))
        measure(Run(asked.run or folder / "RUN"), folder / "rules.toml", asked)


if __name__ == "__main__":
    main()
