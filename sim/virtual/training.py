"""Plays typical traffic on a virtual board that records how often each part of its code runs, for a profile-guided
build.

``python -m hypermon.sim.virtual.training LIBRARY`` reads the board's geometry, pickled, from standard input. The
library writes its profile when the program ends. See :mod:`.build`.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
from hypermon.hdl.layout import PORT_BITS, REGISTERS, Control, Geometry, Sink, Window
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.build import Shell
from hypermon.sim.virtual.link import VirtualLink

__all__ = ["main"]

#: Strobes of each run, and the mean gaps between them, in clocks: a busy board, and one that mostly waits.
_STROBES, _GAPS = 4000, (6, 300)
#: Clocks from a nibble to its strobe, from there to the end of it.
_HOLD = 3


class _Instrumented(VirtualLink):
    """A board from a library that exists already."""

    path: Path

    def _library(self, geometry: Geometry, shell: Shell | None, clocks: int) -> Path:
        return self.path


def _strobes(geometry: Geometry, gap: int) -> Stimulus:
    rng = np.random.default_rng(gap)
    edges = np.cumsum(rng.exponential(gap, _STROBES)).astype(np.int64) + 10
    node = (np.arange(_STROBES) % geometry.nodes).astype(np.int16)
    nibble = rng.integers(0, 1 << geometry.port_bits, _STROBES).astype(np.uint16)
    period = geometry.ps(1)
    parts = [(edges + k * _HOLD, nibble | level << geometry.port_bits) for k, level in enumerate((0, 1, 0))]
    time = np.concatenate([times for times, _ in parts]) * period
    order = np.argsort(time, kind="stable")
    return Stimulus(
        time[order], np.tile(node, 3)[order], np.concatenate([port for _, port in parts])[order], [0] * geometry.nodes
    )


def _play(geometry: Geometry, sink: Sink, window: Window, gap: int) -> None:
    with _Instrumented(_strobes(geometry, gap), geometry) as link:
        link.write(REGISTERS["MODE"].offset, sink)
        for control in (Control.RESET, Control.ENABLE | Control.STREAM):
            link.write(REGISTERS["CONTROL"].offset, control | window << 2)
        while not link.ended:
            link.stream(1 << 16)


def main() -> None:
    """Plays a busy and a waiting stimulus with each sink of the board."""
    _Instrumented.path = Path(sys.argv[1])
    geometry: Geometry = pickle.load(sys.stdin.buffer)
    assert geometry.port_bits >= PORT_BITS
    for sink in geometry.sinks:
        for window in (Window.NS800, Window.CLOCK):
            for gap in _GAPS:
                _play(geometry, sink, window, gap)


if __name__ == "__main__":
    main()
