"""Items, losses and notes as lines: text for people, JSON for programs."""

import json
import math
from collections.abc import Collection, Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.decode.event_framing import EVENT_SCHEMA as FRAMED_SCHEMA
from hypermon.host.dictionary.dictionary import Dictionary, EventKind
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.dictionary.long_messages import Joiner, LogLine
from hypermon.host.errors import HypermonError
from hypermon.host.live.follow import Loss, Note, Part
from hypermon.host.recording.info import RunInfo
from hypermon.host.tables.parquet import event_schema
from hypermon.host.text.printable import visible

__all__ = ["Lines"]

Row = dict[str, Any]


class Lines:
    """Formats the parts of a recording.

    Parameters
    ----------
    info : of the recording.
    dictionary : of its events, if there is one.
    framing : nibbles are read as events.
    as_json : JSON, one object per line. Otherwise text.
    nodes, names : items of these nodes, and of events with these names; None: all. Losses of other nodes are left out,
        too.
    where : an SQL condition on the columns of an item, such as ``peer = 3``; None: all.

    Raises
    ------
    HypermonError
        if a name is not in the dictionary, or the condition is not valid.
    """

    def __init__(self, info: RunInfo, dictionary: Dictionary | None = None, *, framing: bool = False,
                 as_json: bool = False, nodes: Collection[int] | None = None, names: Collection[str] | None = None,
                 where: str | None = None):
        self._dictionary, self._json = dictionary, as_json
        self._nodes = None if nodes is None else np.array(sorted(nodes), np.int16)
        self._names = None if names is None else pa.array(list(names), pa.string())
        self._joiner = None if dictionary is None or dictionary.logging is None else Joiner(dictionary)
        known = set() if dictionary is None else {*dictionary.by_name, *(["log", "text"] if self._joiner else [])}
        for name in names or ():
            if name not in known:
                raise HypermonError(f"--name {name}: " + (
                    "the recording has no dictionary" if dictionary is None else
                    f"the dictionary has {', '.join(sorted(known))}"))
        self._where = where
        schema = FRAMED_SCHEMA if framing else event_schema(info.item_modes, info.nodes)
        if where is not None:
            self._connection = duckdb.connect(config={"python_enable_replacements": False, "threads": 1})
            self._connection.execute("set enable_external_access = false")
            self._chosen(self._decoded(schema.empty_table()))

    def of(self, part: Part) -> str:
        """The lines of a part, each with its end; empty if all of it is left out."""
        rows = self._rows(part)
        return "".join(map(self._line, rows))

    def finish(self) -> str:
        """The lines of messages that never ended."""
        lines = list(self._joiner.finish()) if self._joiner is not None else []
        return "".join(self._line(row) for line in lines for row in self._log(line))

    def _line(self, row: Row) -> str:
        return f"{json.dumps(row) if self._json else self._text(row)}\n"

    def _log(self, line: LogLine) -> Iterator[Row]:
        """A message, if the filters let it pass."""
        if (self._nodes is not None and line.node not in self._nodes) or self._where is not None or (
                self._names is not None and line.name not in self._names.to_pylist()):
            return
        yield {"kind": "log", **{name: _plain(value) for name, value in line._asdict().items() if value is not None}}

    def _rows(self, part: Part) -> Iterator[Row]:
        """What is printed, as plain values."""
        if isinstance(part, Loss) and self._joiner is not None:
            self._joiner.lose(part.node, part.from_ps, part.to_ps)
        if isinstance(part, Loss):
            if self._nodes is None or part.node in self._nodes:
                yield {"kind": "loss", "time_ps": part.from_ps, **part._asdict()}
        elif isinstance(part, Note):
            yield part._asdict()
        elif len(part):
            yield from self._joined(self._decoded(part))

    def _decoded(self, table: pa.Table) -> pa.Table:
        if self._dictionary is None or "event" not in table.column_names:
            return table
        return decode_fields(table, self._dictionary)[0]

    def _joined(self, table: pa.Table) -> Iterator[Row]:
        """The chosen items, with messages in place of their last piece."""
        if self._joiner is None or "event" not in table.column_names:
            yield from self._items(self._chosen(table))
            return
        own = self._joiner.ids
        pieces = np.flatnonzero(np.isin(pc.fill_null(table["event"].cast(pa.int16()), -1).to_numpy(), own))
        begin = 0
        for at in pieces.tolist():
            yield from self._items(self._chosen(table.slice(begin, at - begin)))
            for line in self._joiner.add(table.slice(at, 1).to_pylist()):
                yield from self._log(line)
            begin = at + 1
        yield from self._items(self._chosen(table.slice(begin)))

    def _chosen(self, table: pa.Table) -> pa.Table:
        """The items that the filters let pass, in their order."""
        if self._nodes is not None:
            table = table.filter(pa.array(np.isin(table["node"].to_numpy(), self._nodes)))
        if self._names is not None and "name" in table.column_names:
            table = table.filter(pc.is_in(table["name"].cast(pa.string()), self._names))
        if self._where is None:
            return table
        try:
            self._connection.register("items", table)
            return self._connection.sql(f"select * from items where ({self._where}\n)").to_arrow_table()
        except duckdb.Error as error:
            raise HypermonError(f"--where {self._where}: {str(error).splitlines()[0]}") from None

    def _items(self, table: pa.Table) -> Iterator[Row]:
        columns = {name: table[name].to_pylist() for name in table.column_names}
        event, word, nibble = (columns.get(name, [None] * len(table)) for name in ("event", "word", "nibble"))
        payload, aborted = (columns.get(name, [None] * len(table)) for name in ("payload", "aborted"))
        for k, (time_ps, node) in enumerate(zip(columns["time_ps"], columns["node"], strict=True)):
            row: Row = {"kind": "item", "time_ps": time_ps, "node": node}
            if nibble[k] is not None:
                row["nibble"] = nibble[k]
            elif word[k] is not None:
                row["word"] = word[k]
            else:
                row |= self._event(event[k], payload[k], k, columns)
            if aborted[k]:
                row["aborted"] = True
            yield row

    def _event(self, event: int | None, payload: bytes | None, k: int, columns: dict[str, list[Any]]) -> Row:
        """An event: its name and fields if the dictionary has it, and the payload where that says more."""
        kind = None if self._dictionary is None or event is None else self._dictionary.by_id.get(event)
        row: Row = {"kind": "event", "event": event}
        size = len(payload or b"")
        if kind is not None:
            row |= {"name": kind.name, "fields": self._fields(kind, k, columns)}
            if size == kind.size or (kind.open_ended and size >= kind.size):
                return row
        return row | {"payload": (payload or b"").hex()}

    def _fields(self, kind: EventKind, k: int, columns: dict[str, list[Any]]) -> Row:
        assert self._dictionary is not None
        values = {field.name: columns[self._dictionary.columns[kind.name, field.name]][k] for field in kind.fields}
        return {name: _plain(value) for name, value in values.items() if value is not None}

    def _text(self, row: Row) -> str:
        begin = _seconds(row["time_ps"])
        if row["kind"] == "loss":
            return f"{begin}  {self._node(row['node'])}  LOST {row['lost']:,} items until {_seconds(row['to_ps'])}"
        if row["kind"] == "log":
            said = visible(row["text"]) if "text" in row else f"{row.get('name') or row['event']}  {row['payload']}"
            return f"{begin}  {self._node(row['node'])}  {said}"
        if "node" not in row:
            return f"{begin}  {row['kind'].upper()}: {visible(row['text'])}"
        parts = [begin, self._node(row["node"])]
        if "nibble" in row:
            parts.append(f"nibble {row['nibble']}")
        elif "word" in row:
            parts.append(f"word {row['word']:#010x}")
        else:
            parts.append(row.get("name") or ("event" if row["event"] is None else f"event {row['event']}"))
            fields = [f"{name}={_shown(value)}" for name, value in row.get("fields", {}).items()]
            fields += [f"payload={row['payload']}"] if row.get("payload") else []
            parts += [" ".join(fields)] if fields else []
        return "  ".join(parts + ["(aborted)"] * row.get("aborted", False))

    def _node(self, node: int) -> str:
        return visible(self._dictionary.node_name(node)) if self._dictionary is not None else f"node {node}"


def _seconds(time_ps: int) -> str:
    """Board time in seconds, to the picosecond: times of half clocks differ by less than a nanosecond's half."""
    sign, time_ps = ("-" if time_ps < 0 else ""), abs(time_ps)
    return f"{sign}{time_ps // 10**12}.{time_ps % 10**12:012}"


def _plain(value: Any) -> Any:
    """A field as JSON has it."""
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: Any) -> str:
    """A field for people: text that could be taken for several fields is quoted."""
    text = visible(str(value))
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) and (" " in text or not text) else text
