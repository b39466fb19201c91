"""HYPERMON beside an emulated machine: port writes, played on the virtual board and recorded by the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose.counting import count
from hypermon.host.diagnose.reduction import Reduction
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.record.recorder import Moment, record
from hypermon.host.run import Run
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import VirtualLink
from hypermon.studies.machine.core.ports import Port, PortRecorder

__all__ = ["Monitor", "Writes", "board_of", "merged", "play", "port_writes", "stimulus_of",
           "tallied"]

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


def board_of(ports: int, rate: int | None = None) -> Monitor:
    """The smallest of three boards with that many 8-bit ports: 4, 16 or 32, extended, 100 MHz, stamps of 10 ns.

    Raises
    ------
    ValueError
        for more than 32 ports.
    """
    for nodes in (4, 16, 32):
        if ports <= nodes:
            return Monitor(Geometry.extended(nodes, 100_000_000, port_bits=8), Sink.EXTENDED, Window.CLOCK, rate,
                           flush_ms=100)
    raise ValueError(f"a board has 32 ports at most, not {ports}")


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


def merged(parts: list[Writes], port: Port) -> Stimulus:
    """Writes of nodes 0 and up; a board's other ports are idle."""
    time, node, levels = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(time, kind="stable")
    edge = Edge.BOTH if port.writes == 1 else Edge.RISING
    return Stimulus(time[order], node[order], levels[order], [0] * len(parts), [edge] * len(parts))


def stimulus_of(recorders: Sequence[PortRecorder]) -> Stimulus:
    """The activity of ports 0 and up."""
    parts = []
    for number, recorder in enumerate(recorders):
        framed = [recorder.port.framed(record) for record in recorder.records]
        count = np.array([len(values) for values in framed], np.int64)
        order = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        begin = np.repeat(np.array(recorder.times, float), count) + order * recorder.cost.value_us
        parts.append(port_writes(begin, number, np.frombuffer(b"".join(framed), np.uint8), 0, recorder.port))
    return merged(parts, recorders[0].port)


def play(writes: Stimulus, path: Path, monitor: Monitor, *, dictionary: str | None, name: str = "machine",
         progress: Callable[[Moment], None] | None = None) -> Run:
    """Plays port writes on the virtual board and records the result: the RUN, decoded.

    Parameters
    ----------
    path : of the new RUN.
    dictionary : text of the events' dictionary, which is kept in the RUN; None: the writes are no events, and the RUN
        is not decoded.
    name : of the board, after ``sim:``.

    Returns
    -------
    the RUN; a classic one is drained through the registers, as in footnote 5 of the paper.
    """
    end_ms = (writes.time_ps[-1] / 1e9 if len(writes) else 0) + 1000
    link = VirtualLink(writes, monitor.geometry, drain_rate=monitor.rate, stalls=monitor.stalls(end_ms), name=name)
    extended = monitor.sink is Sink.EXTENDED
    settings = _settings(monitor, events=extended and dictionary is not None)
    with Device(link) as device:
        record(device, path, settings, drain="stream" if extended else "registers", progress=progress)
    run = Run(path)
    if dictionary is not None:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "dictionary.toml"
            file.write_text(dictionary, "utf-8")
            keep_dictionary(run, file)
        run.decode()
    return run


def tallied(writes: Stimulus, monitor: Monitor) -> Reduction:
    """Plays port writes on an extended board that nobody records: its own counts."""
    with Device(VirtualLink(writes, monitor.geometry, name="machine")) as device:
        return count(device, _settings(monitor, events=True))


def _settings(monitor: Monitor, *, events: bool) -> Settings:
    mode = ItemMode.EVENT if events else ItemMode.NIBBLE
    return Settings(window=monitor.window, sink=monitor.sink, flush_ms=monitor.flush_ms, slow_census=True,
                    modes=ItemModes.of([mode] * monitor.geometry.nodes))
