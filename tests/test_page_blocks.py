"""The commands and programs on pages about hardware: each is read here, and has the reason why no test runs it."""

import re
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
#: Page and beginning of each block, and why it is not run.
NOT_RUN = {
    ("nodes", "from hypermon.sim.pins import GpioPort"): "it writes to pins of the computer",
    ("nodes", "cmake -S examples/pico"): "it needs the Pico SDK",
    ("nodes", "from hypermon_port import PioPort"): "it runs in MicroPython, on a board",
    ("nodes", "from hypermon.host import open_run"): "it needs a run of nodes with the dictionary above it",
    ("nodes", "hypermon dict app.toml --elf"): "tests/node/test_log.py runs these commands with a program of its own",
    ("nodes", "hypermon decode RUN --dictionary sim/node/freertos"): "it needs a run of tests/node/test_freertos.py",
    ("nodes", "hypermon sim display.sr"): "it needs a user's capture",
    ("live", ".venv/bin/pip install"): "it installs, then serves until Ctrl-C",
    ("view", ".venv/bin/pip install"): "it installs, then serves until Ctrl-C",
    ("live", "hypermon watch -b uart:"): "it needs a board",
    ("live", "hypermon tail demo/run"): "it needs a run and a board; tests/host/live/test_follow.py has such commands",
    ("live", "ssh -L"): "it needs another machine",
    ("links", ".venv/bin/hypermon devices"): "it needs a board",
    ("links", "make verilog ARGS="): "it makes the core twice, minutes",
    ("links", ".venv/bin/python -m hypermon.sim.uart_server"): "it compiles a board, and serves until ended",
    ("links", "hypermon relay -b usb:"): "it needs a board and another machine",
    ("integrate", "make verilog  "): "seven ways to make the core, minutes each",
    ("integrate", "make verilog OUT=hypermon.v"): "it makes and simulates the core, minutes",
}


def found(page):
    """Language and text of its blocks of commands and Python."""
    text = (DOCS / f"{page}.md").read_text()
    return [(kind, code) for kind, code in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            if kind in ("sh", "python")]


@pytest.mark.parametrize("page", sorted({page for page, _ in NOT_RUN}))
def test_each_block_has_a_reason_and_is_well_formed(page):
    named = [begin for where, begin in NOT_RUN if where == page]
    used = []
    for kind, code in found(page):
        [begin] = [begin for begin in named if code.startswith(begin)]
        used.append(begin)
        if kind == "python":
            compile(code, page, "exec")
        else:
            said = subprocess.run(["bash", "-n"], input=code, capture_output=True, text=True, check=False)
            assert (said.returncode, said.stderr) == (0, ""), code
    assert used == named
