"""Firmware of a Cortex-M that writes to its ITM, run instruction by instruction: what its SWO pin does is a stimulus,
and its events come with the times at which the pin sent them."""

import csv
import sys
from collections import deque
from fractions import Fraction
from pathlib import Path

import pytest
from cross import MACHINES, Program
from hypermon.host.cli import _run
from hypermon.host.run import Run
from unicorn import UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

from tests.programs import MissingError
from tests.sim.dump import dump

sys.path.append(str(Path(__file__).parents[1] / "hdl" / "harness"))

from senders import Wires, itm_bytes, uart

CPU_HZ, CLOCK_PS = 72_000_000, 10_000
#: The ITM's registers, and those of the trace port.
ITM, TPIU, PAGE = 0xe000_0000, 0xe004_0000, 1 << 16
STIMULUS_PORTS = ITM, ITM + 4 * 32 - 1
FIRMWARE = r"""
#include <stdint.h>
#define HM_TARGET HM_TARGET_ITM
#define HM_CPU_HZ 72000000u
#include "hypermon.h"
static hm_port port;
static uint32_t state = 1;
static uint32_t next(void) { return state = state * 1664525u + 1013904223u; }
void begin(void) { hm_itm_open(&port); }
int events(unsigned count)
{
    int wrong = 0;
    while (count--) {
        const uint32_t value = next(), how = next() >> 8;
        const unsigned char payload[4] = { (unsigned char)value, (unsigned char)(value >> 8),
                                           (unsigned char)(value >> 16), (unsigned char)(value >> 24) };
        uint32_t pause = (how >> 8 & 7) ? 0 : how >> 12 & 1023;
        wrong += hm_event(&port, how & 31, payload, (size_t)1 << (how >> 5) % 3);
        while (pause--)
            __asm__ volatile ("");
    }
    return wrong;
}
/* As a program does that never looks whether there is room. */
void flood(unsigned count)
{
    while (count--)
        *(volatile uint8_t *)0xe0000000u = (uint8_t)count;
}
"""


class Itm:
    """The ITM and trace port of an emulated processor, one clock per instruction: a FIFO of ten bytes before a UART.

    A store that the FIFO has no room for is lost, and an overflow packet follows as soon as there is room (ARMv7-M
    Architecture Reference Manual, C1.7.1).

    Members
    -------
    sent : (first edge in ps, bytes) of each packet. lost: of each overflow, how many stores.
    """

    ROOM = 10

    def __init__(self, program: Program):
        self.uc = program.uc
        self.uc.mem_map(TPIU, PAGE)
        self.uc.hook_add(UC_HOOK_CODE, self._step)
        self.uc.hook_add(UC_HOOK_MEM_READ, self._read, begin=STIMULUS_PORTS[0], end=STIMULUS_PORTS[1])
        self.uc.hook_add(UC_HOOK_MEM_WRITE, self._write, begin=STIMULUS_PORTS[0], end=STIMULUS_PORTS[1])
        self.clock, self.free, self.over = 0, Fraction(0), 0
        self.queue: deque[Fraction] = deque()       # when each byte in the FIFO leaves it
        self.sent: list[tuple[Fraction, bytes]] = []
        self.lost: list[int] = []
        self.wires = Wires([1, 0, 0])

    def register(self, address: int) -> int:
        return int.from_bytes(self.uc.mem_read(address, 4), "little")

    @property
    def bit_ps(self) -> Fraction:
        """ACPR: the clock of the trace port is divided by one more than it."""
        return Fraction(10**12 * (self.register(TPIU + 0x10) + 1), CPU_HZ)

    @property
    def now(self) -> Fraction:
        return Fraction(self.clock * 10**12, CPU_HZ) + 10**7

    def _step(self, *_: object) -> None:
        self.clock += 1
        while self.queue and self.queue[0] <= self.now:
            self.queue.popleft()
        if self.over and len(self.queue) < self.ROOM:
            self.lost.append(self.over)
            self.over = 0
            self._send(b"\x70")

    def _read(self, uc: object, access: int, address: int, *_: object) -> None:
        self.uc.mem_write(address & ~3, (len(self.queue) <= self.ROOM - 5).to_bytes(4, "little"))

    def _write(self, uc: object, access: int, address: int, size: int, value: int, user: object) -> None:
        assert self.register(ITM + 0xe80) & 1, "the ITM is enabled"
        assert self.register(ITM + 0xe00) >> (address - ITM) // 4 & 1, "so is the port"
        packet = itm_bytes((address - ITM) // 4, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))
        if self.over or len(self.queue) + len(packet) > self.ROOM:
            self.over += 1
        else:
            self._send(packet)

    def _send(self, packet: bytes) -> None:
        begins, self.free = uart(self.wires, max(self.free, self.now), self.bit_ps, packet)
        self.queue += [begin + self.bit_ps for begin in begins]
        self.sent.append((begins[0], packet))


def recorded(itm: Itm, baud: int, folder: Path) -> tuple[Run, list[tuple[int, int, str]]]:
    """The run of a board with one node, and its events as the export prints them."""
    path = dump(folder / "swo.vcd", {"SWO": (1, [(int(-(-time // 1)), level) for time, _, level in itm.wires.changes])})
    assert _run(["sim", path, "-o", str(folder / "run"), "--nodes", "1", "--port", f"0=SWO,swo,{baud}"]) == 0
    assert _run(["export", str(folder / "run"), "--to", "events", str(folder / "events.csv")]) == 0
    with open(folder / "events.csv", newline="") as file:
        _, *rows = csv.reader(file)
    return Run(folder / "run"), [(int(time), int(port), payload) for time, _, port, payload in rows]


def same(came: list[tuple[int, int, str]], sent: list[tuple[Fraction, bytes]]) -> None:
    """Ports and payloads are equal, and each time is less than a clock after the first edge."""
    packets = [(packet[0] >> 3, packet[1:].hex()) for _, packet in sent]
    assert [event[1:] for event in came] == packets
    assert all(0 <= time - begin <= CLOCK_PS for (time, *_), (begin, _) in zip(came, sent, strict=True))


@pytest.fixture(params=[2_000_000, 12_000_000])
def firmware(request, tools, tmp_path):
    """The program, opened, its ITM, and the rate."""
    # Without IT blocks, in which the emulator loses flags as soon as it is asked to call something per instruction.
    try:
        program = Program(MACHINES["Cortex-M4"], FIRMWARE, tmp_path / "firmware", ITM,
                          f"-DHM_SWO_BAUD={request.param}u", "-DHM_INTERRUPTS=0", "-fno-if-conversion",
                          "-fno-if-conversion2")
    except MissingError as missing:
        pytest.skip(str(missing))
    itm = Itm(program)
    program.call("begin")
    assert itm.register(TPIU + 0x304) == 0x100, "no formatter"
    assert itm.register(TPIU + 0xf0) == 2, "UART coding"
    return program, itm, request.param


def test_events_of_the_library(firmware, tmp_path):
    """It waits for room, so nothing is lost, at its full speed and after pauses."""
    program, itm, baud = firmware
    for _ in range(40):
        assert program.call("events", 20).result == 0
    run, came = recorded(itm, baud, tmp_path)
    assert len(itm.sent) == 800
    assert itm.lost == []
    same(came, itm.sent)
    assert (run.stats()["complete"], run.stats()["rejected"]) == (True, 0)


def test_a_program_that_does_not_look(firmware, tmp_path):
    """Each overflow is a loss of the node, between the packet before it and its own."""
    program, itm, baud = firmware
    for _ in range(10):
        program.call("flood", 30)
        program.call("events", 3)
    for _ in range(100):        # until the last overflow packet is sent
        program.call("events", 0)
    run, came = recorded(itm, baud, tmp_path)
    assert sum(itm.lost) + len([packet for _, packet in itm.sent if packet != b"\x70"]) == 330
    same(came, [(begin, packet) for begin, packet in itm.sent if packet != b"\x70"])
    figures, losses = run.stats(), run.loss().to_pylist()
    assert len(itm.lost) >= 10
    assert figures["causes"]["node"] == figures["lost"] == len(itm.lost)
    assert not figures["complete"]
    overflows = [(itm.sent[k - 1][0], begin) for k, (begin, packet) in enumerate(itm.sent) if packet == b"\x70"]
    for row, (before, own) in zip(losses, overflows, strict=True):
        assert row["from_ps"] <= before + CLOCK_PS
        assert own <= row["to_ps"] <= own + 2 * CLOCK_PS
