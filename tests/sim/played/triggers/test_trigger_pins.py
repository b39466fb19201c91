"""Pins of the trigger on the virtual board: what starts and stops the capture, and when the other pin rises."""

import numpy as np
import pytest
from hypermon.hdl.layout import (
    LATENCY,
    TRIGGER_OUT_CLOCKS,
    TRIGGER_OUT_WINDOWS,
    Extra,
    Geometry,
    Sink,
    Window,
)
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.device.trigger import parse_match
from hypermon.host.errors import HypermonError
from hypermon.host.record.recorder import record
from hypermon.host.run import Run
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

NODES, CLOCK_PS = 4, 10_000
GEOMETRY = Geometry(NODES, node_depth=16, vector_depth=128, frame_depth=16, sinks=(Sink.EXTENDED,),
                    extras=(Extra.TRIGGER_IN, Extra.TRIGGER_OUT))


def strobes(rows) -> Stimulus:
    """A nibble each: clock, node, nibble. The strobe falls two clocks later."""
    time, node, port = [], [], []
    for clock, number, nibble in rows:
        for late, level in ((-2, nibble), (0, 0x10 | nibble), (2, nibble)):
            time.append(clock * CLOCK_PS + late * CLOCK_PS - 4000)
            node.append(number)
            port.append(level)
    order = np.argsort(time, kind="stable")
    return Stimulus(np.array(time)[order], np.array(node, np.int16)[order], np.array(port, np.uint16)[order],
                    [0] * NODES)


def traffic(period: int, clocks: int, seed: int) -> list:
    """All nodes write nibbles below 15, at random."""
    rng = np.random.default_rng(seed)
    return [(int(clock), node, int(rng.integers(15))) for node in range(NODES)
            for clock in np.cumsum(rng.integers(period, 2 * period, clocks // period))]


@pytest.mark.parametrize("period", [1000, 40, 8])
@pytest.mark.parametrize("seed", range(3))
def test_it_rises_a_constant_time_after_the_item(period, seed):
    """However busy the board is."""
    at = 3000 + 37 * seed
    rows = [row for row in traffic(period, 6000, seed) if not (row[1] == 2 and abs(row[0] - at) < 12)]
    with VirtualLink(strobes([*rows, (at, 2, 15)]), GEOMETRY) as link:
        device = Device(link)
        device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED, start=parse_match("--start", "nibble=15")))
        device.start()
        assert link.fired is None
        while not link.ended:
            link.stream(1 << 16)
        assert device.read("TRIGGER_OUT") == 1
        # The edge after the one at which it rises sees it.
        assert link.fired == at + LATENCY + TRIGGER_OUT_WINDOWS[Window.CLOCK] + TRIGGER_OUT_CLOCKS + 1
        device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED))
        assert device.read("TRIGGER_OUT") == 0


@pytest.mark.parametrize("window", [Window.NS800, Window.NS400, Window.NS200])
def test_longer_windows(window):
    """From the beginning of the item's window; here with a stop alone."""
    clocks = GEOMETRY.window_clocks(window)
    for at in (3000, 3011, 3079):
        with VirtualLink(strobes([(500, 1, 3), (at, 2, 15), (5000, 1, 3)]), GEOMETRY) as link:
            device = Device(link)
            device.prepare(Settings(window=window, sink=Sink.EXTENDED, stop=parse_match("--stop", "nibble=15")))
            device.start()
            while not link.ended:
                link.stream(1 << 16)
            begin = (at + LATENCY) // clocks * clocks
            assert device.read("TRIGGER_OUT") == 1
            assert link.fired == begin + TRIGGER_OUT_WINDOWS[window] * clocks + TRIGGER_OUT_CLOCKS + 1


def test_an_event_may_be_late():
    """Its id comes after the time of the pulse is over: it rises at once, and says so."""
    nibbles = [1, 7, 2]     # one byte, 0x27
    with VirtualLink(strobes([(1000 + 200 * k, 0, nibble) for k, nibble in enumerate(nibbles)]), GEOMETRY) as link:
        device = Device(link)
        device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED, modes=ItemModes.of([ItemMode.EVENT] * NODES),
                                start=parse_match("--start", "event=0x27")))
        device.start()
        while not link.ended:
            link.stream(1 << 16)
        assert device.read("TRIGGER_OUT") == 3
        assert 1400 < link.fired < 1500


@pytest.mark.parametrize(("pin", "kept"), [("start", [2, 3, 4, 5]), ("stop", [0, 1]), ("both", [2, 3]),
                                           ("", [0, 1, 2, 3, 4, 5])])
def test_rises_start_and_stop_the_capture(pin, kept, tmp_path):
    rows = [(2000 * (k + 1), 0, k) for k in range(6)]
    with VirtualLink(strobes(rows), GEOMETRY) as link:
        link.pulses("trigger_in", [5000 * CLOCK_PS, 9000 * CLOCK_PS])
        record(Device(link), tmp_path / "run", Settings(window=Window.CLOCK, sink=Sink.EXTENDED, pin=pin))
    run = Run(tmp_path / "run")
    assert run.events().column("nibble").to_pylist() == kept
    assert run.stats()["lost"] == 0
    assert run.decode()["marks"] == {"trigger": 2, "trigger_missing": 0}
    assert run.info.configuration.get("trigger_in", "") == pin


def test_a_board_without_the_pin():
    bare = Geometry(1, node_depth=8, vector_depth=32, frame_depth=16, sinks=(Sink.EXTENDED,))
    with VirtualLink(None, bare) as link, \
            pytest.raises(HypermonError, match="has no pin trigger_in"):
        Device(link).prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED, pin="start"))
