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
from hypermon.host.view.understood import Names, Wanted, near, said, understood

__all__ = ["Found", "counted", "hits", "search"]

#: For a list: number of matches before a time and from then on; seconds after which no more row groups are read for it.
_BEFORE, _AFTER, _LIST_S = 50, 150, 1.5
#: Matches in a list of the longest ones.
_LONGEST = _BEFORE + _AFTER
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


@dataclass
class _Question:
    """The rows of a table that match a text.

    Members
    -------
    columns : those of :class:`Found`, in SQL.
    time_ps, node : in SQL; of a message whose node is not known, the node at its other end.
    took_ps : how long each took, in SQL; null if that is not known. Empty: rows have no duration.
    """

    table: str
    columns: str
    where: list[str]
    values: dict[str, Any]
    time_ps: str
    node: str = "node"
    took_ps: str = ""

    def of(self, only: Sequence[int] | None) -> "_Question":
        """The same, of these nodes."""
        if only is None:
            return self
        return replace(self, where=[*self.where, _among(self.node)], values=self.values | {"only": list(only)})


def _among(node: str) -> str:
    return f"{node} in (select unnest($only::bigint[]))"


def search(pictures: Pictures, text: str, at_ps: int, back: bool, only: Sequence[int] | None = None) -> Found | None:
    """The next match after a time, or the last one before it; if there is none, from the run's other end on.

    Parameters
    ----------
    only : matches of these nodes; None: of all.

    Raises
    ------
    HypermonError
        if the text is not understood, or names what the run does not have.
    """
    wanted = _wanted(pictures, text)
    back = back != wanted.back
    question = _question(pictures, wanted).of(only)
    found = _all(pictures, question, _Way(at_ps, back))
    if found:
        return found[0]
    found = _all(pictures, question, _Way(pictures.end_ps + 1 if back else pictures.begin_ps - 1, back))
    return replace(found[0], wrapped=True) if found else None


def hits(pictures: Pictures, text: str, at_ps: int, only: Sequence[int] | None = None,
         longest: bool = False) -> dict[str, Any]:
    """The matches around a time, in order, or the longest ones of the run, as plain values, and how many there are.

    Parameters
    ----------
    only : matches of these nodes; None: of all.
    longest : the longest first, if the matches are states, messages or losses. Others are around the time.

    Returns
    -------
    dict
        ``hits``: each has ``took``, see :func:`_took`. ``before``, ``after``: there may be more on that side.
        ``longest``: these are the longest ones. ``total``: matches in the run; ``hidden``: those of other nodes, which
        are not in ``total``. ``counted``: both are exact; otherwise, there are at least that many.

    Raises
    ------
    HypermonError
        as :func:`search`.
    """
    every = _question(pictures, _wanted(pictures, text))
    question = every.of(only)
    if longest and question.took_ps:
        listed, before, after = _longest(pictures, question), False, False
    else:
        listed, before, after = _around(pictures, question, at_ps)
    both = zip(listed, _took(pictures, listed), strict=True)
    if only is None and not (before or after) and len(listed) < _LONGEST:
        counts = {"total": len(listed), "hidden": 0, "counted": True}
    else:
        counts = _counts(pictures, every, only)
    return {"hits": [found.values() | {"took": took} for found, took in both], "before": before, "after": after,
            "longest": longest and bool(question.took_ps), **counts}


def _around(pictures: Pictures, question: _Question, at_ps: int) -> tuple[list[Found], bool, bool]:
    """The matches around a time, in order, and whether there may be more before and after them."""
    until = time.monotonic() + _LIST_S
    after = _all(pictures, question, _Way(at_ps - 1, False, _AFTER + 1, until))
    late, until = time.monotonic() >= until, time.monotonic() + _LIST_S
    before = _all(pictures, question, _Way(at_ps, True, _BEFORE + 1, until))
    return ([*before[:_BEFORE][::-1], *after[:_AFTER]], len(before) > _BEFORE or time.monotonic() >= until,
            len(after) > _AFTER or late)


def _longest(pictures: Pictures, question: _Question) -> list[Found]:
    rows = pictures.tables.ask(
        f"select {question.columns} from {question.table} where {_and(question.where)} "
        f"order by {question.took_ps} desc nulls last, {question.time_ps}, 2 limit {_LONGEST}", question.values)
    return [Found(*row) for row in rows]


def counted(pictures: Pictures, text: str, from_ps: int, to_ps: int,
            only: Sequence[int] | None = None) -> dict[str, Any] | None:
    """``total``, ``hidden`` and ``counted``, as :func:`hits` returns them, of the matches at ``from_ps`` or later, and
    before ``to_ps``; None if the text is no search.
    """
    try:
        every = _question(pictures, _wanted(pictures, text))
    except HypermonError:
        return None
    within = [f"{every.time_ps} >= $low", f"{every.time_ps} < $high"]
    return _counts(pictures, replace(every, where=[*within, *every.where],
                                     values=every.values | {"low": from_ps, "high": to_ps}), only, (from_ps, to_ps))


def _counts(pictures: Pictures, every: _Question, only: Sequence[int] | None,
            stretch: tuple[int, int] = (-2**62, 2**62)) -> dict[str, Any]:
    """``total``, ``hidden`` and ``counted`` of :func:`hits`. Of items, the row groups of a stretch are read, for 1.5 s
    at most.
    """
    shown = "true" if only is None else _among(every.node)
    values, until = every.values | ({} if only is None else {"only": list(only)}), time.monotonic() + _LIST_S
    total, hidden, counted = 0, 0, True
    low, high = max(stretch[0], pictures.begin_ps), stretch[1]
    parts = [(None, None)] if every.table != "items" else _windows(pictures.counts, low - 1, False)
    for begin, end in parts:
        if begin is not None and begin >= high:
            break
        if time.monotonic() > until:
            counted = False
            break
        where = [*every.where, *([] if begin is None else ["time_ps >= $begin", "time_ps < $end"])]
        [(own, others)] = pictures.tables.ask(
            f"select count(*) filter ({shown}), count(*) filter (not {shown}) from {every.table} where {_and(where)}",
            values if begin is None else values | {"begin": begin, "end": end})
        total, hidden = total + own, hidden + others
    return {"total": total, "hidden": hidden, "counted": counted}


def _and(parts: Sequence[str]) -> str:
    return " and ".join(parts) or "true"


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
        raise HypermonError(f"search: to {said(wanted.nodes['to'])}: only a message has a receiver, such as "
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
    given = [f"{word} {said(wanted.nodes[word])}" for word in words if word in wanted.nodes]
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


def _question(pictures: Pictures, wanted: Wanted) -> _Question:
    if wanted.kind in _MESSAGES:
        return _messages(pictures, wanted)
    if wanted.kind == "state":
        return _states(pictures, wanted)
    return _losses(pictures, wanted) if wanted.kind == "loss" else _items(pictures, wanted)


def _all(pictures: Pictures, question: _Question, way: _Way) -> list[Found]:
    """The first rows of an order of time. Of items, row groups are read until there are enough."""
    if question.table != "items":
        return _first(pictures, question, way)
    rows = list[Found]()
    for begin, end in _windows(pictures.counts, way.at_ps, way.back):
        part = replace(question, where=["time_ps >= $begin", "time_ps < $end", *question.where],
                       values=question.values | {"begin": begin, "end": end})
        rows += _first(pictures, part, replace(way, count=way.count - len(rows)))
        if len(rows) >= way.count or (way.until is not None and time.monotonic() > way.until):
            break
    return rows


def _first(pictures: Pictures, question: _Question, way: _Way) -> list[Found]:
    time_ps = question.time_ps
    rows = pictures.tables.ask(
        f"select {question.columns} from {question.table} "
        f"where {_and([f'{time_ps} {_SIGN[way.back]} $at', *question.where])} "
        f"order by {time_ps} {_ORDER[way.back]}, 2 limit {way.count}", question.values | {"at": way.at_ps})
    return [Found(*row) for row in rows]


def _named(wanted: Wanted, column: str, values: dict[str, Any]) -> list[str]:
    if not wanted.name:
        return []
    values["name"] = wanted.name
    return [f"contains(lower({column}), lower($name))"]


def _messages(pictures: Pictures, wanted: Wanted) -> _Question:
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
            where.append(_is_of(column, node, values))
    where += _met(pictures, wanted, values)
    time_ps, end_ps = ("received_ps", "sent_ps") if receives else ("sent_ps", "received_ps")
    where.append(f"{time_ps} is not null")
    arrow = "' from node ' || sender" if receives else "' to node ' || receiver"
    name = f"name || coalesce(' ' || key, '') || coalesce({arrow}, '')"
    return _Question("messages", f"{time_ps}, coalesce({own}, -1), {name}, {end_ps}, coalesce({other}, -1), 'message', "
                                 f"{receives}, false, lost_ps", where, values, time_ps, f"coalesce({own}, {other}, -1)",
                     "case when lost_ps is null then latency_ps end")


def _states(pictures: Pictures, wanted: Wanted) -> _Question:
    if not pictures.tables.stories:
        raise HypermonError("this run has no states: its dictionary defines them"
                            if pictures.ready else "the states of this run are being made; try again later")
    values = dict[str, Any]()
    where = [*_named(wanted, "name", values), *_of_node(wanted, values), *_met(pictures, wanted, values)]
    return _Question("states", "begin_ps, node, name || coalesce(' ' || key, ''), end_ps, -1, 'state', false, false, "
                               "lost_ps", where, values, "begin_ps",
                     took_ps="case when lost_ps is null then end_ps - begin_ps end")


def _losses(pictures: Pictures, wanted: Wanted) -> _Question:
    values = dict[str, Any]()
    where = [*_of_node(wanted, values), *_met(pictures, wanted, values)]
    return _Question("loss", "from_ps, node, 'lost ' || lost, to_ps, -1, 'loss'", where, values, "from_ps",
                     took_ps="to_ps - from_ps")


def _of_node(wanted: Wanted, values: dict[str, Any]) -> list[str]:
    node = wanted.node("of", "on", "from")
    if node is None:
        return []
    return [_is_of("node", node, values)]


def _is_of(column: str, nodes: tuple[int, ...], values: dict[str, Any]) -> str:
    values[column] = nodes[0] if len(nodes) == 1 else list(nodes)
    return f"{column} = ${column}" if len(nodes) == 1 else f"{column} in (select unnest(${column}::bigint[]))"


def _items(pictures: Pictures, wanted: Wanted) -> _Question:
    tables, values = pictures.tables, dict[str, Any]()
    where = [*_of_node(wanted, values), *_met(pictures, wanted, values)]
    if wanted.name:
        values["name"] = wanted.name
        labels = tables.label
        whole = pictures.dictionary is not None and wanted.name.lower() in map(str.lower,
                                                                               pictures.dictionary.by_name)
        where.append(f"lower({labels}) = lower($name)" if whole or len(wanted.name) == 1
                     else f"contains(lower({labels}), lower($name))")
    return _Question("items", f"time_ps, node, {tables.label}", where, values, "time_ps")


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
