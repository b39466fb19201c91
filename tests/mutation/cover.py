"""Coverage: what of the gateware and of the host do the tests reach?

``make mutation OF=coverage`` runs the benches of the gateware, and lists what they did not reach; ``ARGS=host`` runs
the tests of the host. See docs/develop/verification.md.
"""

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Point", "branches", "main", "places", "points", "report"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".build" / "coverage"
#: What tests/hdl/harness/coverage.py counts, and under which heading.
KINDS = {"always": "lines", "line": "lines", "branch": "branches", "state": "states", "reset": "resets in states",
         "toggle": "toggles"}
HEADINGS = tuple(dict.fromkeys(KINDS.values()))
_CODE, _COPY = re.compile("__0([0-9A-F]{2})"), re.compile(r"\$\d+")
#: Tests of the host, by folder: those that are not of the gateware alone.
HOST_TESTS = ("tests/host", "tests/sim", "tests/node", "tests/e2e", "tests/boards", "tests/pages", "tests/studies")


@dataclass(frozen=True, order=True)
class Point:
    """A place of the gateware that a bench should reach.

    Members
    -------
    file : in ``hdl/``.
    line : of the file.
    kind : key of ``KINDS``.
    detail : name of the state, of the branch's statement, or of the bit and its direction.
    """

    file: str
    line: int
    kind: str
    detail: str = ""

    @property
    def room(self) -> str:
        """The folder of the file; ``tops`` for those in none."""
        return str(Path(self.file).parent) if "/" in self.file else "tops"

    @property
    def heading(self) -> str:
        return KINDS[self.kind]

    @classmethod
    def of(cls, key: str) -> "Point":
        """The point of a key of the files in the folder."""
        file, _, rest = key.partition(".py/")
        line, kind, *detail = rest.split("/", 2)
        if kind == "toggle":
            # Verilator writes _05F for an underscore, and Yosys $ and a number after a name that occurs again.
            detail = [_COPY.sub("", _CODE.sub(lambda code: chr(int(code[1], 16)), detail[0]))]
        return cls(f"{file}.py", int(line), kind, *detail)


def points(folder: Path) -> dict[Point, bool]:
    """Every point of the gateware, and whether it was reached."""
    reached: dict[Point, bool] = {}
    for kept in sorted(folder.glob("*.json")):
        for key, value in json.loads(kept.read_text()).items():
            point = Point.of(key)
            reached[point] = reached.get(point, False) or value
    built = {(point.file, point.line) for point in reached if point.heading in ("lines", "branches", "states")}
    for path in sorted((ROOT / "hdl").rglob("*.py")):
        file = str(path.relative_to(ROOT / "hdl"))
        for line, kind in places(path.read_text()):
            if (file, line) not in built:
                reached[Point(file, line, kind, "in no design")] = False
    return reached


def places(source: str) -> Iterator[tuple[int, str]]:
    """Line and kind of each assignment and each condition of a module of the gateware, from its text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute | ast.Subscript):
            if isinstance(node.target.value, ast.Attribute) and node.target.value.attr == "d":
                yield node.lineno, "line"
        elif isinstance(node, ast.With):
            for call in (item.context_expr for item in node.items):
                kind = getattr(getattr(call, "func", None), "attr", "")
                if kind in ("If", "Elif", "Else", "Case", "Default", "State"):
                    yield call.lineno, "state" if kind == "State" else "branch"


def report(reached: dict[Point, bool], toggles: bool = False) -> str:
    """A table of rooms, as Markdown; after it, each point that was not reached, toggles only if asked for."""
    rooms: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for point, value in reached.items():
        rooms[point.room][point.heading, value] += 1
    total: Counter[tuple[str, bool]] = Counter()
    for counts in rooms.values():
        total.update(counts)
    lines = [f"| room of `hdl/` | {' | '.join(HEADINGS)} |", f"| --- |{' ---: |' * len(HEADINGS)}"]
    for room, counts in [*sorted(rooms.items()), ("all", total)]:
        cells = []
        for heading in HEADINGS:
            yes, no = counts[heading, True], counts[heading, False]
            cells.append(f"{yes} of {yes + no}" if yes + no else "")
        lines.append(f"| {room} | {' | '.join(cells)} |")
    lines += ["", *(f"not reached: hdl/{p.file}:{p.line} {p.kind} {p.detail}".rstrip() for p in sorted(reached)
                    if not reached[p] and (toggles or p.kind != "toggle"))]
    return "\n".join(lines)


def branches(measured: dict[str, dict[str, dict[str, int]]]) -> str:
    """A table of rooms, as Markdown, from what ``coverage json`` calls *files*."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for file, entry in measured.items():
        folder = str(Path(file).parent)
        for room in (folder, "all"):
            rooms[room].update({key: entry["summary"][key] for key in (
                "covered_lines", "num_statements", "covered_branches", "num_branches")})
    lines = ["| room | lines | branches | branches, % |", "| --- | ---: | ---: | ---: |"]
    for room in [*sorted(set(rooms) - {"all"}), "all"]:
        counts = rooms[room]
        share = f"{100 * counts['covered_branches'] / counts['num_branches']:.1f}" if counts["num_branches"] else ""
        lines.append(f"| {room} | {counts['covered_lines']} of {counts['num_statements']} | "
                     f"{counts['covered_branches']} of {counts['num_branches']} | {share} |")
    return "\n".join(lines)


def _pytest(arguments: Iterable[str], **environment: str) -> int:
    command = [sys.executable, "-m", "pytest", "--numprocesses=auto", "--dist=loadfile", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode


def _gateware(tests: list[str], run: bool, toggles: bool) -> int:
    folder, status = FOLDER / "gateware", 0
    if run:
        shutil.rmtree(folder, ignore_errors=True)
        plugin = ["-p", "tests.hdl.harness.coverage"]
        status = _pytest(["-m", "not slow and not formal", *plugin, *(tests or ["tests/hdl"])],
                         HYPERMON_COVERAGE=str(folder))
    print(report(points(folder), toggles))
    return status


def _host(tests: list[str], run: bool, _toggles: bool) -> int:
    folder, status = FOLDER / "host", 0
    settings, table = folder / "settings", folder / "host.json"
    coverage = [sys.executable, "-m", "coverage"]
    if run:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        # Commands that a test starts are measured, too.
        settings.write_text(f"[run]\nbranch = true\nparallel = true\npatch = subprocess\nsource = {ROOT}/host\n"
                            f"data_file = {folder}/data\nrelative_files = true\n")
        status = _pytest(["-m", "not long and not slow and not formal", *(tests or HOST_TESTS)],
                         COVERAGE_PROCESS_START=str(settings))
        subprocess.run([*coverage, "combine", "--quiet", f"--rcfile={settings}"], cwd=ROOT, check=True)
        subprocess.run([*coverage, "json", "--quiet", f"--rcfile={settings}", "-o", table], cwd=ROOT, check=True)
    print(branches(json.loads(table.read_text())["files"]))
    return status


def main(argv: list[str] | None = None) -> int:
    """The command line; its status is that of the tests."""
    parser = argparse.ArgumentParser(prog="make mutation OF=coverage", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("gateware", "host"), default="gateware")
    parser.add_argument("tests", nargs="*", help="arguments for pytest; the default is all tests of it")
    parser.add_argument("--report", action="store_true", help="run nothing: list what the last run reached")
    parser.add_argument("--toggles", action="store_true", help="list the bits that do not rise or fall, too")
    options = parser.parse_args(argv)
    return {"gateware": _gateware, "host": _host}[options.what](options.tests, not options.report, options.toggles)


if __name__ == "__main__":
    sys.exit(main())
