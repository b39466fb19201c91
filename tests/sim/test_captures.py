"""Real captures through the real board: displays in 4-bit mode, and LPC buses."""

import re
import time
import zipfile

import numpy as np
import pytest
from hypermon.hdl.layout import Window
from hypermon.sim.stimulus import load
from hypermon.sim.virtual import VirtualLink
from plain_host import once, play

#: Capture, channels of data and strobe, nibbles in it.
DISPLAYS = [
    ("hd44780-reset-init-hello.sr", "d4,d5,d6,d7,e", 68), ("hd44780-blink.sr", "D4,D5,D6,D7,E", 63),
    ("hd44780-customcharacter.sr", "D4,D5,D6,D7,E", 221), ("hd44780-scroll.sr", "D4,D5,D6,D7,E", 189),
    ("hd44780-shiftcursor.sr", "D4,D5,D6,D7,E", 89), ("hd44780-test_204.sr", "D4,D5,D6,D7,E", 193)]
BUSES = [("lpc_vultureprog_snippet.sr", "LAD0,LAD1,LAD2,LAD3,LCLK"),
         ("power9_lpc_io_read.sr", "lad0,lad1,lad2,lad3,lclk")]


def recorded(path, channels, falling):
    """Nibbles of a capture, by a reader of its own: at each active edge, the data of the sample before it."""
    with zipfile.ZipFile(path) as archive:
        metadata = archive.read("metadata").decode()
        unit = int(re.search(r"unitsize=(\d+)", metadata)[1])
        count = sum(name.startswith("logic-1-") for name in archive.namelist())
        samples = np.frombuffer(b"".join(archive.read(f"logic-1-{k + 1}") for k in range(count)), f"<u{unit}")
    places = [int(re.search(rf"probe(\d+)={re.escape(name)}\n?", metadata)[1]) - 1 for name in channels.split(",")]
    strobe = samples >> places[4] & 1
    edges = np.flatnonzero((strobe[1:] != strobe[:-1]) & (strobe[1:] == (0 if falling else 1)))
    return sum((samples[edges] >> places[i] & 1) << i for i in range(4)).tolist()


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
