"""A run as a value change dump (IEEE 1364-2005, section 18): the items as a logic analyzer would show them.

Every node is a scope. It contains the last item (``nibble``, ``word``, or ``event`` and ``payload``, the first byte in
the lowest bits). ``item`` is an event variable that marks every item, because writing the same value twice is not a
change. ``lost`` is the number of items that the node loses, from the beginning of an outage to its end, 0 otherwise.
The time unit is the coarsest one in which all times are whole numbers: readers have limits in units. The few events
before time 0 (a strobe within the board's latency of the start) are at 0, because the format has no earlier time.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.dictionary.dictionary import PAYLOAD_MAX
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.items import duration_ps, item_batches, item_columns
from hypermon.host.export.sinks import sink
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["SIGNALS", "VCD", "dump", "exact_unit", "loss_changes", "say_limits", "unit_text", "write_vcd"]

#: Signals of a node and their bits (of a nibble, unless ports are wider), in this order; a node has those for which the
#: events have columns.
SIGNALS = {"nibble": 4, "word": 32, "event": 8, "payload": 8 * PAYLOAD_MAX}
_ITEM, _LOST = "item", "lost"
_NAMES = (*SIGNALS, _ITEM, _LOST)
#: The coarsest unit in use, a microsecond. The end of a dump is rounded up to a whole unit.
_UNIT_MAX_PS = 10**6
#: Recent versions of GTKWave end if a file has later times, in units: <https://github.com/gtkwave/gtkwave/issues/382>.
_GTKWAVE_MAX = 2**53


def write_vcd(file: BinaryIO, batches: Iterable[pa.RecordBatch], outages: list[list[LossSpan]], *,
              columns: Iterable[str], names: list[str], port_bits: int = 4, duration_ps: int = 0,
              unit_ps: int = 1) -> int:
    """Writes a dump. Memory does not grow with the run.

    Parameters
    ----------
    batches : see :func:`.items.item_batches`. ``columns``: their names.
    outages : of every node.
    names : of the nodes. ``port_bits``: data bits per write.
    duration_ps : of the run; the dump continues at least until then.
    unit_ps : the time unit, as :func:`exact_unit` returns it.

    Returns
    -------
    The last time, in units.

    Raises
    ------
    HypermonError
        if a time is not a whole number of units.
    """
    bits = {**SIGNALS, "nibble": port_bits}
    there = {name: bits[name] for name in SIGNALS if name in set(columns)}
    file.write(_head(names, there, unit_ps))
    writer = _Writer(file, unit_ps)
    changes = loss_changes(outages)
    waiting = next(changes, None)
    for batch in batches:
        if len(batch) == 0:
            continue
        times = np.maximum(batch["time_ps"].to_numpy(), 0)
        texts = _texts(batch, there)
        at = 0
        while waiting is not None and waiting.time_ps <= times[-1]:
            behind = int(np.searchsorted(times, waiting.time_ps))
            writer.add(times[at:behind], texts.slice(at, behind - at))
            writer.one(waiting.time_ps, _loss(waiting))
            at, waiting = behind, next(changes, None)
        writer.add(times[at:], texts.slice(at))
    while waiting is not None:
        writer.one(waiting.time_ps, _loss(waiting))
        waiting = next(changes, None)
    end = -(-duration_ps // unit_ps)
    if end > writer.time:
        writer.one(end * unit_ps, "")
    return writer.time


def exact_unit(times_ps: Iterable[npt.NDArray[np.int64]]) -> int:
    """The coarsest time unit in picoseconds, a power of ten up to a microsecond, in which all times are whole."""
    unit = _UNIT_MAX_PS
    for times in times_ps:
        if unit == 1:
            break
        while (times % unit).any():
            unit //= 10
    return unit


def unit_text(unit_ps: int) -> str:
    """A power of ten as the format and people write it: ``10 ns``."""
    thousands, tens = divmod(len(str(unit_ps)) - 1, 3)
    return f"{10**tens} {('ps', 'ns', 'us')[thousands]}"


class LossChange(NamedTuple):
    """From this time on a node loses the given number of items; 0: the loss has ended."""

    time_ps: int
    node: int
    lost: int


def loss_changes(outages: list[list[LossSpan]]) -> Iterator[LossChange]:
    """Beginnings and ends of outages in order of time, none before 0."""
    found = [LossChange(max(time, 0), node, lost) for node, own in enumerate(outages) for outage in own
             for time, lost in ((outage.from_ps, outage.lost), (outage.to_ps, 0))]
    # Among one node's changes at one time the end comes first.
    return iter(sorted(found, key=lambda change: (change.time_ps, change.node, change.lost != 0)))


def _code(node: int, name: str) -> str:
    """A signal's short name in the dump: printable, no blank."""
    number = node * len(_NAMES) + _NAMES.index(name)
    return chr(33 + number % 94) + (chr(33 + number // 94) if number >= 94 else "")


def _head(names: list[str], there: dict[str, int], unit_ps: int) -> bytes:
    lines = ["$version hypermon $end", f"$timescale {unit_text(unit_ps)} $end", "$scope module hypermon $end"]
    for node, name in enumerate(names):
        lines.append(f"$scope module {'_'.join(name.split())} $end")
        lines += [f"$var reg {bits} {_code(node, signal)} {signal} [{bits - 1}:0] $end"
                  for signal, bits in there.items()]
        lines += [f"$var event 1 {_code(node, _ITEM)} {_ITEM} $end",
                  f"$var reg 64 {_code(node, _LOST)} {_LOST} [63:0] $end", "$upscope $end"]
    lines += ["$upscope $end", "$enddefinitions $end", "#0", "$dumpvars"]
    for node in range(len(names)):
        lines += [*(f"bx {_code(node, signal)}" for signal in there), f"b0 {_code(node, _LOST)}"]
    return ("\n".join([*lines, "$end"]) + "\n").encode()


def _loss(change: LossChange) -> str:
    return f"b{change.lost:b} {_code(change.node, _LOST)}\n"


class _Writer:
    """Writes lines after their times, which are given in picoseconds. ``time``: the last one, in units."""

    def __init__(self, file: BinaryIO, unit_ps: int):
        self._file, self._unit, self.time = file, unit_ps, 0

    def _refuse(self, fits: bool) -> None:
        if not fits:
            raise HypermonError(f"not all times are whole numbers of {unit_text(self._unit)}: the run was changed "
                                "while it was exported; export it again")

    def add(self, times: npt.NDArray[np.int64], texts: pa.Array) -> None:
        if len(times) == 0:
            return
        if self._unit != 1:
            times, rest = np.divmod(times, self._unit)
            self._refuse(not rest.any())
        new = np.diff(times, prepend=self.time) != 0
        stamps = pc.binary_join_element_wise("#", pa.array(times[new]).cast(pa.string()), "\n", "")
        index = np.cumsum(new) - 1
        prefix = pc.fill_null(stamps.take(pa.array(index, mask=~new)), "")
        self._write(pc.binary_join_element_wise(prefix, texts, ""))
        self.time = int(times[-1])

    def one(self, time_ps: int, text: str) -> None:
        time, rest = divmod(time_ps, self._unit)
        self._refuse(rest == 0)
        self._file.write((f"#{time}\n" * (time != self.time) + text).encode())
        self.time = time

    def _write(self, lines: pa.Array) -> None:
        """Writes the concatenation of an array of strings."""
        _, offsets, data = lines.buffers()
        ends = np.frombuffer(offsets, np.int32)[lines.offset:lines.offset + len(lines) + 1]
        self._file.write(memoryview(data)[ends[0]:ends[-1]])


def _texts(batch: pa.RecordBatch, there: dict[str, int]) -> pa.Array:
    """The text of the changes of every item."""
    node = batch["node"].to_numpy()
    if batch.schema.names == ["time_ps", "node", "nibble"]:
        bits = there["nibble"]
        lines = [f"b{nibble:0{bits}b} {_code(own, 'nibble')}\n1{_code(own, _ITEM)}\n" for own in range(node.max() + 1)
                 for nibble in range(1 << bits)]
        return pa.array(lines).take(pa.array((node << np.int16(bits)) + batch["nibble"].to_numpy()))
    parts = []
    for name, bits in there.items():
        codes = pa.array([f" {_code(own, name)}\n" for own in range(node.max() + 1)]).take(pa.array(node))
        text = pc.binary_join_element_wise("b", _binary(batch[name], bits), codes, "")
        parts.append(pc.fill_null(text, ""))
    strobes = pa.array([f"1{_code(own, _ITEM)}\n" for own in range(node.max() + 1)]).take(pa.array(node))
    return pc.binary_join_element_wise(*parts, strobes, "")


def _binary(column: pa.Array, bits: int) -> pa.Array:
    """Values as binary digits, null where there is none."""
    if pa.types.is_binary(column.type):
        rows = b"".join((value or b"")[::-1].rjust(bits // 8, b"\0") for value in column.to_pylist())
    else:
        rows = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(f">u{max(bits // 8, 1)}").tobytes()
    width = max(bits, 8)
    digits = (np.unpackbits(np.frombuffer(rows, np.uint8)).reshape(-1, width)[:, width - bits:] + ord("0"))
    texts = pa.Array.from_buffers(pa.binary(bits), len(column), [None, pa.py_buffer(digits.astype(np.uint8).tobytes())])
    return pc.if_else(column.is_valid(), texts.cast(pa.binary()).cast(pa.string()), pa.scalar(None, pa.string()))


def _write(run: Run, out: str, selection: Selection) -> None:
    with sink(out) as file:
        limits = dump(run, file, selection)
    say_limits(run, *limits)


def dump(run: Run, file: BinaryIO, selection: Selection) -> tuple[int, int]:
    """Writes a run as a value change dump.

    Returns
    -------
    The last time in units, and the unit in picoseconds.
    """
    lost = outages(run.loss(), run.info.nodes, selection)
    unit_ps = exact_unit(_times(run, lost, selection))
    last = write_vcd(file, item_batches(run, selection), lost, columns=item_columns(run), names=_node_names(run),
                     port_bits=run.info.port_bits, duration_ps=duration_ps(run, selection), unit_ps=unit_ps)
    return last, unit_ps


def _times(run: Run, lost: list[list[LossSpan]], selection: Selection) -> Iterator[npt.NDArray[np.int64]]:
    """All times of a dump, in picoseconds."""
    yield np.array([change.time_ps for change in loss_changes(lost)], np.int64)
    for batch in item_batches(run, replace(selection, columns=["time_ps"])):
        yield np.maximum(batch["time_ps"].to_numpy(), 0)


def say_limits(run: Run, last: int, unit_ps: int) -> None:
    """Prints to stderr what GTKWave does with the latest time of a dump, if it does not show it."""
    if last >= _GTKWAVE_MAX:
        print(f"{run.given}: the last time, {last} times {unit_text(unit_ps)}, has more than 53 bits: recent versions "
              "of GTKWave open the file only if gtkwaverc says dbl_mant_dig_override 1", file=sys.stderr)


def _node_names(run: Run) -> list[str]:
    dictionary = kept_dictionary(run)
    return [dictionary.node_name(node) if dictionary is not None else f"node {node}" for node in range(run.info.nodes)]


VCD = Format("vcd", _write, Tables.FRAMED)
