"""Counts what the benches reach in the gateware, if ``HYPERMON_COVERAGE`` names a folder.

Points are put into every module as Amaranth builds it, because its Verilog does not say which line of Python a branch
came from:

- *line*: an assignment, or a next state, whose conditions all hold; at a clock edge if it is clocked. *always*: one
  without conditions.
- *branch*: a condition or a case that holds; also an ``If`` without ``Else`` of which nothing holds.
- *state*: a state of a state machine; *reset*: that state while its domain is reset.
- *toggle*: a bit of a named signal that rises, and one that falls; by Verilator alone.

A point is one of the source: any copy of it in any design reaches it. Verilator's designs have a file each in the
folder, Amaranth's simulator one for each process: point to whether it was reached. ``tests/mutation/cover.py`` reads
them, and has pytest load this module as a plugin.
"""

import atexit
import contextlib
import fcntl
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from amaranth.back import verilog
from amaranth.hdl import Cover, Fragment, Module, ResetSignal, Signal
from amaranth.sim._pyrtl import _StatementCompiler

__all__ = ["FLAGS", "FOLDER", "collect", "instrument"]

#: Where the points go, or None.
FOLDER = Path(os.environ["HYPERMON_COVERAGE"]).resolve() if os.environ.get("HYPERMON_COVERAGE") else None

#: What Verilator is told.
FLAGS = ("--coverage-user", "--coverage-toggle")
_HDL = str(Path(__file__).parents[3] / "hdl") + "/"
_POINT = re.compile(r"cover\s*\(\s*\\?cover/([^\s)$]+)")
_ALWAYS = re.compile(r"(?:wire|reg) \\cover/(\S+/always)")
_SOURCE = re.compile(r'src = "' + re.escape(_HDL) + r'([^:"]+):(\d+)')
_CONTEXT = contextlib.__file__
_WRITE: list[Callable[[], None]] = []
_FIELD = re.compile("\x01([^\x02]+)\x02([^\x01']*)")


def _place() -> str | None:
    """File and line in hdl/ that is being elaborated, as ``gate/drop_gate.py/73``."""
    frame = sys._getframe(2)
    while frame:
        file = frame.f_code.co_filename
        # That of a copy which a test has broken ends otherwise.
        if file.startswith(_HDL) and file.endswith(".py"):
            return f"{file[len(_HDL):]}/{frame.f_lineno}"
        if Path(file).name != "_dsl.py" and file not in (__file__, _CONTEXT):
            return None
        frame = frame.f_back
    return None


def _clocked(statements: Iterable[str]) -> str:
    """The first domain with a clock, if there is one."""
    return next((domain for domain in statements if domain != "comb"), "comb")


def instrument(folder: Path) -> None:
    """Every module that is elaborated from now on has points."""
    elaborated_points: dict[str, bool] = {}
    add, pop, elaborate, init = Module._add_statement, Module._pop_ctrl, Module.elaborate, Module.__init__

    def initialized(self: Module) -> None:
        init(self)
        self._points = {}

    def point(module: Module, name: str, domain: str) -> Any:
        """The assignment that says that a point is reached."""
        key = (name, domain)
        if key not in module._points:
            module._points[key] = Signal(name=f"cover/{name}", src_loc_at=0)
        return module._points[key].eq(1)

    def added(self: Module, assigns: Any, domain: str, depth: int) -> None:
        add(self, assigns, domain, depth)
        if place := _place():
            under = self.domain._depth or any(name == "FSM" for name, _ in self._ctrl_stack)
            name = f"{place}/{'line' if under else 'always'}"
            add(self, point(self, name, domain), "comb", depth)

    def opened(original: Callable) -> Callable:
        kind = original.__name__

        @contextlib.contextmanager
        def body(self: Module, *arguments: Any) -> Iterator[Any]:
            place = _place()
            with original(self, *arguments) as value:
                if kind == "If":
                    self._ctrl_stack[-1][1]["place"] = place
                yield value
                if place:
                    self._flush_ctrl()
                    name = f"{place}/state/{arguments[0]}" if kind == "State" else f"{place}/branch/{kind}"
                    add(self, point(self, name.replace(" ", "_"), _clocked(self._statements)), "comb", 0)
        return body

    def popped(self: Module) -> None:
        kind, data = self._ctrl_stack[-1]
        if kind == "If" and data.get("place") and len(data["bodies"]) == len(data["tests"]):
            domain = _clocked({domain: None for body in data["bodies"] for domain in body})
            data["bodies"].append({"comb": [point(self, f"{data['place']}/branch/else", domain)]})
            data["src_locs"].append(data["src_loc"])
        pop(self)

    def elaborated(self: Module, platform: Any) -> Fragment:
        fragment = elaborate(self, platform)
        for (name, domain), signal in self._points.items():
            elaborated_points.setdefault(name, name.endswith("/always"))
            if name.endswith("/always"):
                continue
            fragment.add_statements(domain, Cover(signal))
            if "/state/" in name and domain != "comb":
                reset = Signal(name=f"cover/{name.replace('/state/', '/reset/')}", src_loc_at=0)
                fragment.add_statements("comb", reset.eq(signal & ResetSignal(domain, allow_reset_less=True)))
                fragment.add_statements(domain, Cover(reset))
                elaborated_points.setdefault(reset.name.removeprefix("cover/"), False)
        return fragment
    Module._add_statement, Module._pop_ctrl, Module.elaborate, Module.__init__ = added, popped, elaborated, initialized
    for name in ("If", "Elif", "Else", "Case", "Default", "State"):
        setattr(Module, name, opened(getattr(Module, name)))

    # Whole designs are written without sources elsewhere, because the text would contain paths.
    convert = verilog.convert
    verilog.convert = lambda *arguments, **options: convert(
        *arguments, **options | {"emit_src": True, "strip_internal_attrs": False})

    # Amaranth's simulator prints a cover point that has a message. These are noted instead.
    def covered(self: Any, statement: Any) -> None:
        if statement.kind == statement.Kind.Cover:
            self.emitter.append(f"if {self.rhs.sign(statement.test)}:")
            with self.emitter.indent():
                self.emitter.append(f"reach({statement.test.name.removeprefix('cover/')!r}, True)")
        else:
            checked(self, statement)
    checked = _StatementCompiler.on_Property
    _StatementCompiler.on_Property = covered
    _StatementCompiler.helpers["reach"] = elaborated_points.__setitem__

    def write() -> None:
        _add(folder / f"process-{os.getpid()}.json", elaborated_points)
    folder.mkdir(parents=True, exist_ok=True)
    atexit.register(write)
    _WRITE.append(write)


def pytest_sessionfinish() -> None:
    """Writes what this process has reached: pytest may end a worker before it comes to ``atexit``."""
    for write in _WRITE:
        write()


def collect(data: Path, design: Path, kept: Path) -> None:
    """Add what a run has reached to what the runs before it have.

    Parameters
    ----------
    data : Verilator's ``coverage.dat``.
    design : the Verilog.
    kept : a JSON file: point to whether it was reached.
    """
    lines = design.read_text().split("\n")
    reached: dict[str, bool] = {}
    for line in lines:
        if "cover/" in line and "/always" in line and (found := _ALWAYS.search(line)):
            reached[found[1]] = True
    for line in data.read_text(errors="replace").split("\n"):
        if not line.startswith("C "):
            continue
        fields, _, count = line.rpartition("' ")
        field = dict(_FIELD.findall(fields))
        if Path(field["f"]).name != design.name:
            continue
        at = int(field["l"])
        if field["page"].startswith("v_user"):
            found = _POINT.search(" ".join(lines[at - 1:at + 1]))
            key = found and found[1]
        elif "cover/" in lines[at - 1]:
            continue
        else:
            source = _SOURCE.search(lines[at - 2]) or _SOURCE.search(lines[at - 3])
            key = source and f"{source[1]}/{source[2]}/toggle/{field['o']}"
        if key:
            reached[key] = reached.get(key, False) or int(count) > 0
    _add(kept, reached)


def _add(kept: Path, reached: dict[str, bool]) -> None:
    """To a file of points."""
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = json.loads(kept.read_text()) if kept.exists() else {}
        for key, value in before.items():
            reached[key] = reached.get(key, False) or value
        kept.with_suffix(".new").write_text(json.dumps(reached))
        kept.with_suffix(".new").rename(kept)
