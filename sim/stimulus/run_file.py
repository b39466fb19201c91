"""Stimulus from a recorded run: every nibble is written to its port again, at its time."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.sim.stimulus.picoseconds import Times
from hypermon.sim.stimulus.port_mapping import Edge, Sample
from hypermon.sim.stimulus.rows import Track, level_type

__all__ = ["read_run", "replayed"]

#: Clocks between two writes that a port needs to read both with certainty, in any phase of the board.
_HOLD = 2
#: Picoseconds, in addition to a clock, in which the data has to be stable before the strobe changes.
_SETTLE_PS = 1000


def read_run(path: str, nodes: int, clock_hz: int, port_bits: int = 4) -> dict[int, tuple[Track, Edge, Sample]]:
    """The run's nibbles as port writes, by node.

    Times before 0, of strobes within the board's latency of the start, become 0. If a node has several of these, the
    whole run is instead played later by that amount, because they would merge into one.

    Raises
    ------
    HypermonError
        as :func:`hypermon.host.open_run` does.
    InputError
        if a node is beyond ``nodes``, the run has no nibbles but larger items, or its ports have another width.
    """
    from hypermon.host import open_run
    from hypermon.host.errors import InputError

    run = open_run(path)
    if run.info.port_bits != port_bits:
        raise InputError(path, None, f"its ports have {run.info.port_bits} bits, and the board's {port_bits}: "
                                     f"--port-bits {run.info.port_bits}")
    events: Any = run.events()
    if "nibble" not in events.schema.names:
        raise InputError(path, None, "it is a run of words or events; only nibbles can be played again")
    time, node, nibble = (events[name].to_numpy() for name in ("time_ps", "node", "nibble"))
    if len(node) and node.max() >= nodes:
        raise InputError(path, None, f"it has a node {node.max()}; the board has 0..{nodes - 1}")
    early = node[time <= 0]
    if len(early) > len(np.unique(early)):
        time = time - min(int(time.min()), 0)
    return replayed(time, node, nibble, clock_hz, port_bits)


def replayed(time: Times, node: npt.NDArray[np.int16], nibble: npt.NDArray[np.uint8],
             clock_hz: int, port_bits: int = 4) -> dict[int, tuple[Track, Edge, Sample]]:
    """Port writes that produce these nibbles at these times.

    Each nibble is written with strobe 0, at least two clocks later with strobe 1, at its time. A node whose nibbles are
    less than four clocks apart is too fast for that: its strobe changes once per nibble, both edges are active, and its
    data is one write ahead.

    Parameters
    ----------
    time : ps, not decreasing within a node; times before 0 become 0, the same window.
    node, nibble : of the same length; with ports of 8 bits, the nibbles are bytes.
    clock_hz : of the board that is to capture them.

    Returns
    -------
    track, active edge and sample point of every node that has a nibble.
    """
    played = {}
    kind = level_type(port_bits)
    strobe = kind(1 << port_bits)
    for n in np.unique(node).tolist():
        mine = node == n
        at = np.maximum(time[mine].astype(np.int64), 0)
        value = nibble[mine].astype(kind)
        lead = -(-_HOLD * 10**12 // clock_hz)
        gap = np.diff(at, prepend=at[0] - 2 * lead)
        slow = int(gap.min()) >= 2 * lead
        if slow:
            before = at - lead
            first, second, edge = value, value | strobe, Edge.RISING
        else:
            high = (np.arange(len(at)) % 2 == 0).astype(kind) * strobe
            first, second, edge = value | (high ^ strobe), value | high, Edge.BOTH
            # At one nibble per clock the data changes with the previous strobe, otherwise between the two.
            hold = -(-10**12 // clock_hz) + _SETTLE_PS
            before = at - np.where(gap > hold, np.minimum((gap + hold) // 2, lead), gap)
        times = np.stack([before, at], axis=1).reshape(-1)
        ports = np.stack([first, second], axis=1).reshape(-1)
        # Writes before time 0 determine the level at the start.
        initial = 0
        if times[0] < 0:
            initial, times, ports = int(ports[0]), times[1:], ports[1:]
        played[int(n)] = (Track(initial, times, ports), edge, Sample.BEFORE)
    return played

