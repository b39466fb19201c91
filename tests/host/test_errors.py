"""The command that a message gives for what is not installed."""

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
