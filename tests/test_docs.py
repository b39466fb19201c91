"""The pages say what the sources say: made tables, commands, links, files."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tests.patience import patience

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md"))])
SITE = runpy.run_path(str(ROOT / "docs" / "tools" / "site.py"))
GENERATE = runpy.run_path(str(ROOT / "docs" / "tools" / "generate.py"))


def page_ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_tables_are_as_generated(page):
    text = page.read_text()
    assert text == GENERATE["rendered"](text), "out of date; to update: make docs"


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
    assert [path.name for path, text in made.items() if path.read_text() != text] == [], "to update: make docs"
    there = {path.name for kind in ("md", "svg") for path in ROOT.glob(f"docs/boards/*.{kind}")}
    assert there - {path.name for path in made} == {"README.md"}


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
def test_links_lead_to_what_the_site_has(page):
    """The site has the pages; a file beside them is named, not linked."""
    beside = {*SITE["_BESIDE"], "LICENSE"}
    targets = [(page.parent / name).resolve().relative_to(ROOT)
               for name in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())]
    assert [str(target) for target in targets
            if str(target) not in beside and (target.parts[0] != "docs" or target.parts[1] == "tools")] == []


def anchors(page: Path) -> set[str]:
    """What its headings are called in links, as code hosts do."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_links_lead_to_headings(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)", page.read_text())
    assert [(file, name) for file, name in targets if name not in anchors(page.parent / file if file else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_named_files_exist(page):
    names = re.findall(r"`((?:hdl|sim|boards|host|tests|docs|\.ci)/[\w./-]+)`", page.read_text())
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_named_tests_exist():
    """A name that begins with ``test_`` is a test's or that of a file of tests."""
    known = set()
    for path in (ROOT / "tests").rglob("*.py"):
        known |= {path.stem, *re.findall(r"^(?: *(?:async )?def )?(test_\w+)", path.read_text(), re.MULTILINE)}
    assert known > {"test_docs", "test_named_tests_exist"}
    for page in PAGES:
        code_of = re.findall(r"`([^`\n]+)`", page.read_text())
        named = {name for text in code_of for name in re.findall(r"\btest_\w+", text)}
        assert sorted(named - known) == [], page


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_named_make_targets_exist(page):
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE)) <= known


def test_make_alone_lists_every_public_target():
    makefile = (ROOT / "Makefile").read_text()
    public = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {"help", "setup", "demo", "test", "lint", "verilog", "formal", "timing", "bench"} <= public
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True,
                            timeout=patience(60)).stdout
    assert public <= set(re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE))
    assert len(public) <= 25, "a list that is read: several things of a kind are one command, with OF="


def test_the_index_has_every_page():
    """But the pages of the boards, which theirs lists."""
    linked = set(re.findall(r"\]\(([^)#]+\.md)\)", (ROOT / "docs" / "README.md").read_text()))
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    assert {page for page in pages if not page.startswith("boards/")} - {"README.md"} <= linked


#: Pages that say which files to touch.
GUIDES = [ROOT / "CONTRIBUTING.md", ROOT / ".github" / "pull_request_template.md",
          *(ROOT / "docs" / "develop" / f"{name}.md" for name in ("add-a-stage", "add-a-board", "glossary"))]


def stale(text: str) -> list[str]:
    """Paths and commands of make in a guide that do not exist."""
    paths = re.findall(r"`(\.?[\w.-]+/[\w./-]*|[\w.-]+\.(?:py|md|toml|txt|yaml))`", text)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    roots = [ROOT, ROOT / "host" / "cli"]       # modules of the command are named without their folder
    return [*(path for path in paths if not path.startswith(".build/") and not any((r / path).exists() for r in roots)),
            *(f"make {name}" for name in re.findall(r"\bmake ([a-z][a-z-]*)(?=[\s`]| ARGS|$)", code(text))
              if name not in targets)]


def code(text: str) -> str:
    """What is set as code, a line each."""
    found = re.findall(r"^```\w*\n(.*?)^```|`([^`\n]+)`", text, re.MULTILINE | re.DOTALL)
    return "\n".join(block or inline for block, inline in found)


@pytest.mark.parametrize("page", GUIDES, ids=page_ids)
def test_guides_name_what_exists(page):
    assert stale(page.read_text()) == []


def test_guides_name_names_that_exist():
    """Identifiers in CONTRIBUTING are names in the sources."""
    sources = "".join(path.read_text() for part in ("hdl", "host", "boards", "sim", "tests")
                      for path in (ROOT / part).rglob("*.py"))
    text = (ROOT / "CONTRIBUTING.md").read_text()
    names = set(re.findall(r"`(_?[A-Za-z]+_[A-Za-z_]+|_?[A-Z]{4,}|[A-Z][a-z]+[A-Z][a-z]+)(?:\(\w+\))?`", text))
    assert len(names) > 10
    assert [name for name in sorted(names - {"i_foo", "o_foo"}) if not re.search(rf"\b{name}\b", sources)] == []


@pytest.mark.parametrize(("text", "said"), [
    ("`hdl/no_stage.py`", "hdl/no_stage.py"), ("`no_page.md`", "no_page.md"), ("`tests/nothing/`", "tests/nothing/"),
    ("`make nothing`", "make nothing"), ("```sh\nmake nothing ARGS=\"-k gate\"\n```\n", "make nothing")])
def test_a_stale_guide_is_noticed(text, said):
    assert stale(text) == [said]


def test_hooks_and_workflow_run_what_make_and_ci_run():
    """Nothing is downloaded by a hook; what hooks and workflow start exists."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]
    assert set(re.findall(r"language: (\S+)", hooks)) == {"system"}
    lint = re.search(r"^lint:.*?\n\n", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)[0]
    for entry in re.findall(r"entry: (.*)", hooks):
        assert entry == "make lint" or entry.split(" --")[0].replace(".venv/bin", "$(BIN)") in lint, entry
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"run: bash (\S+)", workflow) == [".ci/run"]
    assert (ROOT / ".ci" / "run").exists()


def test_the_site_is_locked():
    """Each package of the site at its version of constraints-site.txt, with hashes."""
    folder = ROOT / "requirements"
    pins = [line for line in (folder / "constraints-site.txt").read_text().splitlines() if not line.startswith("#")]
    locked = re.findall(r"^(\S+==\S+) \\\n +--hash=sha256:[0-9a-f]{64}", (folder / "locked-site.txt").read_text(),
                        re.MULTILINE)
    assert len(pins) > 20
    assert {pin.lower().replace("_", "-").replace(".", "-") for pin in pins} == \
        {pin.lower().replace("_", "-").replace(".", "-") for pin in locked}


def test_packages_are_installed_from_a_checkout():
    """There is no package in an index; docs/README.md says how else, and nobody else does."""
    assert [str(page.relative_to(ROOT)) for page in PAGES
            if "install 'hypermon[" in page.read_text()] == ["docs/README.md"]


def test_links_to_moved_pages_follow_them():
    """The site's home is not the README."""
    moved = SITE["moved"]
    assert moved("[a](README.md) [b](../README.md#use) [c](view.md)", Path("docs/home.md")) == \
        "[a](docs/README.md) [b](about.md#use) [c](docs/view.md)"
    assert moved("[a](../README.md) [b](../../README.md) [c](../home.md) [d](x.md#y)", Path("docs/develop/z.md")) == \
        "[a](../README.md) [b](../../about.md) [c](../../index.md) [d](x.md#y)"
    assert moved("[a](#status) [b](docs/home.md) [c](https://x.org/README.md)", Path("README.md")) == \
        "[a](#status) [b](index.md) [c](https://x.org/README.md)"


def test_pictures_are_made_by_the_command_and_small():
    made = set(re.findall(r'"([\w-]+\.png)"', (ROOT / "docs" / "tools" / "pictures.py").read_text()))
    there = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").iterdir()}
    assert set(there) == made
    assert [name for name, size in there.items() if size > 200_000] == []
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in there if f"pictures/{name})" not in text] == []
