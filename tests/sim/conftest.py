"""Boards that the tests of the virtual board share, besides those of all tests: each is compiled once, and kept."""

import os
from pathlib import Path

import pytest
from hypermon.hdl.layout import Geometry, Sink

#: A board of 19 nodes with both sinks, small memories, and a clock period of 9 11/21 ns.
ODD_EXTENDED = Geometry(19, 105_000_000, node_depth=8, vector_depth=32, frame_depth=8, sinks=tuple(Sink))


@pytest.fixture(scope="session")
def odd(tools):
    """A board of three nodes, tiny memories, and a clock period of 9 11/21 ns."""
    from hypermon.sim.virtual.build import library

    geometry = Geometry(3, 105_000_000, node_depth=8, vector_depth=32, frame_depth=8)
    library(geometry)
    return geometry


@pytest.fixture(scope="session")
def stored(tools):
    """The extended board with the buffers that it has on an ECP5-25F."""
    from hypermon.boards.model.ecp5_buffers import SIZES
    from hypermon.sim.virtual.build import library

    library(SIZES["25F"])
    return SIZES["25F"]


@pytest.fixture(scope="session")
def external(tools):
    """The extended board with 256 KiB in SDRAM and next to nothing in block RAM."""
    from hypermon.sim.virtual.build import library

    geometry = Geometry(frame_depth=16, sinks=tuple(Sink), external_depth=1 << 14)
    library(geometry)
    return geometry


@pytest.fixture(scope="session")
def odd_extended(tools):
    """A board of 19 nodes with both sinks, small memories, and a clock period of 9 11/21 ns."""
    from hypermon.sim.virtual.build import library

    library(ODD_EXTENDED)
    return ODD_EXTENDED


def _in_phases(phases):
    from hypermon.sim.virtual.build import library

    geometry = Geometry(6, node_depth=64, vector_depth=256, frame_depth=16, sinks=tuple(Sink), phases=phases)
    library(geometry)
    return geometry


@pytest.fixture(scope="session")
def in_halves(tools):
    """A board of six nodes with both sinks that samples strobes twice a clock."""
    return _in_phases(2)


@pytest.fixture(scope="session")
def in_quarters(tools):
    """The same, four times a clock."""
    return _in_phases(4)


@pytest.fixture(scope="session", params=["in_halves", "in_quarters"], ids=["half", "quarter"])
def halved(request):
    """Both of them."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def wide(tools):
    """A board of more than 16 nodes, whose ports do not fit a machine word."""
    from hypermon.sim.virtual.build import library

    geometry = Geometry(21, 50_000_000, node_depth=8, vector_depth=64, frame_depth=256)
    library(geometry)
    return geometry


@pytest.fixture(scope="session")
def captures():
    """Folder of the real sigrok captures; see its README."""
    default = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("HYPERMON_DATA", default)) / "sr"
    if not folder.is_dir():
        pytest.skip(f"no captures in {folder}; HYPERMON_DATA says where they are")
    return folder
