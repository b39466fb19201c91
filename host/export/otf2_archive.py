"""A run as an archive in the Open Trace Format 2, which Vampir, otf2-print and other tools read.

A node is a process, and its first location contains its events. Spans that overlap without nesting are on further
locations of the node. Spans that the dictionary's events begin and end are regions. Messages seen at both endpoints are
MPI messages, in one communicator per name, with nodes as ranks. All other items are parameters, by the name of the
item. Times are picoseconds of the board's clock, exact, plus one second, because the format has no negative times.
While a node loses items its measurement is off; the attribute ``lost`` gives their number.

The library keeps strings until the end, each once: those of a dictionary's fields that are text or bytes.
"""

import ctypes
import heapq
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.export.brackets import Bracket, Span, brackets
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.sinks import folder
from hypermon.host.export.tracks import Flow, Message, NamedSpan, Point, Tracks, Values, tracks_of
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["CLOCK_LATE_PS", "OTF2", "write_otf2"]

#: Value of the clock at time 0.
CLOCK_LATE_PS = 10**12
_NO_FLOW = Flow()

#: Contents of a node's first location; sorted by time only.
_Entry = tuple[int, Bracket[NamedSpan | int] | Point]


def write_otf2(directory: Path, tracks: Tracks, outages: list[list[LossSpan]], *, title: str = "hypermon") -> None:
    """Writes ``traces.otf2`` and the files that belong to it into a directory, which exists and is empty.

    Parameters
    ----------
    outages : of all nodes.

    Raises
    ------
    HypermonError
        if the package ``otf2`` is not installed, or cannot write, for instance because the disk is full.
    """
    try:
        otf2, errors = import_module("otf2"), import_module("_otf2.ErrorCodes")
    except ImportError:
        raise HypermonError(f"OTF2 is not installed: {to_install('otf2')}") from None
    archive = None
    with _complaints(errors) as said, suppress(errors.Error):
        with otf2.writer.open(str(directory), timer_resolution=10**12) as archive:
            archive_writer = _Archive(otf2, archive, tracks, title, len(outages))
            for node, own in enumerate(outages):
                archive_writer.node(node, own)
    if said:
        if archive is not None:
            archive._handle = None  # or it would be closed again, in vain
        raise HypermonError(f"the archive cannot be written: {said[0]}")


@contextmanager
def _complaints(errors: Any) -> Iterator[list[str]]:
    """Collects the library's error reports instead of printing them. The library does not return all of them, for
    example a full disk.

    Parameters
    ----------
    errors : the library's module ``_otf2.ErrorCodes``.
    """
    said: list[str] = []

    def complain(data: Any, file: bytes, line: int, function: bytes, code: int, form: bytes, values: Any) -> int:
        said.append(errors.Error_GetDescription(errors.ErrorCode(code)))
        return code

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p,
                            ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    callback = kind(complain)
    register = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("OTF2_Error_RegisterCallback", errors.conf.lib))
    before = register(ctypes.cast(callback, ctypes.c_void_p), None)
    try:
        yield said
    finally:
        register(before, None)


@dataclass
class _Tag:
    """Contents of an MPI record."""

    communicator: Any
    rank: int
    tag: int


class _Archive:
    """Definitions are made when they are first used."""

    def __init__(self, otf2: Any, archive: Any, tracks: Tracks, title: str, nodes: int):
        self._otf2, self._archive, self._tracks = otf2, archive, tracks
        self._definitions = archive.definitions
        self._root = self._definitions.system_tree_node(title, class_name="board")
        names = [f"node {node}" if tracks.dictionary is None else tracks.dictionary.node_name(node)
                 for node in range(nodes)]
        self._groups = [self._definitions.location_group(name, system_tree_parent=self._root) for name in names]
        self._locations = {(node, 0): self._definitions.location(name, group=self._groups[node])
                           for node, name in enumerate(names)}
        self._regions: dict[str, Any] = {}
        self._parameters: dict[str, Any] = {}
        self._attributes: dict[tuple[str, Any], Any] = {}
        self._communicators: dict[str, Any] = {}
        self._ranks: Any = None

    def node(self, node: int, outages: list[LossSpan]) -> None:
        """All its locations."""
        lost = [(Span("", from_ps, to_ps), lost) for lost, from_ps, to_ps in outages]
        points = ((point.time_ps, point) for point in self._tracks.points(node))
        for _, entry in heapq.merge(self._first_row(node, lost), points, key=lambda entry: entry[0]):
            if isinstance(entry, Point):
                self._point(node, entry)
            else:
                self._bracket(node, entry)

    def _first_row(self, node: int, lost: list[tuple[Span, int]]) -> Iterator[_Entry]:
        """The brackets of the first location; those of further locations are written on the way."""
        spans: Iterator[tuple[Span, NamedSpan | int]] = ((named.span, named) for named in self._tracks.spans(node))
        for bracket in brackets(spans, lost):
            if bracket.row == 0:
                yield bracket.time, bracket
            else:
                self._bracket(node, bracket)

    def _writer(self, node: int, row: int) -> Any:
        location = self._locations.get((node, row))
        if location is None:
            location = self._definitions.location(f"{self._groups[node].name} ({row + 1})", group=self._groups[node])
            self._locations[node, row] = location
        return self._archive.event_writer_from_location(location)

    def _bracket(self, node: int, bracket: Bracket[NamedSpan | int]) -> None:
        writer, named, time = self._writer(node, bracket.row), bracket.item, bracket.time + CLOCK_LATE_PS
        if isinstance(named, int):
            mode = self._otf2.MeasurementMode.OFF if bracket.begins else self._otf2.MeasurementMode.ON
            writer.measurement_on_off(time, mode, attributes=self._said({"lost": named}))
            return
        region = self._region(bracket.span.name)
        if bracket.begins:
            writer.enter(time, region, attributes=self._said(named.begin))
            self._messages(writer, time, named.begin_flow)
        else:
            self._messages(writer, time, named.end_flow)
            writer.leave(time, region, attributes=self._said(named.end))

    def _point(self, node: int, point: Point) -> None:
        writer, time = self._writer(node, 0), point.time_ps + CLOCK_LATE_PS
        name, number, values = _parameter(point)
        if name not in self._parameters:
            self._parameters[name] = self._definitions.parameter(
                name, parameter_type=self._otf2.ParameterType.UINT64)
        if point.flow == _NO_FLOW:
            writer.parameter_unsigned_int(time, self._parameters[name], number, attributes=self._said(values))
        else:
            self._messages(writer, time, point.flow, values)

    def _messages(self, writer: Any, time: int, flow: Flow, values: Values | None = None) -> None:
        attributes = self._said(values or {})
        for message in flow.sent:
            tag = self._tag(message)
            writer.mpi_send(time, tag.rank, tag.communicator, tag.tag, 0, attributes=attributes)
        for message in flow.received:
            tag = self._tag(message)
            writer.mpi_recv(time, tag.rank, tag.communicator, tag.tag, 0, attributes=attributes)

    def _tag(self, message: Message) -> _Tag:
        if message.name not in self._communicators:
            if self._ranks is None:
                members = [self._locations[node, 0] for node in range(len(self._groups))]
                kinds, paradigm = self._otf2.GroupType, self._otf2.Paradigm.MPI
                self._definitions.group("nodes", group_type=kinds.COMM_LOCATIONS, paradigm=paradigm, members=members)
                self._ranks = self._definitions.group("all nodes", group_type=kinds.COMM_GROUP, paradigm=paradigm,
                                                      members=members)
            self._communicators[message.name] = self._definitions.comm(message.name, group=self._ranks)
        key = int(message.key) if message.key is not None and message.key.isdecimal() else message.number
        return _Tag(self._communicators[message.name], message.peer, key & 0xffffffff)

    def _region(self, name: str) -> Any:
        if name not in self._regions:
            self._regions[name] = self._definitions.region(name)
        return self._regions[name]

    def _said(self, values: Values) -> dict[Any, Any] | None:
        """Values as attributes; null values are left out."""
        kinds = self._otf2.Type
        said: dict[Any, Any] = {}
        for name, value in values.items():
            if value is None:
                continue
            if isinstance(value, bytes):
                value = value.hex()
            if isinstance(value, str):
                value = value.replace("\0", "\\0")      # strings end at a NUL in this format
            kind = (kinds.STRING if isinstance(value, str) else kinds.DOUBLE if isinstance(value, float)
                    else kinds.INT64 if value < 0 else kinds.UINT64)
            if (name, kind) not in self._attributes:
                self._attributes[name, kind] = self._definitions.attribute(name, type=kind)
            said[self._attributes[name, kind]] = value
        return said or None


def _parameter(point: Point) -> tuple[str, int, Values]:
    """Name and value of the parameter for an item, and its further values: a payload as numbers of 64 bits."""
    name, _, number = point.name.rpartition(" ")
    values = dict(point.values)
    if not point.plain:     # its fields may have any name
        return point.name, 0, values
    payload = values.get("payload")
    if isinstance(payload, bytes) and list(values) == ["payload"]:
        values = {"bytes": len(payload), "payload": int.from_bytes(payload[:8], "little"),
                  "payload_8": int.from_bytes(payload[8:], "little")}
    if "word" in values:
        return point.name, values["word"], {}
    if name and number.isdecimal():
        return name, int(number), values
    return point.name, 0, values


def _write(run: Run, out: str, selection: Selection) -> None:
    with folder(out) as directory:
        write_otf2(directory, tracks_of(run, selection), outages(run.loss(), run.info.nodes, selection),
                   title=run.path.resolve().name)


OTF2 = Format("otf2", _write, Tables.STORIES, directory=True)
