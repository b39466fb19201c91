"""Port writes of the nodes, from files: levels at the start and changes by time.

Formats: CSV (``time_ns,node,port``), sigrok sessions (``.sr``), value change dumps (``.vcd``), CSV exports of Saleae
Logic (``Time [s],...``), and recorded runs (a directory). Several files are merged by time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import PORT_BITS
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.csv_file import read_csv
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.kinds import kind_of
from hypermon.sim.stimulus.picoseconds import LIMIT_PS, Times
from hypermon.sim.stimulus.port_delay import delayed
from hypermon.sim.stimulus.port_mapping import (
    Edge,
    Mapping,
    Part,
    Sample,
    Wiring,
    parse_delays,
    parse_ports,
    parse_setting,
    parse_start,
)
from hypermon.sim.stimulus.rows import Levels, Rows, Track, joined, level_type, merged
from hypermon.sim.stimulus.run_file import read_run
from hypermon.sim.stimulus.saleae_file import channels_of_saleae, read_saleae
from hypermon.sim.stimulus.sr_file import channels_of_sr, read_sr
from hypermon.sim.stimulus.vcd_file import channels_of_vcd, read_vcd

__all__ = ["Edge", "Sample", "Stimulus", "default_sample", "load"]

#: An hour: the records of the counters alone are then about a megabyte.
_LONG_PS = 3600 * 10**12


@dataclass
class Stimulus:
    """Port writes of all nodes, and how the ports are to be read.

    Attributes
    ----------
    time_ps : times of the changes, not decreasing, below 2^63.
    node, port : node and new value of its port (the strobe above the data bits) of each; no node twice at one time.
    initial : levels at time 0 and before, per node.
    edge, sample : active edge and sample point, per node.
    source : the file, or files, that contain each node's port; empty if there is none.
    replaced : rows before those above, in the same order, for the same nodes and times: writes that no board can see,
        because another one follows at the same time.
    replayed : nodes of recorded runs. If one of these is sampled before the edge, and its data change exactly at the
        edge, the earlier data are the right ones.
    unknown : nodes whose strobe has no known level at the start; the first known one is no edge.
    lapses : for nodes whose strobe becomes unknown after it was known: how often, and the time of the first in ps.
    blanks : for nodes of which data bits are unknown: the times at which some become so, and all are known again, in
        turn, in ps. Each has its level before then.
    notes : other lines about how the files were read.
    wiring : nodes that ``--port`` gives fewer wires than a port. Bit 4 of the port is then the clock or the one wire,
        bit 0 the data, bit 1 the chip select.
    """

    time_ps: Times
    node: npt.NDArray[np.int16]
    port: Levels
    initial: list[int]
    edge: list[Edge] = field(default_factory=list)
    sample: list[Sample] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    replaced: Rows = field(default_factory=Rows.none)
    replayed: frozenset[int] = frozenset()
    unknown: frozenset[int] = frozenset()
    lapses: dict[int, tuple[int, int]] = field(default_factory=dict)
    blanks: dict[int, Times] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    wiring: dict[int, Wiring] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.edge = self.edge or [Edge.RISING] * self.nodes
        self.sample = self.sample or [default_sample(edge) for edge in self.edge]
        self.source = self.source or [""] * self.nodes

    @classmethod
    def idle(cls, nodes: int) -> "Stimulus":
        """Ports at 0 that never change."""
        none = Rows.none()
        return cls(none.time, none.node, none.port, [0] * nodes)

    @property
    def nodes(self) -> int:
        return len(self.initial)

    def __len__(self) -> int:
        return len(self.time_ps)

    @property
    def rising(self) -> int:
        """Value of register EDGE_RISING."""
        return _mask(edge in (Edge.RISING, Edge.BOTH) for edge in self.edge)

    @property
    def falling(self) -> int:
        """Value of register EDGE_FALLING."""
        return _mask(edge in (Edge.FALLING, Edge.BOTH) for edge in self.edge)

    @property
    def after(self) -> int:
        """Value of register SAMPLE_AFTER."""
        return _mask(sample is Sample.AFTER for sample in self.sample)


def _mask(bits: Iterable[bool]) -> int:
    return sum(1 << i for i, bit in enumerate(bits) if bit)


def default_sample(edge: Edge) -> Sample:
    """With one active edge, as a FIFO clocked by the strobe would sample. With both, data and strobe change in one
    write and have to settle.
    """
    return Sample.AFTER if edge is Edge.BOTH else Sample.BEFORE


def load(paths: Sequence[str | PathLike[str]], *, nodes: int = 16, ports: Sequence[str] = (),
         edges: Sequence[str] = (), samples: Sequence[str] = (), delays: Sequence[str] = (),
         start_at: str | None = None, clock_hz: int = 100_000_000, port_bits: int = 4) -> Stimulus:
    """Reads and merges stimulus files.

    Parameters
    ----------
    paths : files and run directories; ``-`` is standard input. A file's kind is recognized by its name (``.csv``,
        ``.sr``, ``.vcd``, each also with ``.gz``), else by its first bytes.
    nodes : number of nodes of the board.
    ports : channels of session files and dumps, as :func:`~.port_mapping.parse_ports` reads them.
    edges, samples : ``[NODE=]rising|falling|both`` and ``[NODE=]before|after`` for all other nodes, and for mapped ones
        whose mapping does not state it.
    delays : ``[NODE=]data|strobe,NS``, by which the data or the strobes of all nodes, or of one, change later than in
        the files.
    start_at : ``first`` or ``first,NS``: all times are moved so that the first change is NS (1000) nanoseconds after
        time 0.
    clock_hz : clock of the board that is to capture it; recorded runs are played at its pace.
    port_bits : data bits of its ports, 4 or 8.

    Raises
    ------
    InputError
        names file (or option), line and reason.
    """
    names = [str(path) for path in paths]
    sources = {name: InputFile(name) for name in names}
    kinds = {name: kind_of(source) for name, source in sources.items()}
    with_channels = [name for name, kind in kinds.items() if kind in _CHANNELS]
    mappings = parse_ports(ports, with_channels, nodes, port_bits)
    common_edge, edge = parse_setting("--edge", edges, Edge, nodes)
    start = parse_start(start_at)
    later = parse_delays(delays, nodes)
    common_sample, sample = parse_setting("--sample", samples, Sample, nodes)

    read = _Read(nodes)
    for name, kind in kinds.items():
        match kind:
            case "csv":
                read.add(name, read_csv(sources[name], nodes, port_bits))
            case "run":
                for node, (track, node_edge, node_sample) in read_run(name, nodes, clock_hz, port_bits).items():
                    read.take(name, node, track, node_edge, node_sample)
                    read.replayed.add(node)
            case _:
                mine = [m for m in mappings if m.file == name]
                for mapping, track in zip(mine, _tracks(sources[name], kind, mine), strict=True):
                    read.take(name, mapping.node, track if mapping.wiring is None else _wired(track, mapping),
                              mapping.edge, mapping.sample)
    rows = merged(read.parts)
    rows = delayed(rows, read.initial, port_bits, later) if later else rows
    moved, line = _moved(rows, start)
    later_ps = int(moved.time[0] - rows.time[0]) if len(rows) else 0
    lapses = {node: (count, first + later_ps) for node, (count, first) in read.lapses.items()}
    blanks = {node: times + later_ps + later.get(node, {}).get(Part.DATA, 0) for node, times in read.blanks.items()}
    rows, replaced = joined(moved)
    chosen_edge = [read.edge.get(n) or edge.get(n) or common_edge or Edge.RISING for n in range(nodes)]
    chosen_sample = [read.sample.get(n) or sample.get(n) or common_sample or default_sample(chosen_edge[n])
                     for n in range(nodes)]
    return Stimulus(rows.time, rows.node, rows.port, read.initial, chosen_edge, chosen_sample,
                    [", ".join(names) for names in read.source], replaced, frozenset(read.replayed),
                    frozenset(read.unknown), lapses, blanks, [*read.notes, *line],
                    {mapping.node: mapping.wiring for mapping in mappings if mapping.wiring is not None})


def _wired(track: Track, mapping: Mapping) -> Track:
    """The levels of a node's fewer wires, at the bits of a port: the strobe is the last channel."""
    last, kind = len(mapping.channels) - 1, level_type(PORT_BITS)
    port = track.port.astype(kind)
    below = kind((1 << last) - 1)
    return replace(track, initial=track.initial & int(below) | track.initial >> last << PORT_BITS,
                   port=port & below | port >> kind(last) << kind(PORT_BITS))


def _moved(rows: Rows, start: int | None) -> tuple[Rows, list[str]]:
    """Rows whose first one is at ``start``, and lines about that, and about a stimulus that lasts long."""
    if not len(rows):
        return rows, []
    first, last = int(rows.time[0]), int(rows.time[-1])
    if start is None:
        return rows, _long(rows.time)
    if last - first + start >= LIMIT_PS:
        raise InputError("--start-at", None, "the last change is then beyond 2^63 ps")
    moved = start - first
    rows = Rows(rows.time + np.int64(moved), rows.node, rows.port)
    return rows, [f"--start-at first: all times are {abs(moved):,} ps {'later' if moved > 0 else 'earlier'} than in "
                  "the stimulus", *_long(rows.time)]


def _long(time: Times) -> list[str]:
    """A line about changes that last long: where the time goes, and a remedy if there is one."""
    first, last = int(time[0]), int(time[-1])
    if last < _LONG_PS:
        return []
    parts = [f"the stimulus lasts {last // 10**12:,} s, and the board sends its counters once per second"]
    if first >= _LONG_PS or last - first < _LONG_PS:
        parts.append(f"its first change is at {first // 10**12:,} s (`hypermon sim --start-at first` leaves out the "
                     "time before)")
    if last - first >= _LONG_PS:
        at = int(np.argmax(np.diff(time)))
        parts.append(f"its longest time without a change is {(int(time[at + 1]) - int(time[at])) // 10**12:,} s, from "
                     f"{int(time[at]) // 10**12:,} s on")
    return ["; ".join(parts)]


class _Read:
    """What was read of the files so far; members as of :class:`Stimulus`."""

    def __init__(self, nodes: int):
        self.parts: list[Rows] = []
        self.initial = [0] * nodes
        self.edge: dict[int, Edge] = {}
        self.sample: dict[int, Sample] = {}
        self.source: list[list[str]] = [[] for _ in range(nodes)]
        self.replayed: set[int] = set()
        self.unknown: set[int] = set()
        self.lapses: dict[int, tuple[int, int]] = {}
        self.blanks: dict[int, Times] = {}
        self.notes: dict[str, None] = {}
        # Nodes that a capture or a run has for itself, and which.
        self._held: dict[int, str] = {}

    def add(self, name: str, rows: Rows) -> None:
        """Rows of any nodes."""
        self.parts.append(rows)
        for node in np.unique(rows.node).tolist():
            self.source[node].append(name)

    def take(self, name: str, node: int, track: Track, edge: Edge | None, sample: Sample | None) -> None:
        """A node that this file has for itself."""
        if node in self._held:
            raise InputError(name, None, f"node {node} has a port already, in {self._held[node]}")
        self._held[node] = name
        self.source[node].append(name)
        self.initial[node] = track.initial
        self.parts.append(track.rows(node))
        if edge is not None:
            self.edge[node] = edge
        if sample is not None:
            self.sample[node] = sample
        if track.unknown:
            self.unknown.add(node)
        if track.lapses:
            self.lapses[node] = track.lapses, track.first_lapse_ps
        if len(track.blanks):
            self.blanks[node] = track.blanks
        self.notes.update(dict.fromkeys(track.notes))


#: For the kinds of files that have channels: the reader of their names, and that of the mapped ones.
_CHANNELS: dict[str, tuple[Callable[[InputFile], list[str]], Callable[[InputFile, Sequence[Mapping]], list[Track]]]] = {
    "saleae": (channels_of_saleae, read_saleae), "sr": (channels_of_sr, read_sr), "vcd": (channels_of_vcd, read_vcd)}


def _tracks(source: InputFile, kind: str, mappings: list[Mapping]) -> list[Track]:
    channels, read = _CHANNELS[kind]
    if not mappings:
        raise InputError(source.name, None,
                         "no --port maps its channels: " + (", ".join(channels(source)) or "it has none"))
    return read(source, mappings)
