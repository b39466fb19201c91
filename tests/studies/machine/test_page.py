"""The page: classes, verdicts, rows without a run, and a subset of `make machines` on the virtual board."""

import re
import shutil

import pytest
from hypermon.studies.machine.page import evaluation, page, sp2_rows
from hypermon.studies.machine.page.__main__ import write
from hypermon.studies.machine.page.page import all_rows
from hypermon.studies.machine.page.rows import CLASSES, Data, beside, judged, spread, within
from hypermon.studies.machine.page.tasks import tasks
from hypermon.studies.page.tables import load

MADE = {"made": [{"share": "5 %", "minutes": 1.0, "events": 0}]}
#: About 60,000 events.
SUBSET = ("path 1", "edges-2 1", "edges-3 1", "nodes 1", "bsp 5 ms, all, 1", "bsp 5 ms, without background, 1",
          "exchange 1", "bounded 3 ms, 1", "blind ipsc860 1", "blind sp2 1", "blind asciq 1",
          "bidirectional 1", "blind qsnet 1")


def test_a_miss_says_no():
    assert beside("a hop", "P", 30.5, [30.0], part=0.02).met is True
    missed = beside("a hop", "P", 30.5, [29.0], part=0.02)
    assert (missed.met, missed.deviation) == (False, "-4.92 %")
    assert within("paths", "P", "more than 7", [6.9], 7, 8).met is False
    assert within("paths", "P", "more than 7", [], 7, 8).ours == ""


def test_a_run_that_is_too_short_gets_no_verdict():
    def rows(data):
        yield beside("one", "P", 5.0, data.values("bsp", "latency_ms", case="short"), part=0.1)
        yield beside("another", "P", 5.0, data.values("bsp", "latency_ms", case="long"), part=0.1)

    data = Data({"bsp": [{"task": "a", "case": "short", "latency_ms": 5.0, "count": 29},
                         {"task": "b", "case": "long", "latency_ms": 5.0, "count": 30}]})
    short, long = judged(data, rows(data))
    assert (short.met, short.note) == (None, "no verdict: a run of 29 repetitions")
    assert (long.met, long.note) == (True, "")


def bounded(count, losses):
    return [{"task": f"bounded 3 ms, {seed}", "seed": seed, "variant": "3 ms", "nodes": nodes, "count": count,
             "mb_per_s": 40.0 * (1 - loss / 100)} for seed in (1, 2) for nodes, loss in losses.items()]


@pytest.mark.parametrize(("count", "losses", "met"), [
    (30, {2: 0.0, 4: 0.4, 8: 0.9, 16: 1.6, 32: 2.3}, True), (30, {2: 0.0, 4: 0.4, 8: 0.9, 16: 0.8, 32: 2.3}, False),
    (30, {2: 0.0, 4: 0.4, 8: 0.9, 16: 1.6, 32: 2.9}, False), (30, {2: 0.0, 4: 0.4, 32: 2.3}, False),
    (29, {2: 0.0, 4: 0.4, 8: 0.9, 16: 1.6, 32: 2.3}, None)])
def test_bounded_stalls_have_a_verdict(count, losses, met):
    data = Data({"all_to_all": bounded(count, losses)})
    rows = {row.what: row for row in judged(data, sp2_rows.rows(data))}
    row = rows["bounded: stalls of 3 ms, loss at 32 nodes"]
    assert row.met is met
    assert ("no verdict: a run of 29 repetitions" in row.note) is (met is None)


def test_the_page_says_how_it_was_made():
    own = {"options": "--share 0.25", "runs": 3, "recorded": 2, "cpu_s": 600}
    assert " ".join(page._made(own, 3).split()).startswith(
        "All runs are from one command, `make machines ARGS='--share 0.25'`. It took 10 minutes of processor time and "
        "made 2 of the recordings; the other 1 had been kept.")
    assert page._made(own, 5).startswith("3 of the runs are from one command")


def test_a_deviation_has_two_digits_and_no_exponent():
    assert [spread(value) for value in (0.0, 281.3, 0.0000114, 12.0, 0.65, 1700.0)] == [
        "0", "280", "0.000011", "12", "0.65", "1,700"]


def test_every_row_has_a_class_and_the_misprint_is_one_of_them():
    tables = all_rows(Data(MADE))
    rows = [row for own in tables.values() for row in own]
    assert {row.kind for row in rows} == set(CLASSES)
    assert all(len({row.what for row in own}) == len(own) for own in tables.values())
    assert all(row.met is None for row in rows if row.kind in "RP")
    assert any("1.9 ms as printed" in row.what for row in rows)


def test_rows_without_a_run_say_so(tmp_path):
    pytest.importorskip("matplotlib")
    write(dict(MADE), tmp_path, tmp_path / "values")
    text = (tmp_path / "machines.md").read_text()
    assert text.count("no run yet") > 60
    assert re.search(r"\*\*P\*\* \|.*\| (\d+) \|\n", text)
    assert "**no**" not in text.partition("Every prediction")[2].partition("## How")[0]


def test_names_of_runs_are_different():
    names = [task.name for task in tasks(0.05)]
    assert len(set(names)) == len(names) > 200
    assert set(SUBSET) <= set(names)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")
def test_a_subset_on_the_board(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    tables = {}
    for task in tasks(0.01):
        if task.name in SUBSET:
            for name, rows in task.run().items():
                tables.setdefault(name, []).extend(rows)
    events = sum(row["events"] for row in tables["runs"])
    assert 60_000 < events < 80_000, "200 of them are marks, for each port of each run"
    assert sum(row["lost"] for row in tables["runs"]) == 0
    write({**tables, "made": [{"share": "1 %", "minutes": 1.0, "events": events}]}, tmp_path,
          tmp_path / "values")
    rows = {row.what: row for own in all_rows(Data(tables)).values() for row in own}
    assert all(rows[what].met for what in (
        "above 100 bytes: per hop", "edges 2, 8 paths, 7000 bytes, with the echo", "nodes, 2 to 4 paths against 1",
        "edges 3 against edges 2, 8 paths, 7000 bytes, time of gsync subtracted", "exchange of 1024 bytes: skew",
        "both directions at once: rate of main to Elan memory, relative to the best of the others"))
    assert "1 of 1 seeds" in {row.ours for row in rows.values()}
    # What --again reads back gives the same.
    again = {row.what: row for own in all_rows(Data(load(tmp_path / "values"))).values() for row in own}
    assert {what: (row.met, bool(row.ours)) for what, row in again.items()} == {
        what: (row.met, bool(row.ours)) for what, row in rows.items()}


def test_runs_replace_those_of_the_same_name_and_the_others_stay():
    old = {"runs": [{"task": "a", "events": 1}, {"task": "b", "events": 2}], "single": [{"task": "a", "x": 1}],
           "rows": [{"machine": "sp2"}], "made": [{"share": "1 %"}]}
    new = {"runs": [{"task": "a", "events": 3}], "single": [{"task": "a", "x": 4}]}
    assert evaluation.over(old, new) == {"runs": [{"task": "b", "events": 2}, {"task": "a", "events": 3}],
                                         "single": [{"task": "a", "x": 4}]}
    assert evaluation.over({}, new) == new


def test_no_run_begins_after_the_time(monkeypatch):
    assert evaluation._one(0.05, "path 1", 0.0) is None
