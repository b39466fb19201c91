"""Small parts of exports and of looks at a board, at their bounds, without other programs."""

import io
import random
import time
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypermon.hdl.layout import EmulatorPattern, Sink, Window
from hypermon.host import cli
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.analysis.stats import duration_text, quantity
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose import selftest
from hypermon.host.diagnose.wirecheck import _round
from hypermon.host.export import srzip
from hypermon.host.export.vcd import write_vcd
from hypermon.host.record.ask import ask

from tests.host.fake_board import FakeBoard, FakeLink


def batch(*rows):
    times, nibbles = zip(*rows, strict=True) if rows else ((), ())
    return pa.record_batch({"time_ps": pa.array(times, pa.int64()), "node": pa.array([0] * len(rows), pa.int16()),
                            "nibble": pa.array(nibbles, pa.uint8())})


def dump(*batches, lost=(), duration_ps=0):
    """Times of a dump, and what follows each."""
    file = io.BytesIO()
    write_vcd(file, batches, [list(lost)], columns=["time_ps", "node", "nibble"], names=["a"], duration_ps=duration_ps)
    _, _, text = file.getvalue().decode().partition("$dumpvars")
    text = text.partition("$end\n")[2]
    found: list[tuple[int, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("#"):
            found.append((int(line[1:]), []))
        elif not found:
            found.append((0, [line]))
        else:
            found[-1][1].append(line)
    return [(at, "".join(lines).count("b")) for at, lines in found]


def test_a_dump_of_single_events():
    """Batches may be empty or have one row; times before 0 are shown at 0."""
    assert dump(batch(), batch((5, 1)), batch(), batch((7, 2), (9, 3))) == [(5, 1), (7, 1), (9, 1)]
    assert dump(batch((-3, 1)), batch((4, 2))) == [(0, 1), (4, 1)]
    assert dump(batch((0, 1))) == [(0, 1)]
    assert dump(duration_ps=50) == [(50, 0)]
    assert dump(batch((3, 1)), lost=[LossSpan(2, 3, 8)], duration_ps=8)[-1][0] == 8


@pytest.mark.parametrize("piece", [10, 64, 1 << 18])
def test_losses_in_a_session(make_run, tmp_path, monkeypatch, piece):
    """The line is high over all of each loss, wherever the file is cut."""
    rng = random.Random(4)
    board = FakeBoard(nodes=2, window=Window.CLOCK).start()
    board.frames([(at, {rng.randrange(2): 1}) for at in range(20, 1000, 7)])
    board.loss([(0, 9, 20, 30), (1, 2, 100, 190), (0, 1, 500, 500)])
    run = make_run(board.stop(1100))
    monkeypatch.setattr(srzip, "_PIECE", piece)
    assert cli._run(["export", str(run.path), "--to", "sr", str(tmp_path / "x.sr")]) == 0
    with zipfile.ZipFile(tmp_path / "x.sr") as archive:
        names = sorted((name for name in archive.namelist() if name.startswith("logic-1-")),
                       key=lambda name: int(name.rpartition("-")[2]))
        data = np.frombuffer(b"".join(map(archive.read, names)), np.uint8).reshape(-1, 2)
    high = np.flatnonzero(data[:, 1] >> 2 & 1)
    scale = run.info.scale
    wanted = {sample for own in outages(run.loss(), 2) for outage in own for sample in range(
        2 * (scale.stamp_at(outage.from_ps) - scale.stamp_at(0)),
        2 * (scale.stamp_at(outage.to_ps) - scale.stamp_at(0)) + 1)}
    assert wanted <= set(high.tolist())
    assert len(high) - len(wanted) <= 3 * len(run.loss())
    strobes = (data[:, 0] >> 4 & 1).astype(int) + (data[:, 1] >> 1 & 1)
    assert strobes.max() == 1
    # Two samples a clock, until the end of the window in which the capture ended.
    assert len(data) == 2 * (1101 - scale.stamp_at(0) + 1)


@pytest.mark.parametrize(("ps", "text"), [
    (0, "0 ps"), (999, "999 ps"), (1000, "1 ns"), (10**6 - 1, "1 us"), (999_900, "999.9 ns"), (10**6, "1 us"),
    (10**9, "1 ms"), (1_500_000_000, "1.5 ms"), (10**12, "1 s"), (123_456 * 10**12, "123,456 s")])
def test_durations(ps, text):
    assert duration_text(ps) == text


@pytest.mark.parametrize(("value", "text"), [
    (0, "0 /s"), (-1, "0 /s"), (0.5, "0.5 /s"), (999, "999 /s"), (999.4, "999 /s"), (999.7, "1 k/s"), (1000, "1 k/s"),
    (999.7e6, "1 G/s"), (1e6, "1 M/s"), (1.234e9, "1.23 G/s"), (5e12, "5 T/s"), (5e15, "5,000 T/s"),
    (1e-6, "0.000001 /s")])
def test_quantities(value, text):
    assert quantity(value, "/s") == text


def test_when_a_board_is_asked():
    """Between the two looks at the host's clock, told in its time of day."""
    link = FakeLink(FakeBoard().start().stop(5000))
    device = Device(link)
    device.prepare(Settings())
    begun = time.monotonic_ns()
    answer = ask(device, 10**18)
    ended = time.monotonic_ns()
    assert 10**18 + begun <= answer[1] <= answer[2] <= 10**18 + ended
    link.board_ps = 1
    assert ask(device, 10**18) is None


def test_rounds_of_nibbles():
    assert _round((3, 1, 2)) == (1, 2, 3)
    assert _round((2, 1, 2, 1)) == (1, 2)
    assert (_round((5,)), _round((5, 5, 5)), _round(())) == ((5,), (5,), ())
    assert _round((1, 2, 1)) == (1, 1, 2)


# ------------------------------------------------------------------------------------ self-test


@pytest.mark.parametrize(("fault", "reason"), [
    ("", "200 times all 3 nodes in one window"), ("nibble", "wrong values"),
    ("window", "1 of 200 strobes of all nodes do not share a window"), ("fewer", "597 of 600 nibbles arrived")])
def test_strobes_at_once(monkeypatch, fault, reason):
    """A board that writes a wrong value, or one strobe late, or loses a few, does not pass."""
    device = Device(FakeLink(FakeBoard(nodes=3, window=Window.CLOCK, sink=Sink.EXTENDED).start().stop()))
    window = np.repeat(np.arange(200) * 10, 3)
    node = np.tile(np.arange(3), 200)
    nibble = ((np.arange(200)[:, None] + np.arange(3)) % 16).ravel()
    if fault == "nibble":
        nibble[7] ^= 1
    elif fault == "window":
        window[7] += 1
    elif fault == "fewer":
        window, node, nibble = window[3:], node[3:], nibble[3:]
    asked = []

    def play(*arguments, **more):
        asked.append(arguments[2])
        return selftest._Played(window, node, nibble, *[None] * (len(selftest._Played._fields) - 3))

    monkeypatch.setattr(selftest, "_play", play)
    assert selftest._at_once(device, Sink.EXTENDED) == (not fault, reason)
    assert asked == [EmulatorPattern.ALL]


# ------------------------------------------------------------------------------------ firmware


def test_the_only_node_is_the_picos(monkeypatch, tmp_path, capsys):
    """It need not be named; the firmware has its items."""
    from hypermon.sim.emulate import firmware

    table, out, seen = tmp_path / "work.csv", tmp_path / "out.uf2", []
    table.write_text("time_ps,node,event,payload_hex\n1000000000,5,17,\n2000000000,5,18,6162\n")
    monkeypatch.setattr(firmware, "build_player", lambda items, **settings: (seen.append(items), b"made")[1])
    monkeypatch.setattr(firmware, "uf2", lambda made: made + b" for a Pico")
    assert cli._run(["emulate", str(table), "--uf2", str(out)]) == 0
    assert out.read_bytes() == b"made for a Pico"
    assert f"{out}: node 5, 2 items in 0.002 s" in capsys.readouterr().out
    assert [item.node for item in seen[0]] == [5, 5]
