"""Boards that leave options out, or have beats of 4 bytes: the items are the same. The identity says what is absent,
and so does the host."""

import numpy as np
import pytest
from hypermon.hdl.layout import REGISTERS, Geometry, Option, Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose.reduction import read_reduction
from hypermon.host.diagnose.selftest import selftest
from hypermon.host.errors import HypermonError
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.writers import EVENT, NIBBLE, WORD, accounted, came, expected, go, writers

SLIM = Geometry(5, node_depth=64, vector_depth=256, frame_depth=16, sinks=tuple(Sink), store_depth=64, beat_bytes=4)
BARE = Geometry(5, node_depth=64, vector_depth=256, frame_depth=16, sinks=tuple(Sink), absent=tuple(Option))


@pytest.fixture(scope="module")
def bare(tools):
    """A board of five nodes with both sinks and no option."""
    from hypermon.sim.virtual.build import library

    library(BARE)
    return BARE


@pytest.fixture(scope="module", params=[BARE, SLIM], ids=["bare", "slim"])
def board(tools, request):
    """That board, or one with all options and beats of 4 bytes."""
    from hypermon.sim.virtual.build import library

    library(request.param)
    return request.param


@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200])
def test_every_item_comes(board, window):
    rng = np.random.default_rng(window)
    clocks = board.window_clocks(window)
    nodes = writers(board, [NIBBLE, WORD, EVENT])
    for node in nodes:
        for _ in range(60):
            node.item(rng, gap=int(rng.integers(4, 12)), after=int(rng.integers(clocks + 4, 5 * clocks + 300)))
    run = go(nodes, board, window)
    assert not run.lost
    assert came(run) == expected(nodes, board, window)
    accounted(run, nodes, board, window)


def test_what_is_lost_is_counted(board):
    rng = np.random.default_rng(3)
    nodes = writers(board, [NIBBLE])
    for node in nodes:
        for _ in range(1500):
            node.item(rng)
    run = go(nodes, board, drain_rate=2_000_000)
    assert run.lost
    accounted(run, nodes, board)


def _refused(settings: Settings) -> str:
    with VirtualLink(None, BARE) as link, pytest.raises(HypermonError) as error:
        Device(link).prepare(settings)
    return str(error.value)


def test_the_host_says_what_is_absent(bare):
    with VirtualLink(None, bare) as link:
        device = Device(link)
        assert device.geometry.absent == tuple(Option)
        assert device.identity.as_dict()["absent"] == ["reduction", "emulator", "rate_limit", "event_mask"]
        device.prepare(Settings(Window.CLOCK, sink=Sink.EXTENDED, glitch=3))
        with pytest.raises(HypermonError, match="is an extended board without these counters"):
            read_reduction(device)
        with pytest.raises(HypermonError, match="has no node emulator"):
            next(iter(selftest(device)))
        for name in ("REDUCTION_INDEX", "RATE_LIMIT", "EMULATOR", "EMULATOR_PERIOD", "EMULATOR_COUNT"):
            link.write(REGISTERS[name].offset, 0xff)
            assert link.read(REGISTERS[name].offset) == 0
    extended = {"window": Window.CLOCK, "sink": Sink.EXTENDED}
    assert _refused(Settings(**extended, rate_limit=(5, 64))).endswith("is an extended board without the rate limit")
    events = ItemModes.of([ItemMode.EVENT] * 5)
    assert _refused(Settings(**extended, modes=events, events_out=frozenset({3}))).endswith(
        "is an extended board without the event mask")


def test_only_an_extended_board_has_options():
    with pytest.raises(ValueError, match="extended sink"):
        Geometry(4, absent=(Option.EMULATOR,))
