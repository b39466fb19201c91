"""Releases: what they are not made of."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIST = runpy.run_path(str(ROOT / ".ci" / "dist.py"))

ROW = "| [{}]({}.md) | LFE5U | uart | extended | 11 | 158.9 of 150 | 0.3 | 0 | 1828 | 605 | `7fa8f6b9`{} | `79f5` |"


def test_bitstreams_of_an_older_core(tmp_path, monkeypatch):
    page = "\n".join(["| board | gateware |", ROW.format("a-1", "a", ", older"), ROW.format("b", "b", ""),
                      ROW.format("a-1", "a", ", older"), ROW.format("c", "c", ", older"), "- rows are older"])
    assert DIST["older"](page) == ["a-1", "c"]
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "docs" / "boards").mkdir(parents=True)
    (tmp_path / "docs" / "boards" / "README.md").write_text(page)
    monkeypatch.setitem(DIST["main"].__globals__, "ROOT", tmp_path)
    monkeypatch.setitem(DIST["main"].__globals__, "OUT", tmp_path / "out")
    monkeypatch.setattr("sys.argv", ["dist.py"])
    with pytest.raises(SystemExit) as failed:
        DIST["main"]()
    assert str(failed.value) == ("make dist: 2 boards have bitstreams of an older core: a-1, c; build them: "
                                 'make bitstreams BOARDS="a-1 c"')
    assert not (tmp_path / "out").exists()


def test_the_page_is_read():
    """A change of the table's form must not make all rows pass."""
    page = (ROOT / "docs" / "boards" / "README.md").read_text()
    marked = [line for line in page.splitlines() if line.startswith("|") and ", older" in line]
    assert bool(DIST["older"](page)) == bool(marked)
    assert DIST["older"](page.replace("` | `", "`, older | `"))
