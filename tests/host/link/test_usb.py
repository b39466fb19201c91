"""The USB driver, on verilated boards at a model of libusb."""

import builtins
import json
import re
import threading
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from hypermon.hdl.layout import REGISTERS, USB_STREAM, Geometry, Sink, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, LinkError, to_install
from hypermon.host.link.udev import RULE, install_rule
from hypermon.host.link.usb import UsbLink, find_boards, open_board
from hypermon.host.record.recorder import Interrupt, Limits, record
from hypermon.host.run import open_run
from hypermon.sim.serve.usb1 import Port, Usb1
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.usb_board import UsbBoard

NODES = 4
GEOMETRY = Geometry(NODES, sinks=tuple(Sink))
EVENTS = 3000
PERIOD_PS = 5_000_000


def events(count: int = EVENTS, every_ns: int = PERIOD_PS // 1000) -> Stimulus:
    """So many nibbles, one after the other."""
    at = (50_000 + every_ns * np.arange(count, dtype=np.int64)) * 1000
    nibble = np.arange(count) % 16
    return Stimulus(
        np.stack([at, at + 200_000], 1).reshape(-1), np.repeat(np.arange(count) % NODES, 2).astype(np.int16),
        np.stack([nibble, nibble | 16], 1).reshape(-1).astype(np.uint8), [0] * NODES)


def plugged(stimulus: Stimulus | None = None, number: int = 1, serial: str = "0") -> Port:
    return Port(UsbBoard(stimulus, GEOMETRY), number, serial)


def test_found():
    port, other = plugged(), plugged(number=2, serial="1")
    usb1 = Usb1(port, other)
    assert [board.uri for board in find_boards(usb1)] == ["usb:0", "usb:1"]
    assert "480 Mbit/s, bus 1 device 2" in find_boards(usb1)[1].what
    with pytest.raises(HypermonError, match="which one\\? There is usb:0, usb:1"):
        UsbLink("", usb1)
    with pytest.raises(HypermonError, match="usb:2: no such board; there is usb:0, usb:1"):
        UsbLink("2", usb1)
    first, second = UsbLink("0", usb1), UsbLink("1", usb1)
    first.write(REGISTERS["FLUSH"].offset, 1111)
    second.write(REGISTERS["FLUSH"].offset, 2222)
    assert [link.read(REGISTERS["FLUSH"].offset) for link in (first, second)] == [1111, 2222]
    with pytest.raises(HypermonError, match="usb:0: the board is in use by another program"):
        UsbLink("0", usb1)
    first.close()
    second.close()
    port.unplug()
    other.unplug()
    with pytest.raises(HypermonError, match="no board is plugged in"):
        UsbLink("", usb1)


def test_forbidden():
    port = plugged()
    port.forbidden = True
    usb1 = Usb1(port)
    problem = find_boards(usb1)[0].problem
    assert install_rule() in problem
    assert "1209" in (files("hypermon.host.link") / RULE).read_text()
    with pytest.raises(HypermonError, match="no permission for the board at bus 1 device 1"):
        UsbLink("", usb1)


def test_not_installed(monkeypatch):
    real = builtins.__import__
    monkeypatch.setattr("hypermon.host.link.usb.import_module", lambda name: real("no_such_module"))
    with pytest.raises(HypermonError, match=re.escape(to_install("usb"))):
        open_board("usb:")
    assert to_install("usb") in find_boards()[0].problem


def test_no_library(monkeypatch):
    """Other boards are found all the same."""
    def missing():
        raise OSError("libusb-1.0.so.0: cannot open shared object file")

    monkeypatch.setattr("hypermon.host.link.usb.import_module", lambda name: SimpleNamespace(loadLibrary=missing))
    assert "apt-get install libusb-1.0-0" in find_boards()[0].problem


def test_registers():
    port = plugged()
    link = UsbLink("", Usb1(port))
    device = Device(link)
    assert device.identity.nodes == NODES
    assert link.read_burst(0x800, 1500)[:4] == bytes(4)
    assert len(link.read_burst(0x0, 2000)) == 8000
    port.unplug()
    with pytest.raises(LinkError, match="cannot be reached any more"):
        device.read("MAGIC")


def test_a_board_without_a_phy(tmp_path):
    """Bit by bit over D+ and D-: no packet is lost or damaged, and every event arrives with its time."""
    board = UsbBoard(events(40, 20_000), GEOMETRY, phy="pins")
    port = Port(board)
    assert not port.high
    interrupt = Interrupt()
    link = UsbLink("", Usb1(port))

    def until_played(moment):
        interrupt.hit = board.played

    ledger = record(Device(link), tmp_path / "run", Settings(window=Window.CLOCK), interrupt=interrupt,
                    progress=until_played)
    link.close()
    assert (ledger.events, ledger.lost) == (40, 0)
    assert (board.counts.timeouts, board.counts.bad, board.counts.repeated) == (0, 0, 0)
    times = open_run(tmp_path / "run").events()["time_ps"].to_numpy()
    assert np.diff(times).tolist() == [20_000_000] * 39


@pytest.mark.parametrize(("fault", "drain"), [
    ("none", "stream"), ("unplugged", "stream"), ("unplugged", "registers"),
    pytest.param("full speed", "stream", marks=pytest.mark.slow),
    pytest.param("halted", "stream", marks=pytest.mark.slow)])
def test_record(tmp_path, fault, drain):
    """Whatever happens to the cable, the recording goes on; what is missing is counted and said."""
    port = plugged(events())
    interrupt = Interrupt()
    usb1 = Usb1(port)
    link = UsbLink("", usb1)
    pending = [fault]

    def meddle(moment):
        if port.board.edge > 500_000 and pending:
            kind = pending.pop()
            if kind in ("unplugged", "full speed"):
                port.unplug()
                link.stream(1)
                assert link.stream(1) == b""
                assert link.away
                port.plug(high=kind == "unplugged")
            elif kind == "halted":
                port.control(0x02, 3, 0, USB_STREAM, 0, b"", 1000)
        interrupt.hit = port.board.played and not link.away

    ledger = record(Device(link), tmp_path / "run", Settings(window=Window.CLOCK), interrupt=interrupt,
                    progress=meddle, drain=drain)
    link.close()
    info = json.loads((tmp_path / "run" / "recording.json").read_text())
    assert info["end"]["how"] == "interrupted"
    assert ledger.events + ledger.lost == EVENTS
    assert len(info["end"]["outages"]) == (fault in ("unplugged", "full speed"))
    run = open_run(tmp_path / "run")
    times = run.events()["time_ps"].to_numpy()
    assert len(times) == ledger.events
    assert ledger.lost == 0 or fault != "none"
    # What is missing is inside a loss of its node.
    lost = run.loss().to_pylist()
    for k in set(range(EVENTS)) - set(((times - times[0]) // PERIOD_PS).tolist()):
        at = times[0] + k * PERIOD_PS
        assert any(row["node"] == k % NODES and row["from_ps"] <= at < row["to_ps"] for row in lost), k


def test_two_boards_at_once(tmp_path):
    ports = [plugged(events(600, 5000 + 100 * k), 1 + k, f"B{k}") for k in range(2)]
    usb1 = Usb1(*ports)
    links = [UsbLink(port.serial, usb1) for port in ports]
    ledgers = {}

    def one(link):
        path = tmp_path / link.uri.partition(":")[2]
        with Device(link) as device:
            ledgers[path] = record(device, path, Settings(window=Window.CLOCK), limits=Limits(events=600))
    threads = [threading.Thread(target=one, args=(link,)) for link in links]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, path in enumerate(sorted(ledgers)):
        assert (ledgers[path].events, ledgers[path].lost) == (600, 0)
        times = open_run(path).events()["time_ps"].to_numpy()
        assert (np.diff(times) == (5000 + 100 * k) * 1000).all()
