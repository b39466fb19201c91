"""Common Trace Format: read back by babeltrace2, event by event."""

import re
from pathlib import Path

import pytest
from hypermon.host import cli
from hypermon.host.analysis.losses import outages
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.export import ctf
from hypermon.host.export.ctf import CLOCK_LATE_PS
from hypermon.host.run import Run

from tests.host.external.readers import read_by

BOOK = """
[one]
id = 1
fields = { event = "u3", level = "i5", state = { type = "u16", values = { idle = 0, busy = 1 } } }
[two]
id = 2
fields = { at = "u8", text = "bytes" }
"""


def exported(run: Run, out: Path, *options: str) -> tuple[list[str], list[str]]:
    """What babeltrace2 says of it: a line an event, and a line a loss."""
    assert cli._run(["export", str(run.path), "--to", "ctf", str(out), *options]) == 0
    said = read_by("babeltrace2", "--clock-cycles", "--no-delta", "--names=none", out)
    # Warnings are printed between events, even within a line.
    losses = re.findall(r"WARNING: Tracer discarded .*", said)
    lines = re.sub(r"WARNING: Tracer discarded .*\n?", "", said)
    return re.split(r"(?=\[\d{20}\] )", re.sub(r"\s+", " ", lines).strip())[1:], losses


def lost(run: Run, losses: list[str]) -> None:
    """Each loss is where and what it was; babeltrace2 prints nanoseconds, rounded this way or that."""
    found = []
    for line in losses:
        count = re.search(r"discarded (\d+) events? between \[(.+)\] and \[(.+)\] in.*node-(\d+)", line)
        times = [round(sum(float(x) * f for x, f in zip(t.split(":"), (3600, 60, 1), strict=True)) * 1e9)
                 for t in (count[2], count[3])]
        found.append((int(count[4]), int(count[1]), *times))
    wanted = [(node, outage.lost, outage.from_ps // 1000, outage.to_ps // 1000)
              for node, own in enumerate(outages(run.loss(), run.info.nodes)) for outage in own]
    assert len(wanted) > 5
    assert sorted(row[:2] for row in found) == sorted(row[:2] for row in wanted)
    pairs = zip(sorted(found), sorted(wanted), strict=True)
    assert all(abs(a - b) <= 1 for f, w in pairs for a, b in zip(f, w, strict=True))


@pytest.mark.parametrize("packet", [500, 1 << 20])
def test_nibbles(losing_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packet: int) -> None:
    monkeypatch.setattr(ctf, "_PACKET", packet)
    lines, losses = exported(losing_run, tmp_path / "out")
    found = [tuple(map(int, re.search(r"\[(\d+)\] nibble: \{ (\d+) \}, \{ (\d+) \}", line).groups())) for line in lines]
    wanted = [(row["time_ps"] + CLOCK_LATE_PS, row["node"], row["nibble"]) for row in losing_run.events().to_pylist()]
    assert sorted(found) == sorted(wanted)
    assert [row[0] for row in found] == [row[0] for row in wanted]
    lost(losing_run, losses)


def plain(row: dict[str, object]) -> str:
    """An event without a dictionary, as babeltrace2 prints it."""
    if row.get("nibble") is not None:
        return f"nibble: {{ {row['node']} }}, {{ {row['nibble']} }}"
    if row.get("word") is not None:
        return f"{'aborted_word' if row['aborted'] else 'word'}: {{ {row['node']} }}, {{ {row['word']} }}"
    payload = row["payload"]
    values = ", ".join(map(str, payload))
    listed = f"{len(payload)}, [ {values} ]" if payload else f"{len(payload)}, [ ]"
    if row["aborted"]:
        return f"aborted: {{ {row['node']} }}, {{ {int(row['event'] is not None)}, {row['event'] or 0}, {listed} }}"
    return f"event: {{ {row['node']} }}, {{ {row['event']}, {listed} }}"


def test_items(mixed_run: Run, tmp_path: Path) -> None:
    lines, losses = exported(mixed_run, tmp_path / "out")
    rows = mixed_run.events().to_pylist()
    assert {row["aborted"] for row in rows} == {True, False}
    assert [line.strip() for line in lines] == [
        f"[{row['time_ps'] + CLOCK_LATE_PS:020}] {plain(row)}" for row in rows]
    lost(mixed_run, losses)


def test_dictionary(mixed_run: Run, tmp_path: Path) -> None:
    """Fields bit by bit; what does not fit is an event with bytes."""
    (tmp_path / "book.toml").write_text(BOOK)
    keep_dictionary(mixed_run, tmp_path / "book.toml")
    lines, _ = exported(mixed_run, tmp_path / "out")
    kinds = []
    for line, row in zip(lines, mixed_run.events().to_pylist(), strict=True):
        payload, kind = row.get("payload"), re.search(r"\] (\w+):", line)[1]
        kinds.append(kind)
        said = line.strip().partition("}, ")[2]
        if row["event"] == 1 and not row["aborted"] and len(payload) == 3:
            state = int.from_bytes(payload[1:], "little")
            level = payload[0] >> 3
            assert kind == "one"
            assert said.startswith(f"{{ {payload[0] & 7}, {level - 32 * (level > 15)}, ")
            assert f"container = {state}" in said
        elif row["event"] == 2 and not row["aborted"] and len(payload) >= 1:
            assert kind == "two"
            rest = ", ".join(map(str, payload[1:]))
            assert said == f"{{ {len(payload) - 1}, {payload[0]}, [ {rest}{' ' if rest else ''}] }}"
        else:
            assert f"{kind}: " in plain(row)
    assert {"one", "two", "event", "aborted", "nibble", "word"} <= set(kinds)


def test_selection(losing_run: Run, tmp_path: Path) -> None:
    lines, losses = exported(losing_run, tmp_path / "out", "--nodes", "1,13", "--from-ms", "5", "--to-ms", "50")
    wanted = losing_run.events(nodes=[1, 13], from_ps=5 * 10**9, to_ps=50 * 10**9)
    assert len(lines) == wanted.num_rows > 50
    assert [re.search(r"node-(\d+)", line)[1] for line in losses] == ["13"]


def test_refusals(losing_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").mkdir()
    assert cli._run(["export", str(losing_run.path), "--to", "ctf", str(tmp_path / "there")]) == 2
    assert cli._run(["export", str(losing_run.path), "--to", "ctf", "-"]) == 2
    assert "it exists already" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "there"]


def test_nothing(make_run, tmp_path: Path) -> None:
    from tests.host.fake_board import FakeBoard

    lines, losses = exported(make_run(FakeBoard().start().stop(10)), tmp_path / "out")
    assert (lines, losses) == ([], [])
