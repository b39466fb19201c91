"""The function changes its owner at any moment: what the former one has left reaches neither the next one nor its
memory. At both adapters, with an owner that does not stop before the reset begins."""

import functools
import itertools

import cocotb
import pytest
from cocotb.triggers import Event, FallingEdge, RisingEdge, Timer, with_timeout
from hypermon.hdl.layout import PCIE_MAGIC, PCIE_REGISTERS
from hypermon.hdl.transport.pcie.function_reset import FunctionReset
from hypermon.hdl.transport.pcie.series_7 import SERIES_7_PORTS, Series7

from ...benches.case import CASE, met, rng
from ...harness.resets import same_as_fresh
from ...harness.runner import component, run, seeds
from .machine import Board, Machine, feed

#: Rings of the owners, far from each other.
FORMER, NEXT = 1 << 36, 1 << 37
#: What a register has after a function-level reset; the others 0. Those that count on are not compared.
AFTER = {"PCIE_ID": PCIE_MAGIC, "PCIE_STATUS": 0b100, "PCIE_FLUSH": 2500}
COUNTS = ("PCIE_DROPPED", "PCIE_TIMEOUTS", "PCIE_DISCARDED")


class Slot:
    """A host with one of the blocks, and what the function does after its reset."""

    def __init__(self, dut, stalls=0.0):
        from cocotbext.pcie.core.tlp import TlpType
        self.dut, self.seven, self.configuration = dut, CASE["block"] == "s7", (TlpType.CFG_READ_0, TlpType.CFG_READ_1)
        if self.seven:
            from .series_7_model import Machine7
            self.machine = Machine7(dut, rng("block"), mps=1, stalls=stalls)
        else:
            self.machine = Machine(dut, mps=1)
            if stalls:
                choose = rng("block")
                for sink in (self.machine.device.rq_sink, self.machine.device.cc_sink):
                    sink.set_pause_generator(itertools.cycle([choose.random() < stalls for _ in range(101)]))
        #: Words that the function offered to the block, and interrupts that it requested, while nobody owned it.
        self.offered = self.interrupts = 0

    def hold_completions(self, held):
        """The block takes no completion; the 7-series one has one stream, and takes nothing."""
        if self.seven:
            self.machine.device.stall_tx = held
            return
        sink = self.machine.device.cc_sink
        sink.clear_pause_generator()
        sink.pause = held

    async def ordered(self):
        """Waits until an access of the configuration arrives at the block, as one that asks for the reset does: after
        what the owner wrote before it, which is in the block by then."""
        port, arrived = self.machine.device.upstream_port, Event()
        receive = port.rx_handler

        async def receives(tlp):
            if tlp.fmt_type in self.configuration:
                arrived.set()
            await receive(tlp)

        port.rx_handler = receives
        cocotb.start_soon(_ignored(self.machine.found.config_read(0, 4)))
        await arrived.wait()
        port.rx_handler = receive

    async def reset(self, feeding=None):
        """A function-level reset, until it is complete; the 7-series block is not told, and its streams rest then."""
        dut = self.dut
        asked = dut.cfg_received_func_lvl_rst if self.seven else dut.cfg_flr_in_process
        await FallingEdge(dut.link_clk)
        asked.value = 1
        was_reset = quiet = 0
        for _ in range(20_000):
            await FallingEdge(dut.link_clk)
            if self.seven:
                asked.value = 0
            was_reset |= int(dut.reset.value)
            works = int(dut.reset.value) or any(
                int(getattr(dut, name).value) for name in ("m_axis_rx_tvalid", "s_axis_tx_tvalid")) if self.seven else 0
            quiet = 0 if works else quiet + 1
            if feeding and dut.reset.value:
                feeding.cancel()
                dut.stream_valid.value = 0
            if was_reset and quiet > 100 if self.seven else dut.cfg_flr_done.value:
                break
        else:
            raise AssertionError("not complete")
        await FallingEdge(dut.link_clk)
        asked.value = 0

    async def watch(self):
        """Counts what the function does of itself."""
        dut = self.dut
        stream, interrupt = ((dut.s_axis_tx_tvalid, dut.cfg_interrupt) if self.seven else
                             (dut.s_axis_rq_tvalid, dut.cfg_interrupt_msi_int))
        while True:
            await RisingEdge(dut.link_clk)
            self.offered += int(stream.value)
            self.interrupts += int(interrupt.value) & 1


async def _ignored(task):
    try:
        await task
    except Exception as error:      # cocotbext-pcie has no class of its own
        if not any(reason in str(error).lower() for reason in ("unsuccess", "time")):
            raise


async def _owns(slot, choose, base, ends):
    """The former owner: accesses of every kind until it ends, without waiting for what it reads."""
    machine = slot.machine
    writes = {"PCIE_RING_LOW": base & 0xffffffff, "PCIE_RING_HIGH": base >> 32, "PCIE_RING_PAGES": 1, "PCIE_FLUSH": 77,
              "PCIE_CONTROL": 1, "PCIE_ARM": 16, 0x68: 0xdead}
    while not ends:
        if choose.random() < 0.3:
            cocotb.start_soon(_ignored(machine.read(choose.choice([0x68, "PCIE_HEAD"]))))
        else:
            await machine.write(*choose.choice(list(writes.items())))
        await Timer(choose.choice([1, 20, 300]), "ns")


async def _is_new(slot):
    """Registers are those after power-up."""
    machine = slot.machine
    assert await machine.read(0x68) == 0, "a register of the board"
    for name in PCIE_REGISTERS:
        if name not in COUNTS:
            assert await machine.read(name) == AFTER.get(name, 0), name


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def queued(dut):
    """Requests of the former owner wait in the block when the reset begins, because it takes no completions."""
    slot = Slot(dut)
    machine = await slot.machine.up()
    slot.hold_completions(True)
    for _ in range(8):
        cocotb.start_soon(_ignored(machine.read("PCIE_ID")))
    await Timer(3, "us")
    for name, value in (("PCIE_RING_LOW", 0x5000), ("PCIE_FLUSH", 77), ("PCIE_ARM", 16), (0x68, 0xdead)):
        await machine.write(name, value)
    await Timer(3, "us")
    resets = cocotb.start_soon(slot.reset())
    await Timer(10, "us")
    slot.hold_completions(False)
    await resets
    await Timer(30, "us")
    await _is_new(slot)


@cocotb.test(timeout_time=8, timeout_unit="ms")
async def any_moment(dut):
    """A burst, a full ring, an interrupt that waits, an access that is under way: whatever the reset meets."""
    choose = rng()
    slot = Slot(dut, stalls=choose.choice([0, 0.3, 0.6]))
    machine = await slot.machine.up()
    bursts = 0
    for turn in range(CASE["turns"]):
        former = FORMER + (turn << 24)
        pages = choose.randrange(2)
        await machine.start_ring(pages, flush=choose.choice([20, 500]), base=former)
        memory = machine.memory
        feeding = cocotb.start_soon(feed(dut, choose, [b"\xaa" * 16] * 3000, choose.choice([0.1, 1])))
        ends = []
        owner = cocotb.start_soon(_owns(slot, choose, former, ends))
        if choose.random() < 0.3:
            await Timer(40, "us")
        dut.silent.value = int(choose.random() < 0.2)
        await Timer(choose.randrange(200, 4000), "ns")
        for _ in range(choose.choice([0, 300])):
            if machine.begun:
                break
            await FallingEdge(dut.link_clk)
        bursts += machine.begun > 0
        ends.append(True)
        await owner
        await slot.ordered()
        resets = cocotb.start_soon(slot.reset(feeding))
        await Timer(1, "us")
        dut.silent.value = 0
        await with_timeout(resets, 400, "us")
        slot.offered = slot.interrupts = 0
        watching = cocotb.start_soon(slot.watch())
        await Timer(20, "us")
        watching.cancel()
        assert (slot.offered, slot.interrupts) == (0, 0), "the function does something that nobody asked for"
        before = bytes(memory[:])
        await _is_new(slot)
        beats = [choose.randbytes(16) for _ in range(200)]
        await machine.start_ring(1, base=NEXT + (turn << 24))
        feeding = cocotb.start_soon(feed(dut, choose, beats, 1))
        await machine.collect(16 * len(beats))
        assert machine.got == b"".join(beats)
        assert bytes(memory[:]) == before, "the memory of the former owner"
        await machine.write("PCIE_CONTROL", 0)
        await machine.stopped()
    met({"bursts": bursts})


@functools.cache
def simulator(block):
    if block == "s7":
        return component(Board(Series7, SERIES_7_PORTS), "pcie_s7", domains=("sync", "link"))
    return component(Board(), "pcie_us", domains=("sync", "link"))


@pytest.mark.parametrize("block", ["us", "s7"])
def test_queued(block):
    run(simulator(block), __name__, "queued", 0, block=block)


@pytest.mark.parametrize("block", ["us", "s7"])
@pytest.mark.parametrize("seed", seeds(4))
def test_any_moment(block, seed):
    run(simulator(block), __name__, "any_moment", seed, block=block, turns=4)


def test_power_up_reset():
    """In each of its states, at a board whose reset comes and goes a clock later."""
    def board():
        def play(traffic):
            nonlocal reset
            before, reset = reset, traffic.get("reset")
            return {"resetting": before}
        reset = 0
        return play

    rare = {name: lambda rng: rng.random() < 0.02 for name in ("i.valid", "requested")}
    often = {"asked": lambda rng: rng.random() < 0.7, "held": lambda rng: rng.randrange(4)}
    same_as_fresh(FunctionReset, {**often, **rare}, player=board)
