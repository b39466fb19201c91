"""Questions in SQL, on the command line and from Python; the events that are asked for by node and time."""

import csv
import io
import json

import pytest
from hypermon.host import cli, selection, store
from hypermon.host.recording import Run


def test_tables(mixed_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert mixed_run.sql("select count(*) from events where node = 0").fetchall() == [
        (sum(row["node"] == 0 for row in mixed_run.events().to_pylist()),)]
    table = mixed_run.sql("from loss").to_arrow_table()
    assert table.to_pylist() == mixed_run.loss().to_pylist()
    assert cli._run(["query", str(mixed_run.path)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("events", "payload", "BLOB", "loss", "from_ps"))


def test_printed(mixed_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def ask(*arguments: str, status: int = 0) -> str:
        assert cli._run(["query", str(mixed_run.path), *arguments]) == status
        said = capsys.readouterr()
        return said.out if status == 0 else said.err

    rows = mixed_run.events().to_pylist()
    plain = [{name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()} for row in rows]
    assert [json.loads(line) for line in ask("from events", "--json").splitlines()] == plain
    found = list(csv.DictReader(io.StringIO(ask("select time_ps, node, payload from events", "--csv"))))
    assert found == [{"time_ps": str(row["time_ps"]), "node": str(row["node"]), "payload": row["payload"] or ""}
                     for row in plain]
    assert len(ask("from events limit 7").splitlines()) == 8
    assert cli._run(["query", str(mixed_run.path), "from events"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 101
    assert "Only 100 rows are shown" in said.err
    assert "hypermon: the question: Catalog Error" in ask("from nothing", status=2)
    assert "say one of them" in ask("from loss", "--json", "--csv", status=2)
    # What fails only when it is computed; columns of one name; text that would be markup.
    fails = "select cast('x' || node as int) from events"
    for form in ((), ("--json",), ("--csv",)):
        said = ask(fails, *form, status=2)
        assert said.splitlines()[-1].startswith("hypermon: the question: "), said
    assert ask("select 1 as x, 2 as x", "--csv") == "x,x\n1,2\n"
    assert "two columns are called x" in ask("select 1 as x, 2 as x", "--json", status=2)
    assert ask("select '[/b] [old]' as \"[x]\"").split() == ["[x]", "[/b]", "[old]"]


def test_selected_events(losing_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same done by hand, whatever the groups in the files."""
    monkeypatch.setattr(store, "_GROUP", 100)
    monkeypatch.setattr(store, "_GROUPS_PER_FILE", 3)
    monkeypatch.setattr(selection, "_ROWS", 37)
    rows = losing_run.events().to_pylist()
    assert len(list((losing_run.path / "events").iterdir())) > 3
    times = sorted({row["time_ps"] for row in rows})
    for nodes, low, high in ((None, None, None), ([3], None, None), ([0, 15], times[100], times[300]),
                             (None, times[5], times[6]), (None, times[-1], None), (None, None, times[0]),
                             ([], None, None), (None, times[-1] + 1, None)):
        wanted = [row for row in rows if (nodes is None or row["node"] in nodes)
                  and (low is None or row["time_ps"] >= low) and (high is None or row["time_ps"] < high)]
        found = losing_run.events(nodes=nodes, from_ps=low, to_ps=high)
        assert found.to_pylist() == wanted
        assert found.schema.equals(store.EVENT_SCHEMA)
        only = losing_run.events(nodes=nodes, from_ps=low, to_ps=high, columns=["nibble"])
        assert only.to_pylist() == [{"nibble": row["nibble"]} for row in wanted]
    with pytest.raises(KeyError):
        losing_run.events(columns=["nothing"])


def test_little_is_read_of_other_times(losing_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_GROUP", 100)
    monkeypatch.setattr(selection, "_ROWS", 50)
    times = losing_run.events()["time_ps"].to_pylist()
    batches = list(losing_run.batches(from_ps=times[1000], to_ps=times[1000] + 1))
    assert len(batches) < 10 < len(list(losing_run.batches()))


def test_other_libraries_take_it_without_a_copy(losing_run: Run) -> None:
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    table = losing_run.events()
    frame = polars.from_arrow(table)
    assert frame.rows() == [tuple(row.values()) for row in table.to_pylist()]
    where = {chunk.buffers()[1].address for chunk in table["time_ps"].chunks}
    back = frame.to_arrow()["time_ps"].chunks
    assert where & {chunk.buffers()[1].address for chunk in back}
    assert losing_run.sql("from events").pl().equals(frame)
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    assert losing_run.sql("from events").df()["time_ps"].to_list() == table["time_ps"].to_pylist()
    one = table["time_ps"].chunk(0)
    assert one.to_numpy(zero_copy_only=True).ctypes.data == one.buffers()[1].address + 8 * one.offset


def test_names_with_quotes(make_run) -> None:
    from fake_board import FakeBoard

    run = make_run(FakeBoard().start().frames([(1, {0: 1})]).stop(9), name="it's [a] run*")
    assert run.sql("from events").fetchall() == [(run.info.scale.start_ps(1), 0, 1)]
