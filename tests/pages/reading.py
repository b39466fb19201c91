"""The blocks of the pages, and the statements of a shell block."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "blocks", "statements"]

ROOT = Path(__file__).parents[2]
#: Pages that have blocks of shell or Python.
PAGES = {str(path.relative_to(ROOT)) for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md",
                                                  *(ROOT / "docs").rglob("*.md"))
         if re.search(r"^ *```(sh|python)$", path.read_text(), re.MULTILINE)}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the text of the ``text`` block right after it, if there is one."""

    kind: str
    code: str
    shown: str


def blocks(page: str) -> list[Block]:
    """The blocks of shell, Python and TOML of a page."""
    text = (ROOT / page).read_text()
    found = [(match[1], match[2], match.end()) for match in
             re.finditer(r"^```(\w+)\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)]
    after = [re.match(r"\s*```text\n(.*?)^```", text[end:], re.MULTILINE | re.DOTALL) for *_, end in found]
    return [Block(kind, code, shown[1] if shown else "") for (kind, code, _), shown in zip(found, after, strict=True)
            if kind in ("sh", "python", "toml")]


def statements(code: str) -> list[str]:
    """The statements of a shell block, with their comments. Raises AssertionError if it is not well formed."""
    found, begun = [], ""
    for line in code.splitlines():
        begun += line
        said = subprocess.run(["bash", "-n"], input=begun, capture_output=True, text=True, check=False)
        if said.returncode or begun.endswith("\\"):
            begun += "\n"
            continue
        if begun.strip() and not begun.lstrip().startswith("#"):
            found.append(begun)
        begun = ""
    assert not begun, f"not well formed:\n{begun}"
    return found
