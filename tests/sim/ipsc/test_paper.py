"""The page of the evaluation: it says of what was measured what is so, with a figure for each of the paper's."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypermon.host.errors import HypermonError
from hypermon.sim.ipsc.paper.__main__ import main, write
from hypermon.sim.ipsc.paper.evaluation import (
    BENCH_NODES,
    DELAYS,
    EVENT_NODES,
    HOWS,
    VOLUME_NODES,
    _kept,
    _once,
    share_of,
)
from hypermon.sim.ipsc.paper.page import page
from hypermon.sim.ipsc.paper.verdicts import verdicts
from hypermon.sim.ipsc.programs import PROGRAMS
from hypermon.sim.ipsc.runs.printed_values import NODES, TABLE_2
from hypermon.sim.ipsc.runs.tables import TABLES, Evaluation

ROOT = Path(__file__).parents[3]


def programs(times, lost):
    """As if all runs had come out as printed, but hardware times so much longer."""
    for (program, nodes), printed in TABLE_2.items():
        logged = (0, printed.soft_bytes, printed.hard_bytes or 16_000, printed.soft_bytes // 2, printed.soft_bytes // 2)
        seconds = (printed.raw, printed.soft, printed.hard * times, printed.soft, printed.soft)
        for how, duration, size in zip(HOWS, seconds, logged, strict=True):
            overrun = lost if (program, nodes, how) == ("place", 8, "hardware") else 0
            row = {"program": program, "nodes": nodes, "how": how, "share": 0.5, "seconds": duration / 2,
                   "logged": size / 2, "frames": size // 32, "writes": size // 32, "lost": overrun, "merged": 0.01,
                   "checked": "all as sequentially",
                   **({} if how == "raw" else {"messages": 100, "early": 3 if how == "software" else 0})}
            yield row
            if program == "simplex" and nodes > 1 and how in ("software", "hardware"):
                yield {**row, "program": "simplex-blocked"}


def evaluation(times: float = 1.0, lost: int = 7) -> Evaluation:
    done = Evaluation()
    done.tables |= {
        "programs": list(programs(times, lost)),
        "rates": [{"program": program, "nodes": nodes, "interval": at, "seconds": 0.125, "frames_per_second": 1000.0}
                  for program in PROGRAMS for nodes in NODES for at in range(100)],
        "bandwidth": [{"nodes": nodes, "delay": delay, "lost": 5 if nodes > 2 and not delay else 0, "merged": 0.1,
                       "frames_per_second": 113_000.0, "bytes_per_second": 1_808_000.0,
                       "expected_frames_per_second": 113_000.0, "expected_merged": 0.12}
                      for nodes in BENCH_NODES for delay in DELAYS],
        "events": [{"nodes": nodes, "how": how, "events_per_second": 10_000.0, "bytes_per_second": 70_000.0, "lost": 0}
                   for nodes in EVENT_NODES for how in ("extended", "wide")],
        "volumes": [{"nodes": nodes, "ms": 2 * at, "bytes": at + 1, "events": 1}
                    for nodes in VOLUME_NODES for at in range(50)],
        "tried": [{"question": "two nodes", "what": "a slower host", "value": 202_000.0, "more": "overrun"},
                  *({"question": "place", "what": nodes, "value": 10 * nodes} for nodes in NODES)],
        "made": [{"command": "make paper", "minutes": 12.0, "cpu_minutes": 20.0}],
    }
    return done


def test_what_agrees_is_said_to_agree():
    text = page(evaluation())
    assert all(met == "yes" for *_, met in verdicts(evaluation()))
    assert "within 0.0 % on one and two nodes and 0.0 %" in text
    assert "overran in: Place 8." in text
    assert "48 of 1,600 messages" in text
    assert "The extended board lost nothing" in text
    assert "a million events take 88.5 (88.5) " in text
    assert "| a slower host | 202,000 | +0.0 % | overrun |" in text
    assert "| 4 | 0.88 | 4.00 |" in text
    assert "{" not in text


def test_what_deviates_is_said_to_deviate():
    text = page(evaluation(1.05, lost=0))
    assert "within 5.0 % on one and two nodes and 5.0 %" in text
    assert "| Life 8 | 50 % | 43.981 (43.981) +0.0 % | 44.741 (44.741) +0.0 % | 61.112 (58.202) +5.0 % |" in text
    met = {what: met for what, _, _, met in verdicts(evaluation(1.05, lost=0))}
    assert met["hardware times, 1 and 2 nodes"] == met["overruns of Table 2"] == "**no**"
    assert met["hardware times, 4 and 8 nodes"] == "yes"


def spoilt(table, column, value):
    done = evaluation()
    done.tables[table][-1][column] = value
    return [what for what, *_, met in verdicts(done) if met != "yes"]


def test_every_verdict_can_be_no():
    assert spoilt("bandwidth", "merged", 0.5) == ["merging in the bandwidth test, of the closed form"]
    assert spoilt("events", "lost", 1) == ["lost on the extended board"]
    assert spoilt("programs", "early", 1) == ["messages received before they were sent, by the board's time"]
    done = evaluation()
    done.row("matmul", 4, "hardware")["logged"] *= 1.04
    done.bench_row(3, 0)["lost"] = 0
    assert [what for what, *_, met in verdicts(done) if met != "yes"] == [
        "logged frames, Simplex on one node only", "nodes that overrun the bandwidth test without a delay"]


def test_a_page_has_its_figures_and_tables(tmp_path):
    pytest.importorskip("matplotlib")
    done = evaluation()
    write(done, tmp_path)
    named = re.findall(r"\]\((paper/[^)]+)\)", (tmp_path / "paper.md").read_text())
    assert len(set(named)) == 8 + len(TABLES)
    for name in named:
        assert (tmp_path / name).stat().st_size > 30
    assert {path.name for path in (tmp_path / "paper").iterdir()} == {name.removeprefix("paper/") for name in named}
    again = Evaluation.load(tmp_path / "paper")
    assert page(again) == page(done)
    assert again.row("life", 1, "software")["logged"] == 17051.5
    (tmp_path / "paper" / "tried.csv").unlink()
    with pytest.raises(HypermonError, match=r"tried\.csv: not there"):
        Evaluation.load(tmp_path / "paper")


def test_the_page_that_is_here_is_that_of_its_tables():
    assert (ROOT / "docs" / "paper.md").read_text() == page(Evaluation.load(ROOT / "docs" / "paper"))


def test_shares_are_as_long_as_asked_for():
    assert share_of("life", 1, 100_000_000) == 1
    assert share_of("life", 8, 37_720) == pytest.approx(0.01, rel=1e-3)
    assert share_of("place", 8, None) == 1
    assert share_of("matmul", 8, 20_000) == 1
    assert all(0 < share_of(program, 8, 100) <= 0.25 for program in PROGRAMS)


def test_what_was_done_is_not_done_again(tmp_path):
    kept, calls = tmp_path / "0.json", []

    def run(rate):
        calls.append(rate)
        return {"tried": [{"value": np.float64(rate), "what": 2}]}

    assert [_once(kept, run, (1.5,))["tried"], _once(kept, run, (1.5,))["tried"]] == [[{"value": 1.5, "what": 2}]] * 2
    assert calls == [1.5]
    assert _kept(100, [kept]) != _kept(200, [kept])


def test_a_wrong_number_of_frames_is_refused(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["paper", "--frames", "few"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "paper: --frames few: it is a number, at least 100, or all\n"
