"""Small parts at their bounds: what a relay lets through, what is on the disk before it is named, counts, reports."""

import io
import json
import os
import random
import socket

import pytest
from hypermon.hdl.layout import LATENCY, Window
from hypermon.host.analysis.stats import quantity
from hypermon.host.blocks.times import TimeScale
from hypermon.host.diagnose.counting import print_reduction
from hypermon.host.diagnose.reduction import Reduction
from hypermon.host.diagnose.selftest import _numbers
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.link.relay import Op, _at, listen
from hypermon.host.recording import segments
from hypermon.host.report.figures import Figures
from hypermon.host.report.report import report_html
from hypermon.host.run import open_run
from rich.console import Console

from tests.host.fake_board import FakeBoard, FakeLink, random_run

# ------------------------------------------------------------------------------------ relay


class Registers(FakeLink):
    """Notes which registers are asked for."""

    def read(self, address):
        return address

    def read_burst(self, address, words):
        return bytes(4 * words)


@pytest.mark.parametrize(("op", "address", "value", "legal"), [
    (Op.READ, 0, 0, True), (Op.READ, 0xfffc, 0, True), (Op.READ, 0x10000, 0, False), (Op.READ, 2, 0, False),
    (Op.READ, 4, 99, True), (Op.READ_BURST, 0xfff8, 2, True), (Op.READ_BURST, 0xfff8, 3, False),
    (Op.READ_BURST, 0, 0, False), (Op.READ_BURST, 0, 1 << 14, True), (Op.READ_BURST, 4, 1 << 14, False),
    (99, 0, 0, False)])
def test_registers_that_a_relay_reads(op, address, value, legal):
    link = Registers(FakeBoard().start().stop())
    if legal:
        found = _at(link, op, address, value)
        assert len(found) == (4 if op == Op.READ else 4 * value)
    else:
        with pytest.raises(ValueError, match=r"there are no|no request"):
            _at(link, op, address, value)


def test_a_port_that_is_taken(losing_run, run_cli):
    """One line names the port and what to do; the same of every server."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words in (["relay", "-b", "sim:"], ["serve", "-b", losing_run.path]):
            assert run_cli(*words, "--port", port) == (2, "", [
                f"hypermon: --port {port}: it is in use by another program on 127.0.0.1; end that, or choose another "
                "port (0: any free one)"])
    with pytest.raises(HypermonError, match="--host"):
        listen("no such\0host", 0)


@pytest.mark.parametrize("command", ["relay", "serve"])
@pytest.mark.parametrize(("host", "reason"), [
    ("192.0.2.1", "it is not an address of this computer"), ("a..b", "it is not an address")])
def test_a_host_that_is_elsewhere(losing_run, run_cli, command, host, reason):
    found = run_cli(command, "-b", losing_run.path, "--host", host, "--token", "0123456789abcdef")
    assert found == (2, "", [f"hypermon: --host {host}: {reason}"])


# ------------------------------------------------------------------------------------ files


def test_all_of_a_file_is_safe_before_it_has_its_name(tmp_path, monkeypatch):
    sizes = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (sizes.append(os.fstat(number).st_size), real(number)))
    segments.write_json(tmp_path / "told.json", {"a": list(range(100))})
    assert sizes[0] == (tmp_path / "told.json").stat().st_size


def test_which_events_are_asked_for(make_run):
    run = make_run(random_run(FakeBoard(3), random.Random(1), 5))
    rows = run.events().to_pylist()
    for node in range(3):
        assert run.events(nodes=[node]).to_pylist() == [row for row in rows if row["node"] == node]
    for node in (-1, 3):
        with pytest.raises(InputError, match=f"there is no node {node}, but 0 to 2"):
            run.events(nodes=[node])
    time = rows[0]["time_ps"]
    assert run.events(from_ps=time, to_ps=time).num_rows == 0
    with pytest.raises(InputError):
        run.events(from_ps=time, to_ps=time - 1)


def test_cut_short_before_any_events_were_kept(make_run):
    """Its account names no table of events."""
    from hypermon.host.device.device import Device, Settings
    from hypermon.host.record.recorder import record
    from hypermon.host.text.json_file import sealed

    path = make_run(FakeBoard().start().stop(9)).path.with_name("kept")
    record(Device(FakeLink(FakeBoard().start().frames([(1, {0: 1})]).stop(9))), path, Settings(), keep="events")
    account = json.loads((path / "decode.json").read_text())
    account["parts"] = {name: part for name, part in account["parts"].items() if not name.startswith("events/")}
    (path / "decode.json").write_text(json.dumps(sealed({k: v for k, v in account.items() if k != "check"})))
    with pytest.raises(InputError, match="it ended before any items were kept"):
        open_run(path).events()


# ------------------------------------------------------------------------------------ counts


def test_numbers_as_people_write_them():
    assert _numbers([7, 0, 1, 3, 2]) == "0-3, 7"
    assert (_numbers([]), _numbers([5]), _numbers([4, 6, 8]), _numbers([1, 2])) == ("", "5", "4, 6, 8", "1-2")


def test_a_reduction_for_people():
    """Bars are 40 long at most, and the smallest of them can be seen."""
    gaps = [[0] * 64, [0] * 64]
    gaps[0][2:5], gaps[1][4] = [1, 0, 100], 300
    counted = Reduction(
        windows=100_000, scale=TimeScale(100_000_000, Window.CLOCK, LATENCY), accepted=[102, 301], lost=[0, 7],
        gaps=gaps, shared=[0, 403, 0], node_high=[3, 4], vector_high=5, store_high=6)
    assert (counted.window_ps, counted.stamp_ps, counted.seconds) == (10_000, 10_000, 1e-3)
    out = io.StringIO()
    print_reduction("board", counted, Console(file=out, width=120))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["40", "ns", "to", "80", "ns", "1", "#"] in lines
    assert ["80", "ns", "to", "160", "ns", "0"] in lines
    assert ["160", "ns", "to", "320", "ns", "400", "#" * 40] in lines
    assert not any(line[:1] in (["20"], ["320"]) for line in lines)
    assert ["highest", "level", "5", "strobe", "vectors,", "96", "bytes", "of", "codes"] in lines
    assert ["1", "301", "301", "k", "7", "4"] in lines
    assert ["duration", "1", "ms"] in lines


# ------------------------------------------------------------------------------------ reports


def test_the_busiest_moment_has_its_events(make_run, monkeypatch):
    """Those of its millisecond, at their times."""
    pytest.importorskip("matplotlib")
    board = FakeBoard(window=Window.NS800).start()
    board.frames([(1000 * k, {0: 1}) for k in range(1, 20)])                  # one each 0.8 ms
    board.frames([(20_000 + 40 * k, {k % 16: 1}) for k in range(25)]).stop(30_000)    # 25 in 0.8 ms
    run, drawn = make_run(board), []
    monkeypatch.setattr(Figures, "moment", lambda self, *values: (drawn.append(values), "<svg/>")[1])
    text = report_html(run)
    (times, node, _, (begin, end), _), = drawn
    assert (begin, end) == (16 * 10**9, 17 * 10**9)
    wanted = [row for row in run.events().to_pylist() if begin <= row["time_ps"] < end]
    assert [*zip(times.tolist(), node.tolist(), strict=True)] == [(row["time_ps"], row["node"]) for row in wanted]
    assert len(wanted) >= 24
    figures = run.stats()
    rate = figures["events"] / (figures["duration_ps"] / 1e12)
    assert f"<td>items per second</td><td>{quantity(rate, '/s')}</td>" in text


def test_nothing_was_lost_or_nothing_is_known(make_run):
    pytest.importorskip("matplotlib")
    board = FakeBoard().start().frames([(k, {0: 1}) for k in range(1, 200)]).stop(30_000)
    whole = report_html(make_run(board))
    cut = report_html(make_run(board, data=board.data[:-20], name="cut", end=False))
    assert ("<p>Nothing.</p>" in whole, "<p>Nothing.</p>" in cut) == (True, False)
    assert ("the run is not complete" in whole, "the run is not complete" in cut) == (False, True)
