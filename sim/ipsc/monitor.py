"""HYPERMON beside the emulated machine: port writes, played on the virtual board and recorded by the host."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.device import Device, Settings
from hypermon.host.events import framed_events
from hypermon.host.modes import ItemMode, ItemModes
from hypermon.host.naming import keep_dictionary
from hypermon.host.recorder import Moment, record
from hypermon.host.recording import Run
from hypermon.sim.ipsc.machine import Course, Machine
from hypermon.sim.ipsc.nx2 import DICTIONARY, bare_dictionary
from hypermon.sim.ipsc.recorders import Hardware
from hypermon.sim.stimulus import Edge, Stimulus
from hypermon.sim.virtual import VirtualLink

__all__ = ["CLASSIC", "EXTENDED", "Monitor", "play", "port_writes", "stimulus"]

_US = 1_000_000
_Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Monitor:
    """A board, its setting, and how its host drains it.

    Parameters
    ----------
    window : of synchronization.
    rate : bytes a second that the host reads while it reads.
    every_ms, stop_ms : so often, and for so long, it stores what it has and reads nothing.
    """

    geometry: Geometry
    sink: Sink
    window: Window
    rate: int | None
    every_ms: float = 0
    stop_ms: float = 0

    def stalls(self, end_ms: float) -> list[tuple[float, float]]:
        """The host's stops until then."""
        if not self.stop_ms:
            return []
        return [(at * self.every_ms, self.stop_ms) for at in range(1, int(end_ms / self.every_ms) + 1)]


#: As in 1990: 800 ns, node FIFOs of 64 nibbles, a frame FIFO of 1024 frames (5.1), a board of 20 MHz, and a host that
#: reads 5 MB/s (5.1). Plain 5 MB/s could not overrun where the paper's board did, so it stops to store: for 30 % of the
#: time, which is the one free parameter of the drain (3.5 MB/s on average).
CLASSIC = Monitor(Geometry(clock_hz=20_000_000), Sink.CLASSIC, Window.NS800, 5_000_000, every_ms=6.5, stop_ms=1.95)
#: What section 6 asks for: events stamped once, to 10 ns, and a store before the link; the same host, as slow.
EXTENDED = Monitor(Geometry.extended(), Sink.EXTENDED, Window.CLOCK, 5_000_000, every_ms=6.5, stop_ms=1.95)


def port_writes(begin_us: _Times | npt.NDArray[np.float64], node: int, nibbles: npt.NDArray[np.uint8], write_us: float,
                ) -> tuple[_Times, npt.NDArray[np.int16], npt.NDArray[np.uint8]]:
    """Two writes a nibble: the data with strobe 0, then with strobe 1 (3.1).

    Returns
    -------
    time_ps, node, port of each write, in order.
    """
    first = np.rint(begin_us * _US).astype(np.int64)
    time = np.column_stack([first, first + round(write_us * _US)]).ravel()
    port = np.column_stack([nibbles, nibbles | 16]).astype(np.uint8).ravel()
    return time, np.full(len(time), node, np.int16), port


def toggles(begin_us: npt.NDArray[np.float64], node: int, nibbles: npt.NDArray[np.uint8],
            ) -> tuple[_Times, npt.NDArray[np.int16], npt.NDArray[np.uint8]]:
    """One write a nibble, whose strobe is the other level."""
    time = np.rint(begin_us * _US).astype(np.int64)
    strobe = ((np.arange(len(nibbles)) + 1) % 2 * 16).astype(np.uint8)
    return time, np.full(len(time), node, np.int16), nibbles | strobe


def _nibbles(recorder: Hardware, jitter_us: float, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    """When each nibble's first write is, and its value."""
    length = np.array([len(record) for record in recorder.records], np.int64)
    whole = np.frombuffer(b"".join(bytes([len(r) << 4]) + r for r in recorder.records), np.uint8)
    value = np.column_stack([whole & 15, whole >> 4]).ravel()
    count = 2 * length + 2
    if recorder.head == 1:  # without the filler
        value = np.delete(value, np.concatenate([[0], np.cumsum(count)[:-1]]))
        count -= 1
    order = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = np.repeat(np.array(recorder.times), count) + order * recorder.period_us
    # Never so early that two nibbles could change places, or the last one meet the next event's first.
    width = min(jitter_us, recorder.period_us / 8)
    return begin + np.random.default_rng(seed).uniform(0, width, len(begin)), value


def stimulus(course: Course, machine: Machine, extended: bool) -> Stimulus:
    """What the ports do in a run with hardware recording."""
    parts = []
    for node in course.nodes:
        assert isinstance(node.recorder, Hardware)
        begin, value = _nibbles(node.recorder, 2 * machine.noise.nibble_us, machine.seed + node.number)
        parts.append(toggles(begin, node.number, value) if extended
                     else port_writes(begin, node.number, value, machine.cpu.us(machine.cpu.write)))
    return merged(parts, extended)


def merged(parts: list[tuple[_Times, npt.NDArray[np.int16], npt.NDArray[np.uint8]]], both: bool = False) -> Stimulus:
    """Writes of several nodes, for a board of 16; ``both`` edges of the strobe count, or the rising one."""
    time, node, port = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(time, kind="stable")
    return Stimulus(time[order], node[order], port[order], [0] * 16, [Edge.BOTH if both else Edge.RISING] * 16)


def play(writes: Stimulus, path: Path, monitor: Monitor, *, events: bool = True,
         progress: Callable[[Moment], None] | None = None) -> Run:
    """Plays port writes on the virtual board and records what comes: the RUN, decoded.

    Parameters
    ----------
    path : of the new RUN.
    events : the nibbles are events of NX/2; ``framed.parquet`` (classic) or the RUN's events have them.

    Returns
    -------
    the RUN; a classic one is drained through the registers, as footnote 5 of the paper has it.
    """
    end_ms = (writes.time_ps[-1] / 1e9 if len(writes) else 0) + 1000
    link = VirtualLink(writes, monitor.geometry, drain_rate=monitor.rate, stalls=monitor.stalls(end_ms), name="ipsc")
    link.stimulus = writes
    extended = monitor.sink is Sink.EXTENDED
    mode = ItemMode.EVENT if extended and events else ItemMode.NIBBLE
    settings = Settings(window=monitor.window, sink=monitor.sink, slow_census=True, modes=ItemModes.of([mode] * 16))
    with Device(link) as device:
        record(device, path, settings, drain="stream" if extended else "registers", progress=progress)
    run = Run(path)
    if events:
        with TemporaryDirectory() as folder:
            dictionary = Path(folder) / "dictionary.toml"
            dictionary.write_text(bare_dictionary() if extended else DICTIONARY.read_text("utf-8"), "utf-8")
            keep_dictionary(run, dictionary)
        run.decode()
        if not extended:
            framed_events(run)
    return run
