"""Questions in SQL, on the command line and from Python; the events that are asked for by node and time."""

import csv
import gc
import io
import json

import duckdb
import pytest
from hypermon.host import cli
from hypermon.host.analysis import query
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.run import Run
from hypermon.host.tables import parquet, selection


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
    assert "hypermon: the query: Catalog Error" in ask("from nothing", status=2)
    assert "choose one" in ask("from loss", "--json", "--csv", status=2)
    # What fails only when it is computed; columns of one name; text that would be markup.
    fails = "select cast('x' || node as int) from events"
    for form in ((), ("--json",), ("--csv",)):
        said = ask(fails, *form, status=2)
        assert said.splitlines()[-1].startswith("hypermon: the query: "), said
    assert ask("select 1 as x, 2 as x", "--csv") == "x,x\n1,2\n"
    assert "two columns are called x" in ask("select 1 as x, 2 as x", "--json", status=2)
    assert ask("select '[/b] [old]' as \"[x]\"").split() == ["[x]", "[/b]", "[old]"]


def test_selected_events(losing_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same done by hand, whatever the groups in the files."""
    monkeypatch.setattr(parquet, "_GROUP", 100)
    monkeypatch.setattr(parquet, "_GROUPS_PER_FILE", 3)
    monkeypatch.setattr(selection, "BATCH_ROWS", 37)
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
        assert found.schema.equals(parquet.EVENT_SCHEMA)
        only = losing_run.events(nodes=nodes, from_ps=low, to_ps=high, columns=["nibble"])
        assert only.to_pylist() == [{"nibble": row["nibble"]} for row in wanted]


def test_little_is_read_of_other_times(losing_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP", 100)
    monkeypatch.setattr(selection, "BATCH_ROWS", 50)
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
    from tests.host.fake_board import FakeBoard

    run = make_run(FakeBoard().start().frames([(1, {0: 1})]).stop(9), name="it's [a] run*")
    assert run.sql("from events").fetchall() == [(run.info.scale.start_ps(1), 0, 1)]


FORBIDDEN = [
    "copy (select 1) to 'owned.csv'", "copy events to 'RUN/loss.parquet'", "copy (select 1) to 'RUN/owned.csv'",
    "from read_csv('/etc/passwd')", "from read_text('/etc/passwd')", "from '/etc/passwd'", "from 'other.parquet'",
    "from glob('/etc/*')", "from parquet_metadata('other.parquet')", "from 'RUN/stream.bin'",
    "from read_blob('RUN/recording.json')", "attach 'owned.db'", "attach 'RUN/owned.db'", "install httpfs",
    "load httpfs", "from 'http://127.0.0.1:1/x.parquet'", "set threads = 1", "set enable_external_access = true",
    "reset enable_external_access", "pragma enable_external_access = true", "pragma threads = 1",
    "set lock_configuration = false", "select getenv('HOME')", "select 1; select 2",
    "select 1; copy (select 1) to 'owned.csv'", "create table t as select 1", "create view v as select 1",
    "create macro f(x) as x", "drop view events", "export database 'owned'",
    "explain analyze copy (select 1) to 'owned'",
    "explain analyze copy (select 1) to 'RUN/loss.parquet' (use_tmp_file false)", "checkpoint", "vacuum",
    "insert into events values (1)", "from question", "from secret", "", ";", "-- nothing"]


@pytest.mark.parametrize("question", FORBIDDEN)
def test_a_question_only_asks(losing_run: Run, tmp_path, monkeypatch, run_cli, question: str) -> None:
    """It writes nothing, reads nothing but the tables, loads nothing, and changes no setting."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    secret = pa.table({"x": [1]})
    monkeypatch.chdir(tmp_path)
    pq.write_table(secret, "other.parquet")
    losing_run.decode()
    question = question.replace("RUN", str(losing_run.path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    status, out, err = run_cli("query", losing_run.path, "--json", "--", question or " ")
    assert (status, out) == (2, "")
    assert err[-1].startswith("hypermon: the query: ")
    with pytest.raises(HypermonError, match="the query: "):
        losing_run.sql(question).fetchall()
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_the_connection_is_locked(losing_run: Run) -> None:
    """Whatever statement somebody gets through to it."""
    import pyarrow as pa

    secret = pa.table({"x": [1]})
    with query.connect(losing_run) as connection:
        for statement in ("set threads = 1", "set enable_external_access = true", "set lock_configuration = false",
                          "set allowed_paths = ['/etc/passwd']", "from secret", "load httpfs", "attach 'owned.db'",
                          f"copy events to '{losing_run.path}/loss.parquet'"):
            with pytest.raises(duckdb.Error):
                connection.sql(statement)
    assert len(secret) == 1


@pytest.mark.parametrize("question", [
    "select 1", "from events limit 1", "table loss", "values (1)", "describe events", "show tables", "summarize loss",
    "with t as (select 1) from t", "pivot events on node using count(*)", "from query('select 1')", "select 1;",
    "select utc(time_ps) from events limit 1"])
def test_questions_of_every_kind(losing_run: Run, question: str) -> None:
    assert losing_run.sql(question).fetchall()


def test_a_question_may_need_the_disk(losing_run: Run, tmp_path, monkeypatch) -> None:
    """And leaves nothing there."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")
    monkeypatch.setitem(query.SETTINGS, "memory_limit", "60MB")
    rows = losing_run.sql("select a.range, hash(a.range) as h from range(4000000) a order by h limit 1 offset 3999999")
    assert len(rows.fetchall()) == 1
    del rows
    gc.collect()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_json_has_no_number_for(losing_run: Run, run_cli) -> None:
    """NaN and infinities are null, at every depth."""
    question = ("select 'nan'::double as a, '-inf'::float as b, [1.5, 'inf'::double] as c, {x: 'nan'::double} as d, "
                "1.5 as e, map {1: 'nan'::double} as f, null as g, 1::hugeint << 100 as h, 'nan'::double is null as i")
    status, out, _ = run_cli("query", losing_run.path, question, "--json")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    row = json.loads(out, parse_constant=refuse)
    assert status == 0
    assert [row[name] for name in "abcdgi"] == [None, None, [1.5, None], {"x": None}, None, False]
    assert float(row["e"]) == 1.5
    assert int(row["h"]) == 1 << 100


def test_nothing_is_cut_in_a_pipe(losing_run: Run, run_cli) -> None:
    """Whatever the width of a line."""
    names = ", ".join(f"{10**18 + k} as column_{k}" for k in range(20))
    status, out, _ = run_cli("query", losing_run.path, f"select {names}, repeat('x', 500) as long")
    head, row = out.splitlines()
    assert status == 0
    assert row.split() == [*(str(10**18 + k) for k in range(20)), "x" * 500]
    assert head.split() == [*(f"column_{k}" for k in range(20)), "long"]


def test_data_are_shown_as_they_are(losing_run: Run, run_cli) -> None:
    """No pictures, no colours, nothing that a terminal obeys."""
    text = ":smile: [red]x[/red] [link=http://a]b[/] \\[c]"
    status, out, _ = run_cli("query", losing_run.path, f"select '{text}' as \":x: [b]\", chr(27) || '[2J' as e")
    assert status == 0
    assert text in out
    assert ":x: [b]" in out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out


@pytest.mark.parametrize(("value", "cell"), [
    ("'=1+1'", "'=1+1"), ("'@x'", "'@x"), ("'+cmd'", "'+cmd"), ("'-a'", "'-a"),
    ("chr(9) || '=x'", "'\t=x"),
    ("'a=b'", "a=b"), ("-5", "-5"), ("-1.5e-7::double", "-1.5e-07"), ("'-5'", "-5"), ("'+1.5e3'", "+1.5e3"),
    ("'-1+x'", "'-1+x"), ("''", ""),
    ("null", ""), ("[-1]", "[-1]"), ("'\u0663'", "\u0663"), ("'-\u0663'", "'-\u0663")])
def test_a_spreadsheet_computes_no_cell(losing_run: Run, run_cli, value: str, cell: str) -> None:
    status, out, _ = run_cli("query", losing_run.path, f'select {value} as "=x"', "--csv")
    assert status == 0
    assert list(csv.reader(io.StringIO(out))) in ([["'=x"], [cell]], [["'=x"], []])


def test_no_such_column(losing_run: Run) -> None:
    for columns in (["foo"], ["time_ps", "foo"]):
        with pytest.raises(HypermonError, match=r"there is no column 'foo'; there are time_ps, node, nibble"):
            losing_run.events(columns=columns)
        with pytest.raises(HypermonError, match=r"there is no column 'foo'"):
            losing_run.events(columns=columns, to_ps=-1 << 62)


@pytest.mark.parametrize("node", [-1, 16, 1 << 15, 1 << 16, 1 << 64, int("9" * 4000)])
def test_no_such_node(losing_run: Run, node: int) -> None:
    """A node that there is not is refused, also beside one that there is, and is not an empty table."""
    for nodes in ([node], [0, node]):
        with pytest.raises(InputError, match=f"there is no node {str(node)[:20]}.*, but 0 to 15"):
            losing_run.events(nodes=nodes)
        with pytest.raises(InputError, match="there is no node"):
            next(losing_run.batches(nodes=nodes))


@pytest.mark.parametrize("text", ["16", "0,16", "9" * 5000, "0-" + "9" * 5000, "9" * 5000 + "-" + "9" * 5001, "3-2",
                                  "-1", "1-", "", ",", "0x1", "1e1", "\u0661\u0666"])
def test_nodes_that_there_are_not(losing_run: Run, run_cli, tmp_path, text: str) -> None:
    status, out, err = run_cli("export", losing_run.path, "--to", "csv", tmp_path / "out.csv", "--nodes", text)
    assert (status, out, len(err)) == (2, "", 1)
    assert "--nodes" in err[0]
    assert len(err[0]) < 2100     # what is printed is clipped
    assert not (tmp_path / "out.csv").exists()
