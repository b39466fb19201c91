"""The board that docs/develop/add-a-board.md adds: in under 40 lines, and it elaborates with either link."""

import re
import sys
import types
from pathlib import Path
from typing import ClassVar

import pytest
from amaranth.build import Attrs, Clock, Connector, Pins, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import LEDResources, UARTResource, ULPIResource
from hypermon.boards.toolchain.top import BoardTop, platform_of

TEXT = (Path(__file__).parents[2] / "docs" / "develop" / "add-a-board.md").read_text()
EXAMPLE = re.search(r"## The file.*?```python\n(.*?)```", TEXT, re.S)[1]
_LEVEL = Attrs(IO_TYPE="LVCMOS33")


class MinePlatform(LatticeECP5Platform):
    """What the text says that the board's platform has."""

    device, package, speed = "LFE5U-25F", "BG256", "6"
    default_clk = "clk25"
    resources: ClassVar = [
        Resource("clk25", 0, Pins("A8", dir="i"), Clock(25e6), _LEVEL),
        *LEDResources(pins="E13 C13", attrs=_LEVEL),
        UARTResource(0, rx="B14", tx="A15", attrs=_LEVEL),
        ULPIResource("usb", 0, data="F16 G15 G16 H15 J15 J16 K15 K16", clk="D16", clk_dir="o", dir="E16", nxt="F15",
                     stp="E15", rst="J13", rst_invert=True, attrs=_LEVEL),
    ]
    connectors: ClassVar = [Connector("pmod", 0, "C9 B9 D11 C12 - - C8 D8 D9 C10 - -"),
                            Connector("pmod", 1, "B4 B5 B6 B7 - - C5 A5 A6 A7 - -")]


@pytest.fixture
def board(monkeypatch):
    module = types.ModuleType("amaranth_boards.mine")
    module.MinePlatform = MinePlatform
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = {"__package__": "hypermon.boards", "__name__": "hypermon.boards.mine"}
    exec(EXAMPLE, names)
    assert names["__all__"] == ["BOARDS"]
    return names["BOARDS"][0]


def test_it_is_short():
    assert len(EXAMPLE.splitlines()) < 40


@pytest.mark.parametrize("link", ["uart", "usb-ulpi"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_elaborates(board, link):
    assert board.nodes == 2
    top = BoardTop(board, board.geometry("classic"), 0x1234, board.link(link))
    constraints = platform_of(board, board.nodes).prepare(top, "top").files["top.lpf"]
    assert 'LOCATE COMP "node_1__strobe__io" SITE "B4"' in constraints
