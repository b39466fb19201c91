"""Parts of runs, and several runs as one: nothing invented, nothing lost in silence, all commands open them."""

import json
import random
import re
import shutil
from pathlib import Path

import pytest
from hypermon.host import cli
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.errors import HypermonError
from hypermon.host.events import framed_events
from hypermon.host.record.excerpt import trim
from hypermon.host.record.joined import merge
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.run import Run, open_run
from hypermon.host.tables.selection import Selection

from tests.host.fake_board import FakeBoard, random_run


def rows_of(run):
    return [tuple(row.values()) for row in run.events().to_pylist()]


def chosen(run, selection):
    """What a selection is to contain, row by row: items and losses."""
    nodes = range(run.info.nodes) if selection.nodes is None else selection.nodes
    begin = -1 << 62 if selection.from_ps is None else selection.from_ps
    end = 1 << 62 if selection.to_ps is None else selection.to_ps
    events = [row for row in rows_of(run) if begin <= row[0] < end and row[1] in nodes]
    losses = [row for row in run.loss().to_pylist()
              if row["node"] in nodes and row["from_ps"] < end and row["to_ps"] >= begin]
    return events, losses


def middle(run):
    times = [row[0] for row in rows_of(run)]
    return times[len(times) // 3], times[2 * len(times) // 3]


@pytest.mark.parametrize("which", ["losing_run", "mixed_run"])
@pytest.mark.parametrize("nodes", [None, [0, 2]])
@pytest.mark.parametrize("times", ["whole", "middle", "from", "to"])
def test_an_excerpt_has_what_was_chosen(request, tmp_path, which, nodes, times):
    run = request.getfixturevalue(which)
    low, high = middle(run)
    selection = Selection(nodes, *{"whole": (None, None), "middle": (low, high), "from": (low, None),
                                   "to": (None, high)}[times])
    trim(run, tmp_path / "part", selection)
    part = open_run(tmp_path / "part")
    events, losses = chosen(run, selection)
    assert (rows_of(part), part.loss().to_pylist()) == (events, losses)
    stats, whole = part.stats(), run.stats()
    assert stats["lost"] == sum(loss["lost"] for loss in losses)
    aborted = sum(bool(row[-1]) for row in events) if which == "mixed_run" else 0
    assert (stats["events"], stats["aborted"]) == (len(events) - aborted, aborted)
    assert sum(stats["causes"].values()) == stats["lost"]
    if selection == Selection():
        same = ("events_per_node", "frames", "lost_per_node", "payload_bytes", "stream_bytes", "complete", "aborted")
        assert {name: stats[name] for name in same} == {name: whole[name] for name in same}
        assert stats["merged_percent"] == pytest.approx(whole["merged_percent"])
    said = part.info.configuration["trimmed"]
    assert (said["run"], said["from_ps"], said["nodes"]) == (run.path.name, selection.from_ps, nodes)


def test_every_command_opens_an_excerpt(losing_run, tmp_path, capsys):
    low, high = middle(losing_run)
    times = ["--from-ms", str(low / 1e9), "--to-ms", str(high / 1e9)]
    part = str(tmp_path / "part")
    assert cli._run(["trim", str(losing_run.path), part, *times, "--nodes", "0-7"]) == 0
    for command in (["stats", part, "--json"], ["decode", part], ["query", part, "select count(*) from events"],
                    ["export", part, "--to", "csv", "-"], ["export", part, "--to", "vcd", str(tmp_path / "x.vcd")],
                    ["export", part, "--to", "perfetto", str(tmp_path / "x.pf")],
                    ["export", part, "--to", "ctf", str(tmp_path / "ctf")],
                    ["export", part, "--to", "events", str(tmp_path / "x.csv")],
                    ["report", part, "-o", str(tmp_path / "x.html")], ["decode", part, "--framing", "event"],
                    ["trim", part, str(tmp_path / "again"), *times]):
        assert cli._run(command) == 0, command
    assert rows_of(Run(tmp_path / "again")) == rows_of(Run(part))
    capsys.readouterr()
    assert cli._run(["trim", str(losing_run.path), part]) == 2
    assert "it exists already" in capsys.readouterr().err


def test_events_that_are_cut_are_not_framed_wrongly(make_run, tmp_path):
    """Nibbles without a pause: after the cut, the length of an event could be any nibble."""
    rng, board, stamp = random.Random(1), FakeBoard(1).start(), 10
    begins = []
    for _ in range(200):
        begins.append(stamp - 10)
        payload = bytes(rng.randrange(256) for _ in range(rng.randint(1, 14)))
        for nibble in [len(payload), *(half for byte in payload for half in (byte & 15, byte >> 4))]:
            board.frames([(stamp, {0: nibble})])
            stamp += 1
    run = make_run(board.stop(stamp))
    cut = rows_of(run)[begins[100] + 2][0]
    trim(run, tmp_path / "before", Selection(from_ps=cut))
    framed_events(run)
    trim(run, tmp_path / "after", Selection(from_ps=cut))
    whole = [tuple(row.values()) for row in run.sql("from framed").to_arrow_table().to_pylist()]
    part = open_run(tmp_path / "before")
    framed_events(part)
    wrong = [row for row in part.sql("from framed where not aborted").to_arrow_table().to_pylist()
             if tuple(row.values()) not in whole]
    assert wrong == []
    quiet = make_run(FakeBoard(1).start().stop(stamp), name="quiet")
    both = merge([quiet.path, part.path], tmp_path / "both", {part.path: 0})
    framed_events(both)
    assert both.sql("select * exclude node from framed").to_arrow_table().to_pylist() == \
        part.sql("select * exclude node from framed").to_arrow_table().to_pylist()
    kept = [tuple(row.values()) for row in open_run(tmp_path / "after").sql("from framed").to_arrow_table().to_pylist()]
    assert kept == [row for row in whole if row[0] >= cut]


def cut_of(run):
    """For each node, whether anything is known of it, and from when."""
    with opened_trace(run) as (trace, _):
        gone = {node for (node,) in trace.db.execute("select node from gaps where cause = 'unsure'").fetchall()}
        return [None if node in gone else own.start for node, own in enumerate(trace.nodes)]


def test_a_part_of_a_part_is_of_what_there_was(make_run, tmp_path):
    """What the first cut removed is not known, whatever the second one chooses: no verdict is about it."""
    run = make_run(random_run(FakeBoard(4), random.Random(1), 20))
    low, high = middle(run)
    trim(run, tmp_path / "one", Selection([0, 2], low, high))
    one = open_run(tmp_path / "one")
    assert cut_of(one) == [low, None, low, None]
    for name, selection, known in (("all", Selection(), [low, None, low, None]),
                                   ("more", Selection([0, 1], low - 1000, high + 1000), [low, None, None, None]),
                                   ("less", Selection(None, low + 1000, high - 1000), [low + 1000, None] * 2)):
        trim(one, tmp_path / name, selection)
        part = open_run(tmp_path / name)
        assert cut_of(part) == known
        assert rows_of(part) == [row for row in rows_of(one) if known[row[1]] is not None
                                 and known[row[1]] <= row[0] < (selection.to_ps or high)]
        assert part.info.configuration["trimmed"]["to_ps"] == min(high, selection.to_ps or high)
    with pytest.raises(HypermonError, match=r"one: it was trimmed to nodes 0, 2; none of those was chosen"):
        trim(one, tmp_path / "none", Selection([1, 3]))
    assert not (tmp_path / "none").exists()


def test_parts_in_a_run_of_several_boards(make_run, tmp_path):
    """Each board's cut counts for its own nodes and times, whichever board is the first."""
    runs = [make_run(random_run(FakeBoard(nodes), random.Random(nodes), 20), name=f"run{nodes}") for nodes in (2, 3)]
    low, _ = middle(runs[1])
    trim(runs[1], tmp_path / "part", Selection([0, 2], low))
    part, later = open_run(tmp_path / "part"), 5_000_000_000
    before = cut_of(merge([runs[0].path, part.path], tmp_path / "first", {part.path: later}))
    assert before == [-60_000, -60_000, low + later, None, low + later]
    after = cut_of(merge([part.path, runs[0].path], tmp_path / "second", {runs[0].path: later}))
    assert after == [low, None, low, later - 60_000, later - 60_000]
    again = tmp_path / "again"
    trim(open_run(tmp_path / "first"), again, Selection([1, 2, 3], low + 1000))
    assert cut_of(open_run(again)) == [None, low + 1000, low + later, None, None]


# --------------------------------------------------------------------------------- exports of a part


def test_every_export_of_a_part(losing_run, tmp_path, capsys):
    """The same as of an excerpt of the same times."""
    low, high = middle(losing_run)
    times = ["--from-ms", str(low / 1e9), "--to-ms", str(high / 1e9)]
    framed_events(losing_run)
    trim(losing_run, tmp_path / "part", Selection(None, low, high))

    def text(path, *arguments) -> bytes:
        out = tmp_path / "out"
        assert cli._run(["export", str(path), *arguments, str(out)]) == 0
        return out.read_bytes()

    for form in ("csv", "events", "vcd"):
        assert text(losing_run.path, "--to", form, *times) == text(tmp_path / "part", "--to", form)
    frames = text(losing_run.path, "--to", "frames", *times)
    whole = text(losing_run.path, "--to", "frames")
    stamps = [losing_run.info.scale.start_ps(int.from_bytes(whole[at + 12:at + 16], "little"))
              for at in range(0, len(whole), 16)]
    assert frames == b"".join(whole[16 * k:16 * k + 16] for k, time in enumerate(stamps) if low <= time < high)


def slices(path: Path):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace, names, tracks, found = Trace(), {}, {}, []
    trace.ParseFromString(path.read_bytes())
    for packet in trace.packet:
        names |= {entry.iid: entry.name for entry in packet.interned_data.event_names}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        if packet.HasField("track_event") and packet.track_event.type in (1, 3):
            event = packet.track_event
            found.append((packet.timestamp, tracks[event.track_uuid], event.name or names[event.name_iid],
                          len(event.flow_ids) + len(event.terminating_flow_ids)))
    return tracks, found


BOOK = """
[begin]
id = 1
begin = "work"
[end]
id = 2
end = "work"
[send]
id = 3
send = "message"
peer = "to"
fields = { to = "u8" }
[receive]
id = 4
receive = "message"
peer = "from"
fields = { from = "u8" }
"""


def test_spans_that_overlap_are_drawn_whole(told, tmp_path):
    ns = 1000
    run = told([(100 * ns, 0, 1, b"", False), (200 * ns, 1, 3, b"\x00", False), (250 * ns, 0, 4, b"\x01", False),
                (300 * ns, 0, 2, b"", False), (400 * ns, 0, 1, b"", False), (450 * ns, 0, 2, b"", False),
                (500 * ns, 1, 3, b"\x00", False), (550 * ns, 0, 4, b"\x01", False)])
    (tmp_path / "own.toml").write_text(BOOK)
    out = tmp_path / "x.pf"

    def drawn(*options):
        assert cli._run(["decode", str(run.path), "--dictionary", str(tmp_path / "own.toml")]) == 0
        assert cli._run(["export", str(run.path), "--to", "perfetto", *options, str(out)]) == 0
        tracks, found = slices(out)
        return tracks, [row for row in found if row[2] != "recording"]

    _, found = drawn("--from-ms", "0.00022", "--to-ms", "0.00046")
    assert found == [(100, "node 0", "work", 0), (400, "node 0", "work", 0), (250, "node 0", "receive", 0)]
    _, found = drawn("--from-ms", "0.00046")
    assert found == [(550, "node 0", "receive", 1), (500, "node 1", "send", 1)]
    tracks, found = drawn("--nodes", "1")
    assert [row[0] for row in found] == [200, 500]
    assert "node 0" not in tracks.values()


def test_a_report_of_a_part(losing_run, tmp_path):
    low, high = middle(losing_run)
    out = tmp_path / "part.html"
    assert cli._run(["report", str(losing_run.path), "-o", str(out), "--from-ms", str(low / 1e9), "--to-ms",
                     str(high / 1e9), "--nodes", "3"]) == 0
    events, _ = chosen(losing_run, Selection([3], low, high))
    assert f"<td>items</td><td>{len(events):,}</td>" in out.read_text()


# ----------------------------------------------------------------------------------- runs of several boards


FIRST, SECOND = WallClock(10**18, 5.0, 100), WallClock(10**18 + 7_000_000, 30.0, 200)


@pytest.fixture
def apart(make_run):
    """Two runs of boards that were recorded separately, with their clocks."""
    def make(first=FIRST, second=SECOND, **more):
        made = [random_run(FakeBoard(nodes), random.Random(nodes), 20, losses=0.5) for nodes in (3, 2)]
        runs = []
        for number, (board, clock) in enumerate(zip(made, (first, second), strict=True)):
            run = make_run(board, name=f"run{number}", board=f"uart:{number}", **more)
            save_clock(run.path, clock)
            values = json.loads((run.path / "recording.json").read_text())
            values["end"].pop("clock", None)
            values.pop("check")
            (run.path / "recording.json").write_text(json.dumps(values))
            runs.append(Run(run.path))
        return made, runs
    return make


def test_merged_by_clock(apart, tmp_path, capsys):
    made, runs = apart()
    out = tmp_path / "both"
    assert cli._run(["merge", *(str(run.path) for run in runs), "-o", str(out)]) == 0
    assert "of 2 boards" in capsys.readouterr().out
    both = Run(out)
    own = both.stats()["boards"][1]
    assert (own["how"], own["uncertainty_ns"], own["first_node"]) == ("host clock", 301, 3)
    assert own["offset_ps"] == pytest.approx(7_000_000_000, rel=1e-4)

    def moved(time):
        eighth = 1250       # of a clock
        return (time + round(time * own["drift_ppm"] * 1e-6) + eighth // 2) // eighth * eighth + own["offset_ps"]

    expected = made[0].events() + [(moved(time), node + 3, nibble) for time, node, nibble in made[1].events()]
    assert rows_of(both) == sorted(expected, key=lambda row: row[:2])
    assert both.stats()["lost"] == sum(run.stats()["lost"] for run in runs)
    assert cli._run(["stats", str(out)]) == 0
    # And a part of it.
    low, high = middle(both)
    trim(both, tmp_path / "part", Selection([0, 3, 4], low, high))
    assert (rows_of(Run(tmp_path / "part")), Run(tmp_path / "part").loss().to_pylist()) == \
        chosen(both, Selection([0, 3, 4], low, high))


def test_merged_by_a_known_offset(apart, tmp_path):
    made, runs = apart(WallClock(10**18), WallClock(5 * 10**17))
    out = tmp_path / "both"
    assert cli._run(["merge", *(str(run.path) for run in runs), "-o", str(out), "--offset",
                     f"{runs[1].path}=-0.25"]) == 0
    own = Run(out).stats()["boards"][1]
    drifted = -(-100 * (runs[1].info.scale.span_ps(0, runs[1].decode()["last_time"])[1]) // 10**9)   # 100 ppm
    assert drifted > 0
    assert (own["how"], own["offset_ps"], own["uncertainty_ns"]) == ("stated", -250_000_000, drifted)
    expected = made[0].events() + [(time - 250_000_000, node + 3, nibble) for time, node, nibble in made[1].events()]
    assert rows_of(Run(out)) == sorted(expected, key=lambda row: row[:2])
    assert runs[1].clock.utc_ns == 5 * 10**17, "the source is as it was"


@pytest.mark.parametrize(("first", "utc"), [
    (WallClock(10**18), "time 0 was about 2001-09-09T01:46:40.000000000 UTC (not measured)"),
    (FIRST, "time 0 was 2001-09-09T01:46:40.000000000 UTC, to 0.1 us by the host's clock")])
@pytest.mark.parametrize(("given", "printed"), [("12.5", "+12.5"), ("-0.000003", "-0.000003"), ("7000", "+7,000"),
                                                ("100.000001", "+100.000001")])
def test_an_offset_that_was_stated_is_no_measurement(apart, tmp_path, run_cli, first, utc, given, printed):
    """Neither the offset nor UTC is said to be measured, nor how exactly; also of a part, and of the board alone."""
    _, runs = apart(first, WallClock(5 * 10**17, 30.0, 200))
    out, part = tmp_path / "both", tmp_path / "part"
    assert run_cli("merge", *(run.path for run in runs), "-o", out, "--offset", f"{runs[1].path}={given}")[0] == 0
    assert run_cli("trim", out, part, "--nodes", "0,3")[0] == 0
    for run in (out, part):
        said = " ".join(run_cli("stats", run)[1].split())
        assert re.search(re.escape(f"uart:1: nodes 3 to 4, by the offset that was stated: {printed} ms; since then, ")
                         + r"clocks drift by up to [0-9.]+ us clock " + re.escape(utc), said)
    said = " ".join(run_cli("stats", out / "board-1")[1].split())
    assert re.search("time 0 was [-0-9T:.]+ UTC by the clock of another recording, as an offset stated", said)
    assert Run(out).stats()["boards"][1]["offset_ps"] == round(float(given) * 10**9)
    # The first recording is copied as it is.
    assert Run(out / "board-0").clock == runs[0].clock == first


def test_an_offset_is_from_the_recording_of_which_it_was_stated(apart, tmp_path, run_cli):
    """Merged with another recording, the board has no clock to be aligned by."""
    _, runs = apart()
    assert run_cli("merge", *(run.path for run in runs), "-o", tmp_path / "both", "--offset",
                   f"{runs[1].path}=3")[0] == 0
    stated, other = tmp_path / "both" / "board-1", runs[0].path
    for order in ((stated, other), (other, stated)):
        status, _, err = run_cli("merge", *order, "-o", tmp_path / "again")
        assert (status, len(err)) == (2, 1)
        assert err[0].startswith(f"hypermon: {stated}: it cannot be aligned")
    assert run_cli("merge", other, stated, "-o", tmp_path / "again", "--offset", f"{stated}=4")[0] == 0
    own = Run(tmp_path / "again").stats()["boards"][1]
    assert (own["how"], own["offset_ps"]) == ("stated", 4 * 10**9)


@pytest.mark.parametrize(("change", "options", "said"), [
    ({"second": WallClock(10**18)}, [], "never compared with the computer's clock"),
    ({"first": WallClock(10**18)}, [], "never compared with the computer's clock"),
    ({"second": WallClock(10**9, 0.0, 5)}, [], "they are not of one run"),
    ({"configuration": {"follow": True}}, [], "is that of another board, by wire"),
    ({}, ["--offset", "nix=3"], "expected RUN=MS"),
    ({}, ["--offset", "{1}=x"], "expected RUN=MS"),
    ({}, ["--offset", "{1}=0.0000011"], "1,100 ps is no whole number of nanoseconds"),
    ({}, ["--offset", "{1}=-1e-9"], "-1 ps is no whole number of nanoseconds"),
    ({}, ["--offset", "{1}=3", "--offset", "{1}=4"], "is given twice"),
    ({}, ["--offset", "{0}=3"], "the time of the first recording is the time of all"),
    ({"end": False}, [], "it has no end"),
])
def test_what_cannot_be_merged(apart, tmp_path, capsys, change, options, said):
    if change == {"end": False}:
        _, runs = apart()
        values = json.loads((runs[1].path / "recording.json").read_text())
        (runs[1].path / "recording.json").write_text(json.dumps(values | {"end": None}))
    else:
        _, runs = apart(**change)
    out = tmp_path / "both"
    paths = [str(run.path) for run in runs]
    assert cli._run(["merge", *paths, "-o", str(out), *(option.format(*paths) for option in options)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run0", "run1"]


def test_a_recording_and_its_copy_are_not_merged(apart, tmp_path):
    """By a link, or by a copy under another name, its items would be there twice."""
    _, (run, _) = apart()
    (tmp_path / "link").symlink_to(run.path)
    shutil.copytree(run.path, tmp_path / "copy")
    for other in ("link", "copy"):
        with pytest.raises(HypermonError, match=f"run0 and .*/{other} are the same recording"):
            merge([run.path, tmp_path / other], tmp_path / "both")
        assert not (tmp_path / "both").exists()


@pytest.mark.parametrize("times", [(None, -10**9), (10**18, None), (-5 * 10**9, -1)])
def test_times_that_the_run_does_not_have(losing_run, tmp_path, times):
    with pytest.raises(HypermonError, match=r"lasts from 0 to .* ms; none of that was chosen"):
        trim(losing_run, tmp_path / "part", Selection(None, *times))
    assert not (tmp_path / "part").exists()
