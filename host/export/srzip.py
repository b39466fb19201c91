"""A stretch of a run as a sigrok session (.sr): the port lines as a logic analyzer would show them.

There are two samples per window (or half clock). Where time allows, the lines follow the rule of a port: each level
of a strobe lasts one clock of the board plus one nanosecond, and the data is stable for that time before the strobe
rises (:class:`~hypermon.hdl.input.strobe_synchronizer.StrobeSynchronizer`). Playing the session (``hypermon sim x.sr
--port ...``) then gives the same events. Events that are too close for the rule share the time between them;
:func:`write_sr` returns their number. sigrok's decoder ``hypermon_port`` reads all of them. The last channel is a
line ``lost``, high while one of the nodes loses something.
"""

import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.hdl.layout import PORT_BITS
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.blocks.times import TimeScale
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.export.format import Format, refuse_other_modes, refuse_several_boards
from hypermon.host.export.items import duration_ps, stored_batches
from hypermon.host.export.sinks import sink
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["NODES_SHOWN", "SR", "TooClose", "channels", "write_sr"]

#: PulseView shows at most 64 channels: the ports of this number of nodes, and one line.
NODES_SHOWN = 12
#: Samples in a piece of the file, and in all.
_PIECE = 1 << 18
_SAMPLES = 1 << 31
#: By how much a level lasts longer than a clock: the set-up and hold of a flip-flop.
_APERTURE_PS = 1000


@dataclass(frozen=True)
class TooClose:
    """Events that follow another one of their node sooner than the rule of a port allows.

    ``count``: how many; ``node`` and ``time_ps`` of the first; ``least_ps``: the minimum distance that the rule
    requires.
    """

    count: int
    node: int
    time_ps: int
    least_ps: int


def channels(nodes: Iterable[int]) -> list[str]:
    """Names of the channels: five per node, then ``lost``."""
    return [f"{line}_{node}" for node in nodes for line in ("D0", "D1", "D2", "D3", "STROBE")] + ["lost"]


def write_sr(file: BinaryIO, batches: Iterable[pa.RecordBatch], outages: list[list[LossSpan]], *, nodes: list[int],
             scale: TimeScale, first: int | None, last: int) -> TooClose | None:
    """Writes a session. Memory does not grow with it.

    Parameters
    ----------
    batches : of nibbles of these nodes, with stamps up to ``last``, by time.
    outages : of all nodes of the board.
    nodes : at most :data:`NODES_SHOWN`.
    scale : of the board.
    first : the stamp at which the session begins; None: at the board's time 0, so that the times of the run are those
        of the session. It begins some windows earlier if the lines of the first event need that.

    Returns
    -------
    the events that a board may miss when the session is played; None if there are none.

    Raises
    ------
    HypermonError
        if there are too many nodes or samples.
    """
    if not 1 <= len(nodes) <= NODES_SHOWN:
        raise HypermonError(f"a sigrok session shows 1 to {NODES_SHOWN} nodes, not {len(nodes)}: choose some with "
                            "--nodes, such as --nodes 0-7")
    rows = (batch for batch in batches if len(batch))
    earliest = next(rows, None)
    lines = _Lines(nodes, outages, scale, first, None if earliest is None else earliest["time_ps"][0].as_py())
    count = 2 * (last - lines.first + 1)
    if count > _SAMPLES:
        raise HypermonError(f"{count:,} samples are too many for a sigrok session: choose a part with --from-ms and "
                            "--to-ms")
    names = channels(nodes)
    probes = "".join(f"probe{number}={name}\n" for number, name in enumerate(names, 1))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("version", "2")
        archive.writestr("metadata", f"[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\n"
                                     f"total probes={len(names)}\nsamplerate={_rate(scale)} Hz\ntotal analog=0\n"
                                     f"{probes}unitsize={lines.bytes}\n")
        for number, piece in enumerate(lines.pieces(chain([] if earliest is None else [earliest], rows), count), 1):
            archive.writestr(f"logic-1-{number}", piece)
    return lines.too_close


def _rate(scale: TimeScale) -> int:
    """Samples per second."""
    return 2 * scale.clock_hz * scale.stamp_window // scale.window_clocks


class _Lines:
    """The levels of all lines, sample by sample.

    Members
    -------
    first : the stamp at which they begin.
    bytes : of a sample.
    too_close : events for which the rule cannot be kept, among those so far.
    """

    def __init__(self, nodes: list[int], outages: list[list[LossSpan]], scale: TimeScale, first: int | None,
                 earliest_ps: int | None):
        self._nodes, self._scale = np.array(nodes), scale
        self.bytes = (5 * len(nodes) + 1 + 7) // 8
        # Minimum duration of a level, in samples, rounded up.
        self._hold = -(-(10**12 // scale.clock_hz + _APERTURE_PS) * _rate(scale) // 10**12)
        # An edge is counted some clocks after it was at the pads. In long windows the second sample is early enough for
        # that; in short ones only the first is, which is also the time of the event.
        self._odd = int(scale.window_clocks >= 2 * (scale.latency + 2))
        self.first = scale.stamp_at(0) if first is None else first
        if earliest_ps is not None:
            early = self._hold - self._rise(scale.stamp_at(earliest_ps))
            self.first -= max(-(-early // 2), 0)
        self._lost = sorted((self._sample(outage.from_ps), self._sample(outage.to_ps) + 1) for node in nodes
                            for outage in outages[node])
        self._levels = np.zeros(len(nodes), np.uint8)
        self.too_close: TooClose | None = None

    def _sample(self, time_ps: int) -> int:
        return 2 * (self._scale.stamp_at(time_ps) - self.first)

    def _rise(self, stamp: int) -> int:
        """The sample in which the strobe of an event becomes high."""
        return 2 * (stamp - self.first) + self._odd

    def pieces(self, batches: Iterable[pa.RecordBatch], count: int) -> Iterator[bytes]:
        """The given number of samples, a piece at a time."""
        rows, margin = self._rises(batches), 2 * self._hold
        held = next(rows, None)
        near: list[_Rises] = []
        for low in range(0, count, _PIECE):
            high = min(low + _PIECE, count)
            # An event's lines depend on its neighbours, including those in the next piece and the last one.
            while held is not None and held[0][0] < high + margin:
                end = int(np.searchsorted(held[0], high + margin))
                near.append((held[0][:end], held[1][:end], held[2][:end]))
                held = (held[0][end:], held[1][end:], held[2][end:]) if end < len(held[0]) else next(rows, None)
            samples, places, nibbles = (np.concatenate([part[k] for part in near]) if near else np.zeros(0, np.int64)
                                        for k in range(3))
            yield self._packed(low, high - low, [
                self._fill(place, low, high - low, samples[own] - low, nibbles[own].astype(np.uint8))
                for place in range(len(self._nodes)) for own in [places == place]])
            late = samples >= high - margin
            near = [(samples[late], places[late], nibbles[late])]

    def _rises(self, batches: Iterable[pa.RecordBatch]) -> Iterator["_Rises"]:
        """Sample in which its strobe becomes high, index of the node and nibble of every event."""
        for batch in batches:
            times, index = np.unique(batch["time_ps"].to_numpy(), return_inverse=True)
            at = np.array([self._rise(self._scale.stamp_at(time)) for time in times.tolist()])[index]
            yield at, np.searchsorted(self._nodes, batch["node"].to_numpy()), batch["nibble"].to_numpy()

    def _fill(self, place: int, low: int, length: int, rise: npt.NDArray[np.int64],
              nibbles: npt.NDArray[np.uint8]) -> "_Levels":
        """The lines of one node in the piece that begins with sample ``low``; counts events in it that are too close.

        ``rise``: in samples from there, of the events in it and around it.
        """
        rule = 2 * self._hold
        gap = np.minimum(np.diff(rise, prepend=rise[:1] - rule, append=rise[-1:] + rule), rule)
        high = np.minimum(gap // 2, self._hold)
        levels = np.concatenate([self._levels[place:place + 1], nibbles])
        changes = rise - (gap - high)[:-1] if len(rise) else rise
        self._levels[place] = levels[np.count_nonzero(changes < length)]
        close = rise[(gap[:len(rise)] < rule) & (rise >= 0) & (rise < length)]
        if len(close):
            self._count(len(close), place, self.first + (low + int(close[0])) // 2)
        return levels, changes, rise, rise + high[1:]

    def _count(self, count: int, place: int, stamp: int) -> None:
        """Counts events of a node that are too close to the previous one; the first of them has this stamp."""
        time_ps, before = self._scale.start_ps(stamp), self.too_close
        if before is None:
            least_ps = 2 * self._hold * 10**12 // _rate(self._scale)
            self.too_close = TooClose(count, int(self._nodes[place]), time_ps, least_ps)
        else:
            node, first = min((before.node, before.time_ps), (int(self._nodes[place]), time_ps), key=lambda at: at[1])
            self.too_close = replace(before, count=before.count + count, node=node, time_ps=first)

    def _packed(self, low: int, length: int, lines: list["_Levels"]) -> bytes:
        """The samples of a piece; only those in which a line changes are computed, the others repeat them."""
        outages = [(begin - low, end - low) for begin, end in self._lost if begin < low + length and end > low]
        edges = np.concatenate([np.array([0, *chain(*outages)]), *(part for own in lines for part in own[1:])])
        starts = np.unique(np.clip(edges, 0, length))
        starts = starts[starts < length]
        bits = np.zeros((len(starts), 8 * self.bytes), np.uint8)
        for place, (levels, changes, rises, falls) in enumerate(lines):
            strobe = np.searchsorted(rises, starts, "right") > np.searchsorted(falls, starts, "right")
            value = levels[np.searchsorted(changes, starts, "right")] | (strobe * np.uint8(16))
            bits[:, 5 * place:5 * place + 5] = np.unpackbits(value[:, None], axis=1, count=5, bitorder="little")
        for begin, end in outages:
            bits[np.searchsorted(starts, begin):np.searchsorted(starts, end), 5 * len(lines)] = 1
        rows = np.packbits(bits, axis=1, bitorder="little").view(f"V{self.bytes}")[:, 0]
        return np.repeat(rows, np.diff(starts, append=length)).tobytes()


#: Of a node: the levels of its data one after another, the samples in which the second and later ones begin, and those
#: in which its strobe rises and falls.
_Levels = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
#: Columns of events: see :meth:`_Lines._rises`.
_Rises = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _refuse(run: Run, selection: Selection) -> None:
    run.refuse_without_events()
    refuse_several_boards(run)
    if run.info.port_bits != PORT_BITS:
        raise InputError(run.path, None, f"its nodes have ports of {run.info.port_bits} bits; a session needs ports of "
                                         f"{PORT_BITS}")
    refuse_other_modes(run, (ItemMode.NIBBLE,))


def _write(run: Run, out: str, selection: Selection) -> None:
    """A sigrok session of the lines of nodes in nibble mode.

    Events that are too close to each other to be played again are named on stderr.
    """
    scale, modes = run.info.scale, run.info.item_modes
    nodes = [node for node in range(run.info.nodes)
             if modes[node] is ItemMode.NIBBLE and (selection.nodes is None or node in selection.nodes)]
    first = None if selection.from_ps is None else scale.stamp_at(selection.from_ps)
    last = scale.stamp_at(duration_ps(run, selection))
    lines = Selection(nodes, None if first is None else scale.start_ps(first), scale.start_ps(last + 1))
    with sink(out) as file:
        close = write_sr(file, stored_batches(run, lines), outages(run.loss(), run.info.nodes, lines), nodes=nodes,
                         scale=scale, first=first, last=last)
    if close is not None:
        print(f"hypermon: {out}: {close.count:,} items follow another one of their node within less than "
              f"{close.least_ps / 1000:g} ns, the first at node {close.node}, {close.time_ps} ps: a board may miss "
              f"them when the session is played; hypermon sim {run.given} plays them all", file=sys.stderr)


SR = Format("sr", _write, refuse=_refuse)
