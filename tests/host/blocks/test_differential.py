"""What C makes of a stream, and what plain Python makes of it: the same, whatever is in the blocks.

Blocks are spoilt and then sealed again, so that their checksums are right and the decoders see them.
"""

import os
import random
import subprocess
import sys

import pytest
from hypermon.host.blocks import blocks_joined, compact

from tests.host.corruption import RUNS, corrupted, decoded, made, resealed

needs_c = pytest.mark.skipif(compact.NATIVE is None, reason="the package was installed without a C compiler")
#: Groups that codes and long numbers are made of.
TELLING = bytes([0x00, 0x08, 0x80, 0x18, 0x09, 0x90, 0x0A, 0xA0, 0x88, 0xFF])


def spoilt(rng, payload):
    """The payload after some changes."""
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, size = rng.randrange(len(data) + 1), rng.randint(1, 20)
        change = rng.randrange(7)
        if change == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif change == 1 and at < len(data):
            data[at] = rng.choice((rng.choice(TELLING), rng.randrange(256)))
        elif change == 2:
            del data[at:at + size]
        elif change == 3:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + size]
        elif change == 4:
            data[at:at] = rng.randbytes(size)
        elif change == 5:
            del data[at:]
        else:       # by a group
            data = bytearray((int.from_bytes(data, "little") << 4).to_bytes(len(data) + 1, "little"))
    return bytes(data[:2000])


def spoilt_stream(rng, stream):
    """A stream of which some blocks are spoilt and sealed again; sometimes it is then corrupted as well."""
    stream.blocks = [
        resealed(block, spoilt(rng, block[32:32 + int.from_bytes(block[12:16], "little")]),
                 rng.choice((None, None, None, 0, rng.randrange(1 << 40), (1 << 62) - 1, 1 << 62)))
        if rng.random() < 0.4 else block for block in stream.blocks]
    return corrupted(rng.choice(("bits", "dropped", "repeated", "moved")), stream, rng) if rng.random() < 0.2 \
        else stream.data


def trial(monkeypatch, name, seeds):
    """Differences, and how many streams had a block that was left out."""
    native, join = compact.NATIVE, blocks_joined._JOIN
    left_out = 0
    for seed in seeds:
        rng = random.Random(f"{name} {seed}")
        stream = made(name, seed, rng.randint(1, 3))
        data = spoilt_stream(rng, stream)
        pieces = rng.random()
        found = []
        for function, joining in ((native, join), (None, None)):
            monkeypatch.setattr(compact, "NATIVE", function)
            monkeypatch.setattr(blocks_joined, "_JOIN", joining)
            found.append(decoded(stream, data, random.Random(pieces)))
        assert found[0] == found[1], f"{name}, seed {seed}"
        left_out += bool(found[0].summary["faults"])
    return left_out


@needs_c
@pytest.mark.parametrize("name", RUNS)
def test_c_and_python_give_the_same(monkeypatch, name):
    assert trial(monkeypatch, name, range(40)) > 2


@needs_c
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("part", range(3))
def test_c_and_python_give_the_same_of_many(monkeypatch, name, part):
    """4,000 each: 108,000 streams."""
    first = 1000 + 4000 * part
    print(f"{name}: seeds {first} to {first + 3999}")
    assert trial(monkeypatch, name, range(first, first + 4000)) > 200


def test_without_c_is_what_an_environment_variable_asks_for():
    """The way of these tests and that of a user are one."""
    code = ("from hypermon.host.blocks import blocks_joined as blocks_native, compact; "
            "print(compact.NATIVE, blocks_native._JOIN)")
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"HYPERMON_PURE": "1"}, capture_output=True,
                          text=True, check=True)
    assert done.stdout.split() == ["None", "None"]
