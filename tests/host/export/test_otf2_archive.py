"""OTF2: read back by otf2-print, event by event."""

import gc
import random
import re
import resource
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypermon.host import cli
from hypermon.host.analysis.losses import outages
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.run_dictionary import FRAMED, keep_dictionary, name_files
from hypermon.host.export.otf2_archive import CLOCK_LATE_PS
from hypermon.host.run import Run

from tests.host.external.readers import read_by
from tests.host.telling import made_up

pytest.importorskip("otf2")

#: kind, location, time in ps, what it says, attributes
Record = tuple[str, int, int, str, dict[str, str]]


def exported(run: Run, out: Path) -> list[Record]:
    assert cli._run(["export", str(run.path), "--to", "otf2", str(out)]) == 0
    found: list[Record] = []
    for line in read_by("otf2-print", out / "traces.otf2").splitlines():
        record = re.match(r"([A-Z0-9_]+) +(\d+) +(\d{10,})  ?(.*)", line)
        if record:
            found.append((record[1], int(record[2]), int(record[3]) - CLOCK_LATE_PS, record[4].strip(), {}))
        elif "ADDITIONAL ATTRIBUTES" in line:
            found[-1][4].update(re.findall(r'\("(\w+)" <\d+>; \w+; "?(.*?)"?\)(?=,|$)', line))
    return found


def losses(run: Run, found: list[Record]) -> None:
    wanted = [(node, "ON" if end else "OFF", outage[1 + end], str(outage.lost)) for node, own in
              enumerate(outages(run.loss(), run.info.nodes)) for outage in own for end in (False, True)]
    got = [(location, re.search(r"Mode: (\w+)", said)[1], time, more["lost"])
           for kind, location, time, said, more in found if kind == "MEASUREMENT_ON_OFF"]
    assert sorted(got) == sorted(wanted)


def test_nibbles(losing_run: Run, tmp_path: Path) -> None:
    found = exported(losing_run, tmp_path / "out")
    got = [(time, location, int(re.search(r"Value: (\d+)", said)[1])) for kind, location, time, said, _ in found
           if kind == "PARAMETER_UINT64" and '"nibble"' in said]
    assert sorted(got) == sorted(tuple(row.values()) for row in losing_run.events().to_pylist())
    assert len(got) + 2 * losing_run.loss().num_rows == len(found)
    losses(losing_run, found)


def test_clock_and_locations(mixed_run: Run, tmp_path: Path) -> None:
    """By OTF2's own reader."""
    import otf2

    assert cli._run(["export", str(mixed_run.path), "--to", "otf2", str(tmp_path / "out")]) == 0
    with otf2.reader.open(str(tmp_path / "out" / "traces.otf2")) as trace:
        assert trace.timer_resolution == 10**12
        assert len(list(trace.definitions.locations)) == 3
        times = [event.time for _, event in trace.events]
    assert min(times) >= CLOCK_LATE_PS
    assert times == sorted(times)


def test_items(mixed_run: Run, tmp_path: Path) -> None:
    found = exported(mixed_run, tmp_path / "out")
    losses(mixed_run, found)
    said = Counter(re.search(r'Parameter: "(.*?)"', text)[1] for kind, *_, text, _ in found if "PARAMETER" in kind)
    rows = mixed_run.events().to_pylist()

    def called(row: dict[str, object]) -> str:
        name = next((name for name in ("word", "event", "nibble") if row[name] is not None), "")
        return f"aborted {name}".strip() if row["aborted"] else name

    assert said == Counter(map(called, rows))
    payloads = [bytes(int(more["payload"]).to_bytes(8, "little")[:int(more["bytes"])])
                for *_, more in found if "bytes" in more]
    assert Counter(payloads) == Counter(row["payload"] for row in rows if row["payload"] is not None)


def test_dictionary(told, tmp_path: Path) -> None:
    """Regions, messages, and everything else once."""
    run = told(made_up(random.Random(4), 1500), [(1, 9, 10, 11), (2, 5, 700, 701)])
    found = exported(run, tmp_path / "out")
    kinds = Counter(kind for kind, *_ in found)
    states = run.states().to_pylist()
    assert kinds["ENTER"] == len(states)
    assert kinds["LEAVE"] == sum(state["end_ps"] is not None or state["lost_ps"] is not None for state in states)
    open_: dict[int, list[str]] = defaultdict(list)
    for kind, location, _, text, _ in found:
        if kind == "ENTER":
            open_[location].append(text)
        elif kind == "LEAVE":
            assert open_[location].pop() == text
    matched = [m for m in run.messages().to_pylist() if m["latency_ps"] is not None]
    for kind, here, there, time in (("MPI_SEND", "sender", "receiver", "sent_ps"),
                                    ("MPI_RECV", "receiver", "sender", "received_ps")):
        got = [(location, int(re.search(r"(?:Receiver|Sender): (\d+)", text)[1]), when,
                re.search(r'Communicator: "(\w+)"', text)[1], re.search(r"Tag: (\d+)", text)[1])
               for which, location, when, text, _ in found if which == kind]
        assert sorted(got) == sorted((m[here], m[there], m[time], m["name"], m["key"]) for m in matched)
    losses(run, found)
    for location in {record[1] for record in found}:
        times = [record[2] for record in found if record[1] == location]
        assert times == sorted(times)


def test_text_with_nul_characters(told, tmp_path: Path) -> None:
    """Its readers end a string at a NUL."""
    run = told([(1000, 0, 1, b"\0on", False)])
    book = tmp_path / "words.toml"
    book.write_text('[said]\nid = 1\nfields = { word = "string" }\n')
    keep_dictionary(run, book)
    name_files(run.path, [FRAMED], load_dictionary(book))
    assert "\\0on" in str(exported(run, tmp_path / "out"))


@pytest.mark.parametrize("limit", [1500, 3000])
def test_a_full_disk(losing_run, tmp_path, capfd, limit):
    """One line, and nothing is left."""
    losing_run.decode()
    capfd.readouterr()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        status = cli._run(["export", str(losing_run.path), "--to", "otf2", str(tmp_path / "out")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 2
    gc.collect()
    lost, error = capfd.readouterr().err.splitlines()
    assert "items lost" in lost
    assert error == "hypermon: the archive cannot be written: File is too large"
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []
