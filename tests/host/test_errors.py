"""The command that a message gives for what is not installed."""

import ast
import shlex
import sys
from pathlib import Path

from hypermon.host import errors

ROOT = Path(__file__).parents[2]


def test_a_checkout_stays_editable():
    assert errors.checkout() == ROOT
    assert shlex.split(errors.to_install("report")) == [
        sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[report]"]


def test_elsewhere_it_is_the_package(monkeypatch, tmp_path):
    """With the same Python, whatever its path."""
    copied = tmp_path / "hypermon" / "host" / "errors.py"
    copied.parent.mkdir(parents=True)
    copied.write_text(Path(errors.__file__).read_text())
    monkeypatch.setattr(errors, "__file__", str(copied))
    monkeypatch.setattr(sys, "executable", "/a place/python")
    assert errors.to_install("sim") == "'/a place/python' -m pip install 'hypermon[sim]'"


def test_every_hint_to_install_an_extra_is_this_command():
    """No other text of the program gives one; docstrings are for readers of the source and of ``--help``."""
    written = []
    for part in ("boards", "hdl", "host", "sim"):
        for path in (ROOT / part).rglob("*.py"):
            tree = ast.parse(path.read_text())
            docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            written += [f"{path.relative_to(ROOT)}:{node.lineno}" for node in ast.walk(tree)
                        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
                        and "pip install 'hypermon[" in node.value]
    assert written == []
