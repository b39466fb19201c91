"""What the nodes of a soak write, item by item, so that afterwards each one can be asked for.

Episodes of traffic with silence between them: single items, steady traffic of some nodes, floods of all of them as
fast as ports go, traffic while the host takes nothing.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import LATENCY, WORD_NIBBLES, Geometry, Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Settings
from hypermon.sim.stimulus.stimulus import Edge, Sample, Stimulus

__all__ = ["CLOCK_PS", "LEGS", "TIMEOUT_CLOCKS", "Items", "Leg", "Plan", "planned"]

#: Of the board: 100 MHz.
CLOCK_PS = 10_000
#: What an item waits for its next nibble: 0.1 ms.
TIMEOUT_CLOCKS = 10_000
#: Bytes of the longest event, and nibbles of the longest item.
_BYTES_MAX = 15
_WRITES_MAX = 1 + 2 * _BYTES_MAX
#: Strobes of a node in one window, at most: the later ones are carried. Nibbles count up by this, modulo 16, so that
#: those of a group differ.
_GROUP, _STRIDE = 6, 5
#: Of the times at which 32-bit stamps wrap, so many have an episode.
_WRAPS = 6
_I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Leg:
    """One recording.

    Parameters
    ----------
    name : of it.
    sink, window : of the board.
    modes : of the nodes, in turn.
    line : it is recorded over a serial line, with all that happens to one; else from the virtual board itself.
    half : the board samples strobes twice a clock.
    drain_rate : bytes a second that the host takes at most.
    """

    name: str
    sink: Sink
    window: Window
    modes: tuple[ItemMode, ...] = (ItemMode.NIBBLE,)
    line: bool = False
    half: bool = False
    drain_rate: int | None = None

    def geometry(self, nodes: int) -> Geometry:
        return Geometry.extended(nodes, phases=1 + self.half)

    def mode(self, node: int) -> ItemMode:
        return self.modes[node % len(self.modes)]

    @property
    def half_stamps(self) -> bool:
        """Stamps count half clocks."""
        return self.half and self.window is Window.CLOCK and self.sink is Sink.EXTENDED


_N, _W, _E, *_ = ItemMode
LEGS = (
    Leg("classic, 10 ns, line", Sink.CLASSIC, Window.CLOCK, line=True),
    Leg("classic, 800 ns", Sink.CLASSIC, Window.NS800),
    Leg("classic, 400 ns, line", Sink.CLASSIC, Window.NS400, line=True),
    Leg("nibbles, 10 ns, slow host", Sink.EXTENDED, Window.CLOCK, drain_rate=20_000_000),
    Leg("words, 10 ns, line", Sink.EXTENDED, Window.CLOCK, (_W,), line=True),
    Leg("events, 200 ns", Sink.EXTENDED, Window.NS200, (_E,)),
    Leg("mixed, 10 ns, line", Sink.EXTENDED, Window.CLOCK, (_N, _W, _E), line=True),
    Leg("mixed, 800 ns, line", Sink.EXTENDED, Window.NS800, (_E, _N, _W), line=True),
    Leg("nibbles, half clocks", Sink.EXTENDED, Window.CLOCK, half=True),
    Leg("mixed, half clocks, line", Sink.EXTENDED, Window.CLOCK, (_N, _W, _E), line=True, half=True),
)


@dataclass
class Items:
    """The items of one node, in order.

    Members
    -------
    first_ps : of each, when its first strobe comes.
    group : the number of the first item of its group; a group are items that may be carried by each other.
    values : nibbles of each, a row each, padded with 0. ``writes``: how many of them are an item, ``kept``: how many
        are written; fewer, and the item is cut short.
    """

    mode: ItemMode
    first_ps: _I64
    group: _I64
    values: npt.NDArray[np.uint8]
    writes: _I64
    kept: _I64

    def __len__(self) -> int:
        return len(self.first_ps)


@dataclass
class Plan:
    """A stimulus, the items in it by node, spans (at, for; milliseconds) in which the host takes nothing, and how many
    episodes it has."""

    leg: Leg
    geometry: Geometry
    stimulus: Stimulus
    items: list[Items]
    stalls: list[tuple[float, float]]
    episodes: int

    @property
    def settings(self) -> Settings:
        modes = ItemModes.of([self.leg.mode(n) for n in range(self.geometry.nodes)])
        stimulus = self.stimulus
        return Settings(self.leg.window, stimulus.rising, stimulus.falling, stimulus.after, sink=self.leg.sink,
                        modes=modes, item_timeout_ms=1000 * TIMEOUT_CLOCKS / self.geometry.clock_hz)

    def stamps(self, node: int) -> _I64:
        """Times of the node's items as the board stamps them, if none is carried, in picoseconds."""
        first = self.items[node].first_ps
        if self.leg.half_stamps:
            return -(-2 * first // CLOCK_PS) * (CLOCK_PS // 2)
        clocks = self.geometry.window_clocks(self.leg.window)
        return ((-(-first // CLOCK_PS) + LATENCY) // clocks * clocks - LATENCY) * CLOCK_PS


@dataclass
class _Episode:
    """From a clock on, so many clocks long: which nodes write, with what mean pause in clocks."""

    begin: int
    length: int
    nodes: list[int]
    pause: float
    stall_ms: float = 0.0


@dataclass
class _Node:
    """What one node writes, episode by episode."""

    mode: ItemMode
    both: bool
    half: bool
    window_clocks: int
    clock: int = 0                  # nothing of it is before
    count: int = 0
    first: list[_I64] = field(default_factory=list)
    group: list[_I64] = field(default_factory=list)
    values: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    writes: list[_I64] = field(default_factory=list)
    kept: list[_I64] = field(default_factory=list)
    rows: list[tuple[_I64, _I64]] = field(default_factory=list)      # time in ps, port

    @property
    def spacing(self) -> int:
        """Clocks between two strobes, at least."""
        return 2 if self.both else 4

    def play(self, episode: _Episode, rng: np.random.Generator) -> None:
        """Items from the episode's begin to its end."""
        begin = max(episode.begin, self.clock)
        most = int((episode.begin + episode.length - begin) / (self.spacing + episode.pause)) + 1
        if begin >= episode.begin + episode.length:
            return
        values, writes, kept = self._made(most, rng)
        gap = np.full(most, self.spacing)
        slow = rng.random(most) < 0.02      # so slow that it is passed over
        gap[slow] = rng.integers(20, 300, np.count_nonzero(slow))
        pause = rng.geometric(1 / (1 + episode.pause), most) - 1
        pause[kept < writes] = 2 * TIMEOUT_CLOCKS
        number = np.arange(self.count, self.count + most)
        group = number
        if self.window_clocks > 1:
            if self.mode is ItemMode.NIBBLE:
                begins = (rng.random(most) < 0.6) | (np.arange(most) % _GROUP == 0)
                group = self.count + np.maximum.accumulate(np.where(begins, np.arange(most), 0))
                gap[:] = self.spacing
            last = np.append(group[1:] != group[:-1], True)
            size = number - group + 1
            # Whatever a group has carried is stamped before the next one begins.
            pause = np.where(last, np.maximum(pause, (size + 1) * self.window_clocks + 8), 0)
        starts = begin + np.cumsum(kept * gap + pause) - (kept * gap + pause)
        keep = int(np.searchsorted(starts, episode.begin + episode.length))
        if not keep:
            return
        self._add(starts[:keep], gap[:keep], values[:keep], kept[:keep], rng)
        self.group.append(group[:keep])
        self.writes.append(writes[:keep])
        self.kept.append(kept[:keep])
        self.values.append(values[:keep])
        self.count += keep
        self.clock = int(starts[keep - 1] + kept[keep - 1] * gap[keep - 1] + pause[keep - 1]
                         + (_GROUP + 2) * self.window_clocks + 2 * TIMEOUT_CLOCKS)

    def _made(self, count: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.uint8], _I64, _I64]:
        """Values, lengths, and how much of each is written."""
        number = np.arange(self.count, self.count + count)
        if self.mode is ItemMode.NIBBLE:
            one = np.ones(count, np.int64)
            return (number * _STRIDE % 16).astype(np.uint8)[:, None], one, one
        values = rng.integers(0, 16, (count, _WRITES_MAX if self.mode is ItemMode.EVENT else WORD_NIBBLES), np.uint8)
        writes = np.full(count, WORD_NIBBLES)
        if self.mode is ItemMode.EVENT:
            values[:, 0] = rng.integers(1, _BYTES_MAX + 1, count)
            writes = 1 + 2 * values[:, 0].astype(np.int64)
        kept = np.where(rng.random(count) < 0.002, rng.integers(1, writes), writes)
        values[np.arange(values.shape[1]) >= kept[:, None]] = 0
        return values, writes, kept

    def _add(self, starts: _I64, gap: _I64, values: npt.NDArray[np.uint8], kept: _I64,
             rng: np.random.Generator) -> None:
        """The rows of these items: each strobe at a clock edge, or with half clocks at one or between two."""
        item = np.repeat(np.arange(len(starts)), kept)
        within = np.arange(len(item)) - np.repeat(np.cumsum(kept) - kept, kept)
        strobe = (starts[item] + within * gap[item]) * CLOCK_PS
        if self.half:
            strobe = strobe - rng.integers(0, 2, len(strobe)) * (CLOCK_PS // 2)
        value = values[item, within].astype(np.int64)
        self.first.append(strobe[within == 0])
        if self.both:
            done = sum(len(time) for time, _ in self.rows)
            self.rows.append((strobe, (done + 1 + np.arange(len(strobe))) % 2 << 4 | value))
        else:
            time = np.stack([strobe - CLOCK_PS * 3 // 2, strobe, strobe + CLOCK_PS * 5 // 4], 1)
            port = np.stack([value, value | 16, value], 1)
            self.rows.append((time.reshape(-1), port.reshape(-1)))

    def items(self) -> Items:
        width = max((block.shape[1] for block in self.values), default=1)
        return Items(self.mode, _joined(self.first), _joined(self.group),
                     np.concatenate([np.empty((0, width), np.uint8), *self.values]), _joined(self.writes),
                     _joined(self.kept))


def _joined(parts: list[_I64]) -> _I64:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _episodes(leg: Leg, nodes: int, seconds: float, count: int, rng: np.random.Generator) -> list[_Episode]:
    """So many, one across each of some times at which a 32-bit stamp wraps, one at the very end; and in long legs a
    silence of a third of the whole, in which no node writes."""
    wrap_s = 2**32 * leg.window.clocks(100_000_000) * 1e-8
    silence = seconds / 3 if seconds > 600 else 0.0
    quiet = rng.uniform(0.1, 0.6) * seconds
    times = rng.uniform(1e-4, seconds - silence - 0.1, count)
    times = np.where(times > quiet, times + silence, times)
    wraps = np.arange(1, seconds // wrap_s + 1) * wrap_s - 2e-5
    wraps = wraps[(wraps < seconds - 0.1) & ((wraps < quiet) | (wraps > quiet + silence))]
    wraps = rng.choice(wraps, min(len(wraps), _WRAPS), replace=False)
    made = []
    for time in np.sort(np.concatenate([times, wraps, [seconds - 0.02]])).tolist():
        kind = rng.choice(["single", "steady", "flood", "stalled"], p=[0.4, 0.35, 0.15, 0.1])
        some = rng.permutation(nodes)[:rng.integers(1, nodes + 1)].tolist()
        begin = int(time * 1e8)
        if time in wraps:
            made.append(_Episode(begin, 4000, list(range(nodes)), 500.0))
        elif kind == "single":
            made.append(_Episode(begin, 2000, some, 1000.0))
        elif kind == "steady":
            made.append(_Episode(begin, int(10 ** rng.uniform(3.5, 4.7)), some, 10 ** rng.uniform(1.5, 3.5)))
        elif kind == "flood":
            made.append(_Episode(begin, int(10 ** rng.uniform(2.3, 3.3)), list(range(nodes)), 0.0))
        else:
            made.append(_Episode(begin, 60_000, some, 10 ** rng.uniform(1.5, 2.5), 10 ** float(rng.uniform(-0.5, 0.5))))
    return made


def planned(leg: Leg, nodes: int, seconds: float, episodes: int, seed: int) -> Plan:
    """A leg of so many seconds of board time, with about so many episodes."""
    rng = np.random.default_rng([seed, [one.name for one in LEGS].index(leg.name)])
    geometry = leg.geometry(nodes)
    clocks = geometry.window_clocks(leg.window)
    # With half clocks, one edge; else nodes with one and with both in turn.
    writers = [_Node(leg.mode(n), not leg.half and n % 2 == 0, leg.half_stamps, clocks)
               for n in range(nodes)]
    made = _episodes(leg, nodes, seconds, episodes, rng)
    for episode in made:
        for n in episode.nodes:
            writers[n].play(episode, rng)
    time = [_joined([time for time, _ in writer.rows]) for writer in writers]
    port = np.concatenate([_joined([port for _, port in writer.rows]) for writer in writers])
    node = np.repeat(np.arange(nodes), [len(part) for part in time])
    order = np.lexsort((node, np.concatenate(time)))
    stimulus = Stimulus(
        np.concatenate(time)[order], node[order].astype(np.int16), port[order].astype(np.uint8), [0] * nodes,
        [Edge.BOTH if writer.both else Edge.RISING for writer in writers],
        [Sample.AFTER if writer.both else Sample.BEFORE for writer in writers])
    stalls = [(episode.begin / 1e5, episode.stall_ms) for episode in made if episode.stall_ms]
    return Plan(leg, geometry, stimulus, [writer.items() for writer in writers], stalls, len(made))
