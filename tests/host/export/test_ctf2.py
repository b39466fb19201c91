"""Common Trace Format 2: read by a reader written from the standard, and compared with babeltrace2's view of 1.8.

No package registry has a program that reads CTF 2 (babeltrace2 does from 2.1 on; Debian 12 has 2.0).
"""

import json
import re
from pathlib import Path

import pytest
from hypermon.host import cli
from hypermon.host.analysis.losses import outages
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.export import ctf
from hypermon.host.export.ctf import CLOCK_LATE_PS
from hypermon.host.run import Run

from .ctf2_reader import metadata, packets
from .test_ctf import BOOK
from .test_ctf import exported as exported_1

#: Each kind of field.
ALL_KINDS = """
[one]
id = 1
fields = { a = "u3", b = "i5", c = { type = "u16", values = { idle = 0, busy = 1 } } }
[two]
id = 2
fields = { length = "u8", text = "string" }
[three]
id = 3
fields = { event = "i7", odd = "u1", name = "char[2]", raw = "bytes[1]" }
[four]
id = 4
fields = { level = "f32" }
"""


def exported(run: Run, out: Path, *options: str) -> list[tuple[int, int, str, dict]]:
    """Its items in order of time: time, node, name, payload."""
    assert cli._run(["export", str(run.path), "--to", "ctf2", str(out), *options]) == 0
    found = [(time - CLOCK_LATE_PS, packet.node, name, payload) for packet in packets(out)
             for time, name, payload in packet.records]
    return sorted(found, key=lambda item: item[:2])


def plain(row: dict) -> tuple[str, dict]:
    """The name and the payload of an item without a dictionary."""
    if row.get("nibble") is not None:
        return "nibble", {"nibble": row["nibble"]}
    if row.get("word") is not None:
        return "aborted_word" if row["aborted"] else "word", {"word": row["word"]}
    data = {"length": len(row["payload"]), "payload": list(row["payload"])}
    if row["aborted"]:
        return "aborted", {"named": int(row["event"] is not None), "event": row["event"] or 0, **data}
    return "event", {"event": row["event"], **data}


@pytest.mark.parametrize("packet", [500, 1 << 20])
def test_nibbles_and_losses(losing_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packet: int) -> None:
    monkeypatch.setattr(ctf, "_PACKET", packet)
    found = exported(losing_run, tmp_path / "out")
    assert found == [(row["time_ps"], row["node"], "nibble", {"nibble": row["nibble"]})
                     for row in sorted(losing_run.events().to_pylist(), key=lambda row: (row["time_ps"], row["node"]))]
    lost, last = [], {}
    for one in packets(tmp_path / "out"):
        begin, count, number = last.get(one.node, (None, 0, -1))
        assert one.number == number + 1
        assert one.begin <= one.end
        assert all(one.begin <= time <= one.end for time, *_ in one.records)
        if one.discarded > count:
            lost.append((one.node, one.discarded - count, begin - CLOCK_LATE_PS, one.end - CLOCK_LATE_PS))
        last[one.node] = (one.end, one.discarded, one.number)
    wanted = [(node, outage.lost, outage.from_ps, outage.to_ps)
              for node, own in enumerate(outages(losing_run.loss(), losing_run.info.nodes)) for outage in own]
    assert len(wanted) > 5
    assert sorted(lost) == sorted(wanted)


def test_items(mixed_run: Run, tmp_path: Path) -> None:
    found = exported(mixed_run, tmp_path / "out")
    rows = sorted(mixed_run.events().to_pylist(), key=lambda row: (row["time_ps"], row["node"]))
    assert [(time, node, (name, payload)) for time, node, name, payload in found] == [
        (row["time_ps"], row["node"], plain(row)) for row in rows]


def test_the_twin_of_1_8_has_the_same_items(mixed_run: Run, tmp_path: Path) -> None:
    """The numbers that babeltrace2 prints of the one are those of the other; the data streams are the same bytes."""
    (tmp_path / "book.toml").write_text(BOOK)
    keep_dictionary(mixed_run, tmp_path / "book.toml")
    found = exported(mixed_run, tmp_path / "two")
    lines, _ = exported_1(mixed_run, tmp_path / "one")
    assert {name for _, _, name, _ in found} >= {"one", "two", "event", "aborted", "nibble", "word"}
    for line, (time, node, name, payload) in zip(lines, found, strict=True):
        value = re.fullmatch(r"\[(\d+)\] (\w+): \{ (\d+) \}, \{(.*)\} ?", line)
        assert (int(value[1]) - CLOCK_LATE_PS, value[2], int(value[3])) == (time, name, node)
        numbers = [int(number) for number in re.findall(r"(?<![\w\"])-?\d+(?!\w)", re.sub(r'"[^"]*"', "", value[4]))]
        flat = [number for one in payload.values() for number in (one if isinstance(one, list) else [one])]
        assert numbers == flat
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert set(one) == set(two)
    assert [name for name in one if one[name] != two[name]] == ["metadata"]


def test_fields_of_each_kind(mixed_run: Run, tmp_path: Path) -> None:
    """As the dictionary's own columns have them."""
    (tmp_path / "book.toml").write_text(ALL_KINDS)
    keep_dictionary(mixed_run, tmp_path / "book.toml")
    found = exported(mixed_run, tmp_path / "out")
    rows = sorted(mixed_run.events().to_pylist(), key=lambda row: (row["time_ps"], row["node"]))
    named = 0
    for (_, _, name, payload), row in zip(found, rows, strict=True):
        data = row.get("payload")
        if name not in ("one", "two", "three", "four"):
            assert (name, payload) == plain(row)
            continue
        named += 1
        if name == "one":
            level = data[0] >> 3
            assert payload == {"a": data[0] & 7, "b": level - 32 * (level > 15), "c": data[1] | data[2] << 8}
        elif name == "two":
            text = data[1:].partition(b"\0")[0].decode(errors="replace")
            assert payload == {"length of text": len(data) - 1, "length": data[0], "text": text}
        elif name == "three":
            event = data[0] & 127
            assert payload == {"event": event - 128 * (event > 63), "odd": data[0] >> 7, "raw": [data[3]],
                               "name": data[1:3].partition(b"\0")[0].decode(errors="replace")}
    assert named > 10
    [one] = [said for said in metadata(tmp_path / "out" / "metadata") if said.get("name") == "one"]
    assert one["payload-field-class"]["member-classes"][2]["field-class"]["mappings"] == {
        "idle": [[0, 0]], "busy": [[1, 1]]}


def test_a_damaged_description_is_noticed(losing_run: Run, tmp_path: Path) -> None:
    exported(losing_run, tmp_path / "out")
    path = tmp_path / "out" / "metadata"
    text = path.read_text()
    for before, after in (('"version": 2', '"version": 1'), ('"frequency"', '"freq"'), ('"structure"', '"struct"'),
                          ("event-record-class-id", "no-role"), ("\x1e", "")):
        assert before in text
        path.write_text(text.replace(before, after))
        with pytest.raises((AssertionError, KeyError, json.JSONDecodeError)):
            list(packets(tmp_path / "out"))


def test_selection_and_refusals(losing_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = exported(losing_run, tmp_path / "out", "--nodes", "1,13", "--from-ms", "5", "--to-ms", "50")
    assert len(found) == losing_run.events(nodes=[1, 13], from_ps=5 * 10**9, to_ps=50 * 10**9).num_rows > 50
    assert cli._run(["export", str(losing_run.path), "--to", "ctf2", str(tmp_path / "out")]) == 2
    assert "it exists already" in capsys.readouterr().err
