"""Derives states, messages and counters from events, as a dictionary defines them.

They are queries in DuckDB. :mod:`.semantic_tables` keeps the results in the RUN.

    states    node, name, key, begin_ps, end_ps, lost_ps, begin_row, end_row
    messages  name, key, sender, receiver, sent_ps, received_ps, latency_ps, lost_ps, send_row, receive_row
    counters  time_ps, node, event, counter, value, row[, whole]

``row`` is the row number in the files of the named events. A key is text. A state whose end was not seen has neither
``end_ps`` nor ``end_row``. If its node lost something after the beginning, the end may be lost, and the next one that
was seen may be another's: that counts as not seen, and ``lost_ps`` is the time until which the state is known to last,
when the node first lost something. An event that was cut short is lost, too, unless its id is known and is of no state
of that name. From a time on, losses of a node may be in no record; that counts as one loss without an end. A ring or a
part of a run lacks what was before its beginning, and all of the nodes that were left out; masks, filters and triggers
discard items. That counts as a loss, too (:mod:`hypermon.host.decode.unrecorded`). If one endpoint of a message was not
seen, the columns of that endpoint are null. ``lost_ps`` of a message states that its endpoints may belong to different
messages: its key can occur again, and losses of both of its nodes, or one of them if other messages that were seen are
like it, can have hidden the right endpoints. It is the time of the first of these losses. A key can occur again if it
has at most 8 bits, or if any key of this name between these nodes was seen twice.

:func:`columns` states in which type ``value`` is exact, and when there is a column ``whole``.
"""

from collections.abc import Iterable

import duckdb
from hypermon.host.dictionary.dictionary import Dictionary, EventKind

__all__ = ["TABLES", "columns", "create_views", "known_until", "text"]

#: The tables, and the types of their columns if all counters are integers below 2^63.
_COLUMNS = {
    "states": {"node": "smallint", "name": "varchar", "key": "varchar", "begin_ps": "bigint", "end_ps": "bigint",
               "lost_ps": "bigint", "begin_row": "bigint", "end_row": "bigint"},
    "messages": {"name": "varchar", "key": "varchar", "sender": "smallint", "receiver": "smallint",
                 "sent_ps": "bigint", "received_ps": "bigint", "latency_ps": "bigint", "lost_ps": "bigint",
                 "send_row": "bigint", "receive_row": "bigint"},
    "counters": {"time_ps": "bigint", "node": "smallint", "event": "varchar", "counter": "varchar",
                 "value": "bigint", "row": "bigint"},
}
TABLES = tuple(_COLUMNS)
#: Integers of 64 bits, signed or not.
_WHOLE = "decimal(20,0)"
#: Bits of the integers that a double represents exactly.
_EXACT_BITS = 53
#: A key of at most this many bits counts as one that occurs again.
_NARROW_BITS = 8
#: After every event, in picoseconds.
_FAR_PS = (1 << 63) - 1


def columns(dictionary: Dictionary | None) -> dict[str, dict[str, str]]:
    """The tables and the types of their columns.

    ``value`` of a counter is exact: a bigint or, if a counter is unsigned and has 64 bits, a decimal of 20 digits. If
    some counters are real numbers, it is a double. Integers of more than 53 bits beside those are exact in a column
    ``whole``, which is null for the real numbers.
    """
    counted = [field for kind in (dictionary.events if dictionary is not None else ())
               for field in kind.fields if field.name in kind.counters]
    real = any(field.kind == "f" for field in counted)
    widest = max((field.bits or 0 for field in counted if field.kind != "f"), default=0)
    unsigned = any(field.kind == "u" and field.bits == 64 for field in counted)
    result = {name: dict(known) for name, known in _COLUMNS.items()}
    result["counters"]["value"] = "double" if real else _WHOLE if unsigned else "bigint"
    if real and widest > _EXACT_BITS:
        result["counters"]["whole"] = _WHOLE
    return result


def create_views(connection: duckdb.DuckDBPyConnection, dictionary: Dictionary | None,
                 unseen: Iterable[tuple[int, int, int]] = (), masked: Iterable[tuple[int, int]] = ()) -> None:
    """Creates the views ``states``, ``messages``, ``counters``; from ``events`` and ``loss`` if there is a dictionary.
    ``states`` is of ``state_edges``, the events that begin or end states.

    ``unseen`` : node, from_ps, to_ps: where events may be missing that ``loss`` does not have. ``masked`` : node and
    id of events that are missing at any time.
    """
    known = columns(dictionary)
    questions: dict[str, list[str]] = {name: [] for name in known}
    if dictionary is not None:
        connection.execute("create view named as from (select row_number() over () - 1 as row, * from events) "
                           "where name is not null and not aborted")
        rows = ", ".join(map(str, unseen))
        connection.execute("create view lost as select node, from_ps, to_ps from loss" + (
            f" union all from (values {rows})" if rows else ""))
        hidden = ", ".join(map(str, masked))
        connection.execute("create view masked as select null::smallint as node, null::int as event where false" + (
            f" union all from (values {hidden})" if hidden else ""))
        connection.execute(f"create view state_edges as {_edges(dictionary, ('end', 'begin'))}")
        questions = {"states": _states(dictionary), "messages": _messages(dictionary),
                     "counters": _counters(dictionary, known["counters"])}
    for name, kinds in known.items():
        typed = ", ".join(f"{column}::{kind} as {column}" for column, kind in kinds.items())
        nulls = ", ".join(f"null::{kind} as {column}" for column, kind in kinds.items())
        question = " union all by name ".join(questions[name])
        connection.execute(f"create view {name} as "
                           + (f"select {typed} from ({question})" if question else f"select {nulls} where false"))


def text(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    """A column as an SQL identifier."""
    return '"' + value.replace('"', '""') + '"'


def _of(kind: EventKind, field: str | None, dictionary: Dictionary, otherwise: str) -> str:
    return _name(dictionary.columns[kind.name, field]) if field is not None else otherwise


def _edges(dictionary: Dictionary, ways: Iterable[str]) -> str:
    """Every event that has one of these roles, with the name it applies to; the first of ``ways`` comes first."""
    parts = [f"select row, time_ps, node, {part} as part, {text(getattr(kind, way))} as name, "
             f"{_of(kind, kind.key, dictionary, 'null')}::varchar as key, "
             f"{_of(kind, kind.peer, dictionary, 'null')}::smallint as peer from named where event = {kind.id}"
             for part, way in enumerate(ways) for kind in dictionary.events if getattr(kind, way) is not None]
    return " union all ".join(parts) or (
        "select row, time_ps, node, 0 as part, '' as name, '' as key, node as peer from named where false")


def _lost(dictionary: Dictionary, *ways: str) -> str:
    """Between which times events of these roles may be missing, by node and the name that the role is of: losses, what
    is not recorded, events that were cut short, and events that a mask discarded.
    """
    roles = {kind.id: {getattr(kind, way) for way in ways} - {None} for kind in dictionary.events}

    def of(names: set[str]) -> str:
        return f"unnest([{', '.join(map(text, sorted(names)))}]::varchar[]) as name"

    every, cut = of(set().union(*roles.values())), "select node, time_ps, time_ps"
    return " union all ".join([
        f"select node, from_ps, to_ps, {every} from lost",
        f"{cut}, {every} from events where aborted and event is null",
        *(part for number, names in roles.items() if names for part in (
            f"{cut}, {of(names)} from events where aborted and event = {number}",
            f"select node, 0, {_FAR_PS}, {of(names)} from masked where event = {number}"))])


def _states(dictionary: Dictionary) -> list[str]:
    """An end closes the most recently begun span of its name and key, unless the node lost something between them.

    ``depth`` is the number of open spans after an edge; an end without a beginning leaves it at 0. A span's beginning
    and end are neighbours among the edges of their level. ``since_ps`` : the earliest beginning of the losses that end
    after the span's beginning.
    """
    order = "partition by node, name, key order by row, part"
    return [f"""
        with summed as (select *, sum(2 * part - 1) over ({order}) as total from state_edges),
        open as (select *, total - least(0, min(total) over ({order})) as depth from summed),
        levels as (select *, if(part = 1, depth, lag(depth, 1, 0) over ({order})) as level from open),
        pairs as (select *, lead(time_ps) over same as end_ps, lead(row) over same as end_row from levels
                  where level > 0 window same as (partition by node, name, key, level order by row, part)),
        spans as (select node, name, key, time_ps as begin_ps, end_ps, row as begin_row, end_row from pairs
                  where part = 1),
        marks as (select *, begin_ps as at_ps, null::bigint as from_ps, false as lost from spans union all by name
                  select node, name, greatest(to_ps, from_ps + 1) as at_ps, from_ps, true as lost
                  from ({_lost(dictionary, "begin", "end")})),
        seen as (select *, min(from_ps) over (partition by node, name order by at_ps desc, lost
                 rows unbounded preceding) as since_ps from marks),
        cut as (select *, if(since_ps < begin_ps, begin_ps, since_ps) as gap_ps,
                end_ps is null or coalesce(since_ps < end_ps, false) as open from seen where not lost)
        select node, name, key, begin_ps, if(open, null, end_ps) as end_ps, if(open, gap_ps, null) as lost_ps,
               begin_row, if(open, null, end_row) as end_row from cut"""]


def _messages(dictionary: Dictionary) -> list[str]:
    """Among messages of one name, sender, receiver and key, the first sent is the first received, and so on.

    That is not known after a loss if there are several, or may be. ``losses`` : when each node first lost something;
    ``until`` : until when it did.
    """
    by_peer: dict[bool, list[str]] = {}
    for kind in dictionary.events:
        if kind.send is not None:
            by_peer.setdefault(kind.peer is not None, []).append(kind.send)
    return [_matched(dictionary, names, peer) for peer, names in by_peer.items()]


def _matched(dictionary: Dictionary, names: list[str], peer: bool) -> str:
    of = ", ".join(map(text, dict.fromkeys(names)))
    ends = "sender, receiver, " if peer else ""
    asked = ", ".join(f"{end} as (select *, row_number() over (partition by name, {ends}key order by row) as nth, "
                      f"count(*) over (partition by name, {ends}key) > 1 as several from "
                      f"(select row, time_ps, name, coalesce(key, '') as key, {said} from ({edges}) "
                      f"where name in ({of})))"
                      for end, said, edges in (
                          ("sends", "node as sender, peer as receiver", _edges(dictionary, ("send",))),
                          ("receives", "peer as sender, node as receiver", _edges(dictionary, ("receive",)))))
    same = " and ".join(f"sends.{column} = receives.{column}" for column in
                        ("name", *(("sender", "receiver") if peer else ()), "key", "nth"))
    narrow = ", ".join(map(text, _narrow(dictionary, names))) or "null"
    # If the sender lost nothing before it sent, its number is right; likewise the receiver. A message that is like
    # no other is matched wrongly only if each of two lost an endpoint. Without a peer, any loss may hide one.
    doubt = """case when several then least(if(losses[sender] < sent_ps, losses[sender], null),
                                           if(losses[receiver] < received_ps, losses[receiver], null))
                    when losses[sender] < received_ps and losses[receiver] < received_ps
                         or losses[sender] < sent_ps and until[receiver] > received_ps
                    then least(losses[sender], losses[receiver]) end""" if peer else (
        "if(lost < greatest(sent_ps, received_ps), lost, null)")
    return f"""
        from (with {asked},
             matched as (select coalesce(sends.name, receives.name) as name, coalesce(sends.key, receives.key) as key,
                         coalesce(sends.sender, receives.sender) as sender,
                         coalesce(receives.receiver, sends.receiver) as receiver, sends.time_ps as sent_ps,
                         receives.time_ps as received_ps, sends.row as send_row, receives.row as receive_row,
                         coalesce(sends.several, false) or coalesce(receives.several, false) as several
                         from sends full join receives on {same}),
             again as (select distinct name, {ends}true as again from matched where several or name in ({narrow})),
             gone as (select map(list(node), list(from_ps)) as losses, map(list(node), list(to_ps)) as until,
                      min(from_ps) as lost
                      from (select node, min(from_ps) as from_ps, max(to_ps) as to_ps
                            from ({_lost(dictionary, "send", "receive")}) group by node))
        select name, nullif(key, '') as key, sender, receiver, sent_ps, received_ps,
               received_ps - sent_ps as latency_ps,
               if(again and sent_ps + received_ps is not null, {doubt}, null) as lost_ps, send_row, receive_row
        from matched left join again using (name{", sender, receiver" if peer else ""}), gone)"""


def _narrow(dictionary: Dictionary, names: list[str]) -> list[str]:
    """The messages whose keys can occur again for all that is known, because there are few, or none."""
    keys = {(name, next((field.bits for field in kind.fields if field.name == kind.key), 0))
            for kind in dictionary.events for name in (kind.send, kind.receive) if name is not None and name in names}
    return sorted({name for name, bits in keys if bits is not None and bits <= _NARROW_BITS})


def _counters(dictionary: Dictionary, kinds: dict[str, str]) -> list[str]:
    asked = []
    for kind in dictionary.events:
        for field in (field for field in kind.fields if field.name in kind.counters):
            value = _of(kind, field.name, dictionary, "null")
            whole = f", {value if field.kind != 'f' else 'null'}::{_WHOLE} as whole" if "whole" in kinds else ""
            asked.append(f"select time_ps, node, {text(kind.name)} as event, {text(field.name)} as counter, "
                         f"{value}::{kinds['value']} as value, row{whole} from named "
                         f"where event = {kind.id} and {value} is not null")
    return asked


def known_until(end: str = "null", row: str = "") -> str:
    """Until when a row of ``states`` is known to last, as an SQL expression: to its end; without one, to the loss that
    may hide it, or as long as the run.

    Parameters
    ----------
    end : when the run ends, in SQL. ``null``: a state that lasts to the end of the run is null.
    row : a name of the table, followed by a dot.
    """
    return f"coalesce({row}end_ps, {row}lost_ps, {end})"
