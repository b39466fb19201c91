"""How often `hypermon check` is undecided where brute force over completions of small random traces decides.

    python tests/bench/oracle/bench_doubts.py --traces 1000 [--kinds response rate] [--scopes]

Prints for each kind the shares of traces in which the judge and brute force are undecided, and in which only the judge
is. Brute force draws completions at random, then changes some step by step towards fewer violations, or towards the
first one. It may still miss one: the latter share is an upper bound. A decision that is wrong ends the program with an
error. ``--list`` prints the seeds of the traces in which only the judge is undecided.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import duckdb
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import KINDS

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.host.contracts.oracle.brute_force import made_up, possible
from tests.host.contracts.oracle.test_oracle import EDGES, EVENTS, made
from tests.host.contracts.traces import traced

#: Completions that are drawn of each trace, and steps; and of those in which only the judge is undecided.
_TRIED, _MORE = (50, 150), (1000, 4000)


def measured(kind: str, traces: int, scopes: bool, first: int) -> tuple[dict[str, int], list[int]]:
    """How often each is undecided, of how many; and the seeds of the traces in which only the judge is."""
    only = []
    count = dict.fromkeys(("traces", "idle", "judge", "both", "only judge"), 0)
    events = EVENTS + EDGES * scopes
    with duckdb.connect(config={"threads": 1}) as db:
        for seed in range(first, first + traces):
            rng = random.Random(f"{kind} {seed}")
            recorded = made_up(rng, events)
            plain, rule = made(rng, kind, recorded.nodes, scopes)
            judged = JUDGES[kind](traced(recorded.items, recorded.losses, recorded.end, recorded.nodes, recorded.slack,
                                         db), rule)
            undecided = judged.verdict == "undecided"
            found = possible(rng, kind, plain, recorded, events, *_TRIED)
            wrong = {"pass": False, "fail": True}.get(judged.verdict)
            if wrong in found:
                raise AssertionError((kind, seed, judged.verdict, rule, recorded))
            if undecided and len(found) < 2:
                found |= possible(rng, kind, plain, recorded, events, *_MORE)
            count["traces"] += 1
            count["idle"] += undecided and not judged.instances and len(found) < 2
            count["judge"] += undecided
            count["both"] += undecided and len(found) == 2
            if undecided and len(found) < 2 and judged.instances:
                only.append(seed)
    count["only judge"] = len(only)
    return count, only


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", choices=sorted(KINDS), default=sorted(KINDS))
    parser.add_argument("--scopes", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    for kind in asked.kinds:
        since = time.perf_counter()
        count, only = measured(kind, asked.traces, asked.scopes, asked.first)
        print(f"{kind:11} {count['traces']:>7,} traces: undecided {100 * count['both'] / count['traces']:5.1f} %, "
              f"only the judge {100 * count['only judge'] / count['traces']:5.2f} %, "
              f"without instances {100 * count['idle'] / count['traces']:5.1f} %; 0 wrong "
              f"({time.perf_counter() - since:.0f} s)", *([only] if asked.list else []), flush=True)


if __name__ == "__main__":
    main()
