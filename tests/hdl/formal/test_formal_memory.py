"""Unbounded proofs that all forms of memory are equal, each with broken twins that are refuted."""


import pytest
from hypermon.hdl.lib.fifo import StreamFifo
from hypermon.hdl.lib.ram import Ram

from ..harness.runner import CELLS
from .prover import broken, holds
from .specs.fifos import StreamFifoSpec
from .specs.memory import RamSpec

pytestmark = pytest.mark.formal

PRIMITIVES = tuple(CELLS / name for name in ("dp16kd.v", "pdpw16kd.v", "sdpx9b.v"))

# The primitive's width, and a width and depth for which it is taken; mostly two of them stand side by side.
SHAPES = {36: (37, 512), 18: (20, 1024), 9: (9, 2048), 4: (5, 4096), 2: (3, 8192), 1: (2, 16384)}

_OUTPUT = "with m.If({}):\n                m.d.sync += output[k"
# Of Gowin's block RAM.
GOWIN_SHAPES = {36: (37, 512), 18: (20, 1024), 9: (11, 2048)}

TWINS = {
    "address of a word, not of a bit": (36, ("Cat(Const(0, 5), self.r_addr)", "self.r_addr")),
    "one byte of four is not written": (36, ('{f"i_BE{i}": Const(1)}', '{f"i_BE{i}": Const(i != 2)}')),
    "wide, output register always on": (36, ("i_OCER=self.r_next", "i_OCER=Const(1)")),
    "wide, no output register": (36, ('p_REGMODE="OUTREG"', 'p_REGMODE="NOREG"')),
    "one byte of two is written": (18, ("18: 0b0011", "18: 0b0001")),
    "address shifted": (9, ("2048: (9, 3), 4096", "2048: (9, 4), 4096")),
    "address not shifted enough": (4, ("4096: (4, 2)", "4096: (4, 1)")),
    "output register always on": (2, ("i_OCEB=self.r_next", "i_OCEB=Const(1)")),
    "no output register": (1, ('p_REGMODE_B="OUTREG"', 'p_REGMODE_B="NOREG"')),
    "reads all the time": (18, ("i_CEB=self.r_en, i_WEB", "i_CEB=Const(1), i_WEB")),
}
REFUTED = {name: (lambda width=width, change=change: RamSpec(*SHAPES[width], broken(Ram, change)))
           for name, (width, change) in TWINS.items()}


@pytest.mark.parametrize("width", SHAPES)
def test_memories_are_equal(width, tmp_path):
    assert holds(RamSpec(*SHAPES[width]), tmp_path, verilog=PRIMITIVES)


@pytest.mark.parametrize("width", GOWIN_SHAPES)
def test_gowins_memories_are_equal(width, tmp_path):
    assert holds(RamSpec(*GOWIN_SHAPES[width], kind="gowin"), tmp_path, verilog=PRIMITIVES)


@pytest.mark.parametrize(("width", "change"), [
    (36, ("36: 0b1111", "36: 0b0111")), (18, ("(36, 5), 1024: (18, 4)", "(36, 5), 1024: (18, 5)")),
    (9, ("i_CEB=self.r_en, i_RESETB", "i_CEB=Const(1), i_RESETB")),
    (18, (_OUTPUT.format("self.r_next"), _OUTPUT.format(1))),
], ids=["a byte is not written", "address shifted", "reads all the time", "output register always on"])
def test_broken_gowin_twin_is_refuted(width, change, tmp_path):
    assert not holds(RamSpec(*GOWIN_SHAPES[width], broken(Ram, change), "gowin"), tmp_path, verilog=PRIMITIVES)


@pytest.mark.parametrize("name", REFUTED)
def test_broken_twin_is_refuted(name, tmp_path):
    assert not holds(REFUTED[name](), tmp_path, verilog=PRIMITIVES)


def test_a_word_read_while_it_is_written_is_refuted(tmp_path):
    early = broken(StreamFifo, ("issue.eq(some & (~latched | go))", "issue.eq((some | push) & (~latched | go))"))
    assert not holds(StreamFifoSpec(early), tmp_path)
