"""Event dictionaries: the meaning of a program's event ids, defined by the program's author.

A dictionary is a TOML file (docs/dictionary.md) with one table per event. The table has the event's ``id``, the
``fields`` of its payload in order, without gaps, little-endian, and what the event begins, ends or counts. The table
``nodes`` names nodes.

    [send]
    id = 2
    doc = "A border row is sent to a neighbour."
    fields = { peer = "u8", sequence = "u16" }
"""

import dataclasses
import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.hdl.layout import NODES_MAX
from hypermon.host.dictionary.log_strings import unfit
from hypermon.host.dictionary.payload import Field, extract, one_array, sizes_of
from hypermon.host.errors import InputError
from hypermon.host.text.toml_file import plain_lines, read_toml

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Dictionary", "EventKind", "Field", "Logging", "PAYLOAD_MAX", "load_dictionary", "print_dictionary"]

#: Bytes of the longest payload: an event has 15 bytes, one is its id.
PAYLOAD_MAX = 14
#: Columns that every table of events has, whatever the dictionary defines.
COLUMNS = frozenset({"time_ps", "node", "event", "payload", "aborted", "name", "nibble", "word"})

#: Characters of a node's name: pictures draw all of it.
_NAME_MOST = 256

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_TYPE = re.compile(r"(?P<number>[ui])(?P<bits>[1-9][0-9]?)|(?P<real>f32|f64)"
                   r"|(?P<text>char|bytes)\[(?P<size>[1-9][0-9]?)\]|(?P<rest>string|bytes)")
_TYPES = "u1..u64, i1..i64, f32, f64, char[N], bytes[N], or string or bytes as the last one"


@dataclass(frozen=True)
class EventKind:
    """An event of the dictionary.

    Parameters
    ----------
    fields : of its payload, in order.
    begin, end : name of the span that it begins, or ends; the same event may end one and begin another.
    send, receive : name of the message that it sends, or receives.
    key : the field that selects one of several open spans, or messages, of that name.
    peer : the field with the number of the node at the other endpoint of the message.
    counters : fields to be drawn as counters.
    """

    name: str
    id: int
    fields: tuple[Field, ...] = ()
    doc: str = ""
    begin: str | None = None
    end: str | None = None
    key: str | None = None
    send: str | None = None
    receive: str | None = None
    peer: str | None = None
    counters: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its payload; the minimum, if its last field takes all remaining bytes."""
        return (sum(field.bits or 0 for field in self.fields) + 7) // 8

    @property
    def open_ended(self) -> bool:
        """Its last field takes all remaining bytes."""
        return bool(self.fields) and self.fields[-1].bits is None

    def as_dict(self) -> dict[str, Any]:
        """The event as in the file, and the bytes of its payload; plain values."""
        names = ("name", "id", "doc", "begin", "end", "send", "receive", "key", "peer")
        said = {name: getattr(self, name) for name in names}
        fields = {field.name: {"type": field.type, "values": dict(field.values), "doc": field.doc}
                  for field in self.fields}
        return {**said, "counters": list(self.counters), "size": self.size, "fields": fields}

    def rows(self, events: pa.Table) -> pa.Table:
        """The events of this kind with their fields decoded.

        Parameters
        ----------
        events : as :func:`hypermon.host.decode.event_framing.frame_events` returns them.

        Returns
        -------
        ``time_ps``, ``node`` and one column per field, in the order of ``events``. Aborted events are left out.

        Raises
        ------
        ValueError
            if such an event has a payload of another length.
        """
        own = events.filter(pc.and_(pc.equal(events["event"], self.id), pc.invert(events["aborted"])))
        payload = one_array(own["payload"])
        sizes = sizes_of(payload)
        wrong = sizes < self.size if self.open_ended else sizes != self.size
        if np.any(wrong):
            raise ValueError(f"{self.name}: a payload of {sizes[wrong][0]} bytes, not {self.size}")
        columns = extract(self.fields, payload, sizes, np.zeros(len(sizes), np.bool_))
        return pa.table({"time_ps": own["time_ps"], "node": own["node"], **columns})


@dataclass(frozen=True)
class Logging:
    """Event ids of ``hypermon/log.h``, and the format strings of its log lines, by number."""

    piece: int = 0xfd
    log: int = 0xfc
    text: int = 0xfb
    strings: Mapping[int, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Dictionary:
    """A dictionary, validated.

    Parameters
    ----------
    source : the file's bytes.
    events : in the order of the file.
    nodes : names of nodes, by number; not every node needs a name.
    logging : long messages and log lines; None if the program has none.
    """

    source: bytes
    events: tuple[EventKind, ...]
    nodes: Mapping[int, str]
    logging: Logging | None = None

    @cached_property
    def by_id(self) -> dict[int, EventKind]:
        return {kind.id: kind for kind in self.events}

    @cached_property
    def by_name(self) -> dict[str, EventKind]:
        return {kind.name: kind for kind in self.events}

    @cached_property
    def digest(self) -> str:
        """Hash of the contents: it changes whenever the file does."""
        return hashlib.sha256(self.source).hexdigest()

    @cached_property
    def columns(self) -> dict[tuple[str, str], str]:
        """Column of every (event, field) in a table of all events.

        A column has the field's name, and events that have a field of that name share it. If their types differ, or the
        name is one of :data:`COLUMNS`, it is ``event_field`` instead.
        """
        users: dict[str, list[Field]] = {}
        for kind in self.events:
            for field in kind.fields:
                users.setdefault(field.name.lower(), []).append(field)
        plain = {name for name, fields in users.items()
                 if name not in COLUMNS and len({(f.name, f.arrow, f.values) for f in fields}) == 1}
        return {(kind.name, field.name): field.name if field.name.lower() in plain else f"{kind.name}_{field.name}"
                for kind in self.events for field in kind.fields}

    def node_name(self, node: int) -> str:
        """Display name of a node."""
        return self.nodes.get(node, f"node {node}")


def load_dictionary(path: str | os.PathLike[str]) -> Dictionary:
    """Reads and validates a dictionary.

    Raises
    ------
    InputError
        if the file is not readable or not valid; it names the line and the reason.
    """
    source, text, tables = read_toml(path, "a dictionary")
    return _Reader(path, text).dictionary(source, tables)


def print_dictionary(dictionary: Dictionary, console: "Console") -> None:
    """Prints the dictionary as tables, for people."""
    # Only here: importing rich takes a tenth of the time in which `hypermon view` has its first picture.
    from hypermon.host.text.console import cell
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title, justify in (("id", "right"), ("event", "left"), ("bytes", "right"), ("fields", "left"),
                           ("what it is", "left")):
        table.add_column(title, justify="right" if justify == "right" else "left")
    for kind in dictionary.events:
        spans = [f"{word} {span}" for word, span in (("ends", kind.end), ("begins", kind.begin), ("sends", kind.send),
                                                     ("receives", kind.receive)) if span]
        what = "; ".join(filter(None, [kind.doc, *spans]))
        table.add_row(str(kind.id), kind.name, f"{kind.size}{'+' * kind.open_ended}",
                      cell(", ".join(f"{field.name} {field.type}" for field in kind.fields)), cell(what))
    console.print(table)
    for number, name in sorted(dictionary.nodes.items()):
        console.print(cell(f"node {number}: {name}"))


class _Reader:
    """Converts tables into a dictionary. Every fault is an InputError with its line."""

    def __init__(self, path: str | os.PathLike[str], text: str):
        self._path = path
        self._lines = _lines(text)

    def _wrong(self, where: tuple[str, ...], reason: str) -> NoReturn:
        place = where
        while place and place not in self._lines:
            place = place[:-1]
        raise InputError(self._path, self._lines.get(place), f"{where[0]}: {reason}")

    def dictionary(self, source: bytes, tables: dict[str, Any]) -> Dictionary:
        nodes = self._nodes(tables.pop("nodes", {}))
        said = tables.get("logging")
        logging = None if said is None or (isinstance(said, dict) and "id" in said) else \
            self._logging(tables.pop("logging"))
        kinds = [self._kind(name, table) for name, table in tables.items()]
        ids: dict[int, str] = {}
        names: dict[str, str] = {}
        for kind in kinds:
            if kind.id in ids:
                self._wrong((kind.name, "id"), f"{ids[kind.id]} has the same id, {kind.id}")
            if kind.name.lower() in names:
                self._wrong((kind.name,), f"{names[kind.name.lower()]} differs only in capital letters")
            ids[kind.id], names[kind.name.lower()] = kind.name, kind.name
        for kind in kinds:
            if logging is not None and kind.id in (logging.piece, logging.log, logging.text):
                self._wrong((kind.name, "id"), f"{kind.id} is an id of logging")
        result = Dictionary(source, tuple(kinds), nodes, logging)
        self._check_columns(result)
        self._check_spans(kinds)
        return result

    def _nodes(self, table: object) -> dict[int, str]:
        if not isinstance(table, dict):
            self._wrong(("nodes",), "this name is taken: it is the table of nodes' names")
        nodes: dict[int, str] = {}
        for key, name in table.items():
            if not re.fullmatch(r"0|[1-9][0-9]?", key) or int(key) >= NODES_MAX:
                self._wrong(("nodes", key), f"a node is 0..{NODES_MAX - 1}, not {key!r}")
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                self._wrong(("nodes", key), f"a name is a line of text, not {name!r}")
            if len(name) > _NAME_MOST:
                self._wrong(("nodes", key), f"a name has at most {_NAME_MOST} characters, not {len(name)}")
            if name in nodes.values():
                self._wrong(("nodes", key), f"{name!r} is the name of two nodes")
            nodes[int(key)] = name
        return nodes

    def _logging(self, table: object) -> Logging:
        known = ("piece", "log", "text")
        if not isinstance(table, dict):
            self._wrong(("logging",), "it is a table: piece, log and text, and the table strings")
        ids = {key: value for key, value in table.items() if key != "strings"}
        for key, value in ids.items():
            if key not in known or type(value) is not int or not 0 <= value <= 255:
                self._wrong(("logging", key), f"it has the ids {', '.join(known)}, 0..255, and strings; not "
                                              f"{key} = {value!r}")
        strings = table.get("strings", {})
        if not isinstance(strings, dict):
            self._wrong(("logging", "strings"), "it is a table of numbers and texts")
        for key, value in strings.items():
            if not re.fullmatch(r"0|[1-9][0-9]{0,4}", key) or not isinstance(value, str):
                self._wrong(("logging", "strings", key), f"a string has a number and a text, not {key} = {value!r}")
            if reason := unfit(value):
                self._wrong(("logging", "strings", key), reason)
        result = Logging(**ids, strings={int(key): value for key, value in strings.items()})
        if len({result.piece, result.log, result.text}) < len(known):
            self._wrong(("logging",), "its three ids must differ")
        return result

    def _kind(self, name: str, table: object) -> EventKind:
        known = ("id", "doc", "fields", "begin", "end", "send", "receive", "key", "peer", "counters")
        if not _NAME.fullmatch(name):
            self._wrong((name,), "a name is letters, digits and _, no digit first, 63 at most")
        if not isinstance(table, dict):
            self._wrong((name,), "an event is a table: [name], then id = ...")
        for key in table:
            if key not in known:
                self._wrong((name, key), f"an event has {', '.join(known)}; not {key!r}")
        number = table.get("id")
        if type(number) is not int or not 0 <= number <= 255:
            self._wrong((name, "id"), f"id is 0..255, not {number!r}" if "id" in table else "id is missing, 0..255")
        fields = self._fields(name, table.get("fields", {}))
        texts = {key: self._text(name, key, table.get(key))
                 for key in ("doc", "begin", "end", "send", "receive", "key", "peer")}
        key = texts["key"]
        if key is not None and key not in [field.name for field in fields]:
            self._wrong((name, "key"), f"key must be the name of one of its fields, not {key!r}")
        if key is not None and not any(texts[of] for of in ("begin", "end", "send", "receive")):
            self._wrong((name, "key"), "a key without begin, end, send or receive")
        peer = texts["peer"]
        if peer is not None and peer not in [field.name for field in fields if field.kind in "ui" and field.numeric]:
            self._wrong((name, "peer"), f"peer is the name of one of its whole numbers without names, not {peer!r}")
        if peer is not None and not texts["send"] and not texts["receive"]:
            self._wrong((name, "peer"), "a peer without send or receive")
        counters = table.get("counters", [])
        usable = [field.name for field in fields if field.numeric]
        if not isinstance(counters, list):
            self._wrong((name, "counters"), f"counters is a list of fields, not {counters!r}")
        for counter in counters:
            if counter not in usable:
                self._wrong((name, "counters"), f"a counter is one of its numbers without names, not {counter!r}")
        if len(set(counters)) != len(counters):
            self._wrong((name, "counters"), "a counter is given twice")
        return EventKind(name, number, fields, texts["doc"] or "", texts["begin"], texts["end"], key, texts["send"],
                         texts["receive"], peer, tuple(counters))

    def _text(self, event: str, key: str, value: object) -> str | None:
        if value is not None and not (isinstance(value, str) and value.strip() and value.isprintable()):
            self._wrong((event, key), f"{key} is a line of text, not {value!r}")
        return value

    def _fields(self, event: str, table: object) -> tuple[Field, ...]:
        if not isinstance(table, dict):
            self._wrong((event, "fields"), f"fields is a table of names and types, not {table!r}")
        fields: list[Field] = []
        offset = 0
        for name, said in table.items():
            where = (event, "fields", name)
            if not _NAME.fullmatch(name):
                self._wrong(where, f"field {name!r}: a name is letters, digits and _, no digit first, 63 at most")
            if name.lower() in ("time_ps", "node"):
                self._wrong(where, f"field {name}: every event has a {name.lower()} already")
            if name.lower() in [field.name.lower() for field in fields]:
                self._wrong(where, f"field {name}: another name differs only in capital letters")
            if fields and fields[-1].bits is None:
                self._wrong(where, f"field {name}: {fields[-1].name} before it takes all that is left")
            field = self._field(where, name, said if isinstance(said, dict) else {"type": said}, offset)
            fields.append(field)
            offset += field.bits or 0
            if (offset + 7) // 8 > PAYLOAD_MAX:
                self._wrong(where, f"field {name}: {(offset + 7) // 8} bytes; a payload has {PAYLOAD_MAX} at most")
        return tuple(fields)

    def _field(self, where: tuple[str, ...], name: str, table: dict[str, Any], offset: int) -> Field:
        for key in table:
            if key not in ("type", "doc", "values"):
                self._wrong((*where, key), f"field {name}: it has type, doc and values; not {key!r}")
        said = table.get("type")
        match = _TYPE.fullmatch(said) if isinstance(said, str) else None
        if match is None or int(match["bits"] or 1) > 64:
            self._wrong((*where, "type"), f"field {name}: a type is {_TYPES}; not {said!r}")
        bits: int | None
        if match["number"]:
            kind, bits = match["number"], int(match["bits"])
        elif match["real"]:
            kind, bits = "f", int(match["real"][1:])
        elif match["text"]:
            kind, bits = match["text"], 8 * int(match["size"])
        else:
            kind, bits = ("char" if match["rest"] == "string" else "bytes"), None
        if kind not in "ui" and offset % 8:
            self._wrong(where, f"field {name}: {said} begins at a whole byte, not at bit {offset % 8} of one")
        doc = table.get("doc", "")
        if not isinstance(doc, str) or not (doc.isprintable() or not doc):
            self._wrong((*where, "doc"), f"field {name}: doc is a line of text, not {doc!r}")
        values = self._values(where, name, table.get("values", {}), kind, bits or 0)
        return Field(name, kind, offset, bits, values, doc)

    def _values(self, where: tuple[str, ...], name: str, table: object, kind: str,
                bits: int) -> tuple[tuple[str, int], ...]:
        if table == {}:
            return ()
        here = (*where, "values")
        if not isinstance(table, dict):
            self._wrong(here, f"field {name}: values is a table of names and numbers, not {table!r}")
        if kind not in "ui":
            self._wrong(here, f"field {name}: only values of u and i types have names")
        low, high = (0, 2**bits - 1) if kind == "u" else (-2**(bits - 1), 2**(bits - 1) - 1)
        seen: dict[object, str] = {}
        for value, number in table.items():
            if not _NAME.fullmatch(value):
                self._wrong((*here, value), f"field {name}: a value's name is letters, digits and _, not {value!r}")
            if type(number) is not int or not low <= number <= high:
                self._wrong((*here, value), f"field {name}: {value} is {low}..{high}, not {number!r}")
            if number in seen or value.lower() in seen:
                self._wrong((*here, value), f"field {name}: {value} is {seen.get(number, seen.get(value.lower()))} too")
            seen[number] = seen[value.lower()] = value
        return tuple(table.items())

    def _check_columns(self, dictionary: Dictionary) -> None:
        # Owner of a column: (event, field), or (field,) if all events that have the field share it.
        taken: dict[str, tuple[str, ...]] = dict.fromkeys(COLUMNS, ("every event",))
        for (event, field), column in dictionary.columns.items():
            own = (field,) if column == field else (event, field)
            owner = taken.setdefault(column.lower(), own)
            if owner != own:
                self._wrong((event, "fields", field), f"field {field}: its column would be {column}, which "
                                                      f"{'.'.join(owner)} has")

    def _check_spans(self, kinds: list[EventKind]) -> None:
        """Spans that begin must also end, and messages sent must be received; both sides or neither have a key, or
        peer.
        """
        self._check_ends(kinds, "begin", "end", ("key",))
        self._check_ends(kinds, "send", "receive", ("key", "peer"))

    def _check_ends(self, kinds: list[EventKind], one: str, other: str, alike: tuple[str, ...]) -> None:
        for way, back in ((one, other), (other, one)):
            others = {getattr(kind, back): kind for kind in kinds if getattr(kind, back) is not None}
            for kind in kinds:
                name = getattr(kind, way)
                if name is None:
                    continue
                if name not in others:
                    self._wrong((kind.name, way), f"nothing {back}s {name!r}")
                for field in alike:
                    if (getattr(kind, field) is None) != (getattr(others[name], field) is None):
                        self._wrong((kind.name, way), f"of {kind.name} and {others[name].name} one has a {field}, for "
                                                      f"{name!r}, and the other has not")


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Line of every table and key that begins one. ``text`` is valid TOML."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in plain_lines(text):
        if line.lstrip().startswith("["):
            found = _path(line)
            if found is not None:
                table = found
                lines.setdefault(table, number)
            continue
        key = re.match(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""", line)
        found = _path(f"{key[1]} = 0") if key else None
        for depth in range(1, len(found or ()) + 1):
            lines.setdefault((*table, *(found or ())[:depth]), number)
    return lines


def _path(line: str) -> tuple[str, ...] | None:
    """The keys in a single line of TOML."""
    try:
        tables: object = tomllib.loads(line)
    except (RecursionError, ValueError):
        return None
    path = []
    while isinstance(tables, dict) and tables:
        [(name, tables)] = tables.items()
        path.append(name)
    return tuple(path)
