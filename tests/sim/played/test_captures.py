"""Real captures through the real board, in every mode: displays in 4-bit mode, and LPC buses."""

import re
import time
import zipfile

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, Sink, Window
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import once, play, write

#: Capture, channels of data and strobe, nibbles in it.
DISPLAYS = [
    ("hd44780-reset-init-hello.sr", "d4,d5,d6,d7,e", 68), ("hd44780-blink.sr", "D4,D5,D6,D7,E", 63),
    ("hd44780-customcharacter.sr", "D4,D5,D6,D7,E", 221), ("hd44780-scroll.sr", "D4,D5,D6,D7,E", 189),
    ("hd44780-shiftcursor.sr", "D4,D5,D6,D7,E", 89), ("hd44780-test_204.sr", "D4,D5,D6,D7,E", 193)]
#: Of the extended board; clocks of silence that abort an item.
CLOCK_PS, TIMEOUT = 10_000, 5000
BUSES = [("lpc_vultureprog_snippet.sr", "LAD0,LAD1,LAD2,LAD3,LCLK"),
         ("power9_lpc_io_read.sr", "lad0,lad1,lad2,lad3,lclk")]


def strobed(path, channels, falling):
    """Picoseconds and nibbles of a capture, by a reader of its own: at each active edge, the data of the sample before
    it."""
    with zipfile.ZipFile(path) as archive:
        metadata = archive.read("metadata").decode()
        unit = int(re.search(r"unitsize=(\d+)", metadata)[1])
        count = sum(name.startswith("logic-1-") for name in archive.namelist())
        samples = np.frombuffer(b"".join(archive.read(f"logic-1-{k + 1}") for k in range(count)), f"<u{unit}")
    places = [int(re.search(rf"probe(\d+)={re.escape(name)}\n?", metadata)[1]) - 1 for name in channels.split(",")]
    strobe = samples >> places[4] & 1
    edges = np.flatnonzero((strobe[1:] != strobe[:-1]) & (strobe[1:] == (0 if falling else 1)))
    number, unit = re.search(r"samplerate=([\d.]+) ([kMG]?)Hz", metadata).groups()
    rate = round(float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit])
    return [(int(edge) + 1) * 10**12 // rate for edge in edges], sum(
        (samples[edges] >> places[i] & 1) << i for i in range(4)).tolist()


def recorded(path, channels, falling):
    """Its nibbles."""
    return strobed(path, channels, falling)[1]


def test_six_displays_at_once(classic, captures):
    """On six ports of one board, twenty seconds of them in a few."""
    paths = [captures / name for name, _, _ in DISPLAYS]
    began = time.process_time()
    stimulus = load(paths, ports=[f"{path}#{2 * n + 1}={channels},falling"
                                  for n, (path, (_, channels, _)) in enumerate(zip(paths, DISPLAYS, strict=True))])
    run = once(stimulus, classic)
    assert time.process_time() - began < 60
    for n, (path, (_, channels, count)) in enumerate(zip(paths, DISPLAYS, strict=True)):
        assert run.nibbles(2 * n + 1) == recorded(path, channels, falling=True)
        assert len(run.nibbles(2 * n + 1)) == count
    assert len(run.events) == sum(count for _, _, count in DISPLAYS)
    assert run.lost == 0


def test_what_a_display_says(classic, captures):
    name, channels, _ = DISPLAYS[1]
    run = once(load([captures / name], ports=[f"0={channels},falling"]), classic)
    nibbles = run.nibbles(0)
    # The capture begins with an edge of the microcontroller's start. Then three times 3 and a 2 wake
    # the display up; from there on two nibbles are a byte, the high one first.
    assert nibbles[:5] == [15, 3, 3, 3, 2]
    text = bytes(high << 4 | low for high, low in zip(nibbles[5::2], nibbles[6::2], strict=True))
    assert b"hello, world!" in text


@pytest.mark.parametrize(("name", "channels"), BUSES)
def test_buses(classic, captures, name, channels):
    """A nibble every 30 to 42 ns, every one of them, in windows of one clock."""
    path = captures / name
    stimulus = load([path], ports=[f"9={channels}"])
    run = once(stimulus, classic, Window.CLOCK)
    assert run.nibbles(9) == recorded(path, channels, falling=False)
    assert len(run.events) > 30
    assert run.lost == 0


@pytest.mark.parametrize("seed", range(5))
def test_buses_with_random_delay(classic, captures, seed):
    """The 33 MHz bus keeps the set-up time with the aperture too."""
    name, channels = BUSES[1]
    path = captures / name
    stimulus = load([path], ports=[f"0={channels}"])
    with VirtualLink(stimulus, classic, seed=seed) as link:
        assert play(link, stimulus, Window.CLOCK).nibbles(0) == recorded(path, channels, falling=False)


def items(strobes, mode, timeout_ps):
    """What a node's nibbles are in that mode: time of the first, nibbles, how many are missing."""
    out, begin, last, nibbles, size = [], 0, 0, [], 0
    for at, nibble in [*zip(*strobes, strict=True), (1 << 62, None)]:
        if nibbles and at - last > timeout_ps:
            out.append((begin, bytes(nibbles) + bytes(size - len(nibbles)), size - len(nibbles)))
            nibbles = []
        if nibble is None:
            break
        if not nibbles:
            begin, size = at, {"nibble": 1, "word": 8, "event": 1 + 2 * nibble}[mode]
            if mode == "event" and not nibble:      # filler
                continue
        nibbles.append(nibble)
        last = at
        if len(nibbles) == size:
            out.append((begin, bytes(nibbles), 0))
            nibbles = []
    return out


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (1, 2))])
def test_every_mode(extended, captures, turn):
    """All captures at once as nibbles, words and events, which none of them was written as: items of whatever stands in
    them, aborted where they fall silent."""
    ports = [(captures / name, channels, True) for name, channels, _ in DISPLAYS]
    ports += [(captures / name, channels, False) for name, channels in BUSES]
    modes = [("nibble", "word", "event")[(turn + n) % 3] for n in range(len(ports))]
    stimulus = load([path for path, _, _ in ports], ports=[
        f"{path}#{2 * n}={channels}{',falling' * falling}" for n, (path, channels, falling) in enumerate(ports)])
    with VirtualLink(stimulus, extended) as link:
        for name in ("word", "event"):
            write(link, f"{name.upper()}_NODES", sum(1 << 2 * n for n, mode in enumerate(modes) if mode == name))
        write(link, "ITEM_TIMEOUT", TIMEOUT)
        run = play(link, stimulus, Window.CLOCK, sink=Sink.EXTENDED)
    for n, ((path, channels, falling), mode) in enumerate(zip(ports, modes, strict=True)):
        expected = items(strobed(path, channels, falling), mode, TIMEOUT * CLOCK_PS)
        got = sorted((item.window, item.nibbles, item.missing) for item in run.items if item.node == 2 * n)
        assert [row[1:] for row in got] == [row[1:] for row in expected], path
        # An edge at the very moment of a clock edge is seen by it or by the next one.
        late = [window - LATENCY - -(-at // CLOCK_PS) for (window, _, _), (at, _, _)
                in zip(got, expected, strict=True)]
        assert set(late) <= {0, 1}, path
        assert run.census[2 * n]["accepted"] == run.census[2 * n]["delivered"] == len(expected)
    assert run.lost == 0
