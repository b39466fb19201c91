"""The example benches that people copy, from an empty folder: each on Verilator and on Icarus, and with a Makefile."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypermon.host import open_run
from hypermon.host.errors import HypermonError
from hypermon.sim.bench import runner

from tests.host.external.readers import needs
from tests.patience import patience

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "cocotb"


def ran(*command: object, folder: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True,
                          timeout=patience(600), check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    return said


@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
@pytest.mark.parametrize(("example", "nodes"), [("core", 3), ("uart", 1), ("uart-amaranth", 1)])
def test_example(tmp_path: Path, example: str, nodes: int, simulator: str) -> None:
    if simulator == "icarus":
        needs("iverilog")
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    said = ran(sys.executable, "run.py", example, "--simulator", simulator, folder=tmp_path)
    assert re.search(r"PASS=1 +FAIL=0", said), said[-2000:]
    [run] = [open_run(path.parent) for path in tmp_path.rglob("recording.json")]
    assert run.stats()["lost"] == 0
    assert sum(count > 0 for count in run.stats()["events_per_node"]) == nodes


def test_without_the_library_that_cocotb_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's Python has none of itself; cocotb would say so after the build, in a traceback."""
    monkeypatch.delenv("LIBPYTHON_LOC", raising=False)
    monkeypatch.setattr(runner, "find_libpython", lambda: None)
    name = f"libpython{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(HypermonError, match=f"^{name} is missing, which cocotb loads: apt install {name}$"):
        runner.simulate("test_core", where=EXAMPLES, folder=tmp_path / "build")
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("name", ["test_core.py", "test_uart.py", "uart_traced.py", "uart_traced.v"])
def test_an_example_is_short(name: str) -> None:
    """The page states it: what people copy is under 40 lines."""
    assert len((EXAMPLES / name).read_text().splitlines()) < 40


def test_makefile(tmp_path: Path) -> None:
    """The Makefile on the page, with the commands beside it."""
    page = (ROOT / "docs" / "cocotb.md").read_text()
    [text] = re.findall(r"```make\n(.*?)```", page, re.DOTALL)
    writes, makes = re.findall(r"`(python -m hypermon.hdl.verilog [^`]*|PATH=[^`]* make)`", page)
    (tmp_path / "Makefile").write_text(text)
    for name in ("test_uart.py", "uart_traced.v"):
        shutil.copy(EXAMPLES / name, tmp_path)
    begin = f"export PATH={Path(sys.executable).parent}:$PATH; "
    ran("bash", "-c", begin + writes, folder=tmp_path)
    said = ran("bash", "-c", begin + makes, folder=tmp_path)
    assert re.search(r"PASS=1 +FAIL=0", said), said[-2000:]
    assert [open_run(found.parent).stats()["lost"] for found in tmp_path.rglob("recording.json")] == [0]
