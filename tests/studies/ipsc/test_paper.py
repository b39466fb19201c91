"""The page of the evaluation: it says of what was measured what is so, with a figure for each of the paper's."""

import re

import numpy as np
import pytest
from hypermon.host.errors import HypermonError
from hypermon.studies.ipsc.machine.recorders import WITH_EVENT
from hypermon.studies.ipsc.paper.__main__ import paper, write
from hypermon.studies.ipsc.paper.claims import ARITHMETIC, NOT_REPRODUCED, PARAMETERS, TOLERANCE, claims
from hypermon.studies.ipsc.paper.evaluation import (
    BENCH_NODES,
    BUS_RATES,
    DELAYS,
    EVENT_NODES,
    HOWS,
    VOLUME_NODES,
    _kept,
    _once,
    share_of,
)
from hypermon.studies.ipsc.paper.page import page
from hypermon.studies.ipsc.paper.verdicts import arithmetic, counts, effect, overrun, predictions, round_trips
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.emulated import SEEDS, STOPS_MS
from hypermon.studies.ipsc.runs.printed_values import NODES, TABLE_2
from hypermon.studies.ipsc.runs.tables import TABLES, Evaluation
from hypermon.studies.page.command import run


def programs(lost):
    """As if all runs on the board had come out as printed."""
    for (program, nodes), printed in TABLE_2.items():
        logged = (0, printed.soft_bytes, printed.hard_bytes or 16_000, *[printed.soft_bytes // 2] * 3)
        for how, duration, size in zip(HOWS, (printed.raw, printed.soft, printed.hard, *[printed.soft] * 3), logged,
                                       strict=True):
            over = lost if (program, nodes, how) == ("place", 8, "hardware") else 0
            row = {"program": program, "nodes": nodes, "how": how, "share": 0.5, "seconds": duration / 2,
                   "logged": size / 2, "frames": size // 32, "writes": size // 32, "lost": over, "merged": 0.01,
                   "units": 30, "checked": "all values equal those of the sequential program",
                   **({} if how == "raw" else {"messages": 100, "early": 3 if how == "software" else 0})}
            if how == "hardware":
                row |= {"expected_frames": size // 32, "expected_backlog": 2000 if over else 100, "groups_off": 0.01,
                        "group_intervals": 90, "spread_off": 0.3}
            yield row


def seeds(times):
    """As if all whole programs had come out as printed, but hardware recording added so many times as much."""
    for (program, nodes), printed in TABLE_2.items():
        for name in (program, *["simplex-blocked"] * (program == "simplex" and nodes > 1)):
            for seed in SEEDS:
                yield {"program": name, "nodes": nodes, "seed": seed, "share": 1.0, "units": 700, "raw": printed.raw,
                       "soft": printed.soft, "hard": printed.raw + times * (printed.hard - printed.raw),
                       "soft_bytes": printed.soft_bytes, "nibbles": 2000, "frames": printed.frames or 1000,
                       "merged": 0.02, "checked": "all values equal those of the sequential program",
                       **{f"backlog_{stop:g}": 100 + 1000 * (stop > 1 and (program, nodes) == (
                           "place", 8)) for stop in STOPS_MS}}


def evaluation(times: float = 1.0, lost: int = 7) -> Evaluation:
    done = Evaluation()
    done.tables |= {
        "programs": list(programs(lost)), "seeds": list(seeds(times)),
        "rates": [{"program": program, "nodes": nodes, "interval": at, "seconds": 0.125, "frames_per_second": 1000.0}
                  for program in PROGRAMS for nodes in NODES for at in range(100)],
        "bandwidth": [{"nodes": nodes, "delay": delay, "nibbles": 10_000, "lost": 5 if nodes > 2 and not delay else 0,
                       "merged": 0.1, "written_merged": 0.1, "frames_per_second": 113_000.0,
                       "bytes_per_second": 1_808_000.0, "expected_frames_per_second": 113_000.0,
                       "expected_merged": 0.12, "expected_backlog": 5000 if nodes > 2 and not delay else 10}
                      for nodes in BENCH_NODES for delay in DELAYS],
        "bench_seeds": [{"nodes": nodes, "delay": delay, "seed": seed, "bytes": 400_000, "frames_per_second": 215_000.0,
                         "merged": 0.12, "backlog": 10} for nodes in BENCH_NODES for delay in DELAYS for seed in SEEDS],
        "events": [{"nodes": nodes, "how": how, "events_per_second": 10_000.0, "bytes_per_second": 70_000.0, "lost": 0}
                   for nodes in EVENT_NODES for how in ("extended", "wide")],
        "volumes": [{"nodes": nodes, "ms": 2 * at, "bytes": at + 1, "events": 1}
                    for nodes in VOLUME_NODES for at in range(50)],
        "bursts": [{"nodes": nodes, "seed": seed, "units": 700, "ms": 1000, "bytes": 60_000, "events": 9000,
                    "busy_ms": 500, "burst": 2500.0} for nodes in VOLUME_NODES for seed in SEEDS],
        "order": [{"program": program, "nodes": nodes, "seed": seed, "units": 30, "messages": 100, "early": seed}
                  for program in PROGRAMS for nodes in NODES[1:] for seed in SEEDS],
        "bus": [{"rate": rate, "nodes": 8, "window_ns": 800, "lost": 9, "drained": min(rate, 18_800_000.0)}
                for rate in BUS_RATES],
        "waves": [{"figure": figure, "clock": at, "ns": 50 * at, "strobe": 3, "data": 5, "push": at == 4, "nibble": 5,
                   "end": at % 16 == 15, "vector": 2 if at == 20 else -1, "stamp": 1} for figure in (3, 4)
                  for at in range(40)],
        "tried": [{"question": "two nodes", "what": "a slower host", "value": 202_000.0, "more": "overrun"},
                  *({"question": "place", "what": nodes, "value": 10 * nodes} for nodes in NODES),
                  *({"question": WITH_EVENT, "what": program, "value": 1.0} for program in PROGRAMS)],
        "made": [{"command": "make paper", "minutes": 12.0, "cpu_minutes": 20.0}],
    }
    return done


def missed(rows):
    return [row.what for row in rows if row.met != "yes"]


def test_every_printed_figure_has_one_class():
    classes = claims()
    table_2 = 16 * 4 + 15
    assert len([figure for figure in classes if re.match(r"(Simplex|Life|MatMul|Place) \d, (raw|soft|hard)", figure)
                ]) == table_2 + 31
    fitted = [figure for parameter in PARAMETERS for figure in parameter.figures]
    assert len(fitted) == len(set(fitted)) == list(classes.values()).count("F")
    assert list(classes.values()).count("C") == 31 + len(ARITHMETIC)
    assert list(classes.values()).count("N") == len(NOT_REPRODUCED)
    # No row of raw times, of one node's hardware times, of overruns is a prediction.
    assert not [figure for figure, kind in classes.items() if kind == "P" and
                (figure.endswith(("raw", " 1, hard")) or "Table 2" in figure)]


def test_every_prediction_has_a_row():
    assert len(predictions(evaluation())) == list(claims().values()).count("P")


def test_what_agrees_is_said_to_agree():
    done = evaluation()
    text = page(done)
    assert missed(predictions(done)) == missed(round_trips(done)) == []
    assert counts(done)["P"] == (30, 30, 0, 0)
    assert counts(done)["F"][1:] == (0, 0, 0)
    text = " ".join(text.split())
    assert "30 values are predicted. 30 of them are within the tolerance that was fixed beforehand, 0 are not." in text
    assert "deviate by +0 to +0 % from the paper's, in 12 rows of its Table 2" in text
    assert "The extended board lost nothing" in text
    assert "12 to 60 of 1,200 messages were" in text
    assert all(f"| {what} |" in text for what, *_ in ARITHMETIC)
    assert "| a slower host | 202,000 | +0.0 % | overrun |" in text
    assert "| 4 | 0.88 | 4.00 |" in text
    assert "{" not in text


def test_the_effect_is_compared_not_the_total():
    done = evaluation(1.2)
    assert len(missed(predictions(done))) == 12
    assert counts(done)["P"][:3] == (30, 18, 12)
    text = page(done)
    # 20 % more of the perturbation; of the total, 5 %.
    assert ("| Life 8, hard - raw | 14.221 s | 10 % | 17.065 ± 0.000 s, +20.0 % | -11.5 % | 700 generations | **no** |"
            in text)
    assert "61.046 (58.202) +4.9 %" in text


def test_the_formula_of_one_line():
    printed, formula = effect("simplex", 8, "hard")
    assert printed == pytest.approx(16.768)
    # 26.1 us for each of 4.37 million nibbles, on 8 nodes.
    assert formula == pytest.approx(38.55 - 24.277, abs=0.01)
    assert effect("life", 2, "soft") == (pytest.approx(0.405), pytest.approx(3.2e-6 * 277_359 / 2))


def test_a_short_run_has_no_verdict():
    done = evaluation()
    for row in done.tables["seeds"]:
        if (row["program"], row["nodes"]) == ("simplex", 8):
            row["units"] = 29
    assert {row.met for row in predictions(done) if row.what.startswith("Simplex 8")} == {"no verdict: 29 pivots"}
    assert counts(done)["P"] == (30, 27, 0, 3)


def spoilt(table, column, value, where=-1):
    done = evaluation()
    done.tables[table][where][column] = value
    return missed([*predictions(done), *round_trips(done)])


def test_every_verdict_can_be_no():
    assert spoilt("bandwidth", "merged", 0.5) == [
        "merged nibbles of the bandwidth test against those computed from the port writes"]
    assert spoilt("bandwidth", "expected_merged", 0.5) == [
        "merged nibbles of the bandwidth test against the closed form"]
    assert spoilt("bandwidth", "expected_backlog", 5000) == [
        "runs that are overrun or not, as computed from the port writes"]
    assert spoilt("bandwidth", "lost", 1, 4)[:1] == ["no overrun from two (5.1)"]
    assert spoilt("bandwidth", "lost", 0, 8)[:1] == ["overrun from more than two nodes without a delay (5.1)"]
    assert spoilt("programs", "early", 1) == ["messages received before they were sent, by the board's time"]
    assert spoilt("bus", "drained", 4e6, 0) == ["rate of a host that is set to 5 MB/s"]
    assert spoilt("bursts", "burst", 6000.0) == ["Place 16, maximum in 20 ms (6)"]
    done = evaluation()
    done.row("matmul", 4, "hardware")["frames"] *= 1.04
    done.row("matmul", 2, "hardware")["groups_off"] = 0.06
    assert missed(round_trips(done)) == [
        "frames of the board against those computed from the port writes",
        "frame rates between first frames of the groups that the host read (footnote 5), against those from the "
        "stamps"]
    for row in done.whole("life", 4):
        row["frames"] *= 1.04
        row["soft_bytes"] *= 0.96
    assert missed(predictions(done)) == ["Life 4, soft bytes", "Life 4, hard bytes"]


def test_which_programs_are_overrun():
    done = evaluation()
    assert [overrun(done, stop) for stop in STOPS_MS] == [[], [], ["Place 8"], ["Place 8"], ["Place 8"]]


def test_arithmetic_finds_the_papers_contradictions():
    assert [what for what, *_, agrees in arithmetic() if not agrees] == [
        "88.5 s per million events of four bytes, by hardware (5.1), eight nibbles each",
        "10 MB/s at most, of events: 8 bytes in 8 cycles of 20 MHz (5.1)",
        "2.5 MB/s of Place 8, from its software bytes (5.2.1)"]


def test_tolerances_are_those_written_down_before_the_first_run():
    assert TOLERANCE == {"effect, 2 nodes": 5.0, "effect": 10.0, "bytes": 3.0, "merging": 2.0, "round trip": 0.5,
                         "groups": 5.0}


def test_a_page_has_its_figures_and_tables(tmp_path):
    pytest.importorskip("matplotlib")
    done = evaluation()
    values = tmp_path / "values"
    write(done, tmp_path, values)
    named = re.findall(r"\]\((paper/[^)]+)\)", (tmp_path / "paper.md").read_text())
    assert len(set(named)) == 10
    for name in named:
        assert (tmp_path / name).stat().st_size > 30
    assert {str(path.relative_to(tmp_path)) for path in (tmp_path / "paper").rglob("*.*")} == set(named)
    assert {path.name for path in values.iterdir()} == {f"{name}.csv" for name in TABLES}
    again = Evaluation.load(values)
    assert page(again) == page(done)
    assert again.row("life", 1, "software")["logged"] == 17051.5
    (values / "tried.csv").unlink()
    with pytest.raises(HypermonError, match=r"tried\.csv: not there"):
        Evaluation.load(values)


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
        run(paper, "paper")
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "paper: --frames few: it must be a number of at least 100, or all\n"
