"""Byte items: nibbles of raw bytes and of checked events; nothing of a wrong event is ever whole."""

import random

import pytest
from amaranth.hdl import Module
from hypermon.hdl.input.byte_items import ByteItems

from ..harness.resets import same_as_fresh
from ..harness.senders import event_bytes
from ..harness.stage import run

#: Clocks between bytes, as of a fast sender; and until an abort is over.
_FAST, _ABORT = 16, 60


class Bench:
    """Gives a script of bytes and other signals to the stage, and collects what it does, in order."""

    def __init__(self, stage=ByteItems, spacing=_FAST):
        self.stage, self.spacing = stage, spacing
        self.script: list[tuple[str, int]] = []
        self.did: list[tuple] = []

    def sends(self, data):
        self.script += [("byte", value) for value in data]
        return self

    def __getattr__(self, name):
        """``pause``, ``fault``, ``expired``, ``events`` and ``single`` (with a level), ``wait``."""
        if name not in ("pause", "fault", "expired", "events", "single", "wait"):
            raise AttributeError(name)

        def add(value=1):
            self.script.append((name, value))
            return self

        return add

    def run(self):
        m = Module()
        m.submodules.dut = dut = self.stage()

        async def drive(ctx):
            async def clocks(count):
                for _ in range(count):
                    for name in ("abort", "rejected"):
                        if ctx.get(getattr(dut, name)):
                            self.did.append((name,))
                    if ctx.get(dut.load):
                        nibbles = ctx.get(dut.nibbles)
                        self.did.append(tuple(nibbles >> 4 * k & 15 for k in range(ctx.get(dut.count))))
                    await ctx.tick()

            for what, value in self.script:
                if what == "byte":
                    ctx.set(dut.byte, value)
                    ctx.set(dut.valid, 1)
                    await clocks(1)
                    ctx.set(dut.valid, 0)
                    await clocks(self.spacing - 1)
                elif what in ("events", "single"):
                    ctx.set(getattr(dut, what), value)
                    await clocks(1)
                elif what == "wait":
                    await clocks(value)
                else:
                    ctx.set(getattr(dut, what), 1)
                    await clocks(value)
                    ctx.set(getattr(dut, what), 0)
                    await clocks(1)
            assert bool(ctx.get(dut.busy)) is False or self.script[-1][0] != "wait"
            await clocks(3)

        run(m, drive, clocks=100_000)
        return self.did


def nibbles_of(payload):
    """What the framer must get of an event, in pieces: the length, then the bytes."""
    return [(len(payload),), *((byte & 15, byte >> 4) for byte in payload)]


def test_raw_bytes_are_two_nibbles():
    rng = random.Random(1)
    data = bytes(rng.getrandbits(8) for _ in range(50))
    assert Bench().pause().sends(data).run() == [(byte & 15, byte >> 4) for byte in data]


def test_each_byte_is_an_event():
    """A header's complement means nothing, and neither does filler."""
    data = bytes([0xf0, 0xe1, 0xd2, 0x00, *range(100, 130)])
    bench = Bench(spacing=24).events(1).single(1).pause().sends(data).fault().wait(_ABORT).sends(b"\x34").pause()
    assert bench.sends(b"\x78").run() == [
        *((1, byte & 15, byte >> 4) for byte in data), ("rejected",), ("abort",), ("rejected",), (1, 8, 7)]


def test_without_event_mode_bytes_are_no_events():
    assert Bench().single(1).pause().sends(b"\x12").run() == [(2, 1)]


def test_a_change_to_single_bytes_ends_an_event():
    """What comes until the next pause belongs to neither mode."""
    did = Bench().events(1).pause().sends(event_bytes(b"\x11\x22")[:2]).single(1).wait(_ABORT).sends(b"\x12").run()
    assert did == [(2,), ("abort",), ("rejected",)]


def test_a_fault_of_raw_bytes_ends_with_a_pause():
    did = Bench().pause().sends(b"\x12").fault().wait(_ABORT).sends(b"\x34\x56").pause().sends(b"\x78").run()
    assert did == [(2, 1), ("rejected",), ("abort",), ("rejected",), ("rejected",), (8, 7)]


def test_a_time_out_of_raw_bytes_ends_with_a_pause():
    """As of a word that is not completed: what comes until the abort is no part of another one."""
    did = Bench().pause().sends(b"\x12").expired().sends(b"\x34").wait(_ABORT).pause().sends(b"\x78").run()
    assert did == [(2, 1), ("rejected",), ("rejected",), ("abort",), (8, 7)]


def test_nothing_is_taken_before_the_first_pause():
    assert Bench().sends(b"\x12\x34").pause().sends(b"\x56").run() == [("rejected",), ("rejected",), (6, 5)]
    assert Bench().fault().pause().sends(b"\x56").run() == [("rejected",), (6, 5)]


@pytest.mark.parametrize("spacing", [_FAST, 1, 40])
def test_events(spacing):
    """Of every length, directly after each other; with filler between some."""
    rng = random.Random(spacing)
    bench, expected = Bench(spacing=spacing).events(1).pause(), []
    for size in [*range(1, 16), *range(1, 16)]:
        payload = bytes(rng.getrandbits(8) for _ in range(size))
        bench.sends(event_bytes(payload) + bytes([0xf0] * rng.randrange(2)))
        expected += nibbles_of(payload)
    assert bench.run() == expected


def test_the_last_byte_waits_for_the_check():
    payload = b"\x11\x22\x33"
    *head, check = event_bytes(payload)
    assert Bench().events(1).pause().sends(head).run() == nibbles_of(payload)[:-1]
    assert Bench().events(1).pause().sends([*head, check]).run() == nibbles_of(payload)


def test_every_wrong_bit_is_found():
    """Of the length, its complement, the bytes and the check: the event is never whole, and the next one is."""
    for size, bits in ((1, range(24)), (4, (9, 22, 35, 40, 47))):
        good = event_bytes(bytes(range(0x40, 0x40 + size)))
        for bit in bits:
            wrong = bytearray(good)
            wrong[bit // 8] ^= 1 << bit % 8
            did = Bench().events(1).pause().sends(wrong).wait(_ABORT).pause().sends(event_bytes(b"\x5a")).run()
            assert did[-2:] == nibbles_of(b"\x5a")
            rest = did[:-2]
            assert ("rejected",) in rest
            assert nibbles_of(good[1:-1]) != [step for step in rest if step[0] not in ("abort", "rejected")]
            if bit >= 8:
                assert rest[-2:] == [("rejected",), ("abort",)]
                assert len(rest) == 2 + size, "all but the last byte"


def test_random_bytes():
    """Of 20,000 random bytes, with pauses, what passes for an event is as rare as the checks allow."""
    rng = random.Random(5)
    bench = Bench(spacing=1).events(1)
    for _ in range(400):
        bench.pause().sends(rng.getrandbits(8) for _ in range(50)).wait(_ABORT)
    did = bench.run()
    opened = [k for k, step in enumerate(did) if len(step) == 1 and isinstance(step[0], int)]
    whole = 0
    for first in opened:
        size = did[first][0]
        steps = did[first + 1:first + 1 + size]
        whole += len(steps) == size and all(len(step) == 2 for step in steps)
    assert len(opened) > 20
    assert whole <= 3, "1 of 256 of those that begin"
    assert did.count(("abort",)) >= len(opened) - whole


@pytest.mark.parametrize("where", range(1, 6))
def test_faults_and_time_outs_abort_an_event(where):
    for what in ("fault", "expired"):
        bench = Bench().events(1).pause().sends(event_bytes(b"\x11\x22\x33\x44")[:where])
        did = getattr(bench, what)().sends(b"\xaa").wait(_ABORT).pause().sends(event_bytes(b"\x66\x77")).run()
        assert did == [*nibbles_of(b"\x11\x22\x33\x44")[:max(where - 1, 1)], ("rejected",), ("rejected",), ("abort",),
                       *nibbles_of(b"\x66\x77")]


def test_a_change_of_mode_begins_anew():
    did = (Bench().events(1).pause().sends(event_bytes(b"\x11\x22")[:2]).events(0).wait(_ABORT).pause()
           .sends(b"\x9f").run())
    assert did == [(2,), ("abort",), (15, 9)]


def test_abort_comes_after_the_nibbles():
    """48 clocks after the error, so that they have passed the framer."""
    m = Module()
    m.submodules.dut = dut = ByteItems()

    async def bench(ctx):
        ctx.set(dut.events, 1)
        ctx.set(dut.pause, 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.pause, 0)
        ctx.set(dut.byte, 0xe1)
        ctx.set(dut.valid, 1)
        assert ctx.get(dut.load)
        await ctx.tick()
        ctx.set(dut.valid, 0)
        ctx.set(dut.fault, 1)
        await ctx.tick()
        ctx.set(dut.fault, 0)
        for _ in range(48):
            assert ctx.get(dut.busy)
            assert not ctx.get(dut.abort)
            await ctx.tick()
        assert ctx.get(dut.abort)
        await ctx.tick()
        assert not ctx.get(dut.abort)
        assert not ctx.get(dut.busy)

    run(m, bench)


def test_reset():
    """Half of the bytes may begin an event."""
    def byte(rng):
        size = rng.randrange(16)
        return rng.choice((size | ~size << 4 & 0xf0, rng.getrandbits(8)))

    same_as_fresh(ByteItems, {"byte": byte, **{name: lambda rng: rng.random() < 0.02 for name in ("fault", "expired")}},
                  settings={"events": lambda rng: rng.getrandbits(1), "single": lambda rng: rng.random() < 0.3})
