"""A board at another machine: the same recording as here, whatever the connection does."""

import random
import socket
import time

import pytest
from click.testing import CliRunner
from hypermon.host.cli import cli
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import open_link
from hypermon.host.record.recorder import Interrupt, record
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run

TOKEN = "a-token-of-these-tests"


def made():
    return random_run(FakeBoard(), random.Random(6), 30, losses=0.3)


def rows(run):
    return [tuple(row.values()) for row in run.events().to_pylist()]


@pytest.mark.parametrize("drain", ["stream", "registers"])
def test_a_recording(relayed, tmp_path, drain):
    board = made()
    with Device(open_link(relayed(FakeLink(board, trickle=5)))) as device:
        record(device, tmp_path / "there", Settings(), drain=drain)
    record(Device(FakeLink(board, trickle=5)), tmp_path / "here", Settings(), drain=drain)
    there, here = open_run(tmp_path / "there"), open_run(tmp_path / "here")
    assert rows(there) == rows(here) == board.events()
    assert there.stats() == here.stats()
    assert there.info.board.startswith("tcp:")


def test_a_connection_that_breaks(relayed, tmp_path):
    """The recording goes on; what was on its way is counted as lost on the link."""
    board, interrupt = made(), Interrupt()
    behind = FakeLink(board, piece=300, endless=True)
    link = open_link(relayed(behind))

    def cut(polls):
        if polls == 5:
            link._connection.shutdown(socket.SHUT_RDWR)
        if not behind.pending:
            interrupt.hit = True

    behind.on_poll = cut
    with Device(link) as device:
        record(device, tmp_path / "run", Settings(), interrupt=interrupt)
    run = open_run(tmp_path / "run")
    assert len(run.info.end["outages"]) == 1
    assert set(rows(run)) < set(board.events())
    assert len(rows(run)) + run.stats()["causes"]["link"] == len(board.events())


def test_nobody_there(relayed):
    with pytest.raises(HypermonError, match=r"no answer.*hypermon relay"):
        open_link("tcp:127.0.0.1:1")
    with pytest.raises(HypermonError, match="it is tcp:HOST:PORT"):
        open_link("tcp:somewhere")
    link = open_link(relayed(FakeLink(made())))
    link.close()
    link._where = ("127.0.0.1", 1)
    with pytest.raises(LinkError, match="cannot be reached"):
        link.read(0)
    assert link.stream(100) == b""


def test_tokens(relayed):
    uri = relayed(FakeLink(made()), TOKEN)
    for wrong in (uri, uri + "?token=another-token-of-these"):
        with pytest.raises(HypermonError, match="the token is missing or wrong"):
            open_link(wrong)
    with Device(open_link(f"{uri}?token={TOKEN}")) as device:
        assert device.identity.nodes == 16
        assert TOKEN not in device.link.uri  # which is written down


def test_what_speaks_otherwise_is_sent_away(relayed, monkeypatch):
    monkeypatch.setattr("hypermon.host.link.relay._PROOF_S", 0.05)
    uri = relayed(FakeLink(made()), TOKEN)
    silent = socket.create_connection(("127.0.0.1", int(uri.rpartition(":")[2])))
    time.sleep(0.1)
    open_link(f"{uri}?token={TOKEN}").close()
    silent.close()


def test_an_error_of_the_board(relayed):
    behind = FakeLink(made())

    def fail(address):
        raise LinkError("unplugged")

    link = open_link(relayed(behind))
    behind.read = fail
    with pytest.raises(LinkError, match="unplugged"):
        link.read(0)
    link.close()


def test_the_command_refuses_an_open_door():
    done = CliRunner().invoke(cli, ["relay", "-b", "sim:", "--host", "0.0.0.0"])
    assert isinstance(done.exception, HypermonError)
    assert "Add --token" in str(done.exception)
