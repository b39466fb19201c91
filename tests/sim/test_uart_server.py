"""The verilated board behind its serial line, pin by pin: what the unmodified host records there is what it records
of the virtual board, and what a bad line costs is counted and placed."""

import os
import pty
import random
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypermon.host.device.device import Device, Settings
from hypermon.host.link import open_link
from hypermon.host.record.recorder import Interrupt, Limits, record
from hypermon.host.run import open_run
from hypermon.sim.serve.line_faults import LineFaults
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.uart_server import TerminalServer, main, refuse_used
from hypermon.sim.virtual.link import VirtualLink
from hypermon.sim.virtual.uart_board import UartBoard

pytest.importorskip("serial", reason="pyserial is not installed")


#: Seconds for a recording, in which the board plays a fraction of one.
PATIENCE = 120


def stimulus_of(nodes, events, seed=1):
    """So many nibbles, some at the same time, otherwise as far apart as the line needs for a block of each."""
    choose = random.Random(seed)
    rows, now = [], 1_000_000
    while len(rows) < 2 * events:
        now += choose.randrange(300_000_000, 600_000_000)
        for node in sorted(choose.sample(range(nodes), min(choose.randint(1, nodes), events - len(rows) // 2))):
            nibble = choose.randrange(16)
            rows += [(now, node, nibble), (now + 400_000, node, 16 | nibble)]
    rows.sort(key=lambda row: row[0])
    time_ps, node, port = zip(*rows, strict=True)
    return Stimulus(np.array(time_ps, np.int64), np.array(node, np.int16), np.array(port, np.uint16), [0] * nodes)


def test_a_name_that_is_used(tmp_path):
    """No file and no other server's port is replaced; what a server left that was killed is."""
    (tmp_path / "file").write_text("kept")
    server, program = pty.openpty()
    (tmp_path / "port").symlink_to(os.ttyname(program))
    for name, reason in (("file", "it exists and is not a port"), ("port", "another server's port is there"),
                         ("no/port", "there is no directory")):
        with pytest.raises(SystemExit, match=f"uart_server: --link {tmp_path / name}: {reason}"):
            main(["--link", str(tmp_path / name)])
    assert (tmp_path / "file").read_text() == "kept"
    assert (tmp_path / "port").readlink() == Path(os.ttyname(program))
    os.close(server)
    os.close(program)
    refuse_used(tmp_path / "port")


@pytest.mark.parametrize(("how", "clocks"), [({}, 5_000), ({"batch": 250}, 250)])
def test_the_port_is_checked_once_a_batch(tmp_path, how, clocks):
    """A slow simulation needs fewer clocks between two checks: a request waits for the end of a batch."""
    asked = []
    board = SimpleNamespace(run=lambda clocks, data=b"": asked.append(clocks) or b"", close=lambda: None)
    server = TerminalServer(board, tmp_path / "port", **how)
    program = os.open(tmp_path / "port", os.O_RDWR | os.O_NOCTTY)
    server.step()
    os.close(program)
    server.close()
    assert asked == [clocks]


class Served(threading.Thread):
    """A server in a thread. ``wish`` is called between two steps, once."""

    def __init__(self, path, stimulus, geometry, **faults):
        super().__init__(daemon=True)
        self.server = TerminalServer(UartBoard(stimulus, geometry), path, **faults)
        self.uri = f"uart:{path}?timeout=20"
        self.ending, self.wish, self.failed = False, None, None
        self.start()

    def run(self):
        try:
            while not self.ending:
                if self.wish:
                    self.wish()
                    self.wish = None
                self.server.step()
        except Exception as error:
            self.failed = error
            raise

    def close(self):
        self.ending = True
        self.join()
        self.server.close()
        assert self.failed is None


@pytest.fixture
def serve(tmp_path):
    """Makes servers, and closes them."""
    servers = []

    def make(*arguments, **faults):
        servers.append(Served(tmp_path / f"port{len(servers)}", *arguments, **faults))
        return servers[-1]
    yield make
    for server in servers:
        server.close()


def rows(path):
    return [tuple(row.values()) for row in open_run(path).events().to_pylist()]


def recorded(link, path, interrupt=None, **how):
    """The events of a recording, which is interrupted if it takes too long."""
    interrupt = interrupt or Interrupt()
    timer = threading.Timer(PATIENCE, setattr, (interrupt, "hit", True))
    timer.start()
    with Device(link) as device:
        record(device, path, Settings(), interrupt=interrupt, **how)
    timer.cancel()
    return rows(path)


def test_records_what_the_virtual_board_does(odd, serve, tmp_path):
    stimulus = stimulus_of(odd.nodes, 16)
    due = recorded(VirtualLink(stimulus, odd), tmp_path / "virtual")
    assert len(due) == 16
    served = serve(stimulus, odd)
    assert recorded(open_link(served.uri), tmp_path / "run", limits=Limits(events=16)) == due
    stats = open_run(tmp_path / "run").stats()
    assert (stats["complete"], stats["lost"], stats["missing_blocks"]) == (True, 0, 0)


def test_a_bad_line_loses_blocks_and_all_of_them_are_counted(odd, serve, tmp_path):
    stimulus = stimulus_of(odd.nodes, 600)
    due = recorded(VirtualLink(stimulus, odd), tmp_path / "virtual")
    served = serve(stimulus, odd, to_host=LineFaults(0.0003, 0.0003, seed=1), to_board=LineFaults(0.003, 0.003, seed=2))
    interrupt = Interrupt()

    def end():
        while served.server.board_ps < int(stimulus.time_ps[-1]) + 10_000_000_000:
            time.sleep(0.01)
        served.server.to_host = LineFaults()    # the block that ends the run is there once
        interrupt.hit = True
    ending = threading.Thread(target=end)
    ending.start()
    came = recorded(open_link(served.uri.replace("=20", "=2")), tmp_path / "run", interrupt=interrupt)
    ending.join()
    run = open_run(tmp_path / "run")
    stats = run.stats()
    assert stats["missing_blocks"] > 0
    assert set(came) < set(due)
    assert len(came) + stats["causes"]["link"] == len(due)
    lost = run.loss().to_pylist()
    for time_ps, node, _ in set(due) - set(came):
        assert any(row["node"] == node and row["from_ps"] <= time_ps < row["to_ps"] for row in lost)


def test_unplugged_and_plugged_in_again(odd, serve, tmp_path):
    stimulus = stimulus_of(odd.nodes, 240)
    served, interrupt = serve(stimulus, odd), Interrupt()
    link = open_link(served.uri)

    def pull():
        while served.server.board_ps < int(stimulus.time_ps[80]):
            time.sleep(0.01)
        served.wish = served.server.unplug
        while served.server.board_ps < int(stimulus.time_ps[160]):
            time.sleep(0.01)
        served.wish = served.server.plug
        while not link.outages or served.server.board_ps < int(stimulus.time_ps[-1]) + 10_000_000_000:
            time.sleep(0.01)
        interrupt.hit = True
    pulling = threading.Thread(target=pull)
    pulling.start()
    came = recorded(link, tmp_path / "run", interrupt=interrupt)
    pulling.join()
    run = open_run(tmp_path / "run")
    stats = run.stats()
    assert len(run.info.end["outages"]) == 1
    assert run.decode()["stopped"]
    assert 0 < len(came) < 240
    assert len(came) + stats["causes"]["link"] == 240
