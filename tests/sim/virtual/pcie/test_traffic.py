"""Random traffic through the whole board with a PCIe link: every byte that a plain board delivers arrives in the host's
memory, once and in order, and the nodes' items are delivered, lost and counted, or queued.

The nodes, the host and the block stall at random, on all channels; see ``traffic.cpp``.
"""

import ctypes
import random
import time
from pathlib import Path

import pytest
from hypermon.hdl.layout import (
    PCIE_DEVICE,
    PCIE_REGISTERS,
    PCIE_VENDOR,
    REGISTERS,
    Counter,
    Geometry,
    Window,
)
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.decode.ledger import Ledger
from hypermon.host.device.device import Device, Settings
from hypermon.sim.virtual.build import Shell, library
from hypermon.sim.virtual.verilated import declares

from ....hdl.harness.runner import seeds
from .twins import twins_verilog

GEOMETRY = Geometry(4)
AT = {name: register.offset for name, register in PCIE_REGISTERS.items()}
_HERE = Path(__file__).parent
#: Registers of the configuration space, and a bit of PCIE_STATUS.
_COMMAND, _DEVICE_CONTROL, _BUSY = 0x04, 0x68, 1 << 5
#: Clocks of the link in which everything that is queued arrives.
_ALL = 100_000
#: TLPs between two settings of FLUSH, and of a long run.
_PART, _LONG = 20_000, 1_000_000
_LOST = (Counter.LOST_FRAME_FIFO, Counter.LOST_NODE_FIFO, Counter.LOST_VECTOR_FIFO)


class _Figures(ctypes.Structure):
    """``tlps``, and ``beats`` of the stream; ``blocked``: clocks of the board in which a beat waited; ``reads`` that
    were completed; ``offered`` items of each node."""

    _fields_ = [*((name, ctypes.c_uint64) for name in ("tlps", "beats", "blocked", "reads", "interrupts", "clocks")),
                ("offered", ctypes.c_uint64 * 32)]


_it, _u32, _u64, _text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
_load = declares((
    ("traffic_new", _it, _u64, _u64, _u32, _u64),
    ("traffic_free", None, _it),
    ("traffic_config", None, _it, _u32, ctypes.c_uint16),
    ("traffic_read", ctypes.c_int, _it, _u32, ctypes.POINTER(_u32)),
    ("traffic_write", ctypes.c_int, _it, _u32, _u32),
    ("traffic_play", None, _it, ctypes.c_int),
    ("traffic_known", None, _it, _u32, _u32),
    ("traffic_run", _text, _it, _u64),
    ("traffic_absent", _text, _it, ctypes.c_int, _u64),
    ("traffic_flush", ctypes.c_int, _it, ctypes.c_int),
    ("traffic_drain", _text, _it, ctypes.c_int),
    ("traffic_drained", ctypes.c_int, _it),
    ("traffic_take", _u64, _it, _it, _u64),
    ("traffic_figures", None, _it, ctypes.POINTER(_Figures)),
))


class Traffic:
    """A link to the board, as :class:`hypermon.host.link.Link` is one, whose other end makes the traffic.

    Parameters
    ----------
    link_hz : clock of the link. pages_log : pages of the ring, log2. payload : 128 << ``payload`` bytes at most.
    """

    uri, slow, slowness, board_ps, played, away, ended = "pcie:traffic", False, 1.0, None, None, False, False

    def __init__(self, seed: int, link_hz: int, pages_log: int, payload: int, base: int):
        shell = Shell("pcie-twins", _HERE / "traffic.cpp", twins_verilog, (
            ("PCIE_VENDOR", f"{PCIE_VENDOR}u"), ("PCIE_DEVICE", f"{PCIE_DEVICE}u"),
            ("PCIE_TAIL", f"{AT['PCIE_TAIL']}u")), (
                *(_HERE.parents[3] / "sim" / "virtual" / "pcie" / f"{name}.h" for name in ("config_space", "us_block")),
                _HERE / "twins.py"))
        self._dll = _load(str(library(GEOMETRY, shell)))
        self._it = self._dll.traffic_new(seed, link_hz, pages_log, base)
        self.outages: list = []
        self._dll.traffic_config(self._it, _COMMAND, 6)
        self._dll.traffic_config(self._it, _DEVICE_CONTROL, payload << 5)
        for name, value in (("RING_LOW", base & 0xffffffff), ("RING_HIGH", base >> 32), ("RING_PAGES", pages_log),
                            ("CONTROL", 1)):
            self.write(AT[f"PCIE_{name}"], value)

    def read(self, address: int) -> int:
        value = ctypes.c_uint32()
        assert self._dll.traffic_read(self._it, address, ctypes.byref(value)), hex(address)
        return value.value

    def write(self, address: int, value: int) -> None:
        assert self._dll.traffic_write(self._it, address, value)
        while self.read(AT["PCIE_STATUS"]) & _BUSY:      # resets and latches take longer than a link waits
            self.drain(16)

    def read_burst(self, address: int, words: int) -> bytes:
        return b"".join(self.read(address + 4 * k).to_bytes(4, "little") for k in range(words))

    def stream(self, limit: int) -> bytes:
        data = bytearray(min(limit, self._dll.traffic_take(self._it, None, 0)))
        if data:
            place = (ctypes.c_char * len(data)).from_buffer(data)
            self._dll.traffic_take(self._it, ctypes.addressof(place), len(data))
        return bytes(data)

    def discard(self) -> None:
        self.drain(_ALL)
        self.stream(1 << 40)

    def absent(self, clocks: int, pace: int) -> None:
        """The nodes write, each level of a strobe for ``pace`` clocks on average; the host consumes nothing."""
        self._said(self._dll.traffic_absent(self._it, clocks, pace))

    def flush(self, most: int) -> int:
        """One nibble; clocks until the host is told of it, 0: not in time."""
        return self._dll.traffic_flush(self._it, most)

    def drain(self, clocks: int) -> None:
        """Everything that is under way arrives."""
        self._said(self._dll.traffic_drain(self._it, clocks))

    def play(self, on: bool) -> None:
        """The nodes write, or stop."""
        self._dll.traffic_play(self._it, on)

    def known(self, *names: str) -> None:
        """The host reads these registers now and then; they keep their values."""
        for name in names:
            at = AT.get(name, REGISTERS[name].offset if name in REGISTERS else 0)
            self._dll.traffic_known(self._it, at, self.read(at))

    def run(self, tlps: int) -> None:
        """Until so many TLPs have been written, in all."""
        self._said(self._dll.traffic_run(self._it, tlps))

    @staticmethod
    def _said(error: bytes) -> None:
        assert not error, error.decode()

    @property
    def drained(self) -> bool:
        """All bytes that the plain board has delivered are consumed."""
        return bool(self._dll.traffic_drained(self._it))

    @property
    def figures(self) -> _Figures:
        figures = _Figures()
        self._dll.traffic_figures(self._it, ctypes.byref(figures))
        return figures

    def close(self) -> None:
        it, self._it = self._it, None
        if it:
            self._dll.traffic_free(it)


def prepared(link: Traffic, flush_ms: float = 1.0) -> Device:
    """The board, while it captures; its nodes are quiet."""
    device = Device(link)
    link.known("PCIE_ID", "PCIE_STARTS", "MAGIC", "CLOCK_HZ", "GEOMETRY")
    device.prepare(Settings(window=Window.CLOCK, flush_ms=flush_ms))
    device.start()
    return device


def accounts(link: Traffic, device: Device) -> Ledger:
    """Stops the board. All bytes that the plain board delivered have arrived; what its nodes offered is delivered or
    lost."""
    link.play(False)
    link.drain(_ALL)
    device.stop()
    while not link.drained:
        link.drain(_ALL)
    link.drain(_ALL)
    assert link.drained, "the same bytes"
    figures, ledger = link.figures, Ledger(GEOMETRY.nodes, device.scale, device.epoch)
    scanner = BlockScanner()
    while piece := link.stream(1 << 22):
        for _ in ledger.event_rows(scanner.feed(piece)):
            pass
    for _ in ledger.event_rows(scanner.finish()):
        pass
    assert link.read(AT["PCIE_CUT"]) == link.read(AT["PCIE_DROPPED"]) == 0
    assert link.read(AT["PCIE_STATUS"]) & ~2 == 0b101, "nothing was refused"
    offered = list(figures.offered[:GEOMETRY.nodes])
    assert (ledger.torn, ledger.missing_blocks, ledger.repeated_blocks, ledger.surplus) == (0, 0, 0, 0)
    assert ledger.stopped
    assert not ledger.faults
    counted = {counter: ledger.counted(counter) for counter in Counter}
    lost = [sum(node) for node in zip(*(counted[counter] for counter in _LOST), strict=True)]
    assert counted[Counter.ACCEPTED] == counted[Counter.DELIVERED] == ledger.per_node.tolist(), "nothing is queued"
    assert ledger.lost_per_node == lost
    assert [came + refused for came, refused in zip(counted[Counter.ACCEPTED], lost, strict=True)] == offered
    assert not sum(ledger.link_lost)
    return ledger


def traffic(seed: int, tlps: int) -> None:
    """A run of so many TLPs, and its accounts."""
    begun, choose = time.process_time(), random.Random(seed)
    link = Traffic(seed, choose.choice([62_500_000, 125_000_000, 250_000_000]), choose.randrange(5),
                   choose.choice([0, 0, 1, 2]), choose.choice([0x10000000, 0x123_4567_8000]))
    with prepared(link) as device:
        link.play(True)
        for part in range(link.figures.tlps + _PART, link.figures.tlps + tlps + _PART, _PART):
            link.write(AT["PCIE_FLUSH"], choose.choice([8, 8, 20, 300]))
            link.run(part)
        ledger, figures = accounts(link, device), link.figures
    assert figures.reads > 0
    assert figures.blocked > 0 or tlps < _LONG, "the board has waited"
    print(f"seed {seed}: {figures.tlps:,} TLPs, {16 * figures.beats:,} bytes, {sum(figures.offered):,} items offered, "
          f"{ledger.events:,} delivered, {ledger.lost:,} lost, {figures.reads:,} reads, {figures.clocks:,} clocks, "
          f"{time.process_time() - begun:.0f} s of processor time")


@pytest.mark.parametrize("seed", [1, 2])
def test_traffic_short(seed):
    traffic(seed, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20, fast=0))
def test_traffic(seed):
    traffic(seed, _LONG)


@pytest.mark.parametrize("link_hz", [62_500_000, 250_000_000])
def test_idle_flush(link_hz):
    """From the strobe of a nibble, after which nothing comes, to its report in the host's memory: at most FLUSH of the
    board and 2 us."""
    link = Traffic(3, link_hz, 4, 0, 0x10000000)
    flush_us = 50
    with prepared(link, flush_us / 1000) as device:
        link.write(AT["PCIE_FLUSH"], link_hz // 1_000_000)       # 1 us
        times = []
        for gap in range(12):
            link.drain(link_hz // 100_000 + 97 * gap)
            times.append(1e6 / link_hz * link.flush(link_hz // 5000))
        ledger = accounts(link, device)
    print(f"idle flush at {link_hz / 1e6:g} MHz: FLUSH {min(times) - flush_us:+.2f} to {max(times) - flush_us:+.2f} us")
    assert ledger.events == len(times)
    assert sum(flush_us - 1 < us for us in times) >= 10, "all but those to which a census came first"
    assert min(times) > 0
    assert max(times) <= flush_us + 2


@pytest.mark.parametrize("milliseconds", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_absent_host(milliseconds):
    """A host that consumes nothing for 100 ms, at a million nibbles a second and a ring of 4 MiB: none is lost."""
    link = Traffic(4, 62_500_000, 10, 0, 0x10000000)
    with prepared(link) as device:
        link.play(True)
        link.absent(62_500 * milliseconds, 200)
        offered = sum(link.figures.offered)
        ledger = accounts(link, device)
    print(f"{milliseconds} ms: {offered:,} nibbles, {ledger.lost} lost")
    assert offered >= 980 * milliseconds
    assert not ledger.lost
