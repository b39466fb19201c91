"""`make demo`: what comes out of the board is what the program did, event by event."""

import csv
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.run import Run
from hypermon.sim.demo.__main__ import NODE, check, read_log

from tests.patience import patience

KINDS = load_dictionary(NODE / "life.toml").by_name
HYPERMON = Path(sys.executable).with_name("hypermon")


def demo(folder: Path, *options: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-m", "hypermon.sim.demo", "-o", str(folder), "--size", "128",
                           "--generations", "20", *options], capture_output=True, text=True, timeout=patience(400),
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo") / "demo"
    return folder, demo(folder)


def exported(folder: Path) -> dict[int, list[tuple[int, int, str]]]:
    """(time_ps, event, payload in hex) of each node, as the command line tells them."""
    text = subprocess.run([HYPERMON, "export", folder / "run", "--to", "events", "-"], capture_output=True, text=True,
                          timeout=patience(60), check=True).stdout
    events = defaultdict(list)
    for row in csv.DictReader(text.splitlines()):
        events[int(row["node"])].append((int(row["time_ps"]), int(row["event"]), row["payload_hex"]))
    return events


@pytest.mark.parametrize("options", [
    pytest.param([], id="rising"), pytest.param(["--edges", "2"], id="both"),
    # Another board, so half a minute to build it.
    pytest.param(["--nodes", "5"], id="five nodes", marks=pytest.mark.slow)])
def test_events_are_the_programs_log(played: tuple[Path, str], tmp_path: Path, options: list[str]) -> None:
    """Not by the demo's own check: the log and the export are read here, row by row."""
    folder, _ = played
    if options:
        folder = tmp_path / "demo"
        demo(folder, *options)
    logged = defaultdict(list)
    with (folder / "log.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            logged[int(row["node"])].append(row)
    events = exported(folder)
    assert events.keys() == logged.keys() == set(range(5 if "--nodes" in options else 16))
    for node in logged:
        assert [(e, p) for _, e, p in events[node]] == [(int(r["event"]), r["payload"]) for r in logged[node]]
        for (time_ps, _, _), row in zip(events[node], logged[node], strict=True):
            assert (int(row["from_ns"]) - 10) * 1000 <= time_ps <= (int(row["to_ns"]) + 220) * 1000
    assert sum(map(len, events.values())) == len(events) * (2 + 7 * 20)


def test_says_what_it_found(played: tuple[Path, str]) -> None:
    folder, said = played
    for text in ("all 2,272 events of the program's log came back",
                 "all 640 messages were sent once and received once",
                 "none of 640 was received before it was sent",
                 "none of 20 barriers was left before all 16 nodes were in",
                 " all    2,272 ", "Generations ", "computing", "Took ", "build ", "board ", str(folder / "run")):
        assert text in said
    assert "✗" not in said


def test_again_in_the_same_place_and_without_unicode(played: tuple[Path, str]) -> None:
    folder, _ = played
    said = demo(folder, PYTHONIOENCODING="ascii")
    assert "ok none of 640 was received before it was sent" in said
    assert said.isascii()


def test_without_a_compiler(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "hypermon.sim.demo", "-o", str(tmp_path / "demo")],
                          capture_output=True, text=True, timeout=patience(60), env={**os.environ, "CC": "no-such-cc"})
    assert done.returncode == 2
    assert done.stderr == "demo: no C compiler (no-such-cc); on Debian: apt-get install gcc\n"


# ------------------------------------------------------------------- the demo's check can say no

def failures(folder: Path, events: pa.Table, **wrong: object) -> list[str]:
    stats = {**Run(folder / "run").stats(), **wrong}
    return [text for passed, text in check(events, read_log(folder / "log.csv"), KINDS, stats).results if not passed]


def moved(events: pa.Table, row: int, by_ps: int) -> pa.Table:
    """The table with one event's time changed, in order again."""
    times = events["time_ps"].to_pylist()
    times[row] += by_ps
    return events.set_column(0, events.schema.field(0), pa.array(times)).sort_by([("time_ps", "ascending")])


def delayed(events: pa.Table, name: str) -> pa.Table:
    """The table with all events of this name a second later."""
    own = pc.cast(pc.equal(events["event"], KINDS[name].id), pa.int64())
    return events.set_column(0, events.schema.field(0), pc.add(events["time_ps"], pc.multiply(own, 10**12)))


def row_of(events: pa.Table, name: str) -> int:
    """The middle one of the events of this name."""
    found = pc.indices_nonzero(pc.equal(events["event"], KINDS[name].id)).to_pylist()
    return found[len(found) // 2]


@pytest.fixture
def events(played: tuple[Path, str]) -> pa.Table:
    folder, _ = played
    demo_events = pq.read_table(folder / "run" / "framed.parquet")
    assert failures(folder, demo_events) == []
    return demo_events


def test_check_misses_an_event(played: tuple[Path, str], events: pa.Table) -> None:
    row = row_of(events, "generation")
    without = pa.concat_tables([events.slice(0, row), events.slice(row + 1)])
    node = events["node"][row].as_py()
    assert failures(played[0], without) == [
        f"of 2,272 events 2,271 came back; those of node {node} are not what the program logged"]


def test_check_sees_another_payload(played: tuple[Path, str], events: pa.Table) -> None:
    payloads = events["payload"].to_pylist()
    payloads[row_of(events, "start")] = b"\x01\x02\x03\x04"
    changed = events.set_column(3, events.schema.field(3), pa.array(payloads, pa.binary()))
    assert "are not what the program logged" in failures(played[0], changed)[0]


@pytest.mark.parametrize(("wrong", "text"), [
    ({"lost": 3}, "3 nibbles lost, 0 blocks missing, 0 bytes torn"),
    ({"missing_blocks": 2}, "0 nibbles lost, 2 blocks missing, 0 bytes torn"),
    ({"torn_bytes": 16}, "0 nibbles lost, 0 blocks missing, 16 bytes torn"),
    ({"complete": False, "accounted": False}, "0 nibbles lost, 0 blocks missing, 0 bytes torn, no proper end")])
def test_check_sees_a_loss(played: tuple[Path, str], events: pa.Table, wrong: dict[str, object], text: str) -> None:
    assert failures(played[0], events, **wrong) == [f"the board's count: {text}"]


def test_check_sees_a_wrong_time(played: tuple[Path, str], events: pa.Table) -> None:
    row = row_of(events, "start")
    assert failures(played[0], moved(events, row, 10**13 if row else -10**13))


def test_check_sees_a_message_that_came_too_early(played: tuple[Path, str], events: pa.Table) -> None:
    """All sends are told 1 s later than they were."""
    late = delayed(events, "send")
    assert "640 of 640 messages were received before they were sent" in failures(played[0], late)


def test_check_sees_a_message_of_another(played: tuple[Path, str], events: pa.Table) -> None:
    payloads = events["payload"].to_pylist()
    payloads[row_of(events, "receive")] = b"\x00\xff\xff"
    changed = events.set_column(3, events.schema.field(3), pa.array(payloads, pa.binary()))
    assert "640 messages were sent and 640 received, and they do not match" in failures(played[0], changed)


def test_check_sees_a_barrier_that_did_not_hold(played: tuple[Path, str], events: pa.Table) -> None:
    late = delayed(events, "barrier_enter")
    assert "a barrier was left before all nodes were in" in failures(played[0], late)
