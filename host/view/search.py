"""Searches of a run's timeline: the next item, message, state or loss that matches a text.

    send of node 3 to node 5        the next message sent by 3 to 5; receive of node 5 from node 3
    iteration of node 2             the next item of that name; part of a name is enough
    iteration number=7              the same, with a field of the dictionary
    state compute of node 2         the next beginning of a state
    node 4                          any item of a node, by its number or its name
    loss of node 4                  the next loss
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hypermon.host.errors import HypermonError
from hypermon.host.view.counts import Counts
from hypermon.host.view.picture import Pictures

__all__ = ["Found", "search"]

_LONGEST = 200
_FIELD = re.compile(r"(\w+)=(\S+)")
_NODE = re.compile(r"\b(?P<word>of|on|from|to)?\s*\bnode\s+(?P<node>\d{1,5})\b", re.IGNORECASE)
_PLACE = re.compile(r"\b(?P<word>of|on|from|to)\s+(?P<name>.+?)(?=\s+(?:of|on|from|to)\s|$)", re.IGNORECASE)


@dataclass
class Found:
    """Where something was found: ``node`` is that of the item, or of the message's end that was searched for."""

    time_ps: int
    node: int
    text: str
    end_ps: int | None = None

    def values(self) -> dict[str, Any]:
        """As plain values; times as text, because they may have more than 53 bits."""
        return {"time_ps": str(self.time_ps), "node": self.node, "text": self.text,
                "end_ps": None if self.end_ps is None else str(self.end_ps)}


@dataclass
class _Wanted:
    """A text, taken apart. ``nodes`` has the words before them: of, on, from, to, or nothing."""

    kind: str
    name: str
    nodes: dict[str, int]
    fields: dict[str, str]

    def node(self, *words: str) -> int | None:
        return next((self.nodes[word] for word in words if word in self.nodes), None)


def search(pictures: Pictures, text: str, at_ps: int, back: bool) -> Found | None:
    """The next match after a time, or the last one before it; None if there is none.

    Raises
    ------
    HypermonError
        if the text is empty, or names a field that does not exist.
    """
    names = pictures.dictionary.nodes if pictures.dictionary is not None else {}
    wanted = _parsed(text, names)
    tables = pictures.tables
    if wanted.kind in ("send", "receive", "message") and (tables.messages or "to" in wanted.nodes):
        return _message(pictures, wanted, at_ps, back)
    if wanted.kind == "state":
        return _state(pictures, wanted, at_ps, back)
    if wanted.kind in ("loss", "lost"):
        return _loss(pictures, wanted, at_ps, back)
    if wanted.kind:
        wanted.name = f"{wanted.kind} {wanted.name}".strip()
    return _item(pictures, wanted, at_ps, back)


def _parsed(text: str, names: Mapping[int, str]) -> _Wanted:
    rest = re.sub(r"^\s*(next|previous)\s+", "", text[:_LONGEST].strip(), flags=re.IGNORECASE)
    if not rest:
        raise HypermonError("search: an event's name, node 3, loss, or send of node 3 to node 5")
    nodes: dict[str, int] = {}
    fields = {match[1].lower(): match[2] for match in _FIELD.finditer(rest)}
    rest = _FIELD.sub(" ", rest)
    for match in _NODE.finditer(rest):
        nodes[(match["word"] or "of").lower()] = int(match["node"])
    rest = _NODE.sub(" ", rest)
    numbers = {name.lower(): node for node, name in names.items()}
    for match in list(_PLACE.finditer(rest)):
        if match["name"].strip().lower() in numbers:
            nodes[match["word"].lower()] = numbers[match["name"].strip().lower()]
            rest = rest.replace(match[0], " ")
    if rest.strip().lower() in numbers:
        return _Wanted("", "", {"of": numbers[rest.strip().lower()]}, fields)
    kind, _, name = rest.strip().partition(" ")
    if kind.lower() in ("send", "sends", "receive", "receives", "message", "state", "loss", "lost"):
        return _Wanted(kind.lower().rstrip("s") if kind.lower() != "loss" else "loss", name.strip(), nodes, fields)
    return _Wanted("", rest.strip(), nodes, fields)


def _first(pictures: Pictures, what: str, table: str, where: list[str], values: dict[str, Any], time: str,
           back: bool) -> Found | None:
    """The first row of an order of time."""
    way = "<" if back else ">"
    found = pictures.tables.ask(f"select {what} from {table} where {' and '.join([f'{time} {way} $at', *where])} "
                                f"order by {time} {'desc' if back else ''}, 2 limit 1", values)
    return Found(*found[0]) if found else None


def _named(wanted: _Wanted, column: str, values: dict[str, Any]) -> list[str]:
    if not wanted.name:
        return []
    values["name"] = wanted.name
    return [f"contains(lower({column}), lower($name))"]


def _message(pictures: Pictures, wanted: _Wanted, at_ps: int, back: bool) -> Found | None:
    if not pictures.tables.messages:
        raise HypermonError("this run has no messages: the events of its dictionary send and receive none"
                            if pictures.ready else "the messages of this run are being made; try again later")
    values: dict[str, Any] = {"at": at_ps}
    receives = wanted.kind == "receive"
    where = _named(wanted, "name", values)
    own, other = ("receiver", "sender") if receives else ("sender", "receiver")
    for column, node in ((own, wanted.node("of", "on", "to" if receives else "from")),
                         (other, wanted.node("from" if receives else "to"))):
        if node is not None and column not in values:
            values[column] = node
            where.append(f"{column} = ${column}")
    time = "received_ps" if receives else "sent_ps"
    arrow = "' from node ' || sender" if receives else "' to node ' || receiver"
    return _first(pictures, f"{time}, coalesce({own}, -1), name || coalesce({arrow}, ''), "
                            f"{'sent_ps' if receives else 'received_ps'}", "messages", where, values, time, back)


def _state(pictures: Pictures, wanted: _Wanted, at_ps: int, back: bool) -> Found | None:
    if not pictures.tables.stories:
        raise HypermonError("this run has no states: its dictionary defines them"
                            if pictures.ready else "the states of this run are being made; try again later")
    values: dict[str, Any] = {"at": at_ps}
    where = [*_named(wanted, "name", values), *_of_node(wanted, values)]
    return _first(pictures, "begin_ps, node, name || coalesce(' ' || key, ''), end_ps", "states", where, values,
                  "begin_ps", back)


def _loss(pictures: Pictures, wanted: _Wanted, at_ps: int, back: bool) -> Found | None:
    values: dict[str, Any] = {"at": at_ps}
    return _first(pictures, "from_ps, node, 'lost ' || lost, to_ps", "loss", _of_node(wanted, values), values,
                  "from_ps", back)


def _of_node(wanted: _Wanted, values: dict[str, Any]) -> list[str]:
    node = wanted.node("of", "on", "from")
    if node is None:
        return []
    values["node"] = node
    return ["node = $node"]


def _item(pictures: Pictures, wanted: _Wanted, at_ps: int, back: bool) -> Found | None:
    """Reads row groups until one has a match."""
    tables, values = pictures.tables, dict[str, Any]()
    where = _of_node(wanted, values)
    columns = {column.lower(): column for column in tables.columns}
    for number, (name, value) in enumerate(wanted.fields.items()):
        if name not in columns:
            raise HypermonError(f"search: there is no field {name!r}; there are {', '.join(tables.columns)[:300]}")
        values[f"field{number}"] = value
        where.append(f"lower(\"{columns[name]}\"::varchar) = lower($field{number})")
    if wanted.name:
        values["name"] = wanted.name
        labels = tables.label
        whole = pictures.dictionary is not None and wanted.name.lower() in map(str.lower,
                                                                               pictures.dictionary.by_name)
        where.append(f"lower({labels}) = lower($name)" if whole or len(wanted.name) == 1
                     else f"contains(lower({labels}), lower($name))")
    for begin, end in _windows(pictures.counts, at_ps, back):
        found = tables.ask(
            f"select time_ps, node, {tables.label} from items where time_ps >= $begin and time_ps < $end"
            f"{''.join(f' and {part}' for part in where)} order by time_ps {'desc' if back else ''}, node limit 1",
            {**values, "begin": begin, "end": end})
        if found:
            return Found(*found[0])
    return None


def _windows(counts: Counts, at_ps: int, back: bool) -> Iterator[tuple[int, int]]:
    """Stretches of more and more row groups, away from a time."""
    size = 1
    if not back:
        begin = at_ps + 1
        ends = sorted(group.last_ps + 1 for group in counts.groups if group.last_ps >= begin)
        while ends:
            end = ends[:size][-1]
            yield begin, end
            ends, begin, size = ends[size:], end, min(size * 2, 16)
        return
    end = at_ps
    begins = sorted((group.first_ps for group in counts.groups if group.first_ps < end), reverse=True)
    while begins:
        begin = begins[:size][-1]
        yield begin, end
        begins, end, size = begins[size:], begin, min(size * 2, 16)
