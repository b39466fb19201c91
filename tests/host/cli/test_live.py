"""`serve` and `watch` where the libraries of the live views are not installed."""

import sys

import pytest
from hypermon.host import cli
from hypermon.host.errors import to_install


@pytest.mark.parametrize(("command", "module"), [("serve", "web.program"), ("watch", "live.terminal")])
def test_what_is_missing_is_said(monkeypatch, capsys, tmp_path, command, module):
    monkeypatch.setitem(sys.modules, f"hypermon.host.{module}", None)
    assert cli._run([command, "-b", str(tmp_path)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("hypermon: the live views need ")
    assert said[0].endswith("which is not installed: " + to_install("live"))
