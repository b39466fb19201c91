"""Tables of a stranger: whole by their checksums, and yet not what a decoder writes. No export begins with them."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.export.formats import FORMATS
from hypermon.host.recording.parts import described

from tests.host.recording.test_damaged_runs import KINDS

pytest.importorskip("otf2")
pytest.importorskip("perfetto")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """``made(kind)``: a decoded run, with every table that there can be."""
    folder = tmp_path_factory.mktemp("made")

    def make(kind):
        path = folder / kind
        if not path.exists():
            KINDS[kind](path, 1)
        return path

    return make


def changed(column, change):
    """A table with one value of a column changed, the middle one, or another if ``change`` says which."""
    def of(table):
        values = table[column].to_pylist()
        at = next((k for k in range(len(values) // 2, len(values)) if values[k] is not None), None)
        values[at] = change(values[at])
        index = table.schema.get_field_index(column)
        field = table.schema.field(index)
        field = field.with_nullable(field.nullable or None in values)
        return table.set_column(index, field, pa.array(values, field.type))
    return of


def without(column):
    return lambda table: table.drop_columns([column])


def broken_page(path):
    """A byte of the data, which only a reader of all pages meets."""
    data = bytearray(path.read_bytes())
    at = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    data[at + 2:at + 40] = b"\xff" * 38
    path.write_bytes(data)


EVENTS = {
    "a node too many": changed("node", lambda node: 999), "a negative node": changed("node", lambda node: -1),
    "backwards": changed("time_ps", lambda time: -10**15), "no node": without("node"), "no time": without("time_ps"),
    "another column": lambda table: table.append_column("more", pa.array([1] * len(table))),
    "broken page": broken_page, "no table": lambda path: path.write_bytes(b"PAR1 of a kind")}
LOSSES = {
    "a node too many": changed("node", lambda node: 999), "a negative node": changed("node", lambda node: -1),
    "a negative loss": changed("lost", lambda lost: -5), "backwards": changed("to_ps", lambda to_ps: -10**17),
    "no table": lambda path: path.write_bytes(b"PAR1 of a kind"), "broken page": broken_page}
CASES = [
    *(("classic", "events/part-00000.parquet", name, damage) for name, damage in EVENTS.items()),
    ("classic", "events/part-00000.parquet", "a value too large", changed("nibble", lambda nibble: 77)),
    *(("classic", "loss.parquet", name, damage) for name, damage in LOSSES.items()),
    *(("items", "events/part-00000.parquet", name, damage) for name, damage in EVENTS.items()),
    ("items", "events/part-00000.parquet", "no field", without("key")),
    ("items", "events/part-00000.parquet", "a long payload", changed("payload", lambda payload: bytes(500))),
    *(("framed", "framed.parquet", name, damage) for name, damage in EVENTS.items()),
    *(("items", "states.parquet", name, damage) for name, damage in {
        "a node too many": changed("node", lambda node: 999), "no name": changed("name", lambda name: None),
        "backwards": changed("end_ps", lambda end: -10**15), "a row too many": changed("begin_row", lambda row: 10**9),
        "no column": without("key"), "no table": lambda path: path.write_bytes(b"PAR1 of a kind")}.items()),
    *(("items", "messages.parquet", name, damage) for name, damage in {
        "a row too many": changed("send_row", lambda row: 10**9), "no table": lambda path: path.write_bytes(b"PAR1"),
        "no name": changed("name", lambda name: None)}.items()),
    *(("items", "counters.parquet", name, damage) for name, damage in {
        "a node too many": changed("node", lambda node: 999), "no value": changed("value", lambda value: None),
        "no table": lambda path: path.write_bytes(b"PAR1")}.items()),
]


def damage_table(run, name, damage):
    """Damages a table, and describes it as whole."""
    path = run / name
    if "path" in damage.__code__.co_varnames[:1]:
        damage(path)
    else:
        notes = {key: value for key, value in (pq.read_metadata(path).metadata or {}).items() if b"hypermon" in key}
        pq.write_table(damage(pq.ParquetFile(path).read()).replace_schema_metadata(notes), path)
    account = run / ("semantics.json" if name in ("states.parquet", "messages.parquet", "counters.parquet")
                     else "decode.json")
    values = json.loads(account.read_text())
    try:
        part = described(path)
    except pa.ArrowException:
        from hypermon.host.recording.parts import checksum
        part = {"rows": 1, "bytes": path.stat().st_size, "crc32": checksum(path)}
    for place in ("parts",):
        values[place][name] = part
    values.pop("check", None)
    account.write_text(json.dumps(values))
    files = values.get("made_of", {}).get("files")
    assert files is None or name not in files
    made_of = run / "semantics.json"        # those were made of this table, says the stranger
    if account.name == "decode.json" and made_of.exists():
        values = json.loads(made_of.read_text())
        values.pop("check", None)
        if name in values["made_of"]["files"]:
            values["made_of"]["files"][name] = [part["bytes"], part["crc32"]]
            made_of.write_text(json.dumps(values))


def formats(kind, name):
    """The formats that are made of a table."""
    of_story = ("otf2", "perfetto")
    if name in ("states.parquet", "messages.parquet", "counters.parquet"):
        return of_story
    if kind == "framed":
        return ("vcd", "fst", "ctf", "ctf2", *of_story)
    return [form for form in FORMATS if form != "frames"]


@pytest.mark.parametrize(("kind", "name", "what", "damage"), CASES, ids=[f"{a}-{b}-{c}" for a, b, c, _ in CASES])
def test_no_export_begins_with_tables_of_a_stranger(made, tmp_path, run_cli, kind, name, what, damage):
    run = tmp_path / "run"
    shutil.copytree(made(kind), run)
    assert run_cli("query", run)[0] == 0
    damage_table(run, name, damage)
    for form in formats(kind, name):
        for out in {str(tmp_path / "out"), "-" if form in ("csv", "events", "vcd") else str(tmp_path / "out")}:
            status, printed, err = run_cli("export", run, "--to", form, out)
            assert (status, printed) == (2, ""), (form, err)
            assert err[-1].startswith(f"hypermon: {run / name}"), (form, err)
            assert len([line for line in err if line.startswith("hypermon: ")]) == 1
            assert sorted(path.name for path in tmp_path.iterdir()) == ["run"], form


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "stats"])
def test_whole_tables_are_exported(made, tmp_path, run_cli, kind):
    for form in FORMATS:
        out = tmp_path / form
        status, _, err = run_cli("export", made(kind), "--to", form, out)
        expected = ("RUN/events", "no table logging", "frames", "several boards", "not installed",
                    "never compared with UTC")
        assert status == 0 or any(words in err[-1] for words in expected), (form, err)
        assert out.exists() == (status == 0)


#: Values that overflow, besides those of CASES.
WILD = [
    *((kind, name, f"time {value}", changed("time_ps", lambda _, value=value: value))
      for kind, name in (("classic", "events/part-00000.parquet"), ("items", "events/part-00000.parquet"),
                         ("framed", "framed.parquet")) for value in (-1 << 63, (1 << 63) - 1)),
    *(("classic", "loss.parquet", f"{column} {value}", changed(column, lambda _, value=value: value))
      for column in ("lost", "from_ps", "to_ps") for value in (-1 << 63, (1 << 63) - 1)),
]
READERS = ["stats RUN", "report RUN -o OUT", *(f"analyse RUN {what} -o OUT" for what in (
    "rate", "loss", "merging", "noise", "latency")), "trim RUN OUT --nodes 0-1", "trim RUN OUT --from 0.001",
    "merge RUN RUN -o OUT", "tail RUN --no-wait", "check RUN", "decode RUN", "export RUN --to csv OUT"]


@pytest.mark.parametrize(("kind", "name", "what", "damage"), CASES + WILD,
                         ids=[f"{a}-{b}-{c}" for a, b, c, _ in CASES + WILD])
def test_no_reader_ends_with_a_traceback(made, tmp_path, run_cli, kind, name, what, damage):
    """Each takes such a table as it is, or refuses it in one line."""
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(made(kind), run)
    assert run_cli("query", run)[0] == 0
    damage_table(run, name, damage)
    for reader in READERS:
        status, _, err = run_cli(*(str({"RUN": run, "OUT": out}.get(word, word)) for word in reader.split()))
        assert status in (0, 1, 2), reader
        assert status != 2 or len([line for line in err if line.startswith(("hypermon: ", "hypermon "))]) == 1, err
        if out.is_dir():
            shutil.rmtree(out)
        out.unlink(missing_ok=True)
