"""Why the bytes of a UART or SWO do not arrive: each cause is found, and none where nothing is wrong."""

import random
import re
from fractions import Fraction

import numpy as np
import pytest
from hypermon.hdl.input.itm_items import ItmItems
from hypermon.hdl.layout import Front
from hypermon.sim.stimulus.other_wire import _packets, other_wire
from hypermon.sim.stimulus.stimulus import Stimulus

from tests.hdl.harness.senders import framed, itm_bytes
from tests.hdl.input.test_byte_items import _ABORT, Bench
from tests.host.external.readers import read_by
from tests.sim.fronted import uart_rows

BAUD = 1_000_000


def packets(rng, count=700):
    return b"".join(itm_bytes(rng.randrange(32), rng.randbytes(rng.choice((1, 2, 4)))) for _ in range(count))


def stimulus(data, seed=0, inverted=False):
    """Bytes that follow each other directly, or after up to 30 us."""
    bit, numbers = Fraction(10**12, BAUD), np.random.default_rng(seed)
    pauses = numbers.integers(1, 30 * 10**6, len(data)) * (numbers.random(len(data)) < 0.1)
    times = -(-np.arange(len(data)) * 10 * bit.numerator // bit.denominator) + np.cumsum(pauses) + 10**6
    time, port = uart_rows(times, np.frombuffer(data, np.uint8), bit)
    return Stimulus(time, np.zeros(len(time), np.int16), port ^ np.uint8(16 * inverted), [0 if inverted else 16])


DATA = {
    "packets": packets(random.Random(1)), "text": b"t = 12.5 C, fan 1800 rpm\r\n" * 60,
    "random": random.Random(2).randbytes(1500), "zeros": bytes(800),
    # Letters that a Cortex-M prints through stimulus port 0, and through port 1.
    "letters": b"".join(bytes([1, letter]) for letter in b"On\nOff\n" * 100),
    "others": b"".join(bytes([9, letter]) for letter in b"On\nOff\n" * 100),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("front", [Front.UART, Front.SWO])
def test_nothing_is_said_of_a_line_that_is_right(name, front):
    for error in (0.97, 1, 1.03):
        said = other_wire(stimulus(DATA[name]), 0, front, 10**12 / BAUD * error)
        if name == "text" and front is Front.SWO:
            assert "the node has a UART" in said
        else:
            assert said is None


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("set_to", [0.125, 0.5, 0.8, 1.25, 2, 8])
def test_a_wrong_rate(name, set_to):
    said = other_wire(stimulus(DATA[name]), 0, Front.UART, 10**12 / (BAUD * set_to))
    assert said == f"bits are {set_to:.3g} times as long as the rate says, about 1000000 baud"


@pytest.mark.parametrize("name", DATA)
def test_an_inverted_line(name):
    assert "inverted" in other_wire(stimulus(DATA[name], inverted=True), 0, Front.SWO, 10**12 / BAUD)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sync", [0, 4])
def test_frames_of_a_trace_port(seed, sync):
    """With packets of the ITM alone, and with those of another source between them; with synchronization, or without;
    from any byte on."""
    rng = random.Random(seed)
    sources = [(1, packets(rng))] if seed % 2 else [(1, packets(rng)), (2, rng.randbytes(900))]
    data = framed(sources, rng, sync)[rng.randrange(16):]
    said = other_wire(stimulus(data, seed), 0, Front.SWO, 10**12 / BAUD)
    assert "FFCR" in said
    assert other_wire(stimulus(data, seed), 0, Front.UART, 10**12 / BAUD) is None


def test_a_line_on_which_nothing_happens():
    none = Stimulus(np.zeros(0, np.int64), np.zeros(0, np.int16), np.zeros(0, np.uint8), [16])
    assert other_wire(none, 0, Front.SWO, 10**6) is None


def test_frames_are_what_sigrok_reads(tmp_path):
    """The harness is judged by another program: stream 1 of random frames."""
    rng = random.Random(3)
    wanted = packets(rng, 100)
    data = framed([(1, wanted), (2, rng.randbytes(100))], rng, sync=4)
    path = tmp_path / "line.bin"
    # A sample per bit, after some of an idle line.
    bits = [1] * 40 + [bit for byte in data for bit in (0, *(byte >> k & 1 for k in range(8)), 1)] + [1] * 40
    path.write_bytes(bytes(bits))
    said = read_by("sigrok-cli", "-i", path, "-I", "binary:numchannels=1:samplerate=1000000", "-P",
                   "uart:rx=0:baudrate=1000000,arm_tpiu:stream=1", "-A", "arm_tpiu=data")
    read = bytes(int(byte, 16) for byte in re.findall(r"arm_tpiu-1: (0x[0-9a-f]{2})$", said, re.MULTILINE))
    assert len(read) > len(wanted) // 2
    assert wanted.endswith(read)


@pytest.mark.parametrize("zeros", [1, 4, 5, 6, 40])
def test_packets_are_those_of_the_gateware(zeros):
    """Each header, and zeros before a byte that ends them or does not: what is a packet here is one for the board."""
    tail = b"\x10" * 6                         # packets of one byte each; they also end those of several
    cases = [bytes([head]) + tail for head in range(1, 256)]
    cases += [bytes(zeros) + bytes([end]) + tail for end in (0x80, 0x81, 0x40, 0x10)]
    cases += [bytes([head, *[0x80] * more]) + tail for head in (0x88, 0x94, 0xc0) for more in (1, 5, 6, 7)]
    bench = Bench(ItmItems).events(1)
    for case in cases:
        bench.pause().sends(case).wait(_ABORT).pause().sends(b"\xff\x5a\x5a\x5a\x5a")
    did, wrong, number = bench.run(), set(), 0
    mark = [0xa, 5] * 4
    recent: list[int] = []
    for one in did:
        if one == ("rejected",):
            wrong.add(number)
        elif one != ("abort",):
            recent = [*recent, *one][-len(mark):]
            if recent == mark:
                number, recent = number + 1, []
    assert number == len(cases)
    assert {k for k, case in enumerate(cases) if not _packets(case)} == wrong
    assert 0 < len(wrong) < len(cases) // 2
