"""Builds the documentation site: `make site`.

The pages are those of the repository, in the order of docs/README.md; the reference is made of the docstrings.
Links are checked: the build fails if one leads nowhere.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

TOOLS = Path(__file__).parent
DOCS = TOOLS.parent
ROOT = DOCS.parent
WORK = ROOT / ".build" / "site-work"
OUT = ROOT / ".build" / "site"
PAGES = WORK / "pages"
#: Parts of the reference, in the order in which people use them, and what they are called.
PARTS = {"host": "Host", "hdl": "Gateware", "sim": "Simulation", "boards": "Boards",
         "studies": "Studies"}
#: Files beside the documentation that pages refer to.
_BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")

#: Pages that are elsewhere in the site: its home is a page of doors, and the README, which code hosts show, is another.
_MOVED = {Path("docs/home.md"): Path("index.md"), Path("README.md"): Path("about.md")}

#: Before each page: the search shows pages before the reference.
_FIRST = "---\nsearch:\n  boost: 1000\n---\n\n"
#: Before the home: the doors get the whole width.
_HOME = "---\nhide: [navigation, toc]\nsearch:\n  boost: 1000\n---\n\n"


def staged() -> None:
    """Copies the pages, with the folders that they have in the repository."""
    shutil.rmtree(WORK, ignore_errors=True)
    others = shutil.ignore_patterns("tools", "*.json", "*.net")
    shutil.copytree(DOCS, PAGES / "docs", ignore=others)
    for name in _BESIDE:
        shutil.copy(ROOT / name, PAGES / name)
    (PAGES / "LICENSE.md").write_text(f"# Licence\n\n```text\n{(ROOT / 'LICENSE').read_text()}```\n")
    for page in PAGES.rglob("*.md"):
        here = page.relative_to(PAGES)
        text = re.sub(r"\((?:\.\./)*LICENSE\)", lambda m: m[0][:-1] + ".md)", page.read_text())
        page.write_text((_HOME if here == Path("docs/home.md") else _FIRST) + _spaced(moved(text, here)))
    for here, there in _MOVED.items():
        (PAGES / here).rename(PAGES / there)
    shutil.copy(TOOLS / "site.css", PAGES / "site.css")


def moved(text: str, here: Path) -> str:
    """The links of a page, to and from where the site has it.

    Parameters:
        text: The page, as the repository has it.
        here: Its file, seen from the root of the repository.
    """
    folder = _MOVED.get(here, here).parent

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(here.parent / match[1]))
        if not {here, target} & set(_MOVED):
            return match[0]
        return f"]({Path(os.path.relpath(_MOVED.get(target, target), folder)).as_posix()}{match[2]})"
    return re.sub(r"\]\((?!https?:|#)([^)#]+)((?:#[^)]*)?)\)", link, text)


def _spaced(text: str) -> str:
    """An empty line before each list, which code hosts do without."""
    lines, out, fenced = text.splitlines(), [], False
    for line in lines:
        fenced ^= line.startswith("```")
        begins = re.match(r"(- |\d+\. )", line) and not fenced
        if begins and out and out[-1].strip() and not re.match(r"\s|- |\d+\. ", out[-1]):
            out.append("")
        out.append(line)
    return "\n".join(out) + "\n"


def index() -> list:
    """The pages in the order of docs/README.md, a section for each of its headings."""
    sections = []
    for section in re.split(r"^## ", (DOCS / "README.md").read_text(), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0].partition(":")[0]
        pages = [{name.capitalize() if name[0].islower() else name: _path(target)}
                 for name, target in re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\)", section, re.MULTILINE)]
        sections.append({title: [_with_boards(page) for page in pages]})
    return sections


def _path(target: str) -> str:
    return target.removeprefix("../") if target.startswith("../") else f"docs/{target}"


def _with_boards(page: dict) -> dict:
    """The pages of the single boards below theirs."""
    [(name, path)] = page.items()
    if path != "docs/boards/README.md":
        return page
    return {name: [path, *(f"docs/boards/{p.name}" for p in sorted((DOCS / "boards").glob("*.md"))
                           if p.name != "README.md")]}


def reference() -> list:
    """Writes a page for each package, of what its modules export; returns their places in the index."""
    generate = runpy.run_path(str(TOOLS / "generate.py"))
    parts = []
    for part, title in PARTS.items():
        pages = []
        for package in generate["packages"](part):
            about, names = generate["flow"](ROOT / package)
            own = [name for name in names if (ROOT / package / f"{name}.py").exists()]
            text = f"# {package.replace('/', '.')}\n\n{about}\n\n"
            if "__all__" in (ROOT / package / "__init__.py").read_text():
                text += f"::: hypermon.{package.replace('/', '.')}\n\n"
            text += "".join(f"::: hypermon.{package.replace('/', '.')}.{name}\n\n" for name in own)
            path = f"reference/{package.replace('/', '.')}.md"
            (PAGES / path).parent.mkdir(exist_ok=True)
            (PAGES / path).write_text(text)
            pages.append({package.replace("/", "."): path})
        parts.append({title: pages})
    return parts


def main() -> int:
    """Writes the site to .build/site; returns the exit status of mkdocs."""
    staged()
    nav = [{"Home": "index.md"}, {"About": "about.md"}, {"All pages": "docs/README.md"}, *index(),
           {"Reference": reference()}, {"Licence": "LICENSE.md"}]
    more = yaml.safe_dump({"docs_dir": str(PAGES), "site_dir": str(OUT), "nav": nav}, sort_keys=False)
    (WORK / "mkdocs.yml").write_text((TOOLS / "mkdocs.yml").read_text() + more)
    # Not --quiet, with which --strict finds nothing: warnings that are not shown are not counted.
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", WORK / "mkdocs.yml"],
                          check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    for line in done.stderr.splitlines():
        if not line.startswith("INFO"):
            print(line, file=sys.stderr)
    if done.returncode == 0:
        print(f"{OUT.relative_to(ROOT)}: {len(list(OUT.rglob('*.html')))} pages. To read them, search included: "
              f"python3 -m http.server -d {OUT.relative_to(ROOT)} -b 127.0.0.1")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
