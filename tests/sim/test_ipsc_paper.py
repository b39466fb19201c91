"""The page of the evaluation: it says of what was measured what is so, with a figure for each of the paper's."""

import csv
import re

import numpy as np
import pytest
from hypermon.sim.ipsc.evaluation import BENCH_NODES, DELAYS, HOWS, Evaluation, share_of
from hypermon.sim.ipsc.page import page
from hypermon.sim.ipsc.paper import main, write
from hypermon.sim.ipsc.printed import TABLE_2
from hypermon.sim.ipsc.programs import PROGRAMS


def evaluation(times: float = 1.0, lost: int = 7) -> Evaluation:
    """As if everything had come out as printed, but hardware times so much longer."""
    done = Evaluation()
    for (program, nodes), printed in TABLE_2.items():
        logged = (0, printed.soft_bytes, printed.hard_bytes or 16_000, printed.soft_bytes // 2)
        seconds = (printed.raw, printed.soft, printed.hard * times, printed.soft)
        for how, duration, size in zip(HOWS, seconds, logged, strict=True):
            overrun = lost if (program, nodes, how) == ("place", 8, "hardware") else 0
            done.table.append({
                "program": program, "nodes": nodes, "how": how, "share": 0.5, "seconds": duration / 2,
                "logged": size / 2, "frames": size // 32, "nibbles": size // 32, "lost": overrun, "merged": 0.01,
                **({} if how == "raw" else {"messages": 100, "early": 3 if how == "software" else 0})})
        done.checked[program, nodes] = "all as sequentially"
        done.rates[program, nodes] = np.full(100, 1000.0), 12.5
    for nodes in BENCH_NODES:
        for delay in DELAYS:
            done.bench.append({"nodes": nodes, "delay": delay, "lost": 0 if nodes < 3 else 5, "merged": 0.1,
                               "frames_per_second": 113_000.0, "bytes_per_second": 1_808_000.0,
                               "expected_frames_per_second": 113_000.0, "expected_merged": 0.12})
    done.volumes = {nodes: np.arange(50) for nodes in (4, 8, 16)}
    return done


def test_what_agrees_is_said_to_agree():
    text = page(evaluation(), "make paper", 12)
    assert "within 0.0 % on one and two nodes and 0.0 %" in text
    assert "within 2.0 points" in text
    assert "overruns the board, as it did in 1990" in text
    assert "48 of 1,600 messages" in text
    assert "The extended board lost nothing" in text
    assert "a million events take 88.5 s (88.5)" in text
    assert "{" not in text


def test_what_deviates_is_said_to_deviate():
    text = page(evaluation(1.05, lost=0), "make paper", 12)
    assert "within 5.0 % on one and two nodes and 5.0 %" in text
    assert "did not overrun" in text
    assert "| Life 8 | 50 % | 43.981 (43.981) +0.0 % | 44.741 (44.741) +0.0 % | 61.112 (58.202) +5.0 % |" in text


def test_a_page_has_its_figures_and_tables(tmp_path):
    pytest.importorskip("matplotlib")
    write(evaluation(), tmp_path, "make paper", 12)
    named = re.findall(r"\]\((paper/[^)]+)\)", (tmp_path / "paper.md").read_text())
    assert len(set(named)) == 7 + 2
    for name in named:
        assert (tmp_path / name).stat().st_size > 100
    assert {path.name for path in (tmp_path / "paper").iterdir()} == {name.removeprefix("paper/") for name in named}
    with open(tmp_path / "paper" / "programs.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(TABLE_2) * len(HOWS)
    assert rows[1]["logged"] == "31718.5"


def test_shares_are_as_long_as_asked_for():
    assert share_of("life", 1, 100_000_000) == 1
    assert share_of("life", 8, 37_720) == pytest.approx(0.01, rel=1e-3)
    assert share_of("place", 8, None) == 1
    assert all(0 < share_of(program, 8, 100) < 0.1 for program in PROGRAMS)


def test_a_wrong_number_of_frames_is_refused(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["paper", "--frames", "few"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "paper: --frames few: it is a number, at least 100, or all\n"
