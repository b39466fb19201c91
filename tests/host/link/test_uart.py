"""A board at a serial port: requests are executed once, loss is counted, an unplugged board is waited for."""

import grp
import json
import os
import random
import re
import threading
import time
from pathlib import Path

import pytest
from hypermon.hdl.layout import REGISTERS, BlockType, Control, UartOp
from hypermon.host.cli import main
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, LinkError, to_install
from hypermon.host.link import find_boards, open_link
from hypermon.host.link.uart import UartLink
from hypermon.host.record.recorder import CutShortError, Interrupt, Limits, record
from hypermon.host.run import open_run
from hypermon.sim.serve.line_faults import LineFaults

from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.host.uart_port import Port

serial = pytest.importorskip("serial", reason="pyserial is not installed")

TIMEOUT = 0.2


@pytest.fixture
def plugged(tmp_path):
    """Makes ports, and closes them."""
    ports = []

    def plug(board, **options):
        ports.append(Port(tmp_path / f"port{len(ports)}", board, **options))
        return ports[-1]
    yield plug
    for port in ports:
        port.close()


def made(seed=3, blocks=60):
    return random_run(FakeBoard(16), random.Random(seed), blocks, losses=0.3)


def opened(port):
    return open_link(f"uart:{port.path}?timeout={TIMEOUT}")


def rows(run):
    return [tuple(r.values()) for r in run.events().to_pylist()]


@pytest.mark.parametrize("drain", ["stream", "registers"])
def test_records(plugged, tmp_path, drain):
    board = made()
    link = opened(plugged(FakeLink(board)))
    with Device(link) as device:
        record(device, tmp_path / "run", Settings(), drain=drain, limits=Limits(events=len(board.events())))
    run = open_run(tmp_path / "run")
    assert rows(run) == board.events()
    assert run.stats()["accounted"]
    assert (run.info.board, run.info.end["outages"]) == (link.uri, [])
    assert run.info.configuration["census_ms"] == 100, "a serial line is slow"


def test_a_bad_line_costs_blocks_and_never_a_second_write(plugged, tmp_path):
    board = made(blocks=100)
    behind = FakeLink(board)
    port = plugged(behind, to_host=LineFaults(0.0005, 0.0005, 0.0002, seed=1),
                   to_board=LineFaults(0.005, 0.005, seed=2))
    writes, write = [], behind.write

    def noted(address, value):
        if address != REGISTERS["LATCH"].offset:    # the board's time is asked for now and then
            writes.append(address)
        if address == REGISTERS["CONTROL"].offset and not value & (Control.RESET | Control.ENABLE):
            port.to_host = LineFaults()    # the block that ends the run is there once
        write(address, value)
    behind.write = noted
    interrupt = Interrupt()

    def end():
        while behind.pending:
            time.sleep(0.01)
        interrupt.hit = True
    link = opened(port)
    join = meanwhile(behind, link, end)
    with Device(link) as device:
        record(device, tmp_path / "run", Settings(), interrupt=interrupt)
    join()
    run = open_run(tmp_path / "run")
    stats = run.stats()
    came, sent = rows(run), board.events()
    assert set(came) < set(sent)
    assert stats["missing_blocks"] > 0
    # Every event is there, or counted; and a lost one lies between two times that say so.
    assert len(came) + stats["causes"]["link"] == len(sent)
    lost = run.loss().to_pylist()
    for time_ps, node, _ in set(sent) - set(came):
        assert any(row["node"] == node and row["from_ps"] <= time_ps < row["to_ps"] for row in lost)
    assert writes == [address for address in writes_of(made()) if address != REGISTERS["LATCH"].offset]


def writes_of(board):
    """Addresses of the writes of a recording over a link that has no line."""
    link = FakeLink(board)
    write = link.write
    writes = []
    link.write = lambda address, value: (writes.append(address), write(address, value))
    device = Device(link)
    device.prepare(Settings())
    device.start()
    device.stop()
    return writes


def test_a_retry_gives_what_the_first_one_popped(plugged):
    """Half of all replies are lost: no word is read twice, and none is missed."""
    board = FakeLink(FakeBoard())
    words = iter(range(10_000))
    board.read_burst = lambda address, count: b"".join(next(words).to_bytes(4, "little") for _ in range(count))
    port = plugged(board)
    link = opened(port)
    port.to_host = LineFaults(lose=0.03, seed=4)
    came = b"".join(link.read_burst(0x1000, count) for count in (1, 3, 1, 1, 5, 2, 1, 8, 1, 1))
    link.close()
    assert [int.from_bytes(came[at:at + 4], "little") for at in range(0, len(came), 4)] == list(range(24))
    assert port.to_host.counts["lost"] > 5


def test_a_long_burst_is_read_in_parts(plugged):
    board = FakeLink(FakeBoard())
    board.read_burst = lambda address, count: bytes(range(4)) * count
    port = plugged(board)
    link = opened(port)
    assert link.read_burst(0x1000, 600) == bytes(range(4)) * 600
    assert [value for op, _, value in port.executed if op == UartOp.READ] == [256, 256, 88]
    link.close()


def meanwhile(behind, link, doing):
    """Does something in a thread as soon as the host takes the stream; what it raises is raised where the thread is
    joined."""
    failed, streaming, stream = [], threading.Event(), link.stream

    def watched(limit):
        if behind.control and behind.control[-1] & Control.ENABLE:
            streaming.set()
        return stream(limit)
    link.stream = watched

    def wait():
        try:
            assert streaming.wait(30)
            doing()
        except Exception as error:
            failed.append(error)
    thread = threading.Thread(target=wait)
    thread.start()

    def join():
        thread.join()
        assert failed == []
    return join


def read_on(link):
    while True:
        link.read(REGISTERS["MAGIC"].offset)


def until_gone(link):
    """Waits until the host has noticed."""
    with pytest.raises(LinkError, match="is gone; plug it in again"):
        read_on(link)


def test_unplugged_while_recording(plugged, tmp_path):
    board = made(blocks=100)
    behind = FakeLink(board, piece=300)
    behind.on_poll = lambda polls: time.sleep(0.002)    # so that much of it is still to come when the wire is pulled
    port = plugged(behind)
    link, interrupt = opened(port), Interrupt()

    def pull():
        while len(behind.pending) > sum(map(len, board.blocks)) // 2:
            time.sleep(0.001)
        port.ask(port.unplug)
        until_gone(link)
        port.ask(port.plug)
        while not link.outages or behind.pending:
            time.sleep(0.01)
        interrupt.hit = True
    join = meanwhile(behind, link, pull)
    with Device(link) as device:
        record(device, tmp_path / "run", Settings(), interrupt=interrupt)
    join()
    run = open_run(tmp_path / "run")
    stats = run.stats()
    assert run.info.end["how"] == "interrupted"
    [outage] = run.info.end["outages"]
    assert outage["since"] < outage["until"]
    assert run.decode()["stopped"]
    assert stats["missing_blocks"] > 0
    assert stats["events"] + stats["causes"]["link"] == len(board.events())


def test_another_board_is_not_the_same_run(plugged, tmp_path):
    """Switched off and on, or another one: its time is another one's."""
    behind = FakeLink(made(), endless=True, piece=10)
    port = plugged(behind)

    def swap():
        port.ask(port.unplug)
        behind.put(FRAME_POS=0)
        port.ask(port.plug)
    link = opened(port)
    join = meanwhile(behind, link, swap)
    with Device(link) as device, pytest.raises(CutShortError, match="the board was reset or switched off"):
        record(device, tmp_path / "run", Settings())
    join()
    assert open_run(tmp_path / "run").info.end["how"].startswith("the board was reset or switched off")


def test_gone_for_good(plugged, tmp_path):
    behind = FakeLink(made(), endless=True, piece=10)
    port = plugged(behind)
    link, interrupt = opened(port), Interrupt()

    def pull():
        port.ask(port.unplug)
        until_gone(link)
        interrupt.hit = True
    join = meanwhile(behind, link, pull)
    with Device(link) as device, pytest.raises(CutShortError, match="is gone"):
        record(device, tmp_path / "run", Settings(), interrupt=interrupt)
    join()
    how = open_run(tmp_path / "run").info.end["how"]
    assert how == f"interrupted, but uart:{port.path}?timeout={TIMEOUT} is gone; plug it in again"


def test_what_an_earlier_run_left_is_thrown_away(plugged, tmp_path):
    board = made()
    behind = FakeLink(board)
    behind.discard = lambda: None
    behind.pending = FakeBoard(16, epoch=7).start().stop().data[5:]
    with Device(opened(plugged(behind))) as device:
        record(device, tmp_path / "run", Settings(), limits=Limits(events=len(board.events())))
    stats = open_run(tmp_path / "run").stats()
    assert (stats["accounted"], stats["foreign_blocks"], stats["torn_bytes"]) == (True, 0, 0)


def test_what_cannot_be_opened(plugged, tmp_path, monkeypatch):
    with pytest.raises(HypermonError, match=r"there is no .*/none; plug the board in, then: hypermon devices"):
        UartLink("uart:x", str(tmp_path / "none"))
    port = plugged(FakeLink(FakeBoard()))
    port.silent = True
    monkeypatch.setattr("hypermon.host.link.uart._ATTEMPTS", 2)
    with pytest.raises(HypermonError, match="nothing answers at 3000000 baud; if the board has another rate"):
        opened(port)
    port.silent = False
    link = opened(port)
    with pytest.raises(HypermonError, match="another program has"):
        opened(port)
    link.close()
    with pytest.raises(LinkError, match="is closed"):
        link.read(0)
    for uri in ("uart:", "uart:/dev/x?baud=0", "uart:/dev/x?baud=fast", "uart:/dev/x?speed=1", "uart:/dev/x?baud"):
        with pytest.raises(HypermonError, match="it is uart:DEVICE, such as"):
            open_link(uri)


class Listed:
    """A serial port as pyserial lists it."""

    def __init__(self, device, vid=None, pid=None):
        self.device, self.vid, self.pid, self.serial_number, self.location = device, vid, pid, "FT9", "1-2:1.1"


def test_devices_says_why_and_what_helps(monkeypatch, capsys):
    import serial.tools.list_ports

    ports = [Listed("/dev/ttyUSB7", 0x0403, 0x6010), Listed("/dev/ttyS0"), Listed("/dev/ttyACM0", 0x2341, 0x43)]
    monkeypatch.setattr(serial.tools.list_ports, "comports", lambda: ports)

    def refuse(*_, **__):
        raise serial.SerialException(13, "Permission denied")
    monkeypatch.setattr(serial, "Serial", refuse)
    monkeypatch.setattr("sys.argv", ["hypermon", "devices", "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    found = json.loads(capsys.readouterr().out)
    [problem] = [board["problem"] for board in found if board["uri"].startswith("uart:")]
    assert "no permission for /dev/ttyUSB7; once: sudo cp " in problem
    rule = problem.split()[problem.split().index("cp") + 1]
    assert "0403" in Path(rule).read_text()
    with pytest.raises(HypermonError, match=r"no permission for /dev/ttyUSB7; once: sudo cp .*70-hypermon.rules"):
        open_link("uart:/dev/ttyUSB7")
    monkeypatch.setattr("sys.argv", ["hypermon", "devices"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "cannot be opened: no permission" in capsys.readouterr().out
    # Of a port that is there, the group is named.
    monkeypatch.setattr(os, "stat", lambda path: os.stat_result((0o20660, 0, 0, 1, 0, 0, 0, 0, 0, 0)))
    with pytest.raises(HypermonError, match=rf"\(or join the group of the port, {grp.getgrgid(0).gr_name}\)"):
        open_link("uart:/dev/ttyUSB7")


def test_without_pyserial(monkeypatch):
    import builtins

    importing = builtins.__import__

    def no_serial(name, *rest):
        if name.partition(".")[0] == "serial":
            raise ImportError(name)
        return importing(name, *rest)
    monkeypatch.setattr(builtins, "__import__", no_serial)
    with pytest.raises(HypermonError, match=re.escape(to_install("uart"))):
        open_link("uart:/dev/ttyUSB1")
    assert any(to_install("uart") in (board.problem or "") for board in find_boards())


def test_the_kinds_of_blocks_that_are_played():
    assert {kind for kind, _ in made().kinds} >= {BlockType.FRAMES, BlockType.LOSS, BlockType.CENSUS}
