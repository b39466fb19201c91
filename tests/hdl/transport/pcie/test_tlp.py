"""Byte counts and lower addresses: against the bytes themselves, for every length and every enable."""

from amaranth.hdl import Module, Signal
from hypermon.hdl.transport.pcie.tlp import byte_count, first_byte, mps_beats

from ...harness.stage import run


def bytes_of(length, first_be, last_be):
    """Numbers of the enabled bytes; with none the first, which a read of no bytes is said to have."""
    enables = [first_be, *[0xf] * (length - 2), *([last_be] if length > 1 else [])]
    return [4 * dword + k for dword, be in enumerate(enables) for k in range(4) if be >> k & 1] or [0]


def cases():
    for first_be in range(16):
        yield 1, first_be, 0
        for length in (2, 3, 17, 1024):
            for last_be in range(1, 16):
                if first_be:
                    yield length, first_be, last_be


def test_numbers():
    for case in cases():
        found = bytes_of(*case)
        assert byte_count(*case) == found[-1] - found[0] + 1
        assert first_byte(case[1]) == found[0] % 4


def test_values():
    m = Module()
    length, first_be, last_be = Signal(11), Signal(4), Signal(4)
    count, first = Signal(13), Signal(2)
    m.d.comb += [count.eq(byte_count(length, first_be, last_be)), first.eq(first_byte(first_be))]
    m.d.sync += Signal().eq(0)

    async def bench(ctx):
        for case in cases():
            for signal, value in zip((length, first_be, last_be), case, strict=True):
                ctx.set(signal, value)
            assert (ctx.get(count), ctx.get(first)) == (byte_count(*case), first_byte(case[1])), case

    run(m, bench)


def test_payloads():
    assert [16 * mps_beats(code) for code in range(6)] == [128, 256, 512, 512, 512, 512]
    m, code, beats = Module(), Signal(3), Signal(6)
    m.d.comb += beats.eq(mps_beats(code))
    m.d.sync += Signal().eq(0)

    async def bench(ctx):
        for k in range(8):
            ctx.set(code, k)
            assert ctx.get(beats) == mps_beats(k)

    run(m, bench)
