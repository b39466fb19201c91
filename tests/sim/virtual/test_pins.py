"""Extra pins of the whole board: pulses tie its time to UTC; a trigger starts and stops the capture; older hosts."""

import dataclasses
import random

import numpy as np
import pytest
from hypermon.hdl.layout import BlockType, Extra, Geometry, MarkSource, Sink, Window
from hypermon.host.blocks import block_scanner
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.decode.ledger import Ledger
from hypermon.host.decode.marks import read_marks
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import Limits, record
from hypermon.host.run import open_run
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import Oscillator, VirtualLink

EXTRAS = (Extra.PPS, Extra.TRIGGER_IN)
GEOMETRY = Geometry(1, node_depth=8, vector_depth=32, frame_depth=16, sinks=(Sink.EXTENDED,), extras=EXTRAS)
CLOCK = 10_000


def writes(times: list[int]) -> Stimulus:
    count = len(times)
    levels = [16 * (1 - k % 2) | k % 16 for k in range(count)]
    return Stimulus(np.array(times, np.int64), np.zeros(count, np.int16), np.array(levels, np.uint16), [0],
                    edge=[Edge.BOTH])


def played(link: VirtualLink, pins: int = 0, window: Window = Window.CLOCK) -> tuple[bytes, Device]:
    """All that a board sends of its stimulus."""
    device = Device(link)
    device.prepare(Settings(window=window, sink=Sink.EXTENDED, flush_ms=0.01))
    device.write("TRIGGER_PIN", pins)
    assert device.read("TRIGGER_PIN") == pins
    device.start()
    data = b""
    while not link.ended:
        data += link.stream(1 << 16)
    device.stop()
    for _ in range(8):
        data += link.stream(1 << 16)
    return data, device


def marks_of(data: bytes, device: Device) -> list[tuple[MarkSource, int, int]]:
    return [tuple(mark) for item in BlockScanner().feed(data)
            if isinstance(item, Block) and item.head.type is BlockType.MARK
            for mark in read_marks(item, device.scale)]


@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS800])
@pytest.mark.parametrize("skip", [True, False])
def test_marks_are_exact_to_the_clock(window, skip):
    """Whatever the window: the clock edge that samples the pin, as for a strobe."""
    rng = random.Random(5)
    moments = {pin: sorted(rng.sample(range(2_000_000, 40_000_000, 401), 9)) for pin in ("pps_in", "trigger_in")}
    with VirtualLink(writes([1_000_000, 45_000_000]), GEOMETRY, skip=skip) as link:
        for pin, times in moments.items():
            link.pulses(pin, times)
        data, device = played(link, window=window)
    found = marks_of(data, device)
    for source, times in zip((MarkSource.PPS, MarkSource.TRIGGER), moments.values(), strict=True):
        assert [(number, clock) for own, number, clock in found if own is source] == [
            (number, -(-time // CLOCK)) for number, time in enumerate(times)]


def test_a_mark_and_a_strobe_of_one_moment_have_one_time():
    moment = 5_003_333
    with VirtualLink(writes([moment, 9_000_000]), GEOMETRY) as link:
        link.pulses("pps_in", [moment])
        data, device = played(link)
        ledger = Ledger(1, device.scale, device.epoch)
        rows = [*ledger.event_rows(BlockScanner().feed(data)), *ledger.finish()]
    stamp = next(int(row.windows[0]) for row in rows if len(row))
    assert ledger.pins.marks[MarkSource.PPS][0].clock == stamp - device.scale.latency


@pytest.mark.parametrize(("pins", "kept"), [(0, range(12)), (1, range(4, 12)), (2, range(4)), (3, range(4, 8))])
def test_a_trigger_starts_and_stops_the_capture(pins, kept):
    """Nothing before the first rise, nothing after the next; what is not captured is no loss."""
    times = [1_000_000 * k for k in range(2, 14)]
    with VirtualLink(writes(times), GEOMETRY) as link:
        link.pulses("trigger_in", [5_500_000, 9_500_000, 11_700_000])
        data, device = played(link, pins)
        ledger = Ledger(1, device.scale, device.epoch)
        rows = [*ledger.event_rows(BlockScanner().feed(data)), *ledger.finish()]
    stamps = [int(window) for row in rows for window in row.windows]
    assert [(stamp - device.scale.latency) * CLOCK for stamp in stamps] == [times[k] for k in kept]
    assert (ledger.lost, ledger.pins.count[MarkSource.TRIGGER], ledger.pins.missing[MarkSource.TRIGGER]) == (0, 3, 0)


def test_an_older_host_skips_marks(monkeypatch):
    """It does not know the type: it says so, and reads every item."""
    times = [1_000_000 * k for k in range(2, 14)]
    with VirtualLink(writes(times), GEOMETRY) as link:
        link.pulses("pps_in", [5_500_000, 9_500_000])
        data, device = played(link)
    monkeypatch.setattr(block_scanner, "set", lambda kinds: {*kinds} - {BlockType.MARK}, raising=False)
    ledger = Ledger(1, device.scale, device.epoch)
    rows = [*ledger.event_rows(BlockScanner().feed(data)), *ledger.finish()]
    assert sum(map(len, rows)) == len(times) == ledger.events
    assert (ledger.torn, ledger.lost, ledger.stopped) == (2, 0, True)


@pytest.mark.parametrize("faulty", [False, True])
def test_utc_by_pulses(tmp_path, faulty):
    """12 s of a board whose clock is 37 ppm fast: UTC is right to what is printed; no time of an item moves."""
    ppm, jitter, seconds = 37.0, 30_000, 12
    rng = random.Random(3)
    first = 300_000_000_000
    true = [first + k * 10**12 for k in range(seconds)]
    pulses = [time + rng.randint(-jitter, jitter) for time in true]
    if faulty:
        pulses = sorted([*pulses[:4], *pulses[5:7], pulses[7] - 123_000_000_000, *pulses[8:], pulses[9] + 50_000_000])
    stimulus = writes([10**12 * k // 2 for k in range(1, 2 * seconds)])
    with VirtualLink(stimulus, GEOMETRY, oscillator=Oscillator(ppm), name=str(faulty)) as link:
        link.pulses("pps_in", pulses)
        record(Device(link), tmp_path / "run", Settings(window=Window.CLOCK, sink=Sink.EXTENDED), limits=Limits())
    run = open_run(tmp_path / "run")
    clock = run.clock
    assert (clock.how, run.stats()["complete"]) == ("pps", True)
    faults = [clock.pulses[name] for name in ("missing", "doubled", "strayed")]
    assert faults == ([2, 1, 1] if faulty else [0, 0, 0])
    assert clock.drift_ppm == pytest.approx(-ppm, abs=0.1)
    # Whole seconds, wherever they are: the true time of each edge of a second is `first` and its seconds.
    board = np.array([round(time / (1 - ppm * 1e-6)) for time in true])
    off = [int(utc) % 10**9 for utc in clock.utc(board).astype("int64")]
    worst = max(min(error, 10**9 - error) for error in off)
    assert worst <= clock.uncertainty_ns <= 150
    assert worst <= 10 + jitter / 1000
    times = [row["time_ps"] for row in run.events().to_pylist()]
    wanted = [round(10**12 * k // 2 / (1 - ppm * 1e-6)) for k in range(1, 2 * seconds)]
    assert all(0 <= time - want <= CLOCK for time, want in zip(times, wanted, strict=True))


def test_a_board_without_the_pins():
    with VirtualLink(None, dataclasses.replace(GEOMETRY, extras=())) as link:
        with pytest.raises(ValueError, match="has no pin pps_in"):
            link.pulses("pps_in", [1])
        device = Device(link)
        assert device.identity.extras == ()
        assert (device.read("EXTRAS"), device.read("TRIGGER_PIN"), device.read("SYNC_ECHO")) == (0, 0, 0)
