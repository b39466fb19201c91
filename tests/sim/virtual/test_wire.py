"""Virtual boards that are wired to each other: in one process, by pipes, with skipped time and without."""

import os
import threading

import numpy as np
import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.device.device import Device, Settings
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import Oscillator, VirtualLink

GEOMETRY = Geometry(1, node_depth=8, vector_depth=32, frame_depth=16, sinks=(Sink.EXTENDED,))
#: Clock, and delay of the wire to it, in picoseconds.
BOARDS = ((40.0, 0), (-35.0, 12_000), (140.0, 250_000))


def strobes(count: int, seed: int = 1) -> Stimulus:
    """Strobes far enough apart to be one item each, some of them after long silence."""
    rng = np.random.default_rng(seed)
    gaps = rng.integers(100_000, 900_000, count) + (rng.random(count) < 0.05) * 40_000_000
    level = 16 * (1 + np.arange(count)) % 32
    return Stimulus(2_000_000 + np.cumsum(gaps), np.zeros(count, np.int16), (level | np.arange(count) % 16).astype(
        np.uint16), [0], edge=[Edge.BOTH])


def begin(link: VirtualLink, follow: bool) -> Device:
    device = Device(link)
    device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED, follow=follow, flush_ms=0.05))
    device.start()
    if follow:
        link.stream(16)
    return device


def finish(devices: list[Device]) -> list[tuple[bytes, int, int]]:
    """What each sends until its stimulus has ended, SYNC, and its steps."""
    data = [b""] * len(devices)
    while not all(device.link.ended for device in devices):
        for k, device in enumerate(devices):
            if not device.link.ended:
                data[k] += device.link.stream(1 << 16)
    return [(data[k], device.read("SYNC"), device.read("SYNC_STEPS")) for k, device in enumerate(devices)]


def together(count: int = 300, seed: int | None = None, skip: bool = True, boards=BOARDS):
    """A star in this process."""
    links = [VirtualLink(strobes(count), GEOMETRY, oscillator=Oscillator(ppm), seed=seed, skip=skip)
             for ppm, _ in boards]
    for link, (_, delay) in zip(links[1:], boards[1:], strict=True):
        links[0].lead(link, delay)
    devices = [begin(link, k > 0) for k, link in reversed(list(enumerate(links)))][::-1]
    got = finish(devices)
    for link in links:
        link.close()
    return got


@pytest.mark.parametrize("seed", [None, 7])
def test_skipped_time_changes_nothing(seed):
    one, other = (together(seed=seed, skip=skip) for skip in (True, False))
    assert [own[1:] for own in one] == [own[1:] for own in other]
    # The last reading may end a sweep of the counters earlier.
    for mine, theirs in zip(one, other, strict=True):
        least = min(len(mine[0]), len(theirs[0]))
        assert least > 300
        assert mine[0][:least] == theirs[0][:least]


def test_oscillators_that_differ_are_led_back():
    """A step for each clock of difference, in its direction; none with one clock for all."""
    apart = together()
    assert [sync for _, sync, _ in apart] == [0, 1, 1]
    steps = [(step & 0xffff, step >> 16) for _, _, step in apart]
    assert steps[0] == (0, 0)
    # The second is slow: its windows are shortened. The third is fast.
    assert (steps[1][0], steps[2][1]) == (0, 0)
    assert 3 < steps[1][1] <= steps[2][0]
    same = together(boards=((20.0, 0), (20.0, 12_345), (20.0, 98_765)))
    assert [step for _, _, step in same] == [0, 0, 0]


def test_a_board_without_sync_in_cannot_be_wired():
    with pytest.raises(Exception, match="has no sync_in"):
        VirtualLink(None, Geometry(1), oscillator=Oscillator())


def test_a_pipe_is_as_good_as_a_wire():
    """The wave that another process writes gives the same stream; when that ends, its wave goes on."""
    count = 300
    wanted = together(count)
    read, write = os.pipe()
    links = [VirtualLink(strobes(count), GEOMETRY, oscillator=Oscillator(ppm)) for ppm, _ in BOARDS[:2]]
    links[0].lead_file(write)
    links[1].follow_file(read, BOARDS[1][1])
    got = {}

    def follower():
        got["second"] = finish([second])[0]

    second = begin(links[1], True)
    first = begin(links[0], False)
    other = threading.Thread(target=follower)
    other.start()
    got["first"] = finish([first])[0]
    links[0].close()
    os.close(write)     # before the follower has ended: it is slower
    other.join(120)
    assert not other.is_alive()
    for mine, theirs in zip((got["first"], got["second"]), wanted, strict=False):
        assert mine[1:] == theirs[1:]
        least = min(len(mine[0]), len(theirs[0]))
        assert mine[0][:least] == theirs[0][:least]
    os.close(read)


def test_a_follower_waits_for_a_wave_without_time():
    """No wave: board time stands still, and registers still answer."""
    read, write = os.pipe()
    with VirtualLink(strobes(3), GEOMETRY, oscillator=Oscillator()) as link:
        link.follow_file(read, 0)
        device = begin(link, True)
        for _ in range(3):
            assert link.stream(1 << 12) == b""
        assert link.board_ps == 0
        assert device.read("SYNC") == 3
    os.close(read)
    os.close(write)
