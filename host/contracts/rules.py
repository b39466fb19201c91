"""Rules files: TOML with a list of ``[[rule]]``, validated; every error names its line (docs/check.md)."""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from hypermon.host.contracts.units import ps_of
from hypermon.host.errors import InputError
from hypermon.host.text.toml_file import plain_lines, read_toml

__all__ = ["KINDS", "Event", "Rule", "Rules", "Scope", "load_rules", "near"]


@dataclass(frozen=True)
class Event:
    """The events that a rule names.

    Parameters
    ----------
    name : a name of the dictionary, or ``nibble:V`` or ``event:ID``.
    nodes : only events of these nodes; None: of all nodes.
    where : SQL condition on the event's fields.
    """

    name: str
    nodes: tuple[int, ...] | None = None
    where: str | None = None


@dataclass(frozen=True)
class Scope:
    """When a rule applies: from each ``begin`` to the next ``end``, both within the recording.

    Parameters
    ----------
    begin : the events that begin it; empty: it begins at the start of the recording.
    end : the events that end it; empty: it ends at the end of the recording.
    same_node : each node has its own scope, which only its own events begin and end.
    """

    begin: tuple[Event, ...]
    end: tuple[Event, ...]
    same_node: bool = False

    @property
    def events(self) -> tuple[Event, ...]:
        """All events that begin or end it."""
        return (*self.begin, *self.end)


@dataclass(frozen=True)
class Rule:
    """A rule, validated as far as that is possible without a RUN.

    Parameters
    ----------
    line : line of its ``[[rule]]`` in the file. ``lines``: lines of its keys.
    events : for each key that names events, these events in order; ``between``, ``spans`` and ``events`` name several.
    key : the fields that events must have in common.
    same_node : events belong together only if they are of one node.
    fresh_start : the nodes began after the recording: nothing came before its start.
    values : its times in picoseconds, its counts and shares, and the name of its ``state``.
    scope : when it applies; None: in all of the recording.
    """

    name: str
    kind: str
    line: int
    events: Mapping[str, tuple[Event, ...]]
    key: tuple[str, ...] = ()
    same_node: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    fresh_start: bool = False
    scope: Scope | None = None

    def unkeyed(self) -> "Rule":
        """The rule without its events and key, to select the events of its scope."""
        return replace(self, events={}, key=())

    def ps(self, key: str) -> int | None:
        """A time of the rule, or a count; None if the rule does not have it."""
        value = self.values.get(key)
        return None if value is None else int(value)


@dataclass(frozen=True)
class Rules:
    """The rules of a file. ``path``: the file, as the user gave it."""

    path: str
    rules: tuple[Rule, ...]

    def wrong(self, rule: Rule, key: str | None, reason: str) -> InputError:
        """The error for a key of a rule, with its line."""
        return InputError(self.path, rule.lines.get(key or "", rule.line), f"{rule.name}: {reason}")


def near(name: str, known: list[str] | tuple[str, ...]) -> str:
    """The known names for a message, those that are most similar to ``name`` first."""
    found = difflib.get_close_matches(name, known, 3, 0.5)
    rest = [one for one in known if one not in found]
    shown = [*found, *rest][:12]
    return ", ".join(shown) + (", ..." if len(known) > len(shown) else "")


_Check = Callable[[Any], Any]


def _event(value: Any) -> tuple[Event, ...]:
    if isinstance(value, str) and value:
        return (Event(value),)
    if not isinstance(value, dict):
        raise ValueError('an event is a name, or { event = "send", nodes = [3, 4], where = "..." }, '
                         f"not {value!r:.60}")
    for key in value:
        if key not in ("event", "nodes", "where"):
            raise ValueError(f"an event has event, nodes and where; not {key!r}")
    name, nodes, where = value.get("event"), value.get("nodes"), value.get("where")
    if not isinstance(name, str) or not name:
        raise ValueError("an event needs its name: event = ...")
    nodes = [nodes] if type(nodes) is int else nodes
    if nodes is not None and (not isinstance(nodes, list) or not nodes
                              or any(type(node) is not int or node < 0 for node in nodes)):
        raise ValueError(f"nodes is a list of numbers of nodes, not {nodes!r:.60}")
    if where is not None and (not isinstance(where, str) or not where.strip()):
        raise ValueError(f"where is a condition in SQL, not {where!r:.60}")
    return (Event(name, None if nodes is None else tuple(sorted(set(nodes))), where),)


def _listed(most: int | None, least: int) -> _Check:
    def events(value: Any) -> tuple[Event, ...]:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            raise ValueError(f"a list of {least}{'' if most == least else ' or more'} events is needed, "
                             f"not {value!r:.60}")
        return tuple(event for one in value for event in _event(one))
    return events


def _spans(value: Any) -> tuple[Event, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"spans is a list of [begin, end], not {value!r:.60}")
    return tuple(event for one in value for event in _listed(2, 2)(one))


def _scope(value: Any) -> Scope:
    if not isinstance(value, dict) or not {"from", "to"} & set(value):
        raise ValueError(f'a scope is {{ from = "start" }}, {{ to = "stop" }} or both, not {value!r:.60}')
    for key in value:
        if key not in ("from", "to", "same_node"):
            raise ValueError(f"a scope has from, to and same_node; not {key!r}")
    begin, end = (_event(value[key]) if key in value else () for key in ("from", "to"))
    if begin == end:
        raise ValueError("from and to are the same event")
    return Scope(begin, end, _flag(value.get("same_node", False)))


def _time(value: Any) -> int:
    return ps_of(value)


def _time_not_zero(value: Any) -> int:
    ps = ps_of(value)
    if not ps:
        raise ValueError("it must be longer than 0")
    return ps


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError(f"it is a count, 0 or more, not {value!r:.60}")
    return value


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"it is a number from 0 to 1, not {value!r:.60}")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"it is a line of text, not {value!r:.60}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"it is true or false, not {value!r:.60}")
    return value


def _key(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(not isinstance(one, str) or not one for one in value):
        raise ValueError(f'key is a list of fields, such as ["sequence"], not {value!r:.60}')
    return tuple(value)


@dataclass(frozen=True)
class _Kind:
    """The keys of a kind of rule: those that it must have, and all of them, with their checks."""

    needs: tuple[str, ...]
    keys: Mapping[str, _Check]


#: The kinds of rules.
KINDS: dict[str, _Kind] = {
    "response": _Kind(("after", "expect"), {"after": _event, "expect": _event, "min": _time, "max": _time}),
    "absence": _Kind(("event",), {"event": _event, "between": _listed(2, 2), "after": _event, "within": _time}),
    "precedence": _Kind(("event", "needs"), {"event": _event, "needs": _event, "within": _time}),
    "period": _Kind(("event", "every", "tolerance"),
                    {"event": _event, "every": _time_not_zero, "tolerance": _time}),
    "duration": _Kind((), {"begin": _event, "end": _event, "state": _text, "min": _time, "max": _time,
                           "quantile": _share}),
    "rate": _Kind(("event", "per"), {"event": _event, "per": _time_not_zero, "min": _count, "max": _count}),
    "exclusion": _Kind(("spans",), {"spans": _spans}),
    "together": _Kind(("event", "within"), {"event": _event, "within": _time}),
    "order": _Kind(("events",), {"events": _listed(None, 2)}),
    "share": _Kind((), {"state": _text, "begin": _event, "end": _event, "min": _share, "max": _share}),
}
_COMMON: dict[str, _Check] = {"name": _text, "kind": _text, "doc": _text, "key": _key, "same_node": _flag,
                             "fresh_start": _flag, "scope": _scope}
#: Kinds whose events belong to one node by default. Those of ``order`` do so, too, if the rule has no key.
_OWN_NODE = ("duration", "period", "rate")
#: Kinds without a key: it would have nothing to join.
_KEYLESS = ("exclusion", "share")


def load_rules(path: str | os.PathLike[str]) -> Rules:
    """Reads and validates a rules file.

    Raises
    ------
    InputError
        if the file is not readable or not valid; it names the line, the reason, and what is allowed.
    """
    _, text, tables = read_toml(path, "a rules file")
    lines = _lines(text)

    def wrong(line: int | None, reason: str) -> NoReturn:
        raise InputError(path, line, reason)

    for name in tables:
        if name != "rule":
            wrong(lines.get(name, [{"": 1}])[0][""], f"a rules file is a list of [[rule]]; there is no {name!r}")
    said = tables.get("rule")
    if not isinstance(said, list) or not said or not all(isinstance(one, dict) for one in said):
        wrong(None, "a rules file is a list of [[rule]], and this one has none")
    rules = []
    for number, table in enumerate(said):
        own = lines["rule"][number] if number < len(lines.get("rule", [])) else {"": 1}
        rules.append(_rule(path, table, own, number + 1))
        twin = next((rule for rule in rules[:-1] if rule.name == rules[-1].name), None)
        if twin is not None:
            wrong(own.get("name", own[""]), f"{twin.name}: the rule in line {twin.line} has this name, too; their "
                                            "verdicts could not be told apart")
    return Rules(str(path), tuple(rules))


def _rule(path: str | os.PathLike[str], table: dict[str, Any], lines: dict[str, int], number: int) -> Rule:
    title = table.get("name") if isinstance(table.get("name"), str) else f"rule {number}"

    def wrong(key: str, reason: str) -> NoReturn:
        raise InputError(path, lines.get(key, lines[""]), f"{title}: {reason}")

    for need in ("name", "kind"):
        if need not in table:
            wrong("", f"{need} is missing" + (f"; there are {', '.join(KINDS)}" if need == "kind" else ""))
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        wrong("kind", f"there is no kind {kind!r:.60}; there are {near(str(kind), list(KINDS))}")
    known = {**_COMMON, **KINDS[kind].keys}
    if kind in _KEYLESS:
        del known["key"]
    if kind in (*_KEYLESS, "together"):
        del known["same_node"]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            wrong(key, f"{kind} has no {key!r}; it has {near(key, [name for name in known if name != 'kind'])}")
        try:
            values[key] = known[key](value)
        except ValueError as error:
            wrong(key, f"{key}: {error}")
    for need in KINDS[kind].needs:
        if need not in values:
            wrong("", f"{kind} needs {' and '.join(KINDS[kind].needs)}; {need} is missing")
    reason = _conflict(kind, values)
    if reason:
        wrong(reason[0], reason[1])
    events = {key: values.pop(key) for key in list(values)
              if isinstance(values[key], tuple) and values[key] and isinstance(values[key][0], Event)}
    same = values.pop("same_node", kind in _OWN_NODE or (kind == "order" and "key" not in values))
    fresh, scope = values.pop("fresh_start", False), values.pop("scope", None)
    return Rule(values.pop("name"), values.pop("kind"), lines[""], events, values.pop("key", ()), same, values, lines,
                fresh, scope)


def _conflict(kind: str, values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Keys of a rule that do not fit together: the key to blame, and the reason."""
    if "min" in values and "max" in values and values["min"] > values["max"]:
        return "min", "min is more than max"
    if kind == "exclusion" and "scope" in values and values["scope"].same_node:
        return "scope", "spans of several nodes overlap in a scope of all nodes, not in one of each (same_node)"
    if kind in ("duration", "rate", "share") and "min" not in values and "max" not in values:
        return "", f"{kind} needs min, max or both"
    if kind in ("duration", "share") and not (("state" in values) ^ ("begin" in values or "end" in values)):
        return "", f"{kind} needs either state, or begin and end"
    if kind in ("duration", "share") and ("begin" in values) != ("end" in values):
        return "begin", "begin and end belong together"
    if kind == "absence" and ("after" in values) != ("within" in values):
        return "after", "after and within belong together: no event within that time after another one"
    if kind == "absence" and "between" in values and "after" in values:
        return "between", "between and after exclude each other: make two rules"
    if kind == "absence" and not ("between" in values or "after" in values) and "key" in values:
        return "key", "without between or after, there is nothing to join by a key"
    return None


def _lines(text: str) -> dict[str, list[dict[str, int]]]:
    """For each table of the file, by name: the line of each of its occurrences (as ``""``), and of each key.

    ``text`` is valid TOML.
    """
    found: dict[str, list[dict[str, int]]] = {}
    current: dict[str, int] | None = None
    for number, line in plain_lines(text):
        if table := re.match(r"\s*\[\[?\s*[\"']?([\w-]+)[\"']?\s*(\.[^\]]*)?\]", line):
            if table[2] is None or current is None:
                current = {"": number}
                found.setdefault(table[1], []).append(current)
            else:
                current.setdefault(table[2].split(".")[1].strip(" \"'"), number)
        elif key := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*(\.[^=]*)?=", line):
            if current is None:
                found.setdefault(key[1], []).append({"": number})
            else:
                current.setdefault(key[1], number)
    return found
