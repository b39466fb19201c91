"""The pages say what the sources say: made tables, commands, links, files."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *(ROOT / name for name in ("README.md", "SECURITY.md"))])
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))


def page_ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_tables_are_as_generated(page):
    text = page.read_text()
    assert text == GENERATE["rendered"](text), "behind the sources; to mend: make docs"


def test_each_guarantee_names_tests_that_exist():
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    for row in rows:
        files = re.findall(r"`(tests/[\w/.]+)`", row)
        assert files, row
        assert [file for file in files if not (ROOT / file).exists()] == []
        text = "".join((ROOT / file).read_text() for file in files if file.endswith(".py"))
        assert [name for name in re.findall(r"`(test_\w+)`", row) if f"def {name}(" not in text] == []


def test_files_that_are_made_whole():
    made = GENERATE["files"]()
    assert [path.name for path, text in made.items() if path.read_text() != text] == [], "to mend: make docs"
    assert {path.name for path in ROOT.glob("docs/boards/*.svg")} <= {path.name for path in made}


def test_every_table_is_in_a_page():
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in GENERATE["TABLES"] if f"<!-- begin {name} -->" not in text] == []


def test_a_changed_table_is_noticed():
    page = (ROOT / "docs" / "registers.md").read_text()
    assert GENERATE["rendered"](page.replace("**STATUS** | R | 4", "**STATUS** | R | 5")) == page


def test_an_open_mark_is_refused():
    with pytest.raises(ValueError, match="not closed"):
        GENERATE["rendered"]("<!-- begin registers -->\n")


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_named_files_exist(page):
    names = re.findall(r"`((?:hdl|sim|boards|host|tests|docs|\.ci)/[\w./-]+)`", page.read_text())
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_named_make_targets_exist(page):
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE)) <= known


def test_make_alone_lists_every_public_target():
    makefile = (ROOT / "Makefile").read_text()
    public = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {"help", "setup", "demo", "test", "lint", "verilog", "formal", "timing", "bench"} <= public
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert public <= set(re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE))
