"""HYPERMON monitors the emulated machine: port writes, played on the virtual board and recorded by the host."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.events import framed_events
from hypermon.host.record.recorder import Moment, record
from hypermon.host.run import Run
from hypermon.host.wire.item_modes import ItemMode, ItemModes
from hypermon.sim.ipsc.machine.machine import Course, Machine
from hypermon.sim.ipsc.machine.nx2 import DICTIONARY, bare_dictionary
from hypermon.sim.ipsc.machine.recorders import PORTS, Hardware, Port
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import VirtualLink

__all__ = ["BOARDS", "CLASSIC", "EXTENDED", "WIDE", "Monitor", "Writes", "merged", "play", "port_writes",
           "stimulus", "write_times"]

_US = 1_000_000
#: Of one node: time in ps, node number, and the new value of its port; in order.
Writes = tuple[npt.NDArray[np.int64], npt.NDArray[np.int16], npt.NDArray[np.uint16]]


@dataclass(frozen=True)
class Monitor:
    """A board, its setting, and how its host drains it.

    Parameters
    ----------
    window : of synchronization.
    rate : bytes per second that the host reads while it reads.
    every_ms, stop_ms : interval and duration of the host's pauses, in which it stores its data and reads nothing.
    flush_ms : how long the board holds data at most, waiting for more to send with it.
    """

    geometry: Geometry
    sink: Sink
    window: Window
    rate: int | None
    every_ms: float = 0
    stop_ms: float = 0
    flush_ms: float = 1

    @property
    def window_s(self) -> float:
        """Length of the synchronization window, in seconds."""
        return self.geometry.window_clocks(self.window) / self.geometry.clock_hz

    def stalls(self, end_ms: float) -> list[tuple[float, float]]:
        """The host's pauses until then."""
        if not self.stop_ms:
            return []
        return [(at * self.every_ms, self.stop_ms) for at in range(1, int(end_ms / self.every_ms) + 1)]


#: As in 1990: 800 ns, node FIFOs of 64 nibbles, a frame FIFO of 1024 frames (5.1), a board of 20 MHz, and a host that
#: reads 5 MB/s (5.1). Plain 5 MB/s could not overrun where the paper's board did, so the host pauses to store. Share
#: and length of the pauses are fitted: at the programs' full length, 1.3 ms in 6.5 overrun Place on 8 nodes and nothing
#: else, 0.65 nothing at all, 1.95 Simplex on 8 nodes as well. On average that is 4 MB/s.
CLASSIC = Monitor(Geometry(clock_hz=20_000_000), Sink.CLASSIC, Window.NS800, 5_000_000, every_ms=6.5, stop_ms=1.3)
#: As section 6 proposes: events stamped once, and a store before the link. The clock is the same, so stamps are of 50
#: ns. The host reads as much per second on average, but steadily: nothing can be skipped while a block waits for a host
#: that pauses, so runs would be several times as long.
EXTENDED = Monitor(Geometry.extended(clock_hz=20_000_000), Sink.EXTENDED, Window.CLOCK, 4_000_000, flush_ms=0.1)
WIDE = replace(EXTENDED, geometry=replace(EXTENDED.geometry, sinks=(Sink.EXTENDED,), port_bits=PORTS["wide"].bits))
#: The board for each of the recorders' ports.
BOARDS = {"hardware": CLASSIC, "extended": EXTENDED, "wide": WIDE}


def port_writes(begin_us: npt.NDArray[np.float64], node: int, values: npt.NDArray[np.unsignedinteger], write_us: float,
                port: Port) -> Writes:
    """The writes of a node that begins each of the values at its time.

    Two writes per value, the data with strobe 0, then with strobe 1 (3.1); or one, with the strobe inverted.
    """
    first, values = np.rint(begin_us * _US).astype(np.int64), values.astype(np.uint16)
    if port.writes == 1:
        strobes = (np.arange(len(values)) + 1) % 2
        return first, np.full(len(first), node, np.int16), (strobes * port.strobe | values).astype(np.uint16)
    time = np.column_stack([first, first + round(write_us * _US)]).ravel()
    levels = np.column_stack([values, values | port.strobe]).ravel()
    return time, np.full(len(time), node, np.int16), levels


def write_times(recorder: Hardware, jitter_us: float,
                seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    """The time of each value's first write, and the value: a nibble or a byte."""
    framed = [recorder.port.framed(record) for record in recorder.records]
    count = np.array([len(values) for values in framed], np.int64)
    order = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = np.repeat(np.array(recorder.times), count) + order * recorder.period_us
    # Never so early that two values could change places, or the last one meet the next event's first.
    width = min(jitter_us, recorder.period_us / 8)
    return (begin + np.random.default_rng(seed).uniform(0, width, len(begin)),
            np.frombuffer(b"".join(framed), np.uint8))


def stimulus(course: Course, machine: Machine) -> Stimulus:
    """The activity of the ports in a run with hardware recording."""
    parts, port = [], Port()
    for node in course.nodes:
        assert isinstance(node.recorder, Hardware)
        port = node.recorder.port
        begin, values = write_times(node.recorder, 2 * machine.noise.nibble_us, machine.seed + node.number)
        parts.append(port_writes(begin, node.number, values, machine.cpu.us(machine.cpu.write), port))
    return merged(parts, port)


def merged(parts: list[Writes], port: Port) -> Stimulus:
    """Writes of nodes 0 and up; a board's other ports are idle."""
    time, node, levels = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(time, kind="stable")
    edge = Edge.BOTH if port.writes == 1 else Edge.RISING
    return Stimulus(time[order], node[order], levels[order], [0] * len(parts), [edge] * len(parts))


def play(writes: Stimulus, path: Path, monitor: Monitor, *, events: bool = True,
         progress: Callable[[Moment], None] | None = None) -> Run:
    """Plays port writes on the virtual board and records the result: the RUN, decoded.

    Parameters
    ----------
    path : of the new RUN.
    events : the nibbles are events of NX/2; they are in ``framed.parquet`` (classic) or the RUN's events.

    Returns
    -------
    the RUN; a classic one is drained through the registers, as in footnote 5 of the paper.
    """
    end_ms = (writes.time_ps[-1] / 1e9 if len(writes) else 0) + 1000
    link = VirtualLink(writes, monitor.geometry, drain_rate=monitor.rate, stalls=monitor.stalls(end_ms), name="ipsc")
    extended = monitor.sink is Sink.EXTENDED
    mode = ItemMode.EVENT if extended and events else ItemMode.NIBBLE
    settings = Settings(window=monitor.window, sink=monitor.sink, flush_ms=monitor.flush_ms, slow_census=True,
                        modes=ItemModes.of([mode] * monitor.geometry.nodes))
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
