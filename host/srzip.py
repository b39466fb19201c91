"""A stretch of a run as a sigrok session (.sr): the port lines as a logic analyzer would show them.

Two samples a window (or half clock): in the first one a new nibble is on the data lines of its node and the strobe is
low, in the second one it is high. Played again (``hypermon sim x.sr --port ...``) they are the same events; sigrok's
decoder ``hypermon_port`` reads them. Last comes a line ``lost``, high while one of the nodes loses something.
"""

import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.errors import HypermonError
from hypermon.host.outages import Outage
from hypermon.host.times import TimeScale

__all__ = ["NODES_SHOWN", "channels", "write_sr"]

#: PulseView shows 64 channels and no more: the ports of so many nodes, and one line.
NODES_SHOWN = 12
#: Samples in a piece of the file, and in all.
_PIECE = 1 << 18
_SAMPLES = 1 << 31


def channels(nodes: Iterable[int]) -> list[str]:
    """Names of the channels: five a node, then ``lost``."""
    return [f"{line}_{node}" for node in nodes for line in ("D0", "D1", "D2", "D3", "STROBE")] + ["lost"]


def write_sr(file: BinaryIO, batches: Iterable[pa.RecordBatch], outages: list[list[Outage]], *, nodes: list[int],
             scale: TimeScale, first: int, last: int) -> None:
    """Writes a session. Memory does not grow with it.

    Parameters
    ----------
    batches : of nibbles of these nodes, with stamps ``first`` to ``last``.
    outages : of all nodes of the board.
    nodes : at most :data:`NODES_SHOWN`.
    scale : of the board.

    Raises
    ------
    HypermonError
        if these are too many nodes or samples.
    """
    if not 1 <= len(nodes) <= NODES_SHOWN:
        raise HypermonError(f"a sigrok session shows 1 to {NODES_SHOWN} nodes, not {len(nodes)}: choose some by "
                            "--nodes, such as --nodes 0-7")
    count = 2 * (last - first + 1)
    if count > _SAMPLES:
        raise HypermonError(f"{count:,} samples are too many for a sigrok session: choose a stretch by --from-ms and "
                            "--to-ms")
    names = channels(nodes)
    rate = 2 * scale.clock_hz * scale.stamp_window // scale.window_clocks
    probes = "".join(f"probe{number}={name}\n" for number, name in enumerate(names, 1))
    lines = _Lines(nodes, [outages[node] for node in nodes], scale, first)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("version", "2")
        archive.writestr("metadata", f"[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\n"
                                     f"total probes={len(names)}\nsamplerate={rate} Hz\ntotal analog=0\n{probes}"
                                     f"unitsize={lines.bytes}\n")
        for number, piece in enumerate(lines.pieces(batches, count), 1):
            archive.writestr(f"logic-1-{number}", piece)


class _Lines:
    """The levels of all lines, sample by sample."""

    def __init__(self, nodes: list[int], outages: list[list[Outage]], scale: TimeScale, first: int):
        self._nodes, self._scale, self._first = np.array(nodes), scale, first
        self.bytes = (5 * len(nodes) + 1 + 7) // 8
        self._lost = sorted((self._sample(outage.from_ps), self._sample(outage.to_ps) + 1) for own in outages
                            for outage in own)
        self._levels = np.zeros(len(nodes), np.uint8)

    def _sample(self, time_ps: int) -> int:
        return 2 * (self._scale.stamp_at(time_ps) - self._first)

    def pieces(self, batches: Iterable[pa.RecordBatch], count: int) -> Iterator[bytes]:
        """So many samples, a piece at a time."""
        rows = self._changes(batches)
        held = next(rows, None)
        for low in range(0, count, _PIECE):
            high = min(low + _PIECE, count)
            data = np.zeros((high - low, len(self._nodes)), np.uint8)
            parts = []
            while held is not None and held[0][0] < high:
                end = int(np.searchsorted(held[0], high))
                parts.append(tuple(column[:end] for column in held))
                rest = tuple(column[end:] for column in held)
                held = rest if len(rest[0]) else next(rows, None)
            self._fill(data, low, parts)
            yield self._packed(data, low)

    def _changes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[npt.NDArray[np.int64], ...]]:
        """Sample, place of the node and nibble of every event."""
        for batch in batches:
            if len(batch):
                times, index = np.unique(batch["time_ps"].to_numpy(), return_inverse=True)
                windows = np.array([self._scale.stamp_at(time) for time in times.tolist()])[index]
                place = np.searchsorted(self._nodes, batch["node"].to_numpy())
                yield 2 * (windows - self._first), place, batch["nibble"].to_numpy()

    def _fill(self, data: npt.NDArray[np.uint8], low: int, parts: list[tuple[npt.NDArray[np.int64], ...]]) -> None:
        """Levels hold until the next event of their node; a strobe is high for one sample."""
        samples, places, nibbles = (np.concatenate([part[k] for part in parts]) if parts else np.zeros(0, np.int64)
                                    for k in range(3))
        for place in range(len(self._nodes)):
            own = places == place
            at = samples[own] - low
            levels = np.concatenate([self._levels[place:place + 1], nibbles[own].astype(np.uint8)])
            data[:, place] = np.repeat(levels, np.diff(at, prepend=0, append=len(data)))
            data[at + 1, place] |= 16
            self._levels[place] = levels[-1]

    def _packed(self, data: npt.NDArray[np.uint8], low: int) -> bytes:
        bits = np.zeros((len(data), 8 * self.bytes), np.uint8)
        bits[:, :5 * len(self._nodes)] = np.unpackbits(data[:, :, None], axis=2, count=5, bitorder="little").reshape(
            len(data), -1)
        for begin, end in self._lost:
            bits[max(begin - low, 0):max(end - low, 0), 5 * len(self._nodes)] = 1
        return np.packbits(bits, axis=1, bitorder="little").tobytes()
