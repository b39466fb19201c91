"""Many boards with clocks of their own, wired as a star and as a chain, measured by echo: what is printed holds."""

import dataclasses
import random
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypermon.hdl.layout import Extra, Geometry, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.decode import alignment
from hypermon.host.decode.ledger import Ledger
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.echo import measure_echo, wire_of
from hypermon.host.record.wiring import Wiring
from hypermon.host.recording.clock import WallClock
from hypermon.host.recording.drift_log import DriftLog
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import Oscillator, VirtualLink

CLOCK_HZ, CLOCK_PS = 100_000_000, 10_000
GEOMETRY = Geometry(1, CLOCK_HZ, node_depth=8, vector_depth=32, frame_depth=16, sinks=(Sink.EXTENDED,))
#: Cables of 50 m.
LONGEST_PS = 250_000


#: Boards whose followers keep their own clocks, with stamps of a clock and of half a clock.
OWN_CLOCK = dataclasses.replace(GEOMETRY, extras=(Extra.DRIFT,))
HALF_CLOCK = dataclasses.replace(OWN_CLOCK, phases=2)


class Measured(NamedTuple):
    """Times of common strobes in nanoseconds, by board; what is printed; steps of each; wires; their delays."""

    times: np.ndarray
    printed: np.ndarray
    steps: list[int]
    wires: list[dict | None]
    delays: list[int]


def strobes(count: int) -> Stimulus:
    rng = np.random.default_rng(1)
    times = 4_000_000 + np.cumsum(rng.integers(240_000, 560_000, count))      # the last board of a chain begins late
    levels = 16 * (1 + np.arange(count)) % 32 | np.arange(count) % 16
    return Stimulus(times, np.zeros(count, np.int16), levels.astype(np.uint16), [0], edge=[Edge.BOTH])


def echoed(ppm: list[float], delays: list[int], parents: tuple[int | None, ...]) -> list[dict | None]:
    """The wire to each board, as two boards measure it."""
    geometry = dataclasses.replace(GEOMETRY, extras=(Extra.ECHO,))
    wires: list[dict | None] = [None]
    for own, parent in list(enumerate(parents))[1:]:
        with VirtualLink(None, geometry, oscillator=Oscillator(ppm[parent]), seed=1000 + own) as leader, \
                VirtualLink(None, geometry, oscillator=Oscillator(ppm[own], delays[own]), seed=own) as follower:
            follower.echoes_to(leader)
            wires.append(wire_of(*measure_echo(Device(leader), Device(follower), 2), parent, CLOCK_HZ))
    return wires


def measured(kind: str, boards: int, count: int, seed: int, directory: Path, *, reference: bool = False,
             aperture: bool = True, geometry: Geometry = GEOMETRY) -> Measured:
    """Plays the same strobes to all boards; their oscillators are within 50 ppm, or all on one ``reference``."""
    rng = random.Random(seed)
    ppm = [7.0 if reference else rng.uniform(-50, 50) for _ in range(boards)]
    delays = [0, *(rng.randrange(LONGEST_PS + 1) for _ in range(boards - 1))]
    parents = Wiring.parse(kind, boards).parents
    wires = echoed(ppm, delays, parents)
    links = [VirtualLink(strobes(count), geometry, oscillator=Oscillator(own), seed=77 + k if aperture else None)
             for k, own in enumerate(ppm)]
    for own, parent in list(enumerate(parents))[1:]:
        links[parent].lead(links[own], delays[own])
    devices = [Device(link) for link in links]
    for own, device in reversed(list(enumerate(devices))):
        device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED, follow=own > 0))
        device.start()
        if own:
            device.link.stream(1 << 12)
    data = [bytearray() for _ in links]
    parts = [part_of(device, follows, directory / f"board-{own}") for own, (device, follows) in enumerate(
        zip(devices, [own > 0 for own in range(boards)], strict=True))]
    while not all(link.ended for link in links):
        for own, link in enumerate(links):
            data[own] += link.stream(1 << 16)
    stamps, steps = [], []
    for own, device in enumerate(devices):
        parts[own].info.end = {"duration_ps": device.stop()}
        for _ in range(20):
            data[own] += device.link.stream(1 << 16)
        ledger = Ledger(1, device.scale, device.epoch)
        ledger.pins.sync = []
        rows = [*ledger.event_rows(BlockScanner().feed(bytes(data[own]))), *ledger.finish()]
        stamps.append(device.scale.starts_ps(np.concatenate([row.windows for row in rows])))
        assert len(stamps[-1]) == count
        if parts[own].info.configuration["own_clock"]:
            DriftLog(parts[own].path).add(ledger.pins.sync)
        assert device.read("SYNC") == (own > 0) * (9 if parts[own].info.configuration["own_clock"] else 1)
        steps.append(device.read("SYNC_STEPS"))
    for link in links:
        link.close()
    aligned = alignment.align(parts, [{"followed": True}] * boards, wires)
    times = [own.times(mine) for own, mine in zip(aligned, stamps, strict=True)]
    return Measured(np.array(times) / 1000, np.array([own.uncertainty_ns for own in aligned]), steps, wires, delays)


def part_of(device: Device, follows: bool, path: Path) -> SimpleNamespace:
    """A recording, as far as an alignment needs it."""
    path.mkdir()
    configuration = {"follow": follows, "own_clock": follows and "drift" in device.identity.extras}
    info = SimpleNamespace(board=path.name, nodes=1, clock_hz=CLOCK_HZ, scale=device.scale, configuration=configuration,
                           end=None)
    return SimpleNamespace(info=info, path=path, clock=WallClock(0, 0.0, None))


def holds(found: Measured, seed: int) -> None:
    """All errors, and messages that need no time, are within what is printed; if a board is off by three clocks more,
    some are not."""
    boards, count = found.times.shape
    off = np.abs(found.times - found.times[0]).max(1)
    print("printed", found.printed.tolist(), "worst", off.round(1).tolist())
    assert (off <= found.printed).all()
    rng = np.random.default_rng(seed)
    sender = rng.integers(0, boards, count)
    receiver = (sender + rng.integers(1, boards, count)) % boards
    latency = found.times[receiver, np.arange(count)] - found.times[sender, np.arange(count)]
    assert (latency < 0).any()
    assert not (latency < -(found.printed[sender] + found.printed[receiver])).any()
    if boards == 3:
        shifted = latency - 3 * CLOCK_PS / 1000 * (receiver == 1) + 3 * CLOCK_PS / 1000 * (sender == 1)
        beyond = (shifted < -(found.printed[sender] + found.printed[receiver])).sum()
        print("received before sent", (latency < 0).sum(), "of", count, "and beyond the uncertainty 0; shifted", beyond)
    print("received before sent", (latency < 0).sum(), "of", count, "none beyond the uncertainty")
    for wire, delay in zip(found.wires[1:], found.delays[1:], strict=True):
        assert abs(wire["delay_ps"] - delay) <= wire["uncertainty_ps"]


@pytest.mark.parametrize(("boards", "count"), [(3, 1000), pytest.param(16, 100_000, marks=pytest.mark.slow)])
def test_a_star(boards, count, tmp_path):
    found = measured("star", boards, count, 2026, tmp_path)
    holds(found, 1)
    worst = found.times.max(0) - found.times.min(0)
    print("pairwise at most", worst.max(), "ns; beyond a clock", (worst > 10).mean(), "of strobes")
    # A clock of phase and a clock of stamp for each of two boards: seldom more than one together, never 2.5.
    assert worst.max() <= 25


@pytest.mark.parametrize(("geometry", "most"), [(OWN_CLOCK, 12.5), (HALF_CLOCK, 10.0)], ids=["clock", "half clock"])
@pytest.mark.parametrize(("boards", "count"), [(3, 20_000), pytest.param(16, 100_000, marks=pytest.mark.slow)])
def test_a_star_of_own_clocks(boards, count, geometry, most, tmp_path):
    """With stamps of a clock, pairwise a clock and what the alignment is off; of half a clock, within a clock."""
    found = measured("star", boards, count, 2026, tmp_path, geometry=geometry)
    holds(found, 4)
    worst = found.times.max(0) - found.times.min(0)
    print("pairwise at most", worst.max(), "ns; beyond a clock", (worst > 10).mean(), "of strobes")
    assert worst.max() <= most


@pytest.mark.parametrize("geometry", [GEOMETRY, OWN_CLOCK], ids=["stepped", "own clock"])
@pytest.mark.parametrize(("boards", "count"), [
    (3, 1000), *(pytest.param(boards, 100_000, marks=pytest.mark.slow) for boards in (3, 16))])
def test_a_reference_clock(boards, count, geometry, tmp_path):
    """No step at all, if no rise comes in the very moment of a clock edge."""
    found = measured("star", boards, count, 2026, tmp_path, reference=True, aperture=False, geometry=geometry)
    holds(found, 2)
    assert found.steps == [0] * boards


@pytest.mark.parametrize("geometry", [GEOMETRY, OWN_CLOCK], ids=["stepped", "own clocks"])
@pytest.mark.parametrize(("boards", "count"), [(3, 1000), pytest.param(8, 100_000, marks=pytest.mark.slow)])
def test_a_chain(boards, count, geometry, tmp_path):
    found = measured("chain", boards, count, 2026, tmp_path, geometry=geometry)
    holds(found, 3)
    assert (np.diff(found.printed) > 0).all()
