"""Firmware for a Pico, run in an emulated RP2040: what comes out of its pins, and what the board makes of it."""

import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from cross import MACHINES
from emulators.rp2040 import Played, emulator, play
from hypermon.host import cli, open_run
from hypermon.host.errors import HypermonError
from hypermon.sim.emulate.firmware import CPU_HZ, RAM, build_player, encode, image, link, uf2
from hypermon.sim.emulate.workload import Item, Kind, load_workload
from port_reader import Write, read_events, read_nibbles

from tests.programs import MissingError, working

PERIOD_NS = 10**9 // CPU_HZ
#: The player looks at its clock so often, and an event that is due has to wait for the one before.
LATE_NS = 500


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    try:
        working(MACHINES["Cortex-M0+"].compiler)
        emulator()
    except MissingError as missing:
        pytest.skip(str(missing))


def writes(played: Played, pin: int = 2, node: int = 0, bits: int = 4) -> list[Write]:
    """What the node's pins did, in ns."""
    rows = [(clock * PERIOD_NS, value >> pin & (2 << bits) - 1) for clock, value in played.pins]
    changed = [rows[at] for at in range(len(rows)) if rows[at][1] != (rows[at - 1][1] if at else 0)]
    return [Write(time, node, value) for time, value in changed]


def events(count: int, seed: int, node: int = 0) -> list[Item]:
    """Events of every length, 4 us apart and more."""
    rng = random.Random(seed)
    times = sorted(rng.sample(range(1, 2 * count), count))
    return [Item(4_000_000 * time, node, Kind.EVENT, bytes([rng.randrange(256)]) + rng.randbytes(number % 15))
            for number, time in enumerate(times)]


PORTS = [("SIO", 1), ("SIO", 2), ("PIO", 1)]


@pytest.mark.parametrize(("by", "edges", "bits"), [*((*port, 4) for port in PORTS), ("SIO", 1, 8), ("SIO", 2, 8)])
def test_the_player_says_it_at_its_time(tmp_path: Path, by: str, edges: int, bits: int) -> None:
    items = events(60, seed=edges)
    pin = 2 if by == "SIO" else 11
    played = play(build_player(items, edges=edges, pio=by == "PIO", pin=pin, bits=bits), tmp_path, limit=1_000_000)
    assert played.hz == CPU_HZ
    seen = writes(played, pin, bits=bits)
    got = read_events(read_nibbles(seen, edges, bits)[0], bits)
    assert [event[1:] for event in got] == [(item.data[0], item.data[1:]) for item in items]
    begin = got[0].time_ns - items[0].time_ps // 1000
    assert all(abs(event.time_ns - begin - item.time_ps // 1000) < LATE_NS
               for event, item in zip(got, items, strict=True))
    # A board of 100 MHz can read it: 12 ns with one edge, 21 with two.
    assert min(b.time_ns - a.time_ns for a, b in pairwise(seen)) >= (12, 21)[edges - 1]


@pytest.mark.parametrize(("by", "edges"), PORTS)
@pytest.mark.parametrize("clock_mhz", [15, 45])
def test_for_a_slow_board(tmp_path: Path, by: str, edges: int, clock_mhz: int) -> None:
    """Each level lasts a clock of the board's, with two edges two, and a nanosecond."""
    items = events(10, seed=1)
    firmware = build_player(items, edges=edges, pio=by == "PIO", clock_hz=clock_mhz * 1_000_000)
    seen = writes(play(firmware, tmp_path, limit=1_000_000))
    assert [event[1:] for event in read_events(read_nibbles(seen, edges)[0])] == [
        (item.data[0], item.data[1:]) for item in items]
    assert min(b.time_ns - a.time_ns for a, b in pairwise(seen)) > edges * 1000 / clock_mhz + 1


def test_nibbles_and_words(tmp_path: Path) -> None:
    items = [Item(0, 0, Kind.NIBBLE, b"\x05"), Item(9_000_000, 0, Kind.WORD, b"\x10\x32\x54\x76"),
             Item(20_000_000, 0, Kind.NIBBLE, b"\x0f")]
    played = play(build_player(items), tmp_path, limit=100_000)
    assert [nibble for _, nibble in read_nibbles(writes(played), 1)[0]] == [5, *range(8), 15]


def test_waits_are_longer_than_the_processor_s_counter(tmp_path: Path) -> None:
    """It has 24 bits, 134 ms."""
    items = [Item(0, 0, Kind.NIBBLE, b"\x05"), Item(137 * 10**9, 0, Kind.NIBBLE, b"\x0a")]
    (first, five), (second, ten) = read_nibbles(writes(play(build_player(items), tmp_path, limit=18_000_000)), 1)[0]
    assert (five, ten) == (5, 10)
    assert abs(second - first - 137_000_000) < LATE_NS


@pytest.mark.parametrize(("by", "edges"), PORTS)
def test_firmware_through_the_board(tmp_path: Path, by: str, edges: int) -> None:
    """The compiled firmware's pins, at its clocks, into the gateware; what the board says is what was to be played."""
    node = 3
    items = events(200, seed=10 + edges, node=node)
    seen = writes(play(build_player(items, edges=edges, pio=by == "PIO"), tmp_path, limit=2_000_000), node=node)
    stimulus, run = tmp_path / "pins.csv", tmp_path / "run"
    stimulus.write_text("time_ns,node,port\n" + "".join(f"{w.time_ns},{w.node},{w.port}\n" for w in seen))
    assert cli._run(["sim", str(stimulus), "-o", str(run), "--config", "extended", "--mode", "event",
                     "--edge", ("rising", "both")[edges - 1], "--seed", "1"]) == 0
    table = open_run(run).events()
    assert table["aborted"].to_pylist() == [False] * len(items)
    rows = zip(*(table[name].to_pylist() for name in ("node", "event", "payload")), strict=True)
    assert list(rows) == [(node, item.data[0], item.data[1:]) for item in items]
    times = table["time_ps"].to_pylist()
    begin = times[0] - items[0].time_ps
    assert all(abs(time - begin - item.time_ps) < 1000 * LATE_NS for time, item in zip(times, items, strict=True))
    assert open_run(run).stats()["lost"] == 0
    # And a workload again: the recorded run can be played by the next Pico.
    again = load_workload(run)
    assert [(item.node, item.kind, item.data) for item in again.items] == [(i.node, i.kind, i.data) for i in items]


#: The main program writes events, and so does an interrupt every some hundred clocks.
INTERRUPTED = r"""
#include "hypermon.h"

int main(void);
static hm_port port;
static volatile unsigned ticked;

static void tick(void)
{
    if (ticked < 200)
        hm_event(&port, 0x102, "tick", 4);  /* of an id, a byte */
    ticked++;
}

static void (*const vectors[16])(void) __attribute__((aligned(256))) = { [15] = tick };

int main(void)
{
    hm_rp2040_open(&port);
    HM_RP2040_WORD(0xe000ed08u) = (uint32_t)(uintptr_t)vectors;
    HM_RP2040_WORD(0xe000e014u) = PERIOD;
    HM_RP2040_WORD(0xe000e018u) = 0;
    HM_RP2040_WORD(0xe000e010u) = 7u;
    while (ticked < 200)
        hm_event(&port, 0x101, "main", 4);
    return 0;
}
"""


@pytest.mark.parametrize(("by", "edges"), PORTS)
def test_an_interrupt_does_not_come_between_nibbles(tmp_path: Path, by: str, edges: int) -> None:
    source = tmp_path / "interrupted.c"
    source.write_text(INTERRUPTED)

    def said(*flags: str) -> list[tuple[int, int, bytes]]:
        elf = link([source], b"", f"-DHM_TARGET=HM_TARGET_RP2040_{by}", f"-DHM_EDGES={edges}", "-DPERIOD=1009u", *flags)
        return read_events(read_nibbles(writes(play(elf, tmp_path, limit=1_000_000)), edges)[0])

    got = [event[1:] for event in said()]
    assert got.count((2, b"tick")) == 200
    assert set(got) == {(1, b"main"), (2, b"tick")}
    with pytest.raises(AssertionError):  # and without care it would
        assert {event[1:] for event in said("-DHM_INTERRUPTS=0")} == {(1, b"main"), (2, b"tick")}


def test_uf2_is_the_image_in_blocks() -> None:
    elf = build_player(events(50, seed=1))
    data, file = image(elf), uf2(elf)
    assert len(file) == 512 * -(-len(data) // 256)
    again = b""
    for number in range(len(file) // 512):
        block = file[512 * number:][:512]
        assert struct.unpack_from("<8I", block) == (
            0x0A324655, 0x9E5D5157, 0x2000, RAM + 256 * number, 256, number, len(file) // 512, 0xE48BFF56)
        assert block[-4:] == bytes.fromhex("306fb10a")
        again += block[32:32 + 256]
    assert again == data + bytes(-len(data) % 256)
    assert encode(events(50, seed=1)) in data


@pytest.mark.parametrize(("items", "options", "reason"), [
    ([Item(0, 0, Kind.NIBBLE, b"\1")], {"pio": True}, "events only"),
    (events(2, seed=1), {"pio": True, "edges": 2}, "rising edges"),
    ([Item(18 * 10**12, 0, Kind.NIBBLE, b"\1")], {}, "waits at most 17 s"),
    (events(1, seed=1) * 50000, {}, "does not fit into the Pico's memory")])
def test_what_cannot_be_played_is_refused(items: list[Item], options: dict, reason: str) -> None:
    with pytest.raises(HypermonError, match=reason):
        build_player(items, **options)
