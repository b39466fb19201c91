"""Faults of a host and of its bus, one by one: each has the effect that docs/pcie.md states, and nothing is lost in
silence."""

import functools
import itertools

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge, SimTimeoutError, Timer, with_timeout
from hypermon.hdl.layout import PCIE_MAGIC, PCIE_REGISTERS

from ...benches.case import CASE, rng
from ...harness.runner import component, run
from .machine import Board, Machine, feed

PAGE = 4096


async def _streaming(dut, beats, pages=1, mps=2, rate=1, stalls=0.0):
    """A machine whose ring is on, and a board that has that many beats to deliver; and their bytes."""
    choose = rng()
    machine = await Machine(dut, mps).up()
    if stalls:
        machine.device.rq_sink.set_pause_generator(itertools.cycle([choose.random() < stalls for _ in range(101)]))
    await machine.start_ring(pages)
    beats = [choose.randbytes(16) for _ in range(beats)]
    machine.feeding = cocotb.start_soon(feed(dut, choose, beats, rate))
    return machine, b"".join(beats)


async def _request(machine, kind, address, be, data=None):
    """One request of one dword with any byte enables; the data of its completion."""
    from cocotbext.pcie.core.tlp import Tlp, TlpType
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_READ if kind == "read" else TlpType.MEM_WRITE
    tlp.requester_id = machine.rc.upstream_bridge.pcie_id
    tlp.address, tlp.length, tlp.first_be, tlp.last_be = machine.bar.get_absolute_address(address), 1, be, 0
    if kind == "write":
        tlp.data = bytearray(data)
        await machine.rc.perform_posted_operation(tlp)
        return None
    found = await machine.rc.perform_nonposted_operation(tlp, 5000)
    assert len(found) == 1
    return found[0]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def long_read(dut):
    """Refused with Unsupported Request and counted; what follows is answered."""
    machine = await Machine(dut).up()
    for count, length in enumerate((8, 64, 128), 1):
        with pytest.raises(Exception, match=r"(?i)unsuccess|UR"):
            await machine.bar.read(0x400, length, timeout=5000)
        assert await machine.read("PCIE_DROPPED") == count << 16
        assert await machine.read("PCIE_ID") == PCIE_MAGIC


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def byte_enables(dut):
    """Each of the 16: a write changes these bytes and no other, a read states its first byte and its byte count."""
    machine = await Machine(dut).up()
    word = bytearray(b"\x11\x22\x33\x44")
    await machine.write(0x68, int.from_bytes(word, "little"))
    for be in range(16):
        new = bytes(0x80 + 4 * be % 64 + k for k in range(4))
        await _request(machine, "write", 0x68, be, new)
        enabled = [k for k in range(4) if be >> k & 1]
        for k in enabled:
            word[k] = new[k]
        assert await machine.read(0x68) == int.from_bytes(word, "little")
        found = await _request(machine, "read", 0x68, be)
        assert found.byte_count == (enabled[-1] - enabled[0] + 1 if enabled else 1)
        assert found.lower_address & 3 == (enabled[0] if enabled else 0)
        assert not enabled or bytes(found.data) == bytes(word)
    assert await machine.read("PCIE_DROPPED") == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def line_and_wrap(dut):
    """No write crosses a line of 4 KiB or the end of the ring, and the ring goes round."""
    machine, stream = await _streaming(dut, 2100, pages=CASE["pages"], rate=0.7)
    await machine.collect(len(stream))
    assert machine.got == stream
    data = [(a, n) for a, n in machine.writes if n > 16 or a % machine.size]
    assert all(a % PAGE + n <= PAGE for a, n in machine.writes)
    assert sum((a + n) % PAGE == 0 for a, n in data) >= 8, "the line was met"
    assert any(n % 512 for _, n in data), "writes were shortened"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def tail_is_head(dut):
    """A ring whose tail is its head is empty, also if it was full, and nothing is written twice."""
    machine, stream = await _streaming(dut, 1000, pages=0)
    for _ in range(3):
        await machine.full()
        before = len(machine.writes)
        await Timer(2, "us")
        assert len(machine.writes) == before, "a full ring waits"
        assert await machine.read("PCIE_HEAD") - machine.tail == PAGE
        machine.drain()
        await machine.write("PCIE_TAIL", machine.tail)
        await machine.write("PCIE_TAIL", machine.tail)
    await machine.collect(len(stream))
    assert machine.got == stream
    assert await machine.read("PCIE_STATUS") == 5


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def forbidden(dut):
    """Bus master off, or D3, in the middle of writes: the ring stops; at most what was not reported is missing, and its
    number is known. It does not go on before it is started again."""
    machine, stream = await _streaming(dut, 2000, pages=4, mps=0, stalls=0.3)
    while len(machine.writes) < 40 or machine.begun < 3:
        await FallingEdge(dut.link_clk)
    if CASE["how"] == "master":
        await machine.found.clear_master()
    else:
        dut.cfg_function_power_state.value = 4
        await Timer(300, "ns")
    await Timer(1, "us")
    sent = len(machine.writes)
    await Timer(5, "us")
    assert len(machine.writes) == sent
    if CASE["how"] == "master":
        await machine.found.set_master()
    else:
        dut.cfg_function_power_state.value = 0
    await Timer(5, "us")
    assert len(machine.writes) == sent, "no write goes to memory that may belong to somebody else"
    assert not await machine.read("PCIE_CONTROL")
    doubt = await machine.stopped()
    first = bytes(machine.got)
    assert first == stream[:len(first)]
    assert doubt > 0, "of what it was writing"
    await machine.start_ring(4)
    await machine.collect(len(stream) - len(first) - doubt)
    assert machine.got == stream[len(first) + doubt:]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def power_change(dut):
    """A change of the power state, D3hot or PME_Turn_Off, in the middle of a block: acknowledged for one clock, when no
    write follows; no byte is lost."""
    machine, stream = await _streaming(dut, 2000, pages=4, stalls=0.3)
    while len(machine.writes) < 20 or not machine.begun:
        await FallingEdge(dut.link_clk)
    dut.cfg_power_state_change_interrupt.value = 1
    await with_timeout(RisingEdge(dut.cfg_power_state_change_ack), 5, "us")
    assert not machine.begun, "a whole write"
    await RisingEdge(dut.link_clk)
    await FallingEdge(dut.link_clk)
    assert not dut.cfg_power_state_change_ack.value
    await Timer(1, "us")
    assert not dut.cfg_power_state_change_ack.value
    dut.cfg_power_state_change_interrupt.value = 0
    assert await machine.stopped() == 0
    first = bytes(machine.got)
    assert first == stream[:len(first)]
    await machine.start_ring(4)
    await machine.collect(len(stream) - len(first))
    assert first + machine.got == stream


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def hot_reset(dut):
    """A reset of the link in the middle of a write: the ring stops, CUT counts the write, HEAD minus the head in memory
    are in doubt; the rest comes after the next start."""
    machine, stream = await _streaming(dut, 2000, pages=4, mps=2, stalls=0.6)
    while len(machine.writes) < 10 or machine.begun < 3:
        await FallingEdge(dut.link_clk)
    machine.device.rq_sink.clear_pause_generator()
    machine.device.rq_sink.pause = True
    await machine.hot_reset()
    machine.device.rq_sink.pause = False
    doubt = await machine.stopped()
    first, cut = bytes(machine.got), 16 * await machine.read("PCIE_CUT")
    assert first == stream[:len(first)]
    assert cut > 0
    await machine.start_ring(4)
    rest = len(stream) - len(first) - doubt - cut
    await machine.collect(rest)
    assert machine.got == stream[-rest:]
    assert await machine.read("PCIE_STARTS") == 2


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def flr(dut):
    """A function-level reset in the middle of a block: acknowledged when no write follows and the board has been reset.
    Nothing of its former owner is left. Each beat was written, or is counted; the next owner gets only new ones."""
    machine, _ = await _streaming(dut, 2000, pages=4, stalls=0.3)
    await machine.write(0x68, 0x12345678)
    await machine.write("PCIE_ARM", 0)
    await machine.write("PCIE_TAIL", 64)
    while len(machine.writes) < 20 or not machine.begun:
        await FallingEdge(dut.link_clk)
    dut.cfg_flr_in_process.value = 1
    while not dut.cfg_flr_done.value:
        await FallingEdge(dut.link_clk)
        if dut.reset.value:
            machine.feeding.cancel()
            dut.stream_valid.value = 0
    assert not machine.begun, "a whole write"
    await FallingEdge(dut.link_clk)
    assert not dut.cfg_flr_done.value, "for one clock"
    dut.cfg_flr_in_process.value = 0
    await Timer(1, "us")
    base = machine.memory.get_absolute_address(0)
    written = sum(n for a, n in machine.writes if a != base + machine.size)
    discarded = await machine.read("PCIE_DISCARDED")
    assert written // 16 + discarded == int(dut.accepted.value), "each beat was written or is counted"
    assert discarded > 0
    sent = len(machine.writes)
    await Timer(5, "us")
    assert len(machine.writes) == sent
    kept = {"PCIE_ID": PCIE_MAGIC, "PCIE_STATUS": 0b100, "PCIE_FLUSH": 2500, "PCIE_DISCARDED": discarded}
    for name in PCIE_REGISTERS:
        assert await machine.read(name) == kept.get(name, 0), name
    assert await machine.read(0x68) == 0
    choose = rng()
    beats = [choose.randbytes(16) for _ in range(700)]
    await machine.start_ring(4)
    cocotb.start_soon(feed(dut, choose, beats, 1))
    await machine.collect(16 * len(beats))
    assert machine.got == b"".join(beats)
    assert await machine.read("PCIE_STARTS") == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def flr_waits(dut):
    """A function-level reset during an access that the board answers late: the access ends first, and what the host
    writes to the board meanwhile is dropped and counted, for it would reach the board of the next owner."""
    machine = await Machine(dut).up()
    dut.silent.value = 1
    await machine.write(0x68, 0xdead)
    await Timer(300, "ns")
    dut.cfg_flr_in_process.value = 1
    await machine.write(0x68, 0xbeef)
    for _ in range(1000):
        await FallingEdge(dut.link_clk)
        assert not dut.cfg_flr_done.value
        assert not dut.reset.value
    dut.silent.value = 0
    while not dut.cfg_flr_done.value:
        await FallingEdge(dut.link_clk)
    dut.cfg_flr_in_process.value = 0
    assert await machine.read(0x68) == 0
    assert await machine.read("PCIE_DROPPED") == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def poisoned(dut):
    """A write that the block marks as bad has no effect and is counted."""
    machine = await Machine(dut).up()
    await machine.write(0x68, 0x12345678)
    assert await machine.read(0x68) == 0x12345678
    send = machine.device.cq_source.send

    async def bad(frame):
        frame.discontinue = True
        await send(frame)
    machine.device.cq_source.send = bad
    await machine.write(0x68, 0xdeadbeef)
    await machine.write("PCIE_FLUSH", 77)
    await Timer(1, "us")
    machine.device.cq_source.send = send
    assert await machine.read(0x68) == 0x12345678
    assert await machine.read("PCIE_FLUSH") == 2500
    assert await machine.read("PCIE_DROPPED") == 2


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def time_out(dut):
    """A board that does not answer costs a read an error within 1 us, while the link's own registers can be read, and
    say so; a link in reset answers nothing, and the host's time-out ends the read. Both are over when the cause is."""
    machine = await Machine(dut).up()
    dut.silent.value = 1
    with pytest.raises(Exception, match=r"(?i)unsuccess|CA"):
        await with_timeout(machine.bar.read(0x68, 4, timeout=5000), 2000, "ns")
    assert await machine.read("PCIE_STATUS") == 0b100100
    assert await machine.read("PCIE_ID") == PCIE_MAGIC
    dut.silent.value = 0
    await Timer(300, "ns")
    assert await machine.read("PCIE_STATUS") == 0b100
    assert await machine.read("PCIE_TIMEOUTS") == 1
    await machine.write(0x68, 5)
    assert await machine.read(0x68) == 5
    dut.user_reset.value = 1
    with pytest.raises((Exception, SimTimeoutError)):
        await with_timeout(machine.bar.read(0x68, 4, timeout=3000), 5000, "ns")
    dut.user_reset.value = 0
    await Timer(1, "us")
    assert await machine.read(0x68) == 5


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def late_completion(dut):
    """A read is pending when the link is reset: its completion does not appear after the reset."""
    machine = await Machine(dut).up()
    dut.silent.value = 1
    pending = cocotb.start_soon(machine.bar.read(0x68, 4, timeout=3000))
    await Timer(400, "ns")
    await machine.hot_reset(10)
    dut.silent.value = 0
    for _ in range(500):
        await FallingEdge(dut.link_clk)
        assert not dut.s_axis_cc_tvalid.value, "a completion for a request that the block has forgotten"
    with pytest.raises(Exception, match="Timeout"):
        await pending
    assert await machine.read("PCIE_ID") == PCIE_MAGIC


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def base_changed(dut):
    """Base and size of a ring that is on do not change; STATUS says that it was tried."""
    machine, stream = await _streaming(dut, 800)
    base = await machine.read("PCIE_RING_LOW")
    for name, value in (("RING_LOW", 0x7000), ("RING_HIGH", 1), ("RING_PAGES", 5)):
        await machine.write(f"PCIE_{name}", value)
    await machine.collect(len(stream))
    assert machine.got == stream
    assert [await machine.read(f"PCIE_RING_{name}") for name in ("LOW", "HIGH", "PAGES")] == [base, 0, 1]
    assert await machine.read("PCIE_STATUS") == 0b10101
    assert all(base <= a < base + 3 * PAGE for a, _ in machine.writes)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def masked(dut):
    """An interrupt that is masked waits, and comes once when the mask is gone."""
    machine, stream = await _streaming(dut, 300)
    event, capability = machine.found.msi_vectors[0].event, machine.device.functions[0].msi_cap
    capability.msi_mask_bits = 1
    await Timer(100, "ns")
    await machine.write("PCIE_ARM", 0)
    await machine.collect(len(stream))
    await Timer(5, "us")
    assert not event.is_set()
    capability.msi_mask_bits, asked = 0, 0
    for _ in range(3000):
        await FallingEdge(dut.link_clk)
        asked += int(dut.cfg_interrupt_msi_int.value)
    assert event.is_set()
    assert asked == 1, "at most one until the host arms again"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def wrong_tail(dut):
    """A tail that is not between tail and head is refused: nothing is written over what was not consumed."""
    machine, stream = await _streaming(dut, 700, pages=0)
    await machine.full()
    sent = len(machine.writes)
    for value in (PAGE + 16, 1 << 31, 0xfffffff0, 8):
        await machine.write("PCIE_TAIL", value)
        assert await machine.read("PCIE_TAIL") == 0
        assert await machine.read("PCIE_STATUS") == 0b1111
    assert len(machine.writes) == sent
    await machine.collect(len(stream))
    assert machine.got == stream


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def stale_tail(dut):
    """A second host has started the ring again; the first one still writes its tail. It is refused."""
    machine, stream = await _streaming(dut, 1200, pages=0)
    await machine.collect(8000)
    stale = machine.tail
    await machine.write("PCIE_CONTROL", 0)
    assert await machine.stopped() == 0
    first = bytes(machine.got)
    await machine.start_ring(0)
    await machine.full()
    sent = len(machine.writes)
    await machine.write("PCIE_TAIL", stale)
    assert await machine.read("PCIE_STATUS") == 0b1111
    await Timer(2, "us")
    assert len(machine.writes) == sent
    await machine.collect(len(stream) - len(first))
    assert first + machine.got == stream


@functools.cache
def simulator():
    return component(Board(), "pcie_us", domains=("sync", "link"))


@pytest.mark.parametrize("case", [
    "long_read", "byte_enables", "tail_is_head", "hot_reset", "flr", "flr_waits", "power_change", "poisoned",
    "time_out", "base_changed", "masked", "wrong_tail", "stale_tail", "late_completion"])
def test_fault(case):
    run(simulator(), __name__, case, 0)


@pytest.mark.parametrize("pages", [0, 2])
def test_line_and_wrap(pages):
    run(simulator(), __name__, "line_and_wrap", 0, pages=pages)


@pytest.mark.parametrize("how", ["master", "power"])
def test_forbidden(how):
    run(simulator(), __name__, "forbidden", 0, how=how)
