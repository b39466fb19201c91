"""Delays of a node's data or strobe, for recorded signals in which both change at the same time."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.picoseconds import LIMIT_PS, Times
from hypermon.sim.stimulus.port_mapping import Part
from hypermon.sim.stimulus.rows import Levels, Rows, merged

__all__ = ["delayed"]


def delayed(rows: Rows, initial: list[int], port_bits: int, delays: Mapping[int, Mapping[Part, int]]) -> Rows:
    """Rows of :func:`.rows.merged` in which the data or the strobe of some nodes change later.

    Parameters
    ----------
    initial : levels before the first row, per node.
    port_bits : data bits of a port.
    delays : per node, the picoseconds for its data and its strobe.

    Raises
    ------
    InputError
        if a change is then beyond 2^63 ps.
    """
    parts = [rows.chosen(~np.isin(rows.node, list(delays)))]
    for node, delay in delays.items():
        mine = rows.chosen(rows.node == node)
        data, strobe = delay.get(Part.DATA, 0), delay.get(Part.STROBE, 0)
        if len(mine) and int(mine.time[-1]) + max(data, strobe) >= LIMIT_PS:
            raise InputError("--delay", None, f"the last change of node {node} is then beyond 2^63 ps")
        parts.append(_delayed(mine, node, initial[node], 1 << port_bits, data, strobe))
    return merged(parts)


def _delayed(rows: Rows, node: int, initial: int, strobe_bit: int, data: int, strobe: int) -> Rows:
    time, change = [], []
    for bits, delay in ((strobe_bit - 1, data), (strobe_bit, strobe)):
        at, flipped = _changes(rows.time, rows.port, initial, bits)
        time.append(at + delay)
        change.append(flipped)
    times, changes = np.concatenate(time), np.concatenate(change)
    order = np.argsort(times, kind="stable")
    port = initial ^ np.bitwise_xor.accumulate(changes[order]) if len(order) else changes
    return Rows(times[order], np.full(len(order), node, np.int16), port.astype(rows.port.dtype))


def _changes(time: Times, port: Levels, initial: int, bits: int) -> tuple[Times, npt.NDArray[np.int64]]:
    """When some bits of a port change, and which of them."""
    level = port.astype(np.int64) & bits
    flipped = level ^ np.concatenate([np.array([initial & bits], np.int64), level[:-1]])
    changed = flipped != 0
    return time[changed], flipped[changed]
