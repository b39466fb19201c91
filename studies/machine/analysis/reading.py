"""Reads a RUN's events by the ids of `events.toml`; finds the node of each port, and the times that a loss covers."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.dictionary.run_dictionary import KEPT, kept_dictionary
from hypermon.host.errors import InputError
from hypermon.host.run import Run

__all__ = ["BEGIN", "THRESHOLDS", "EventCost", "Floats", "Ints", "Program", "Reading", "losses", "read", "strange"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Fields of each event, in order: name and type of each.
Forms = dict[int, list[tuple[str, str]]]

MARK, BEGIN, END, LONG_MARK = 0x01, 0x02, 0x03, 0x04
#: Bytes of a mark's fields, and those that a long mark has in addition.
_MARK_BYTES, _PADDING = 1, 8
#: Fields of each event, little-endian.
_FIELDS: Forms = {
    MARK: [("number", "u1")],
    BEGIN: [("own", "<u2"), ("nodes", "<u2"), ("machine", "u1"), ("experiment", "u1"), ("parameter", "<u4")],
    END: [],
    LONG_MARK: [("number", "u1"), ("padding", "<u8")],
    0x10: [("peer", "<u2"), ("sequence", "<u2"), ("bytes", "<u4")],
    0x11: [("peer", "<u2"), ("sequence", "<u2")],
    0x12: [("peer", "<u2"), ("sequence", "<u2")],
    0x13: [("peer", "<u2"), ("sequence", "<u2"), ("bytes", "<u4")],
    0x18: [("kind", "u1"), ("number", "<u4")],
    0x19: [("kind", "u1"), ("number", "<u4")],
    0x20: [("number", "<u4")],
    0x28: [("step", "<u2"), ("peer", "<u2")],
    0x29: [("step", "<u2"), ("peer", "<u2")],
}
_PS_PER_US = 1e6
#: Two marks that are farther apart than this many times the median are not back to back. A loss that is this close to
#: the begin of another port's program, us, may cover a begin of its own port.
_PAUSE, _BEGIN_US = 20, 1000
#: The limits that the figures of every machine depend on, by name.
THRESHOLDS = {"pause": _PAUSE, "begin_us": _BEGIN_US}
#: Names of the machines, as the command has them.
_NAMES = {1: "ipsc860", 2: "asciq", 3: "sp2", 4: "qsnet"}


@dataclass(frozen=True)
class EventCost:
    """What an event costs its program, as the marks of a RUN say.

    Members
    -------
    event_us : what a mark costs; None without marks.
    byte_us : what each further byte costs; None without marks of two sizes. Every event then costs what a mark does.
    """

    event_us: float | None
    byte_us: float | None

    def of(self, size: int) -> float:
        """The cost of an event whose fields have the given number of bytes, us; 0 if it is not known."""
        return (self.event_us or 0.0) + (self.byte_us or 0.0) * (size - _MARK_BYTES)

    def figures(self) -> dict[str, float | str | None]:
        """The cost and its source, for the output of an analysis."""
        source = ("no marks: every event is taken to cost nothing" if self.event_us is None else
                  "marks of one size: every event is taken to cost what a mark does" if self.byte_us is None else
                  "marks of two sizes: an event costs its bytes")
        return {"event_us": self.event_us, "byte_us": self.byte_us, "from": source}


@dataclass(frozen=True)
class Program:
    """From a ``begin`` to the port's next one.

    Members
    -------
    node, nodes, machine, experiment, parameter : of its ``begin``.
    from_us, to_us : its time; an ``end`` ends it, else the next ``begin``, else the recording.
    """

    port: int
    node: int
    nodes: int
    machine: int
    experiment: int
    parameter: int
    from_us: float
    to_us: float


class Reading:
    """The events of a RUN.

    Members
    -------
    port, node, us, event : of each event, by port and then time; ``node`` is -1 before a port's first ``begin``, and
        where a loss may have covered one. ``us``: the board's time.
    lost : items that are known to be missing. ``loss``: rows of port, from and to, us.
    programs : by port and time.
    """

    def __init__(self, port: Ints, us: Floats, event: Ints, payload: pa.Array, lost: int, loss: Floats,
                 forms: Forms = _FIELDS):
        self._forms = forms
        self.port, self.us, self.event, self.lost, self.loss = port, us, event, lost, loss
        self._payload = payload
        self._rows = {number: np.flatnonzero(event == number) for number in _FIELDS}
        self._fields = {number: self._unpacked(number) for number in _FIELDS}
        self.node = np.full(len(port), -1, np.int64)
        self.programs = list(self._programs())

    def rows(self, event: int) -> Ints:
        """Where the events of an id are."""
        return self._rows[event]

    def field(self, event: int, name: str) -> Ints:
        """A field of all events of an id, in the order of :meth:`rows`."""
        values: Ints = self._fields[event][name].astype(np.int64)
        return values

    def covered(self, port: int, begin: float, end: float) -> bool:
        """A loss of that port may touch the time from ``begin`` to ``end``."""
        rows = self.loss
        return bool(np.any((rows[:, 0] == port) & (rows[:, 1] <= end) & (rows[:, 2] >= begin)))

    @functools.cached_property
    def cost(self) -> EventCost:
        """What an event costs, from the marks alone: what a program does between its events is not known."""
        mark, longer = self._gap_us(MARK), self._gap_us(LONG_MARK)
        if mark is None or longer is None:
            return EventCost(mark, None)
        return EventCost(mark, (longer - mark) / _PADDING)

    def cost_us(self, event: int) -> float:
        """What an event of an id costs, with the widths of its fields in this RUN; 0 if it is not known."""
        return self.cost.of(np.dtype(self._forms[event]).itemsize)

    def _gap_us(self, event: int) -> float | None:
        """The mean time between two marks of a kind; None without any."""
        rows, number = self.rows(event), self.field(event, "number")
        if len(rows) < 2:
            return None
        step = np.diff(number)
        gap = np.diff(self.us[rows])
        good = (np.diff(self.port[rows]) == 0) & (step > 0) & (np.diff(rows) == 1)
        good &= gap <= _PAUSE * np.median(gap[good] / step[good]) * step if good.any() else good
        return float(gap[good].sum() / step[good].sum()) if good.any() else None

    def _unpacked(self, event: int) -> npt.NDArray[np.void]:
        shape = np.dtype(self._forms[event])
        rows = self._rows[event]
        if not shape.itemsize:
            return np.empty(len(rows), np.dtype([("none", "u1")]))
        own = self._payload.take(pa.array(rows))
        whole = pc.equal(pc.binary_length(own), shape.itemsize)
        if not pc.all(whole).as_py():
            # An event of another length is of another dictionary, or was cut.
            self._rows[event] = rows = rows[whole.to_numpy(zero_copy_only=False)]
            own = self._payload.take(pa.array(rows))
        return np.frombuffer(b"".join(own.to_pylist()), shape)

    def _programs(self) -> Iterator[Program]:
        rows, begins = self.rows(BEGIN), self._fields[BEGIN]
        ends = self.rows(END)
        last = float(self.us.max()) if len(self.us) else 0.0
        for port in np.unique(self.port):
            own = np.flatnonzero(self.port[rows] == port)
            whole = np.flatnonzero(self.port == port)
            for at, begin in enumerate(own):
                until = rows[own[at + 1]] if at + 1 < len(own) else whole[-1] + 1
                span = slice(int(rows[begin]), int(until))
                until = self._known(int(port), span, int(begins["own"][begin]))
                end = ends[(ends >= rows[begin]) & (ends < until)]
                to_us = self.us[end[0]] if len(end) else self.us[until - 1] if until < len(self.us) else last
                yield Program(int(port), *(int(begins[name][begin]) for name in (
                    "own", "nodes", "machine", "experiment", "parameter")), float(self.us[rows[begin]]), float(to_us))

    def _known(self, port: int, span: slice, node: int) -> int:
        """Sets the node of the events in a span; the first event from which it is not known."""
        until = span.stop
        # If another port began a program while this one lost items, this one may have, too.
        begins = self.us[self.rows(BEGIN)[self.port[self.rows(BEGIN)] != port]]
        for _, begin, end in self.loss[self.loss[:, 0] == port]:
            if end < self.us[span.start] or begin > self.us[until - 1]:
                continue
            if np.any((begins >= begin - _BEGIN_US) & (begins <= end + _BEGIN_US)):
                after = span.start + int(np.searchsorted(self.us[span.start:until], begin))
                until = min(until, max(after, span.start + 1))
        self.node[span.start:until] = node
        return until


def _forms(run: Run) -> Forms:
    """The fields of each event: in the order and of the widths of the RUN's dictionary, if it has one.

    Names in the dictionary may differ if the widths are those of ``events.toml``, in order.

    Raises
    ------
    InputError
        if its dictionary gives an id other fields.
    """
    own, forms = kept_dictionary(run), dict(_FIELDS)
    for event, needed in _FIELDS.items():
        kind = own.by_id.get(event) if own else None
        if kind is None:
            continue
        there = [(field.name, f"<u{(field.bits or 0) // 8}") for field in kind.fields
                 if field.kind == "u" and field.bits in (8, 16, 32, 64)]
        absent = [name for name, _ in needed if name not in dict(there)]
        alike = [np.dtype(form).itemsize for _, form in there] == [np.dtype(form).itemsize for _, form in needed]
        if len(there) == len(kind.fields) and not absent:
            forms[event] = there
        elif len(there) < len(kind.fields) or not alike:
            raise InputError(run.path / KEPT, None, f"event 0x{event:02x} is `{kind.name}` there, "
                             + (f"without the field `{absent[0]}`" if absent else "with a field that is no "
                                "number of 1, 2, 4 or 8 bytes")
                             + "; analyses need those of studies/machine/events.toml")
    return forms


def read(run: Run, machine: int) -> Reading:
    """The events of a RUN of that machine. Fields are in the order of ``events.toml``, or of the RUN's dictionary.

    Raises
    ------
    InputError
        if it was not recorded in event mode, or none of its programs is of that machine, or its dictionary gives these
        ids another meaning.
    """
    names = run.events(columns=None, to_ps=-1 << 62).column_names
    if "event" not in names:
        raise InputError(run.path, None, "it has no events: record it with --mode event")
    table = run.events(columns=["time_ps", "node", "event", "payload", "aborted"] if "aborted" in names else
                       ["time_ps", "node", "event", "payload"])
    if "aborted" in names:
        table = table.filter(pc.invert(pc.fill_null(table["aborted"], False)))
    table = table.filter(pc.is_valid(table["event"])).combine_chunks()
    time, port = table["time_ps"].to_numpy(), table["node"].to_numpy().astype(np.int64)
    order = np.lexsort((time, port))
    payload = table["payload"].combine_chunks().take(pa.array(order))
    if isinstance(payload, pa.ChunkedArray):
        payload = payload.combine_chunks()
    loss = run.loss()
    spans = np.column_stack([loss["node"].to_numpy().astype(float), loss["from_ps"].to_numpy() / _PS_PER_US,
                             loss["to_ps"].to_numpy() / _PS_PER_US]) if len(loss) else np.empty((0, 3))
    reading = Reading(port[order], time[order] / _PS_PER_US, table["event"].to_numpy()[order].astype(np.int64), payload,
                      int(run.stats()["lost"]), spans, _forms(run))
    if not any(program.machine == machine for program in reading.programs):
        raise InputError(run.path, None, f"no program of machine {machine} ({_NAMES[machine]}) begins in it" + _instead(
            reading))
    return reading


def _instead(reading: Reading) -> str:
    """What begins in it instead, or why nothing does."""
    if seen := sorted({program.machine for program in reading.programs}):
        return f", but of {', '.join(f'{one} ({_NAMES[one]})' if one in _NAMES else str(one) for one in seen)}"
    count = len(reading.event)
    if cut := int((reading.event == BEGIN).sum()):
        size = np.dtype(_FIELDS[BEGIN]).itemsize
        return (f": its {cut} `begin` events do not have {size} bytes of payload; studies/machine/events.toml lists "
                "the fields")
    return (f": none of its {count:,} events is a `begin` (0x02); studies/machine/events.toml lists the ids" if count
            else ": it has no events")


def strange(reading: Reading, machine: int, experiments: tuple[int, ...], events: tuple[int, ...]) -> list[str]:
    """What gives no figure: programs of unknown experiments, and a RUN without any event that a figure needs."""
    own = [one for one in reading.programs if one.machine == machine]
    said = [f"a program of node {one.node}: experiment {one.experiment} is none of {_NAMES[machine]}'s, which are "
            f"{', '.join(map(str, experiments))}" for one in own if one.experiment not in experiments]
    if not any(len(reading.rows(event)) for event in events):
        said.append(f"all figures: no event is one of {', '.join(f'0x{event:02x}' for event in events)}")
    return said


def losses(lost: int, left_out: list[str]) -> list[str]:
    """A warning if something was lost or is left out."""
    if not lost and not left_out:
        return []
    figures = f"{len(left_out)} figure{' is' if len(left_out) == 1 else 's are'} left out"
    return [f"{lost} item{' was' if lost == 1 else 's were'} lost; {figures}"]
