"""Whole runs whose blocks go missing: no verdict contradicts that of the complete run."""

import random
from collections import Counter
from pathlib import Path

import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.contracts.judge import judge

from tests.host.fake_board import FakeBoard, random_run

NODES, RULES = 3, 16


def rules(rng: random.Random) -> str:
    """Rules of all kinds about nibbles, with limits from far too small to far too large."""
    def event() -> str:
        name = f"nibble:{rng.randrange(4)}"
        return rng.choice([f'"{name}"', f'{{ event = "{name}", nodes = {sorted(rng.sample(range(NODES), 2))} }}'])

    def time() -> str:
        return f'"{rng.choice([30, 100, 300, 1000, 3000, 10000])} ns"'

    def count(most: int) -> str:
        return f"{rng.choice(['min', 'max'])} = {rng.randint(1, most)}"

    same = f"same_node = {rng.choice(['true', 'false'])}"
    bodies = {
        "response": lambda: f"after = {event()}\nexpect = {event()}\nmax = {time()}\n{same}",
        "precedence": lambda: f"event = {event()}\nneeds = {event()}\nwithin = {time()}\n{same}",
        "absence": lambda: f"event = {event()}\n" + rng.choice([
            "", f"between = [{event()}, {event()}]\n{same}", f"after = {event()}\nwithin = {time()}\n{same}"]),
        "period": lambda: f"event = {event()}\nevery = {time()}\ntolerance = {time()}\n{same}",
        "duration": lambda: (f"begin = {event()}\nend = {event()}\nmax = {time()}\n"
                             + rng.choice(["", "quantile = 0.5"])),
        "rate": lambda: f"event = {event()}\nper = {time()}\n{count(4)}\n{same}",
        "exclusion": lambda: f"spans = [[{event()}, {event()}], [{event()}, {event()}]]",
        "together": lambda: f"event = {event()}\nwithin = {time()}",
        "order": lambda: 'events = ["nibble:1", "nibble:2", "nibble:3"]\n' + same,
        "share": lambda: f"begin = {event()}\nend = {event()}\n{rng.choice(['min = 0.3', 'max = 0.4'])}",
    }
    kinds = [rng.choice(list(bodies)) for _ in range(RULES)]
    return "".join(f'[[rule]]\nname = "{k} {kind}"\nkind = "{kind}"\n{bodies[kind]()}\n'
                   for k, kind in enumerate(kinds))


@pytest.mark.parametrize("seed", range(6))
def test_no_contradiction(make_run, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    board = random_run(FakeBoard(NODES, window=Window.CLOCK, sink=Sink.EXTENDED), rng, 10, gap=30, size=8)
    complete = make_run(board, name="complete", sink="extended")
    dropped = rng.sample(range(1, len(board.blocks) - 1), rng.randint(1, 3))
    lossy = make_run(board, b"".join(block for k, block in enumerate(board.blocks) if k not in dropped), name="lossy",
                     sink="extended")
    (tmp_path / "rules.toml").write_text(rules(rng))
    whole, part = judge(complete, tmp_path / "rules.toml"), judge(lossy, tmp_path / "rules.toml")
    assert lossy.decode()["lost"] > 0 or lossy.decode()["missing_blocks"] > 0
    pairs = Counter((a.verdict, b.verdict) for a, b in zip(whole, part, strict=True))
    wrong = [(a.rule, a.verdict, b.verdict) for a, b in zip(whole, part, strict=True)
             if {a.verdict, b.verdict} == {"pass", "fail"}]
    assert wrong == []
    assert pairs["fail", "fail"] or pairs["fail", "undecided"] or pairs["pass", "undecided"]
