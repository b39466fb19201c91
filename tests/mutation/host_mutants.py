"""Mutants of the host's sources: mistakes that a Python program may have. See mutants.py for the rest."""

import ast
import functools
import itertools
from collections.abc import Iterator

from mutants import Change, Finder

__all__ = ["HostFinder", "function_of"]

_OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
#: Their neighbours are not their opposites.
_BOUNDS = {ast.Lt, ast.LtE, ast.Gt, ast.GtE}
#: Calls and arguments whose numbers are seconds to wait: a longer one is no other program.
_WAITS = {"sleep", "wait_for", "settimeout", "wait", "join", "select"}
_SECONDS = {"timeout", "timeout_seconds"}
#: Arguments that ask for a check, or for a style: nothing else depends on them.
_STYLE = {"strict", "flush", "daemon", "ensure_ascii", "indent", "padding"}


class HostFinder(Finder):
    """Finds changes in functions of the host: operators and numbers, conditions, and statements that are left out.

    What a message says, annotations, decorators and assertions are not changed, nor is a module's table of constants.
    """

    operators = _OPERATORS

    def of(self, tree: ast.Module) -> Iterator[Change]:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # Functions in functions come with those around them: once, because changes are a set.
                for statement in node.body:
                    yield from self._in(statement)

    def _in(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Raise():
                yield self._change(node, "pass")
                return
            case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                for statement in node.body:
                    yield from self._in(statement)
                return
            case ast.AnnAssign(value=value):
                if value is not None:
                    yield from self._in(value)
                return
        yield from self._of_expression(node)
        yield from self._of_statement(node)
        skipped = self._skipped(node)
        for child in ast.iter_child_nodes(node):
            if child not in skipped:
                yield from self._in(child)

    def _of_expression(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.BinOp(left=left, right=right, op=op) if not (_is_text(left) or _is_text(right)):
                yield from self._operator(left, right, op)
            case ast.BoolOp(values=values, op=op):
                for left, right in itertools.pairwise(values):
                    yield from self._operator(left, right, op)
            case ast.Compare(left=left, comparators=others, ops=ops):
                for one, two, op in zip([left, *others], others, ops, strict=False):
                    yield from self._operator(one, two, op)
            case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub() as op):
                start, _ = self._span(node)
                yield node.lineno, start, start + (3 if isinstance(op, ast.Not) else 1), ""
            case ast.Constant(value=bool(value)):
                yield self._change(node, str(not value))
            case ast.Constant(value=int(value)):
                yield self._change(node, str(value + 1))
            case ast.IfExp(test=test) | ast.comprehension(ifs=[test]):
                yield from self._opposite(test)

    def _opposite(self, test: ast.AST) -> Iterator[Change]:
        """A condition's, unless another change makes it."""
        simple = isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) not in _BOUNDS
        if not (simple or isinstance(test, ast.Constant) or
                (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))):
            yield self._change(test, f"(not ({self._source(test)}))")

    def _of_statement(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.If(test=test) | ast.While(test=test):
                yield from self._opposite(test)
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield self._change(node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete():
                yield self._change(node, "pass")
            case ast.AugAssign():
                yield self._change(node, "pass")
            case ast.Return(value=ast.AST() as value) if not (isinstance(value, ast.Constant) and not value.value):
                yield self._change(value, "None")
            case ast.Continue():
                yield self._change(node, "break")
            case ast.Break():
                yield self._change(node, "pass")

    def _skipped(self, node: ast.AST) -> set[ast.AST]:
        """Parts in which nothing is changed."""
        if not isinstance(node, ast.Call):
            return set()
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        skipped: set[ast.AST] = {k for k in node.keywords if k.arg in _SECONDS | _STYLE}
        if name in _WAITS:
            skipped |= {a for a in node.args if isinstance(a, ast.Constant)}
        return skipped


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


@functools.cache
def _functions(text: str) -> list[tuple[int, int, str]]:
    """First and last line of each function, and its qualified name; those around others come first."""
    found = []

    def look(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append((child.lineno, child.end_lineno, prefix + child.name))
                look(child, f"{prefix}{child.name}.<locals>.")
            elif isinstance(child, ast.ClassDef):
                look(child, f"{prefix}{child.name}.")
            else:
                look(child, prefix)
    look(ast.parse(text), "")
    return found


def function_of(text: str, line: int) -> str:
    """The qualified name of the function that a line is in; ``<module>`` if in none."""
    return next((name for first, last, name in reversed(_functions(text)) if first <= line <= last), "<module>")
