"""Searches of a run's timeline: the next item, message, state or loss that matches a text, and a list of these.

:mod:`.understood` has the forms of the text.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypermon.host.errors import HypermonError
from hypermon.host.view.conditions import Field, has, item_fields, loss_fields, message_fields, state_fields
from hypermon.host.view.conditions import where as condition
from hypermon.host.view.counts import Counts
from hypermon.host.view.picture import Pictures
from hypermon.host.view.understood import Names, Wanted, near, understood

__all__ = ["Found", "hits", "search"]

#: For a list: number of matches before a time and from then on; seconds after which no more row groups are read for it.
_BEFORE, _AFTER, _LIST_S = 50, 150, 1.5
#: Kinds of searches for messages.
_MESSAGES = ("send", "receive", "message")
_Began = dict[tuple[int, int, str], list[tuple[int | None, int | None]]]
#: For earlier times, and for later ones.
_SIGN, _ORDER = {True: "<", False: ">"}, {True: "desc", False: "asc"}


@dataclass
class Found:
    """What was found, and where.

    Members
    -------
    node : the item's node, or the node at the message's end that was searched for; -1: it is not known.
    end_ps : end of a state or loss, or the time at the message's other end; None: it is not known.
    other : the node at the message's other end; -1: it is not known.
    kind : item, state, message or loss.
    received : the message was searched for where it was received.
    wrapped : it was found from the run's other end on.
    lost_ps : the first loss that leaves a state's end, or a message's match, open; None: there is none.
    """

    time_ps: int
    node: int
    text: str
    end_ps: int | None = None
    other: int = -1
    kind: str = "item"
    received: bool = False
    wrapped: bool = False
    lost_ps: int | None = None

    def values(self) -> dict[str, Any]:
        """As plain values; times as text, because they may have more than 53 bits."""
        return {"time_ps": str(self.time_ps), "node": self.node, "text": self.text,
                "end_ps": None if self.end_ps is None else str(self.end_ps), "other": self.other, "kind": self.kind,
                "received": self.received, "wrapped": self.wrapped,
                "lost_ps": None if self.lost_ps is None else str(self.lost_ps)}


@dataclass
class _Way:
    """From a time on, or before it: how many to find at most; ``until``: when to stop (:func:`time.monotonic`)."""

    at_ps: int
    back: bool
    count: int = 1
    until: float | None = None


def search(pictures: Pictures, text: str, at_ps: int, back: bool) -> Found | None:
    """The next match after a time, or the last one before it; if there is none, from the run's other end on.

    Raises
    ------
    HypermonError
        if the text is not understood, or names what the run does not have.
    """
    wanted = _wanted(pictures, text)
    back = back != wanted.back
    found = _all(pictures, wanted, _Way(at_ps, back))
    if found:
        return found[0]
    found = _all(pictures, wanted, _Way(pictures.end_ps + 1 if back else pictures.begin_ps - 1, back))
    return replace(found[0], wrapped=True) if found else None


def hits(pictures: Pictures, text: str, at_ps: int) -> dict[str, Any]:
    """The matches around a time, in order, as plain values, and whether there may be more on either side.

    Each has ``took``, see :func:`_took`.

    Raises
    ------
    HypermonError
        as :func:`search`.
    """
    wanted = _wanted(pictures, text)
    until = time.monotonic() + _LIST_S
    after = _all(pictures, wanted, _Way(at_ps - 1, False, _AFTER + 1, until))
    late = time.monotonic() >= until
    before = _all(pictures, wanted, _Way(at_ps, True, _BEFORE + 1, time.monotonic() + _LIST_S))
    listed = [*before[:_BEFORE][::-1], *after[:_AFTER]]
    both = zip(listed, _took(pictures, listed), strict=True)
    return {"hits": [found.values() | {"took": took} for found, took in both],
            "before": len(before) > _BEFORE or time.monotonic() >= until + _LIST_S,
            "after": len(after) > _AFTER or late}


def _took(pictures: Pictures, listed: Sequence[Found]) -> list[str | None]:
    """How many picoseconds each took: a state, or the one that an item begins; a loss; the latency of a message, or of
    the one that an item sends or receives, if it begins no state. ``unknown``: a loss leaves it open. ``not seen``: the
    end was not. None: it is an item of no state or message, or of several at one time.
    """
    began = _began(pictures, [found for found in listed if found.kind == "item"])
    result = list[str | None]()
    for found in listed:
        if found.kind == "item":
            own = began.get((found.time_ps, found.node, found.text), [])
            result.append(_text(*own[0]) if len(own) == 1 else None)
            continue
        took_ps = None if found.end_ps is None else found.end_ps - found.time_ps
        result.append(_text(-took_ps if took_ps is not None and found.received else took_ps, found.lost_ps))
    return result


def _began(pictures: Pictures, items: Sequence[Found]) -> _Began:
    """What each of these items begins, sends or receives, by time, node and name: how long, and the loss that leaves it
    open.
    """
    began: _Began = {}
    if not pictures.tables.stories or pictures.dictionary is None:
        return began
    kinds = [pictures.dictionary.by_name[name] for name in dict.fromkeys(found.text for found in items)
             if name in pictures.dictionary.by_name]
    for kind in kinds:
        own = [found for found in items if found.text == kind.name]
        roles = [role for role in ((kind.begin, "states", "begin_ps", "node", "end_ps - begin_ps"),
                                   (kind.send, "messages", "sent_ps", "sender", "latency_ps"),
                                   (kind.receive, "messages", "received_ps", "receiver", "latency_ps"))
                 if role[0] is not None]
        for name, table, time_ps, node, took_ps in roles[:1]:
            times, nodes = [found.time_ps for found in own], [found.node for found in own]
            rows = pictures.tables.ask(
                f"select {time_ps}, {node}, {took_ps}, lost_ps from {table} where name = $name and "
                f"({time_ps}, {node}) in (select unnest($times), unnest($nodes)) and {time_ps} between $low and $high",
                {"name": name, "times": times, "nodes": nodes, "low": min(times), "high": max(times)})
            for at_ps, of, took, lost_ps in rows:
                began.setdefault((at_ps, of, kind.name), []).append((took, lost_ps))
    return began


def _text(took_ps: int | None, lost_ps: int | None) -> str:
    return "unknown" if lost_ps is not None else "not seen" if took_ps is None else str(took_ps)


def _wanted(pictures: Pictures, text: str) -> Wanted:
    """Parses a text. Raises HypermonError if it has a node or a field that would not be used."""
    wanted = understood(text, Names.of(pictures.run.info.nodes, pictures.dictionary))
    if wanted.kind in _MESSAGES and not pictures.tables.messages and "to" not in wanted.nodes:
        wanted = replace(wanted, kind="", name=f"{wanted.kind} {wanted.name}".strip())
    _one(wanted, *(("of", "on", "to") if wanted.kind == "receive" else ("of", "on", "from")))
    if wanted.kind not in _MESSAGES and "to" in wanted.nodes:
        raise HypermonError(f"search: to node {wanted.nodes['to']}: only a message has a receiver, such as "
                            "send of node 3 to node 5")
    known = _fields(pictures, wanted)
    event = pictures.dictionary.by_name.get(wanted.name) if pictures.dictionary is not None else None
    for each in wanted.fields:
        if each.name not in known:
            raise HypermonError(f"search: there is no field {each.name!r}{_of_what(wanted)}; {near(each.name, known)}")
        if not wanted.kind and event is not None and not has(event, each.name) and any(
                has(other, each.name) for other in pictures.dictionary.events):     # type: ignore[union-attr]
            own = [field.name for field in event.fields]
            raise HypermonError(f"search: {event.name!r} has no field {each.name!r}; "
                                f"{near(each.name, own) if own else 'it has none'}")
        condition(each, known[each.name], {})
    return wanted


def _one(wanted: Wanted, *words: str) -> None:
    """Raises HypermonError if several words name the same end."""
    given = [f"{word} node {wanted.nodes[word]}" for word in words if word in wanted.nodes]
    if len(given) > 1:
        raise HypermonError(f"search: {', and '.join(given)}: only one is possible")


def _of_what(wanted: Wanted) -> str:
    what = {"": "", "state": " of states", "loss": " of losses"}.get(wanted.kind, " of messages")
    return f"{what} {wanted.name!r}" if what and wanted.name else what


def _fields(pictures: Pictures, wanted: Wanted) -> dict[str, Field]:
    if wanted.kind in _MESSAGES:
        return message_fields(pictures.dictionary, wanted.name)
    if wanted.kind == "state":
        return state_fields(pictures.dictionary, wanted.name)
    return loss_fields() if wanted.kind == "loss" else item_fields(pictures.tables.known("describe items"))


def _met(pictures: Pictures, wanted: Wanted, values: dict[str, Any]) -> list[str]:
    """The conditions on fields, in SQL."""
    known = _fields(pictures, wanted) if wanted.fields else {}
    return [condition(each, known[each.name], values) for each in wanted.fields]


def _all(pictures: Pictures, wanted: Wanted, way: _Way) -> list[Found]:
    if wanted.kind in _MESSAGES:
        return _messages(pictures, wanted, way)
    if wanted.kind == "state":
        return _states(pictures, wanted, way)
    if wanted.kind == "loss":
        return _losses(pictures, wanted, way)
    return _items(pictures, wanted, way)


def _first(pictures: Pictures, what: str, table: str, where: list[str], values: dict[str, Any], time_ps: str,
           way: _Way) -> list[Found]:
    """The first rows of an order of time."""
    rows = pictures.tables.ask(
        f"select {what} from {table} where {' and '.join([f'{time_ps} {_SIGN[way.back]} $at', *where])} "
        f"order by {time_ps} {_ORDER[way.back]}, 2 limit {way.count}", values | {"at": way.at_ps})
    return [Found(*row) for row in rows]


def _named(wanted: Wanted, column: str, values: dict[str, Any]) -> list[str]:
    if not wanted.name:
        return []
    values["name"] = wanted.name
    return [f"contains(lower({column}), lower($name))"]


def _messages(pictures: Pictures, wanted: Wanted, way: _Way) -> list[Found]:
    if not pictures.tables.messages:
        raise HypermonError("this run has no messages: the events of its dictionary send and receive none"
                            if pictures.ready else "the messages of this run are being made; try again later")
    values = dict[str, Any]()
    receives = wanted.kind == "receive"
    where = _named(wanted, "name", values)
    own, other = ("receiver", "sender") if receives else ("sender", "receiver")
    for column, node in ((own, wanted.node("of", "on", "to" if receives else "from")),
                         (other, wanted.node("from" if receives else "to"))):
        if node is not None and column not in values:
            values[column] = node
            where.append(f"{column} = ${column}")
    where += _met(pictures, wanted, values)
    time_ps = "received_ps" if receives else "sent_ps"
    arrow = "' from node ' || sender" if receives else "' to node ' || receiver"
    name = f"name || coalesce(' ' || key, '') || coalesce({arrow}, '')"
    return _first(pictures, f"{time_ps}, coalesce({own}, -1), {name}, "
                            f"{'sent_ps' if receives else 'received_ps'}, coalesce({other}, -1), 'message', "
                            f"{receives}, false, lost_ps",
                  "messages", where, values, time_ps, way)


def _states(pictures: Pictures, wanted: Wanted, way: _Way) -> list[Found]:
    if not pictures.tables.stories:
        raise HypermonError("this run has no states: its dictionary defines them"
                            if pictures.ready else "the states of this run are being made; try again later")
    values = dict[str, Any]()
    where = [*_named(wanted, "name", values), *_of_node(wanted, values), *_met(pictures, wanted, values)]
    return _first(pictures, "begin_ps, node, name || coalesce(' ' || key, ''), end_ps, -1, 'state', false, "
                            "false, lost_ps", "states", where, values, "begin_ps", way)


def _losses(pictures: Pictures, wanted: Wanted, way: _Way) -> list[Found]:
    values = dict[str, Any]()
    where = [*_of_node(wanted, values), *_met(pictures, wanted, values)]
    return _first(pictures, "from_ps, node, 'lost ' || lost, to_ps, -1, 'loss'", "loss", where, values, "from_ps", way)


def _of_node(wanted: Wanted, values: dict[str, Any]) -> list[str]:
    node = wanted.node("of", "on", "from")
    if node is None:
        return []
    values["node"] = node
    return ["node = $node"]


def _items(pictures: Pictures, wanted: Wanted, way: _Way) -> list[Found]:
    """Reads row groups until one has a match."""
    tables, values = pictures.tables, dict[str, Any]()
    where = _of_node(wanted, values)
    where += _met(pictures, wanted, values)
    if wanted.name:
        values["name"] = wanted.name
        labels = tables.label
        whole = pictures.dictionary is not None and wanted.name.lower() in map(str.lower,
                                                                               pictures.dictionary.by_name)
        where.append(f"lower({labels}) = lower($name)" if whole or len(wanted.name) == 1
                     else f"contains(lower({labels}), lower($name))")
    rows = list[Found]()
    for begin, end in _windows(pictures.counts, way.at_ps, way.back):
        rows += [Found(*row) for row in tables.ask(
            f"select time_ps, node, {tables.label} from items where time_ps >= $begin and time_ps < $end"
            f"{''.join(f' and {part}' for part in where)} order by time_ps {_ORDER[way.back]}, node "
            f"limit {way.count - len(rows)}", {**values, "begin": begin, "end": end})]
        if len(rows) >= way.count or (way.until is not None and time.monotonic() > way.until):
            break
    return rows


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
