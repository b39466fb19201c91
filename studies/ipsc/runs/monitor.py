"""HYPERMON monitors the emulated machine: port writes, played on the virtual board and recorded by the host."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.events import framed_events
from hypermon.host.record.recorder import Moment
from hypermon.host.run import Run
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.studies.ipsc.machine.machine import Course, Machine
from hypermon.studies.ipsc.machine.nx2 import DICTIONARY, bare_dictionary
from hypermon.studies.ipsc.machine.recorders import PORTS, Hardware, Port
from hypermon.studies.machine.core import board
from hypermon.studies.machine.core.board import Monitor, Writes, merged, port_writes

__all__ = ["BOARDS", "CLASSIC", "EXTENDED", "WIDE", "Monitor", "Writes", "merged", "play", "port_writes",
           "stimulus", "write_times"]

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
BOARDS = {"hardware": CLASSIC, "extended": EXTENDED, "wide": WIDE, "adapter": EXTENDED}


def write_times(recorder: Hardware, jitter_us: float,
                seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    """The time of each value's first write, and the value: a nibble or a byte."""
    framed = [recorder.port.framed(record) for record in recorder.records]
    count = np.array([len(values) for values in framed], np.int64)
    order = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = recorder.begins(np.repeat(np.arange(len(count)), count), order)
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
    extended = monitor.sink is Sink.EXTENDED
    dictionary = bare_dictionary() if extended else DICTIONARY.read_text("utf-8")
    run = board.play(writes, path, monitor, dictionary=dictionary if events else None, name="ipsc", progress=progress)
    if events and not extended:
        framed_events(run)
    return run
