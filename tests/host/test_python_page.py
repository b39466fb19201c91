"""The examples of docs/python.md: run one after another, and they print what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from hypermon.host.run import Run

PAGE = Path(__file__).parent.parent.parent / "docs" / "python.md"


def test_examples(losing_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(losing_run.path.parent)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    ran = 0
    for (kind, code), (after, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, str(PAGE), "exec"), names)
            ran += 1
            if after == "text":
                assert out.getvalue() == shown
    assert ran > 5
