"""Random packets of a Cortex-M's ITM, received by the board, against another program's decoder: the crate ``itm``."""

import os
import random
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypermon.hdl.layout import ITM_OVERFLOW, LATENCY, Front, Geometry, Sink
from hypermon.sim.stimulus.stimulus import Stimulus

from tests.hdl.harness.senders import itm_bytes
from tests.host.external.readers import needs
from tests.patience import patience
from tests.sim.fronted import CLOCK, go, uart_rows

ROOT = Path(__file__).parents[4]
CRATE = ROOT / "tests" / "sim" / "itm_packets"
NODES = 8
BOARD = Geometry(NODES, node_depth=64, vector_depth=512, frame_depth=16, sinks=tuple(Sink), compact_depth=1024,
                 store_depth=1024, fronts=(Front.SWO,) * NODES)
SYNCHRONIZATION = bytes(5) + b"\x80"


@pytest.fixture(scope="session")
def decoder(tmp_path_factory):
    """Compiled once, in a copy: cargo writes beside the sources."""
    needs("cargo")
    folder = tmp_path_factory.mktemp("itm") / "itm_packets"
    shutil.copytree(CRATE, folder, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    done = subprocess.run(["cargo", "build", "--release"], cwd=folder, capture_output=True, text=True, check=False,
                          timeout=patience(300), env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / ".build" / "cargo")})
    if re.search(r"failed to (get|download)|no matching package|failed to query", done.stderr):
        pytest.skip(f"the crate itm cannot be had: {done.stderr.strip().splitlines()[-1].strip()}")
    assert done.returncode == 0, done.stderr
    return ROOT / ".build" / "cargo" / "release" / "itm-packets"


def read_by_crate(decoder, data):
    """(id, payload) of each event, and the number of other packets."""
    done = subprocess.run([decoder], input=data, capture_output=True, check=True, timeout=patience(120))
    *lines, others = done.stdout.decode().splitlines()
    events = [line.split(" ") for line in lines]
    return [(int(number), bytes.fromhex(payload)) for number, payload in events], int(others)


def continued(rng, head, least, most):
    """A packet with continuation bytes."""
    count = rng.randrange(least, most + 1)
    return bytes([head, *(rng.getrandbits(7) | 0x80 for _ in range(count - 1)), rng.getrandbits(7)])


def packet(rng):
    """A packet as an ARMv7-M sends it, and whether it is an event."""
    kind = rng.random()
    if kind < 0.7:
        return itm_bytes(rng.randrange(32), rng.randbytes(rng.choice((1, 2, 4)))), True
    if kind < 0.85:
        number, value = rng.choice((
            (0, bytes([rng.getrandbits(6)])),                                                   # counters
            (1, (rng.randrange(16, 512) | rng.randrange(1, 4) << 12).to_bytes(2, "little")),    # an exception
            (2, rng.choice((bytes(1), rng.randbytes(4)))),                                      # the program counter
            (8 | rng.randrange(4) << 1, rng.randbytes(4)),                                      # a comparator
            (9 | rng.randrange(4) << 1, rng.randbytes(2)),
            (16 | rng.randrange(8), rng.randbytes(rng.choice((1, 2, 4))))))
        return itm_bytes(number, value, hardware=True), True
    if kind < 0.87:
        return b"\x70", True
    return rng.choice((
        bytes([rng.randrange(1, 7) << 4]),                                  # a local time stamp of one byte
        continued(rng, 0xc0 | rng.randrange(4) << 4, 1, 4),                 # of more
        continued(rng, 0x94, 1, 4),                                         # a global one, its low bits
        continued(rng, 0xb4, *[rng.choice((4, 6))] * 2),                    # its high bits
        bytes([rng.randrange(8) << 4 | 8]),                                 # an extension
        bytes(rng.randrange(5, 12)) + b"\x80")), False                      # synchronization


def stream(rng, count):
    """Packets, their bytes, where each one begins, and which are events."""
    packets = [packet(rng) for _ in range(count)]
    sizes = np.array([len(data) for data, _ in packets])
    return b"".join(data for data, _ in packets), np.cumsum(sizes) - sizes, np.array([event for _, event in packets])


def received(decoder, baud, count, seed, error=0):
    """Sends packets to all nodes; returns how late stamps are."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    rows, sent = [], []
    for node in range(NODES):
        bit = Fraction(10**12, baud) * Fraction(100 + (error if node % 2 else -error), 100)
        data, starts, events = stream(rng, count)
        # Bytes follow each other directly, or after a pause.
        pauses = numbers.integers(1, 30 * int(bit), len(data)) * (numbers.random(len(data)) < 0.2)
        times = -(-np.arange(len(data)) * 10 * bit.numerator // bit.denominator) + np.cumsum(pauses) + 100 * CLOCK
        rows.append((*uart_rows(times, np.frombuffer(data, np.uint8), bit), node))
        expected, others = read_by_crate(decoder, data)
        assert (len(expected), others) == (events.sum(), count - events.sum())
        sent.append((expected, times[starts[events]]))
    time, port, node = (np.concatenate(column) for column in zip(
        *((time, port, np.full(len(time), node)) for time, port, node in rows), strict=True))
    order = np.argsort(time, kind="stable")
    played = Stimulus(time[order], node[order].astype(np.int16), port[order], [16] * NODES)
    run = go([], BOARD, swo_baud=baud, played=played, seed=seed)
    late = set()
    for node, (expected, begins) in enumerate(sent):
        mine = [item for item in run.items if item.node == node]
        assert [event_of(item) for item in mine] == expected, f"node {node}"
        assert (run.census[node]["accepted"], run.census[node]["rejected"]) == (len(expected), 0)
        late |= {item.window - LATENCY - run.late[Front.SWO] + int(begin) // -CLOCK
                 for item, begin in zip(mine, begins, strict=True)}
    assert run.lost == 0
    return late


def event_of(item):
    """(id, payload) of an item: its length, then the nibbles of its bytes, the lower one first."""
    assert not item.missing
    size, *nibbles = item.nibbles
    assert len(nibbles) == 2 * size
    payload = bytes(low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2], strict=True))
    return payload[0], payload[1:]


@pytest.mark.parametrize("baud", [2_000_000, 12_000_000])
def test_packets_are_what_another_decoder_reads(tools, decoder, baud):
    assert received(decoder, baud, 400, seed=1) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_million_packets(tools, decoder, part):
    """100,000 per part, half of them at 2 Mbaud, and half of them at 12 with clocks that are wrong by 2 %."""
    for baud, error in ((2_000_000, 0), (12_000_000, 2)):
        assert received(decoder, baud, 6_250, seed=100 + part, error=error) == {0, 1}


def test_the_decoder_reads_each_kind(decoder):
    """Of an overflow nothing but its id; of synchronization nothing."""
    data = SYNCHRONIZATION + itm_bytes(3, b"\x01\x02") + b"\x70" + itm_bytes(1, b"\x10\x30", hardware=True)
    assert read_by_crate(decoder, data) == ([(3, b"\x01\x02"), (ITM_OVERFLOW, b""), (33, b"\x10\x30")], 1)
