"""What `--start`, `--stop`, `--pretrigger` say, and what they refuse."""

import re

import pytest
from hypermon.hdl.layout import PRETRIGGER_MAX, Sink
from hypermon.host.device.device import Device, Settings
from hypermon.host.device.trigger import NOTHING, Match, parse_match, refuse_pretrigger
from hypermon.host.errors import HypermonError

from tests.host.fake_board import FakeBoard, FakeLink


@pytest.mark.parametrize(("text", "match"), [
    ("nibble=5", Match(5, 15)),
    ("node=3,nibble=0x5/0xf", Match(5, 15, 3, 31)),
    ("nibble=0b1000/8,node=2/3", Match(8, 8, 2, 3)),
    ("event=0x21/0xf0", Match(0x21, 0xf0, event=True)),
    ("node=31,event=255", Match(255, 255, 31, 31, True)),
])
def test_matches(text, match):
    assert parse_match("--start", text) == match
    register = match.register
    assert register >> 31 == 1
    assert register >> 30 & 1 == match.event
    assert (register & 255, register >> 8 & 255) == (match.value, match.value_mask)
    assert (register >> 16 & 31, register >> 24 & 31) == (match.node, match.node_mask)


@pytest.mark.parametrize("text", [
    "", "5", "nibble", "nibble=", "nibble=16", "nibble=-1", "nibble=1/", "nibble=1/16", "event=256", "node=32,nibble=1",
    "node=3", "nibble=1,event=2", "nibble=1,nibble=2", "nibble=1,", "nibbel=1", "event=1/0x100",
])
def test_refuses(text):
    with pytest.raises(HypermonError, match=r"--stop .*\[node=N,\]nibble=V"):
        parse_match("--stop", text)


def test_nothing():
    assert NOTHING.register == 0


def test_pretrigger():
    refuse_pretrigger(0, NOTHING)
    refuse_pretrigger(PRETRIGGER_MAX, Match())
    with pytest.raises(HypermonError, match=f"at most {PRETRIGGER_MAX}"):
        refuse_pretrigger(PRETRIGGER_MAX + 1, Match())
    with pytest.raises(HypermonError, match="it needs --start"):
        refuse_pretrigger(1, NOTHING)


@pytest.mark.parametrize(("settings", "said"), [
    ({"start": "node=4,nibble=1"}, "--start: the board has no node 4; it has nodes 0 to 3"),
    ({"stop": "node=8/0x1c,nibble=1"}, "--stop: the board has no node 8; it has nodes 0 to 3"),
    ({"nodes_kept": 0x10}, "--mask nodes=0x10: the board has nodes 0 to 3")])
def test_nodes_that_are_not_there(settings, said):
    """What can never match is refused, and does not record nothing."""
    link = FakeLink(FakeBoard(4, sink=Sink.EXTENDED).start().stop())
    kept = {name: parse_match(f"--{name}", value) if isinstance(value, str) else value
            for name, value in settings.items()}
    with pytest.raises(HypermonError, match=re.escape(said)):
        Device(link).prepare(Settings(sink=Sink.EXTENDED, **kept))
