"""References in docstrings name something that exists: roles such as ``:func:``, and paths of files and folders."""

import ast
import builtins
import importlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("hdl", "host", "sim", "boards", "studies")
ROLE = re.compile(r":(func|class|mod|data|meth|attr|exc):`([^`]+)`")
#: A file of the sources, or a folder below one of the root's.
FILE = re.compile(r"``([\w.-]+(?:/[\w.-]+)*\.(?:py|c|h|cpp|md|rs))``")
FOLDER = re.compile(r"``((?:boards|docs|examples|hdl|host|node|sim|studies|tests)(?:/[\w-]+)*/?)``")


@dataclass
class Names:
    """What a module or class defines: names by kind; of a module, also what it imports. ``bases``: of a class."""

    kinds: dict[str, str] = field(default_factory=dict)
    classes: dict[str, "Names"] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)


def targets(node: ast.expr) -> Iterator[str]:
    """The names that an assignment to this defines, also those of ``self``."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        yield node.attr
    elif isinstance(node, ast.Tuple | ast.List):
        for one in node.elts:
            yield from targets(one)


def names_of(body: list[ast.stmt]) -> Names:
    """What these statements define."""
    names = Names()
    for node in body:
        if isinstance(node, ast.ClassDef):
            names.kinds[node.name] = "class"
            names.classes[node.name] = inner = names_of(node.body)
            inner.bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
            for one in ast.walk(node):      # members: what a contract declares, and what methods assign
                if isinstance(one, ast.Assign | ast.AnnAssign):
                    for at in one.targets if isinstance(one, ast.Assign) else [one.target]:
                        for name in targets(at):
                            inner.kinds.setdefault(name, "data")
            for member in re.findall(r"``(\w+)``|^ +(\w[\w, ]*) : ", ast.get_docstring(node, clean=False) or "", re.M):
                for name in "".join(member).split(", "):
                    inner.kinds.setdefault(name, "data")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.kinds[node.name] = "func"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                names.kinds.setdefault(alias.asname or alias.name.partition(".")[0], "import")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for at in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in targets(at):
                    names.kinds.setdefault(name, "data")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                more = names_of(getattr(node, part, []))
                names.kinds = more.kinds | names.kinds
                names.classes = more.classes | names.classes
    return names


def dotted(path: Path) -> str:
    parts = ["hypermon", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Names]:
    """All modules by dotted name; of a package, also what it hands on of its modules."""
    found, stars = {}, {}
    for path in (path for part in PARTS for path in (ROOT / part).rglob("*.py")):
        body = ast.parse(path.read_text()).body
        found[dotted(path)] = names_of(body)
        stars[dotted(path)] = [f"{dotted(path)}.{node.module}" for node in body if isinstance(node, ast.ImportFrom)
                               and node.level == 1 and node.names[0].name == "*"]
    for package, given in stars.items():
        for name in given:
            found[package].kinds = found[name].kinds | found[package].kinds
            found[package].classes = found[name].classes | found[package].classes
    return found


@cache
def classes() -> dict[str, list[Names]]:
    """All classes by name."""
    found: dict[str, list[Names]] = {}
    for module in modules().values():
        for name, one in module.classes.items():
            found.setdefault(name, []).append(one)
    return found


@cache
def qualified() -> dict[str, str]:
    """Kind of each dotted name: modules, what they define or import, and members of classes."""
    found = {}
    for module, names in modules().items():
        found[module] = "mod"
        for name, kind in names.kinds.items():
            found.setdefault(f"{module}.{name}", kind)
        for name in names.classes:
            for member, kind in members(name).items():
                found[f"{module}.{name}.{member}"] = kind
    return found


@cache
def suffixes() -> dict[str, set[str]]:
    """Kinds of the dotted names that end in each."""
    found: dict[str, set[str]] = {}
    for name, kind in qualified().items():
        parts = name.split(".")
        for at in range(len(parts)):
            found.setdefault(".".join(parts[at:]), set()).add(kind)
    return found


@cache
def members(name: str) -> dict[str, str]:
    """Members of all classes of that name, and of what they are derived from."""
    found: dict[str, str] = {}
    for one in classes().get(name, []):
        for base in one.bases:
            found |= members(base) if base != name else {}
        found |= one.kinds
    return found


def outside(reference: str) -> bool:
    """Something of the standard library or of a package."""
    parts = reference.split(".")
    for at in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:at]))
        except ImportError:
            continue
        for name in parts[at:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return hasattr(builtins, parts[0])


#: The kinds of names that a role can name; an assigned name can be a class, a function or a value.
FITS = {"func": {"func", "import", "data"}, "class": {"class", "import", "data"}, "mod": {"mod", "import"},
        "data": {"data", "import"}, "meth": {"func", "data"}, "attr": {"data", "func"}, "exc": {"class", "import"}}


def exists(role: str, reference: str, module: str, within: tuple[str, ...] = ()) -> bool:
    """Whether a docstring of a module, within these classes, may refer to that.

    As Sphinx resolves it: a name of the module or the class, a full name, or, after a point, the end of any.
    """
    name = reference.removeprefix("~")
    if name.startswith("."):
        return bool(suffixes().get(name.lstrip("."), set()) & FITS[role])
    if name.startswith("hypermon."):
        return qualified().get(name, "") in FITS[role]
    own = modules()[module].kinds
    first, _, member = name.partition(".")
    if member:
        return (first in own and member in members(first)) or outside(name)
    return (own.get(name, "") in FITS[role] or any(name in members(one) for one in within)
            or (role == "mod" and outside(name)))


@cache
def tracked() -> tuple[set[str], set[str]]:
    """All files and folders, by each end of their paths."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    files = {"/".join(parts[at:]) for parts in (name.split("/") for name in listed) for at in range(len(parts))}
    return files, {str(parent) for name in listed for parent in Path(name).parents}


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Line, text, and the classes around it."""
    def within(node: ast.AST, around: tuple[str, ...]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
        if isinstance(node, ast.ClassDef):
            around = (*around, node.name)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.body[0].lineno, text, around
        for child in ast.iter_child_nodes(node):
            yield from within(child, around)

    yield from within(tree, ())


def dead(text: str, module: str, within: tuple[str, ...] = ()) -> list[tuple[int, str]]:
    """The references in a docstring that name nothing, with their offset."""
    files, folders = tracked()
    found = [(m.start(), m[0]) for m in ROLE.finditer(text) if not exists(m[1], m[2], module, within)]
    found += [(m.start(), m[0]) for m in FILE.finditer(text) if m[1] not in files]
    return found + [(m.start(), m[0]) for m in FOLDER.finditer(text) if m[1].rstrip("/") not in folders]


@pytest.mark.parametrize("part", PARTS)
def test_references_in_docstrings_name_what_exists(part):
    found = []
    for path in sorted((ROOT / part).rglob("*.py")):
        for line, text, within in docstrings(ast.parse(path.read_text())):
            found += [f"{path.relative_to(ROOT)}:{line + text[:at].count(chr(10))}: {reference}"
                      for at, reference in dead(text, dotted(path), within)]
    assert found == []


@pytest.mark.parametrize("text", [
    ":func:`no_such_function`", ":func:`.account.nothing`", ":class:`~.ledger.Accounts`", ":mod:`.analysis.soundness`",
    ":meth:`nothing`", ":meth:`Summary.nothing`", ":data:`hypermon.host.decode.account.NOTHING`", ":func:`zlib.crc33`",
    ":mod:`summary`", "``host/nothing.py``", "``nothing.c``", "``host/nothing/``"])
def test_a_dead_reference_is_noticed(text):
    assert dead(text, "hypermon.host.decode.account", ("Summary",)) == [(0, text)]


@pytest.mark.parametrize("text", [
    ":func:`summary`", ":func:`.account.summary`", ":class:`~.ledger.Ledger`", ":mod:`.decode.soundness`",
    ":meth:`as_dict`", ":meth:`Summary.as_dict`", ":data:`hypermon.host.decode.account.USUAL`", ":func:`zlib.crc32`",
    ":meth:`.Ledger.causes`", "``host/decode/account.py``", "``compact.c``", "``host/decode/``", "``x / y.z``"])
def test_a_living_reference_is_not(text):
    assert dead(text, "hypermon.host.decode.account", ("Summary",)) == []
