"""Conditions on fields in a search, as SQL: alive<22000, sequence=5, latency>700us.

A field is a column of the items, or what a message, a state or a loss has. A condition that cannot be met by any value,
such as an order of texts, raises HypermonError.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypermon.host.dictionary.dictionary import Dictionary, EventKind
from hypermon.host.dictionary.semantics import text as literal
from hypermon.host.errors import HypermonError
from hypermon.host.text.printable import printable

__all__ = ["Condition", "Field", "conditions", "has", "item_fields", "loss_fields",
           "message_fields", "state_fields", "where"]

_UNITS = {"s": 10**12, "ms": 10**9, "us": 10**6, "µs": 10**6, "μs": 10**6, "ns": 10**3, "ps": 1}
_SIGN, _UNIT = r"(?:[<>!]=|[<>=])", r"(?:[mnpuµμ]?s)"
#: A number may have spaces around the sign and before its unit; a text may not.
_CONDITION = re.compile(rf"(?P<name>\w+)(?:\s*(?P<sign>{_SIGN})\s*"
                        rf"(?P<number>[+-]?\d[\w.]*(?:\s+{_UNIT}\b)?)(?=\s|$)"
                        rf"|(?P<equals>{_SIGN})(?P<text>\S+))")
_NUMBER = re.compile(r"[+-]?(?:\d{1,27}(?:\.\d{1,9})?|0[xX][0-9a-fA-F]{1,16})")
_TIME = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,12})?)\s*(?P<unit>" + _UNIT + ")")
#: Types of columns; a key is a text that may be a number, and a time is in picoseconds.
_KEY, _DURATION, _WHOLE = "key", "time", "whole"
_REAL, _BYTES = ("FLOAT", "DOUBLE"), "BLOB"
_EXACT = "decimal(38,9)"


@dataclass(frozen=True)
class Condition:
    """A field, a sign (``= != < <= > >=``) and a value."""

    name: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{printable(self.value)}"


@dataclass(frozen=True)
class Field:
    """A field that can be searched.

    Members
    -------
    column : SQL; null if a row does not have the field.
    kind : ``whole``, a type of DuckDB, ``key`` or ``time``.
    """

    column: str
    kind: str


def conditions(text: str) -> tuple[list[Condition], str]:
    """The conditions in a text, and the rest of it."""
    found = [Condition(match["name"].lower(), match["sign"] or match["equals"], match["number"] or match["text"])
             for match in _CONDITION.finditer(text)]
    return found, _CONDITION.sub(" ", text)


def item_fields(columns: Iterable[Sequence[str]]) -> dict[str, Field]:
    """The fields of items.

    Parameters
    ----------
    columns : name and type of each column.
    """
    return {name.lower(): Field('"' + name.replace('"', '""') + '"',
                                _WHOLE if kind.endswith("INT") or kind.startswith(("INT", "UINT", "DECIMAL", "HUGE"))
                                else kind)
            for name, kind, *_ in columns}


def message_fields(dictionary: Dictionary | None, name: str = "") -> dict[str, Field]:
    """The fields of messages: those of the table, and the field of its events that is a message's key.

    Parameters
    ----------
    name : of the messages, or part of it: fields of others are not there.
    """
    keys = _keys(dictionary, name, lambda kind: (kind.send, kind.receive))
    return {**_keyed(keys), "key": Field("key", _KEY), "latency": Field("latency_ps", _DURATION),
            "latency_ps": Field("latency_ps", _WHOLE), "sent_ps": Field("sent_ps", _WHOLE),
            "received_ps": Field("received_ps", _WHOLE)}


def state_fields(dictionary: Dictionary | None, name: str = "") -> dict[str, Field]:
    """The fields of states, likewise. A state whose end was not seen has no duration."""
    keys = _keys(dictionary, name, lambda kind: (kind.begin, kind.end))
    return {**_keyed(keys), "key": Field("key", _KEY), "duration": Field("(end_ps - begin_ps)", _DURATION),
            "begin_ps": Field("begin_ps", _WHOLE), "end_ps": Field("end_ps", _WHOLE)}


def loss_fields() -> dict[str, Field]:
    return {"lost": Field("lost", _WHOLE), "duration": Field("(to_ps - from_ps)", _DURATION),
            "from_ps": Field("from_ps", _WHOLE), "to_ps": Field("to_ps", _WHOLE)}


def _keys(dictionary: Dictionary | None, name: str, names: Any) -> dict[str, list[str]]:
    """Fields that are keys, and the names of the messages or states of which they are."""
    keys: dict[str, list[str]] = {}
    for kind in dictionary.events if dictionary is not None else ():
        for each in names(kind):
            if kind.key is not None and each is not None and name.lower() in each.lower():
                keys.setdefault(kind.key.lower(), []).append(each)
    return keys


def _keyed(keys: Mapping[str, Sequence[str]]) -> dict[str, Field]:
    return {key: Field(f"(case when name in ({', '.join(map(literal, dict.fromkeys(of)))}) then key end)", _KEY)
            for key, of in keys.items()}


def has(kind: EventKind, name: str) -> bool:
    """Whether an event of the dictionary has a field."""
    return any(field.name.lower() == name for field in kind.fields)


def where(condition: Condition, field: Field, values: dict[str, Any]) -> str:
    """A condition in SQL; its value is added to those of the question.

    Raises
    ------
    HypermonError
        in one line, if the field has no such values.
    """
    sign, value = condition.sign, condition.value
    name = f"field{len(values)}"
    if field.kind == _DURATION:
        match = _TIME.fullmatch(value)
        if match is None:
            raise HypermonError(f"search: {condition}: a time has a unit: {condition.name}{sign}1ms")
        whole, _, part = match["number"].partition(".")
        values[name] = (int(whole + part) * _UNITS[match["unit"]]) // 10**len(part)
        return f"{field.column} {sign} ${name}"
    if _NUMBER.fullmatch(value):
        number = str(int(value, 16)) if "x" in value.lower() else value
        if field.kind in (_KEY, _WHOLE):
            values[name] = number
            column = f"try_cast({field.column} as {_EXACT})" if field.kind == _KEY else field.column
            return f"{column} {sign} ${name}::{_EXACT}"
        if field.kind in _REAL:
            values[name] = float(number)
            return f"{field.column} {sign} ${name}::{field.kind}"
    if sign not in ("=", "!="):
        what = f"{printable(value)!r} is not a number" if field.kind in (_KEY, _WHOLE, *_REAL) else (
            f"{condition.name} has no numbers")
        raise HypermonError(f"search: {condition}: {what}; = and != compare texts")
    if field.kind in (_WHOLE, *_REAL):
        raise HypermonError(f"search: {condition}: {printable(value)!r} is not a number")
    values[name] = value
    column = f"hex({field.column})" if field.kind == _BYTES else f"{field.column}::varchar"
    return f"lower({column}) {sign} lower(${name})"
