"""States, messages and counters: against the same done by hand."""

import json
import random
import re
from itertools import product
from pathlib import Path

import duckdb
import pytest
from hypermon.host import cli
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.run_dictionary import FRAMED, keep_dictionary, name_files
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.export.brackets import Span
from hypermon.host.run import Run

from tests.host.pairing import Edge, pair
from tests.host.telling import BOOK, made_up


def test_states_and_counters(told) -> None:
    rows = made_up(random.Random(1), 3000)
    run = told(rows, [(1, 9, 10, 11), (1, 9, 2000, 2001), (2, 5, 700, 701), (2, 5, 690, 705), (3, 1, 900, 960)])
    named = {number: row for number, row in enumerate(rows) if row[2] < 99 and not row[4]}
    lost, through = run.loss().to_pylist(), 0
    wanted = set()
    for node, (name, kinds) in product(range(4), {"it's a job": (1, 2), "phase": (3,)}.items()):
        edges = [Edge(number, time, name if kind != 1 else None, name if kind != 2 else None,
                      payload[0] if payload else None)
                 for number, (time, own, kind, payload, _) in named.items() if own == node and kind in kinds]
        gaps = [(row["from_ps"], row["to_ps"]) for row in lost if row["node"] == node]
        # An event that was cut short may have been of any key.
        gaps += [(time, time + 1) for time, own, kind, _, aborted in rows if aborted and own == node and kind in kinds]
        spans = pair(edges, gaps)[0]
        through += sum(span.last is not None for span in pair(edges)[0]) - sum(span.last is not None for span in spans)
        for span in spans:
            key = str(named[span.first][3][0]) if named[span.first][3] else None
            seen = span.last is not None
            wanted.add((node, span.name, key, span.begin, span.end if seen else None, None if seen else span.end,
                        span.first, span.last))
    found = [tuple(row.values()) for row in run.states().to_pylist()]
    assert len(found) == len(wanted) > 500
    assert set(found) == wanted
    assert through > 3
    counted = [(time, node, "end", name, value, number) for number, (time, node, kind, payload, _) in named.items()
               if kind == 2 for name, value in (("job", payload[0]),
                                                ("load", int.from_bytes(payload[1:], "little", signed=True)))]
    assert [tuple(row.values()) for row in run.counters().to_pylist()] == counted


def test_messages(told, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(*row, aborted and at > 2000) for at, (*row, aborted) in enumerate(made_up(random.Random(2), 3000))]
    run = told(rows)
    named = {number: row for number, row in enumerate(rows) if row[2] < 99 and not row[4]}
    sent: dict = {}
    received: dict = {}
    for number, (time, node, kind, payload, _) in named.items():
        if kind in (4, 5):
            what = "border", str(payload[1]), (node, payload[0]) if kind == 4 else (payload[0], node)
        elif kind in (6, 7):
            what = "cast", str(payload[0]), None
        if kind in (4, 5, 6, 7):
            (sent if kind in (4, 6) else received).setdefault(what, []).append((time, number, node))
    # An event that was cut short is lost.
    cut = {node: [time for time, own, kind, _, aborted in rows if own == node and aborted and 4 <= kind <= 7]
           for node in range(4)}
    wanted = set()
    for what in {*sent, *received}:
        ours, theirs = sent.get(what, []), received.get(what, [])
        for nth in range(max(len(ours), len(theirs))):
            a = ours[nth] if nth < len(ours) else (None, None, None)
            b = theirs[nth] if nth < len(theirs) else (None, None, None)
            ends = what[2] or (a[2], b[2])
            latency = b[0] - a[0] if a[0] is not None and b[0] is not None else None
            lost = doubt(cut, a[0], b[0], *ends, max(len(ours), len(theirs)) > 1,
                         what[2] is not None) if latency is not None else None
            wanted.add((*what[:2], *ends, a[0], b[0], latency, lost, a[1], b[1]))
    found = [tuple(row.values()) for row in run.messages().to_pylist()]
    assert len(found) == len(wanted) > 500
    assert set(found) == wanted
    known = [row[6] for row in wanted if row[6] is not None and row[7] is None]
    uncertain = sum(row[7] is not None for row in wanted)
    backwards = sum(latency < 0 for latency in known)
    assert min(backwards, uncertain) > 10
    assert cli._run(["check", str(run.path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "messages": len(wanted), "matched": sum(row[6] is not None for row in wanted),
        "sent_only": sum(row[5] is None for row in wanted), "received_only": sum(row[4] is None for row in wanted),
        "backwards": backwards, "beyond": backwards, "least_ps": min(known),
        "uncertain": uncertain}


def doubt(cut: dict[int, list[int]], sent: int, received: int, sender: int, receiver: int, several: bool,
          peer: bool) -> int | None:
    """The first loss that leaves a match open, of messages whose keys occur again."""
    if not peer:
        return min((time for own in cut.values() for time in own if time < max(sent, received)), default=None)
    first = [min(cut[node], default=None) for node in (sender, receiver)]
    if several:
        return min((at for at, until in zip(first, (sent, received), strict=True) if at is not None and at < until),
                   default=None)
    if None in first or not (max(first) < received or (first[0] < sent and max(cut[receiver]) > received)):
        return None
    return min(first)


def test_a_match_after_a_loss_is_uncertain(told, capsys: pytest.CaptureFixture[str]) -> None:
    """A message that is like no other is matched; of those that are like others, one may be lost."""
    ours, theirs = bytes([1, 7]), bytes([0, 7])
    rows = [(1, 0, 4, ours, False), (2, 1, 5, theirs, False),
            # Node 1 loses something at 3 to 5, node 2 at 30 to 40: either one of these may be received in there.
            (4, 0, 4, ours, False), (6, 0, 4, ours, False), (8, 1, 5, theirs, False), (9, 1, 5, theirs, False),
            (10, 1, 4, bytes([0, 9]), False), (11, 0, 5, bytes([1, 9]), False),
            # The sender loses something only after it has sent: that changes nothing.
            (20, 2, 4, bytes([3, 1]), False), (21, 3, 5, bytes([2, 1]), False), (22, 2, 4, bytes([3, 1]), False),
            # Of no known sender: any node's loss counts.
            (23, 2, 6, b"\x05\0", False), (24, 3, 7, b"\x05\0", False), (25, 2, 6, b"\x05\0", False)]
    window = 800_000
    run = told([(time * window, *row) for time, *row in rows], [(1, 1, 3, 5), (2, 3, 30, 40)])
    found = {row["send_row"]: row for row in run.messages().to_pylist() if row["latency_ps"] is not None}
    [first] = [row["from_ps"] for row in run.loss().to_pylist() if row["node"] == 1]
    assert {row: kept["lost_ps"] for row, kept in found.items()} == {
        0: None, 2: first, 3: first, 6: None, 8: None, 11: first}
    assert cli._run(["check", str(run.path), "--json"]) == 4
    assert json.loads(capsys.readouterr().out) == {
        "messages": 8, "matched": 6, "sent_only": 2, "received_only": 0, "backwards": 0, "beyond": 0,
        "least_ps": window, "uncertain": 3}
    assert cli._run(["check", str(run.path)]) == 4
    assert "after losses 3 may be matched wrongly, which leaves them undecided" in capsys.readouterr().out


@pytest.mark.parametrize(("narrow", "twice", "losses", "uncertain"), [
    (True, False, [(0, 1, 20, 30), (1, 1, 20, 30)], True), (True, False, [(0, 1, 20, 30)], False),
    (True, False, [(1, 1, 20, 30)], False), (True, False, [(0, 1, 20, 30), (1, 1, 60, 70)], False),
    (True, False, [(0, 1, 2, 3), (1, 1, 60, 70)], True), (True, False, [(0, 1, 20, 30), (2, 1, 20, 30)], False),
    (False, False, [(0, 1, 20, 30), (1, 1, 20, 30)], False), (False, True, [(0, 1, 20, 30), (1, 1, 20, 30)], True)])
def test_a_key_that_comes_again(told, narrow, twice, losses, uncertain) -> None:
    """The message is sent at 10 and one like it received at 50: it is another's if an endpoint of each is lost."""
    book = BOOK if narrow else BOOK.replace('sequence = "u8"', 'sequence = "u16"')
    key = bytes([7] if narrow else [7, 0])
    other = bytes([8] if narrow else [8, 0])
    rows = [(10, 0, 4, b"\1" + key, False), (50, 1, 5, b"\0" + key, False),
            *((at, 0, 4, b"\1" + other, False) for at in (80, 90) if twice)]
    window = 800_000
    run = told([(time * window, *row) for time, *row in rows], losses, book=book)
    [found] = [row for row in run.messages().to_pylist() if row["latency_ps"] is not None]
    assert (found["lost_ps"] is not None) == uncertain
    assert found["lost_ps"] in (None, min(row["from_ps"] for row in run.loss().to_pylist()))


@pytest.mark.parametrize(("node", "event", "end"), [
    (0, 2, False), (0, None, False), (1, 2, True), (0, 4, True), (0, 99, True)])
def test_an_event_that_was_cut_short_is_lost(told, node, event, end) -> None:
    """An end, or what it was is not known: the state is known to last until there, not until the loss that cut it."""
    window = 800_000
    run = told([(time * window, *row) for time, *row in [
        (10, 0, 1, b"\5", False), (20, node, event, b"", True), (40, 0, 2, b"\5\0\0", False)]],
        [(0, 1, 21, 30)] if not end else [])
    [found] = run.states().to_pylist()
    assert (found["end_ps"], found["lost_ps"]) == ((40 * window, None) if end else (None, 20 * window))


def test_a_right_run(told, capsys: pytest.CaptureFixture[str]) -> None:
    run = told([(1000, 0, 4, b"\x01\x07", False), (1000, 1, 5, b"\x00\x07", False)])
    assert cli._run(["check", str(run.path)]) == 0
    assert "1 messages, 1 sent and received, 0 sent only, 0 received only; 0 received before" in capsys.readouterr().out


@pytest.mark.parametrize(("rows", "messages"), [([], 0), ([(1000, 0, 4, b"\x01\x07", False)], 1)])
def test_nothing_to_check_is_no_pass(told, capsys: pytest.CaptureFixture[str], rows, messages) -> None:
    """Without a message that was seen both sent and received nothing has been compared."""
    run = told(rows)
    assert cli._run(["check", str(run.path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"nothing to check: by its dictionary it has {messages} messages, and none was seen both sent and" in err


def test_made_once(told, tmp_path: Path) -> None:
    run = told(made_up(random.Random(3), 100))
    run.states()
    times = {name: (run.path / f"{name}.parquet").stat().st_mtime_ns for name in ("states", "messages", "counters")}
    assert run.messages().num_rows
    assert times == {name: (run.path / f"{name}.parquet").stat().st_mtime_ns for name in times}
    (tmp_path / "other.toml").write_text("[begin]\nid = 1\nfields = { job = 'u8' }\n")
    keep_dictionary(run, tmp_path / "other.toml")
    name_files(run.path, [FRAMED], load_dictionary(tmp_path / "other.toml"))
    assert run.states().num_rows == run.messages().num_rows == run.counters().num_rows == 0
    assert not list(run.path.glob(".hypermon-*"))


def test_without_a_dictionary(mixed_run: Run) -> None:
    assert mixed_run.states().num_rows == 0
    assert mixed_run.messages().column_names[:4] == ["name", "key", "sender", "receiver"]
    assert sorted(path.name for path in mixed_run.path.glob("*.parquet")) == ["loss.parquet"]


def test_pairs() -> None:
    spans, idle = pair([
        Edge(0, 10, None, "a"), Edge(1, 20, None, "a"), Edge(2, 30, "a", None),
        Edge(3, 40, "a", "b"), Edge(4, 50, "a", None), Edge(5, 60, None, "call", 1), Edge(6, 70, None, "call", 2),
        Edge(7, 80, "call", None, 1), Edge(8, 90, "call", None, 3)])
    assert sorted(spans, key=lambda s: s.begin) == [
        Span("a", 10, 40, 0, 3), Span("a", 20, 30, 1, 2), Span("b", 40, None, 3), Span("call", 60, 80, 5, 7),
        Span("call", 70, None, 6)]
    assert idle == [4, 8]


def test_a_span_ends_at_a_loss() -> None:
    edges = [Edge(0, 10, None, "a"), Edge(1, 20, None, "b"), Edge(2, 30, "b", None), Edge(3, 40, None, "c"),
             Edge(4, 50, "a", None), Edge(5, 60, None, "d")]
    spans, _ = pair(edges, [(34, 50), (31, 35), (5, 10)])
    assert sorted(spans, key=lambda s: s.begin) == [
        Span("a", 10, 31, 0), Span("b", 20, 30, 1, 2), Span("c", 40, 40, 3), Span("d", 60, None, 5)]


def test_until_when_a_state_is_known():
    """To its end, or to the loss that may hide it, or to the end of the run."""
    rows = "(values (1, 9, null), (2, null, 7), (3, null, null)) s(number, end_ps, lost_ps)"

    def told(expression: str, *given: int) -> list[int | None]:
        return [row[0] for row in duckdb.execute(f"select {expression} from {rows} order by number", given).fetchall()]

    assert told(known_until("20")) == told(known_until("?", "s."), 20) == [9, 7, 20]
    assert told(known_until()) == [9, 7, None]


def test_it_is_said_in_one_place():
    """No other file of the host has the expression."""
    host = Path(__file__).parents[3] / "host"
    said = re.compile(r"(?<!pc\.)coalesce\([^)]*end_ps[^)]*lost_ps")
    assert [path.relative_to(host).as_posix() for path in host.rglob("*.py")
            if said.search(path.read_text())] == ["dictionary/semantics.py"]
