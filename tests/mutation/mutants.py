"""Mutants of sources: small changes of text at places that Python's grammar finds. Here, those of the gateware.

A mutant replaces one piece of one file: an operator by its neighbour, a number by the next one, the
arms of a ``Mux`` by each other, a condition by its opposite, an assignment by none. Those of a file
stand in an order that the file's name and the seed decide, so that a change of one file leaves the
mutants of the others as they are.
"""

import ast
import functools
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Change", "Finder", "Mutant", "shares", "shuffled", "sites", "source", "stages"]

#: What a hardware description reads, but what is not of the capture path: formats, and text of Verilog.
_NO_STAGE = {"__init__", "layout", "verilog"}
#: Mutants of a file at least, if there are as many.
LEAST = 3
_OPERATORS = {ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"), ast.Add: ("+", "-"),
              ast.Sub: ("-", "+"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="),
              ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
#: Calls whose numbers are widths or names; a wider signal is no other machine.
_SHAPES = {"Signal", "range", "replicate", "StructLayout", "ArrayLayout", "UnionLayout", "In", "Out", "like", "planes"}
#: Calls whose first argument, or ``shape``, is one.
_MEMORIES = {"SmallFifo", "StreamFifo", "Ram", "Memory"}


@dataclass(frozen=True)
class Mutant:
    """A change of one file: ``old``, which stands in columns ``start`` to ``end`` of its text, becomes ``new``."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str
    context: str        # the source line, without its indentation
    nth: int = 0        # of those alike in lines alike
    widens: bool = field(default=False, compare=False)      # a memory or a slice, by a bit, and nothing else

    def __str__(self) -> str:
        def short(text: str) -> str:
            text = " ".join(text.split())
            return text if len(text) < 60 else f"{text[:38]} ... {text[-18:]}"
        return f"{self.file}:{self.line}: {short(self.old)} -> {short(self.new) or 'nothing'}"

    @functools.cached_property
    def key(self) -> str:
        """Names the mutant for as long as its line says the same, wherever that stands."""
        parts = (self.file, self.context, self.old, self.new, str(self.nth))
        return f"{self.file.removesuffix('.py')}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:10]}"

    def applied(self, text: str) -> str:
        """The file with the change."""
        assert text[self.start:self.end] == self.old, f"{self} is not of this text"
        return text[:self.start] + self.new + text[self.end:]


def source(folder: Path, name: str) -> Path:
    """Where in ``folder`` a file is, by its path there, or by its name if that is of one file."""
    if (folder / name).exists():
        return folder / name
    [path] = folder.rglob(name)
    return path


def stages(folder: Path, root: str = "capture.py") -> list[str]:
    """Files of ``root`` and of all that it uses, by name."""
    found, todo = set(), [root]
    while todo:
        name = todo.pop()
        if name in found or name.removesuffix(".py") in _NO_STAGE or not [*folder.rglob(name)]:
            continue
        found.add(name)
        tree = ast.parse(source(folder, name).read_text())
        todo += [f"{node.module.rpartition('.')[2]}.py" for node in ast.walk(tree)
                 if isinstance(node, ast.ImportFrom) and node.level and node.module]
    return sorted(found)


def shares(numbers: dict[str, int], count: int, least: int = LEAST) -> dict[str, int]:
    """``count`` mutants among files with so many places each: in proportion, at least a few each."""
    for part in range(1, 1001):
        found = {name: min(number, max(least, -(-number * part // 1000))) for name, number in numbers.items()}
        if sum(found.values()) >= count:
            break
    return found


def shuffled(file: str, text: str, seed: int, finder: "type[Finder] | None" = None) -> list[Mutant]:
    """Mutants of a file, in the order in which they are drawn; what only widens something is not."""
    found = sites(file, text, finder)
    random.Random(f"{seed} {file}").shuffle(found)
    return [mutant for mutant in found if not mutant.widens]


def sites(file: str, text: str, finder: "type[Finder] | None" = None) -> list[Mutant]:
    """All mutants of a file, in the order of its text: those of the gateware's Finder, or of another."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    found: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}
    finding = (finder or Finder)(text, starts)
    for line, start, end, new in sorted(set(finding.of(ast.parse(text)))):
        context, old = lines[line - 1].strip(), text[start:end]
        nth = seen[context, old, new] = seen.get((context, old, new), -1) + 1
        widens = old.isdigit() and any(low <= start and end <= high for low, high in finding.widths)
        found.append(Mutant(file, line, start, end, old, new, context, nth, widens))
    return found


#: Line, first and last position, new text.
Change = tuple[int, int, int, str]


class Finder:
    """Finds changes in functions that make hardware.

    Parameters
    ----------
    starts : position in the text of each line's first character.
    """

    operators = _OPERATORS

    def __init__(self, text: str, starts: list[int]):
        self.text, self.starts = text, starts
        self.lines = text.splitlines()
        #: Where it stands how wide a memory is, or where a slice ends.
        self.widths: list[tuple[int, int]] = []

    def of(self, tree: ast.Module) -> Iterator[Change]:
        for node in ast.walk(tree):
            # Functions in functions come with those around them.
            if isinstance(node, ast.FunctionDef) and node.name != "__init__" and not node.name.endswith(
                    ("_layout", "_signature")):
                self.states = sorted({n.args[0].value for n in ast.walk(node) if _is_call(n, "State")})
                for statement in node.body:
                    yield from self._in(statement)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)

    def _place(self, line: int, column: int) -> int:
        """Position in the text of a column, which is counted in bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _change(self, node: ast.AST, new: str) -> Change:
        return (node.lineno, *self._span(node), new)

    def _source(self, node: ast.AST) -> str:
        return self.text[slice(*self._span(node))]

    def _operator(self, left: ast.AST, right: ast.AST, op: ast.AST) -> Iterator[Change]:
        """What stands between two operands."""
        if type(op) in self.operators:
            old, new = self.operators[type(op)]
            at = self.text.index(old, self._span(left)[1], self._span(right)[0])
            yield self.text.count("\n", 0, at) + 1, at, at + len(old), new

    def _in(self, node: ast.AST) -> Iterator[Change]:
        skipped: set[ast.AST] = set()
        match node:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.FunctionDef(name="__init__"):
                return
            case ast.BinOp(left=left, right=right, op=op):
                yield from self._operator(left, right, op)
            case ast.Compare(left=left, comparators=[right], ops=[op]):
                yield from self._operator(left, right, op)
            case ast.UnaryOp(op=ast.Invert()):
                start, _ = self._span(node)
                yield node.lineno, start, start + 1, ""
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield self._change(node, str(value + 1))
            case ast.Call(func=ast.Name(id="Mux"), args=[_, one, two]):
                start, end = self._span(one)[0], self._span(two)[1]
                between = self.text[self._span(one)[1]:self._span(two)[0]]
                if one.lineno == two.end_lineno:
                    yield one.lineno, start, end, self._source(two) + between + self._source(one)
            case ast.Call(func=ast.Attribute(attr="If" | "Elif"), args=[condition]):
                yield self._change(condition, f"({self._source(condition)}) == 0")
            case ast.List(elts=elements):
                yield from (self._change(e, "*()") for e in elements if _is_call(e, "eq"))
            case ast.AugAssign(value=value) if _is_call(value, "eq"):
                yield self._change(value, "[]")
            case ast.Assign(targets=[ast.Attribute(attr="next")], value=ast.Constant(value=str(name))):
                if name in self.states and len(self.states) > 1:
                    after = self.states[(self.states.index(name) + 1) % len(self.states)]
                    yield self._change(node.value, f'"{after}"')
        if isinstance(node, ast.Slice) and node.upper is not None:
            self.widths.append(self._span(node.upper))
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in _SHAPES:
                skipped |= set(node.args)
                skipped |= {k for k in node.keywords if k.arg != "init"}
            elif name == "Const":
                skipped |= set(node.args[1:])
            elif name in _MEMORIES:
                self.widths += map(self._span, (*node.args[:1], *(k.value for k in node.keywords if k.arg == "shape")))
            for keyword in node.keywords:
                if keyword.arg == "init" and isinstance(keyword.value, ast.Constant):
                    skipped.add(keyword)
                    if keyword.value.value == 1:
                        yield self._change(keyword.value, "0")
        for child in ast.iter_child_nodes(node):
            if child not in skipped:
                yield from self._in(child)


def _is_call(node: ast.AST, name: str) -> bool:
    """Is it a call of a method of that name?"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
