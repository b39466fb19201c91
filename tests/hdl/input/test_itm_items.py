"""ITM items: every kind of packet; events of source packets alone; errors end with a pause or a synchronization."""

import random

import pytest
from hypermon.hdl.input.itm_items import ItmItems

from ..harness.resets import same_as_fresh
from ..harness.senders import itm_bytes
from .test_byte_items import _ABORT, Bench, nibbles_of

_SYNC = bytes([0, 0, 0, 0, 0, 0x80])


def events_of(port, value, hardware=False):
    """What the framer must get: length and id together, then the bytes."""
    head, *rest = nibbles_of(bytes([port | hardware << 5]) + value)
    return [head + rest[0], *rest[1:]]


def bench():
    return Bench(ItmItems).events(1).pause()


@pytest.mark.parametrize("hardware", [False, True])
def test_source_packets(hardware):
    rng = random.Random(1)
    one, expected = bench(), []
    for port in range(32):
        for size in (1, 2, 4):
            value = bytes(rng.getrandbits(8) for _ in range(size))
            one.sends(itm_bytes(port, value, hardware))
            expected += events_of(port, value, hardware)
    assert one.run() == expected


@pytest.mark.parametrize("packet", [
    _SYNC, bytes(9) + b"\x80", b"\x10", b"\x20", b"\x60", b"\xc0\x05", b"\xf0\x85\x81\x01", b"\xd0\x80\x80\x80\x01",
    b"\x94\x80\x80\x80\x00", b"\xb4\x80\x80\x80\x80\x80\x01", b"\x08", b"\x78", b"\x88\x01", b"\x8c\x82\x01", b"\x0c",
    b"\xc0\x00"], ids=bytes.hex)
def test_other_packets_are_no_events(packet):
    assert bench().sends(b"\x01\x55" + packet + b"\x09\xaa").run() == [*events_of(0, b"\x55"), *events_of(1, b"\xaa")]


def test_an_overflow_is_an_event():
    assert bench().sends(b"\x01\x66\x70\x01\x55").run() == [
        *events_of(0, b"\x66"), (1, 0, 4), *events_of(0, b"\x55")]


@pytest.mark.parametrize("packet", [
    b"\x80", b"\x90", b"\xa0", b"\xb0", b"\x04", b"\x14", b"\x84", b"\xd4", b"\xf4", b"\x00\x01",
    b"\x00\x00\x00\x00\x80",
    b"\xc0\x80\x80\x80\x80\x80\x80", b"\x00\x00\x00\x00\x00\x01"], ids=bytes.hex)
def test_reserved_packets_are_errors(packet):
    """Nothing is taken until a pause or a synchronization packet."""
    did = bench().sends(packet).wait(_ABORT).sends(b"\x01\x55").pause().sends(b"\x01\x66").run()
    assert did == [("rejected",), ("abort",), ("rejected",), ("rejected",), *events_of(0, b"\x66")]
    did = bench().sends(packet).wait(_ABORT).sends(b"\x01\x55" + _SYNC + b"\x01\x66").run()
    assert did == [("rejected",), ("abort",), ("rejected",), ("rejected",), *events_of(0, b"\x66")]


def test_zeros_that_are_no_synchronization():
    """Four of them, or another byte in between."""
    for false in (_SYNC[1:], b"\0\0\0\x01\0\0\x80", b"\0\0\0\0\0\x40"):
        did = Bench(ItmItems).events(1).sends(false + b"\x01\x55").pause().sends(b"\x01\x66").run()
        assert did[-1:] == events_of(0, b"\x66")[-1:]
        assert did.count((2, 0, 0)) == 1
    # Zeros in a packet count neither as header nor for a synchronization after it.
    did = bench().sends(itm_bytes(3, bytes(4)) + itm_bytes(2, bytes(2)) + b"\x80").wait(_ABORT).run()
    assert did == [*events_of(3, bytes(4)), *events_of(2, bytes(2)), ("rejected",), ("abort",)]


@pytest.mark.parametrize("where", range(1, 5))
def test_faults_and_time_outs_abort_an_event(where):
    for what in ("fault", "expired"):
        one = bench().sends(itm_bytes(7, b"\x11\x22\x33\x44")[:where])
        did = getattr(one, what)().sends(b"\xaa").wait(_ABORT).pause().sends(itm_bytes(8, b"\x77")).run()
        assert did == [*events_of(7, b"\x11\x22\x33\x44")[:where], ("rejected",), ("rejected",), ("abort",),
                       *events_of(8, b"\x77")]


def test_fault_in_a_time_stamp():
    did = bench().sends(b"\xc0\x80").fault().wait(_ABORT).pause().sends(b"\x01\x66").run()
    assert did == [("rejected",), ("abort",), *events_of(0, b"\x66")]


def test_without_event_mode_bytes_are_two_nibbles():
    did = Bench(ItmItems).pause().sends(b"\x00\x01\x84").events(1).wait(_ABORT).pause().sends(b"\x01\x66").run()
    assert did == [(0, 0), (1, 0), (4, 8), ("abort",), *events_of(0, b"\x66")]


def test_a_change_of_mode_in_a_packet_begins_anew():
    for begun in (b"\x03\x11", b"\xc0\x80"):
        did = bench().sends(begun).events(0).wait(_ABORT).pause().sends(b"\x9f").run()
        assert did[-2:] == [("abort",), (15, 9)]
        assert ("rejected",) not in did


def test_each_byte_is_an_event():
    """Whatever it would mean as a packet: a header, an overflow, a reserved one, a synchronization."""
    data = bytes([0x01, 0x70, 0x9f, *_SYNC, 0xff])
    assert Bench(ItmItems, spacing=24).events(1).single(1).pause().sends(data).run() == [
        (1, byte & 15, byte >> 4) for byte in data]


def test_reset():
    """Half of the bytes are those of synchronization, overflow and time."""
    same_as_fresh(
        ItmItems, {"byte": lambda rng: rng.choice((0, 0x80, 0x70, 0xc0, *(rng.getrandbits(8) for _ in range(4)))),
                   **{name: lambda rng: rng.random() < 0.02 for name in ("fault", "expired")}},
        settings={"events": lambda rng: rng.getrandbits(1), "single": lambda rng: rng.random() < 0.3})
