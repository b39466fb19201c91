"""How long `hypermon check` needs: one rule of each kind on made-up events of 16 nodes, without losses.

    python tests/bench/bench_contracts.py --events 1e7 [--rules 50]

Prints for each rule the verdict, the time, and the processor time; then the sum, and the largest memory of the process.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import duckdb
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import load_rules
from hypermon.host.contracts.trace import GAPS, Extent, Source, Trace

#: Eight events of each node take turns, 16 us apart; ``seq`` counts the turns.
_EVENTS = """copy (select i * 1000000 + (hash(i) % 900000)::bigint as time_ps, (i % 16)::smallint as node,
                     ((i // 16) % 8)::utinyint as event, ((i // 128) % 65536)::bigint as seq from range({}) as made(i))
             to '{}' (format parquet)"""
_RULES = {
    "response": 'after = "1"\nexpect = "2"\nkey = ["seq"]\nmax = "100 us"\nsame_node = true',
    "precedence": 'event = "3"\nneeds = "2"\nwithin = "1 ms"',
    "absence": 'event = "9"',
    "period": 'event = "4"\nevery = "128 us"\ntolerance = "5 us"',
    "duration": 'begin = "1"\nend = "5"\nmax = "1 ms"',
    "rate": 'event = "6"\nper = "1 ms"\nmax = 20',
    "exclusion": 'spans = [[{event = "1", nodes = [0]}, {event = "2", nodes = [0]}],'
                 ' [{event = "5", nodes = [1]}, {event = "6", nodes = [1]}]]',
    "together": 'event = "7"\nwithin = "50 us"',
    "order": 'events = ["0", "1", "2"]',
    "share": 'begin = "1"\nend = "5"\nmax = 0.9',
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=float, default=1e7)
    parser.add_argument("--rules", type=int, default=len(_RULES))
    asked = parser.parse_args()
    events = int(asked.events)
    with tempfile.TemporaryDirectory() as name, duckdb.connect(config={
            "threads": 2, "memory_limit": "1GB", "preserve_insertion_order": False,
            "temp_directory": f"{name}/spill"}) as db:
        folder = Path(name)
        db.execute(_EVENTS.format(events, folder / "events.parquet"))
        db.execute(f"create view events as from read_parquet('{folder / 'events.parquet'}')")
        db.execute(f"create temp table gaps ({GAPS})")
        trace = Trace(db, [Extent(0, (events + 1) * 10**6)] * 16, lambda event: Source(
            f"select time_ps, node, seq from events where event = {int(event.name)}", ("seq",), frozenset(("seq",))),
            20_000)
        kinds = [list(_RULES)[k % len(_RULES)] for k in range(asked.rules)]
        (folder / "rules.toml").write_text("".join(
            f'[[rule]]\nname = "{kind}"\nkind = "{kind}"\n{_RULES[kind]}\n' for kind in kinds))
        begun = time.perf_counter(), time.process_time()
        rules = load_rules(folder / "rules.toml").rules
        trace.share(rules)
        for rule in rules:
            since = time.perf_counter(), time.process_time()
            judged = JUDGES[rule.kind](trace, rule)
            print(f"{rule.kind:11} {judged.verdict:10} {judged.instances:>11,} instances "
                  f"{time.perf_counter() - since[0]:8.2f} s {time.process_time() - since[1]:8.2f} s of a processor")
    print(f"{asked.rules} rules, {events:,} events: {time.perf_counter() - begun[0]:.1f} s, "
          f"{time.process_time() - begun[1]:.1f} s of a processor, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
