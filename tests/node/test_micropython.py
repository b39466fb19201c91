"""The node library for MicroPython: what its pins do, and that its PIO programs are those of the C library."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from cross import MACHINES
from emulators import micropython
from emulators.rp2040 import HERE, emulator, npm_package, play
from hypermon.sim.emulate.firmware import link
from port_reader import Event, Write, read_events, read_nibbles

from tests.patience import patience
from tests.programs import MissingError, working

SOURCE = Path(__file__).parents[2] / "node" / "micropython" / "hypermon_port.py"
EVENTS = [(i * 17 & 255, bytes((31 * k + i) & 255 for k in range(i))) for i in range(15)]
EDGES_BITS = [(1, 4), (2, 4), (1, 8), (2, 8)]


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, on a microcontroller that records."""
    monkeypatch.setitem(sys.modules, "machine", micropython.machine)
    monkeypatch.setitem(sys.modules, "rp2", micropython.rp2)
    monkeypatch.setattr(micropython.machine, "hz", 125_000_000)
    for record in (micropython.writes, micropython.fifo, micropython.made):
        record.clear()
    spec = importlib.util.spec_from_file_location("hypermon_port", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pin_writes(pins: list[int]) -> list[Write]:
    """The port's value after each write of a pin."""
    value, seen = 0, []
    for time, (pin, level) in enumerate(micropython.writes):
        bit = 1 << pins.index(pin)
        value = value | bit if level else value & ~bit
        seen.append(Write(time, 0, value))
    return seen


@pytest.mark.parametrize(("edges", "bits"), EDGES_BITS)
def test_pins(ports: ModuleType, edges: int, bits: int) -> None:
    pins = [20, 3, 4, 5, 19, 7, 8, 9, 10][:bits + 1]
    port = ports.PinPort(pins, edges)
    assert micropython.writes == [(pin, 0) for pin in pins]
    for event, payload in EVENTS:
        port.event(event, payload)
        port.nibble(0)
    got = read_events(read_nibbles(pin_writes(pins), edges, bits)[0], bits)
    assert [event[1:] for event in got] == [Event(0, *event)[1:] for event in EVENTS]


@pytest.mark.parametrize(("edges", "bits"), EDGES_BITS)
def test_words_and_nibbles_by_pins(ports: ModuleType, edges: int, bits: int) -> None:
    pins = list(range(bits + 1))
    port = ports.PinPort(pins, edges)
    port.word(0x89ABCDE1)
    port.nibble(0x35)
    got = [value for _, value in read_nibbles(pin_writes(pins), edges, bits)[0]]
    assert got == ([1, 0xE, 0xD, 0xC, 0xB, 0xA, 9, 8, 5] if bits == 4 else [0xE1, 0xCD, 0xAB, 0x89, 0x35])


def test_what_is_refused(ports: ModuleType) -> None:
    for pins, edges in (([1, 2, 3, 4], 1), ([1, 2, 3, 4, 4], 1), ([1, 2, 3, 4, 5], 3)):
        with pytest.raises(ValueError, match=r"pins|edges"):
            ports.PinPort(pins, edges)
    port = ports.PinPort([0, 1, 2, 3, 4])
    micropython.writes.clear()
    for event, payload in ((256, b""), (-1, b""), (1, bytes(15))):
        for one in (port, ports.PioPort()):
            with pytest.raises(ValueError, match=r"id 0\.\.255 and up to 14"):
                one.event(event, payload)
    with pytest.raises(ValueError, match="writes events, not words"):
        ports.PioPort().word(1)
    with pytest.raises(ValueError, match="items"):
        ports.PioPort(items="bytes")
    with pytest.raises(ValueError, match="too slow"):
        ports.PioPort(clock_hz=5_000_000)
    assert (micropython.writes, micropython.fifo) == ([], [])


#: hm_rp2040_open() on a page of memory at each of its addresses; then the registers that it stored.
REGISTERS = r"""
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include "hypermon.h"
int main(void)
{
    static const uintptr_t pages[] = { 0x4000c000u, 0x40014000u, 0x50200000u, 0xd0000000u };
    hm_port port;
    unsigned i;
    for (i = 0; i < 4; i++)
        if (mmap((void *)pages[i], 0x4000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
            == MAP_FAILED)
            return 1;
    HM_RP2040_WORD(HM_RP2040_RESETS + 8u) = 0xffffffffu;
    hm_rp2040_open(&port);
    for (i = HM_PIO_FIRST; i < 32; i++)
        printf("%u ", HM_RP2040_WORD(HM_PIO_INSTRUCTION(i)));
    printf("%u %u %u\n", HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x04u)), HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x08u)),
           HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x14u)));
    return 0;
}
"""
FIRST = 24


def placed(program: list, first: int = FIRST) -> tuple[list[int], int, int]:
    """Instructions, EXECCTRL and SHIFTCTRL of a program that begins at an address."""
    words, execctrl, shiftctrl = program[0], program[3], program[4]
    moved = [word + first if word >> 13 == 0 else word for word in words]
    return moved, execctrl + (first << 12 | first << 7), shiftctrl


@pytest.mark.parametrize(("items", "cpu_mhz", "clock_mhz"), [
    ("events", 125, 100), ("words", 125, 100), ("nibbles", 125, 100), ("events", 200, 100), ("events", 125, 15),
    ("nibbles", 133, 45)])
def test_programs_are_those_of_the_c_library(ports: ModuleType, compile_c, items: str, cpu_mhz: int,
                                             clock_mhz: int) -> None:
    run = compile_c(REGISTERS, "-DHM_TARGET=HM_TARGET_RP2040_PIO", "-DHM_INTERRUPTS=0",
                    f"-DHM_ITEMS=HM_ITEMS_{items.upper()}", f"-DHM_CPU_HZ={cpu_mhz}000000u",
                    f"-DHM_CLOCK_HZ={clock_mhz}000000u", "-DHM_PIN=7")
    *program, execctrl, shiftctrl, pinctrl = map(int, subprocess.run(
        [run], check=True, timeout=patience(20), capture_output=True, text=True).stdout.split())
    micropython.machine.hz = cpu_mhz * 1_000_000
    ports.PioPort(7, 5, items, clock_mhz * 1_000_000)
    [made] = micropython.made
    words, *controls = placed(made["program"])
    assert words + [0] * (8 - len(words)) == program
    assert controls == [execctrl, shiftctrl]
    assert (made["machine"], made["out"], made["side"]) == (5, 7, 11)
    assert (pinctrl & 31, pinctrl >> 10 & 31) == (made["out"], made["side"])


#: The program and the words that MicroPython would have stored, in an RP2040 whose pins the C library has set up.
PLAYER = r"""
#include "hypermon.h"
static const uint16_t program[] = { PROGRAM };
static const uint32_t words[] = { WORDS };
int main(void)
{
    hm_port port;
    unsigned i;
    hm_rp2040_open(&port);
    HM_RP2040_WORD(HM_PIO_CTRL) = 16u;      /* off, and restarted: it waits in no instruction of the C library */
    for (i = HM_PIO_FIRST; i < 32; i++)
        HM_RP2040_WORD(HM_PIO_INSTRUCTION(i)) = 0;
    for (i = 0; i < sizeof program / sizeof *program; i++)
        HM_RP2040_WORD(HM_PIO_INSTRUCTION(FIRST + i)) = program[i];
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x04u)) = EXECCTRL;
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x08u)) = SHIFTCTRL;
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x10u)) = FIRST;
    HM_RP2040_WORD(HM_PIO_CTRL) = 1u;
    for (i = 0; i < sizeof words / sizeof *words; i++)
        hm_pio_put(words[i]);
    return 0;
}
"""


def emulated(folder: Path) -> list[int]:
    """The nibbles that the pins of an emulated RP2040 write, from what was recorded."""
    try:
        working(MACHINES["Cortex-M0+"].compiler)
        emulator()
    except MissingError as missing:
        pytest.skip(str(missing))
    first = 3
    program, execctrl, shiftctrl = placed(micropython.made[-1]["program"], first)
    values = {"PROGRAM": program, "WORDS": micropython.fifo, "EXECCTRL": [execctrl], "SHIFTCTRL": [shiftctrl],
              "FIRST": [first]}
    source = folder / "player.c"
    source.write_text("".join(f"#define {name} {', '.join(f'{value}u' for value in numbers)}\n"
                              for name, numbers in values.items()) + PLAYER)
    played = play(link([source], b"", "-DHM_TARGET=HM_TARGET_RP2040_PIO"), folder, limit=200_000)
    writes = [Write(clock, 0, levels >> 2 & 31) for clock, levels in played.pins]
    return read_nibbles(writes, 1)[0]


def test_events_in_an_emulated_rp2040(ports: ModuleType, tmp_path: Path) -> None:
    port = ports.PioPort()
    for event, payload in EVENTS:
        port.event(event, payload)
    assert [event[1:] for event in read_events(emulated(tmp_path))] == [Event(0, *event)[1:] for event in EVENTS]


@pytest.mark.parametrize(("items", "said"), [("words", [1, 14, 13, 12, 11, 10, 9, 8] + [2] + [0] * 7),
                                             ("nibbles", [1, 2])])
def test_words_and_nibbles_in_an_emulated_rp2040(ports: ModuleType, tmp_path: Path, items: str,
                                                 said: list[int]) -> None:
    port = ports.PioPort(items=items)
    for value in (0x89ABCDE1, 2):
        (port.word if items == "words" else port.nibble)(value)
    assert [nibble for _, nibble in emulated(tmp_path)] == said


#: What Python and MicroPython both do.
CALLS = """
for number, items in enumerate((hypermon_port.EVENTS, hypermon_port.WORDS, hypermon_port.NIBBLES)):
    port = hypermon_port.PioPort(2 + number, number, items)
    if number == 0:
        for length in range(15):
            port.event(240 - length, bytes(range(200, 200 + length)))
    elif number == 1:
        port.word(0xfedcba98)
    else:
        port.nibble(0x1a)
for edges in (1, 2):
    for bits in (4, 8):
        port = hypermon_port.PinPort(list(range(20 - bits, 21)), edges)
        port.event(17, b"abc")
        port.word(0x89abcde1)
try:
    port.event(256)
except ValueError as error:
    refused = str(error)
"""
IN_MICROPYTHON = """
import json
import fakes
sys.modules["machine"], sys.modules["rp2"] = fakes.machine, fakes.rp2
import hypermon_port
CALLS
programs = [[list(made["program"][0]), made["program"][3:5]] for made in fakes.made]
print(json.dumps([fakes.writes, fakes.fifo, programs, refused]))
"""


def test_in_micropython(ports: ModuleType, tmp_path: Path) -> None:
    """The interpreter of microcontrollers stores the same."""
    try:
        package = npm_package("@micropython/micropython-webassembly-pyscript")
    except MissingError as missing:
        pytest.skip(str(missing))
    program = tmp_path / "program.py"
    program.write_text(IN_MICROPYTHON.replace("CALLS", CALLS))
    done = subprocess.run(["node", HERE / "micropython.mjs", package, f"fakes={HERE / 'micropython.py'}",
                           f"hypermon_port={SOURCE}", program], capture_output=True, text=True, timeout=patience(60))
    assert (done.returncode, done.stderr) == (0, "")
    names = {"hypermon_port": ports}
    exec(CALLS, names)
    programs = [[list(made["program"][0]), made["program"][3:5]] for made in micropython.made]
    assert json.loads(done.stdout) == [[list(write) for write in micropython.writes], micropython.fifo, programs,
                                       names["refused"]]
    assert len(micropython.fifo) > 20
