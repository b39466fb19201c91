"""The node library's targets: they compile everywhere, and what they do to registers, pins and lines is right."""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from cross import MACHINES, NODE, STACK, Program, compile_for
from port_reader import Event, Write, read_events, read_nibbles
from unicorn import arm_const, riscv_const

from tests.patience import patience
from tests.programs import MissingError

REGISTER = 0x4800_0400
EVENTS = r"""
#include "hypermon.h"
hm_port port;
int event(unsigned id, const unsigned char *payload, size_t length);
int event(unsigned id, const unsigned char *payload, size_t length) { return hm_event(&port, id, payload, length); }
void word(uint32_t value);
void word(uint32_t value) { hm_word(&port, value); }
void nibble(unsigned value);
void nibble(unsigned value) { hm_nibble(&port, value); }
"""
STYLES = ("WHOLE", "XOR", "BSRR", "SETCLEAR")
BOTH = [(style, edges) for style in STYLES for edges in (1, 2) if (style, edges) != ("SETCLEAR", 2)]


def flags_of(style: str, edges: int, *more: str) -> list[str]:
    return ["-DHM_TARGET=HM_TARGET_REGISTER", f"-DHM_STYLE=HM_STYLE_{style}", f"-DHM_ADDRESS={REGISTER + 0x18:#x}u",
            f"-DHM_ADDRESS_CLEAR={REGISTER + 0x28:#x}u", "-DHM_SHIFT=3", f"-DHM_EDGES={edges}", *more]


def program(machine: str, folder: Path, *flags: str) -> Program:
    try:
        return Program(MACHINES[machine], EVENTS, folder, REGISTER, *flags)
    except MissingError as missing:
        pytest.skip(str(missing))


def pins(style: str, stores: list[tuple[int, int, int]], bits: int = 4) -> list[Write]:
    """What the port's pins show after each store, its number for a time; other pins must not have changed."""
    show, writes = 0, []
    for at, address, value in stores:
        before = show
        if style == "XOR":
            show ^= value
        elif style == "BSRR":
            assert not value & value >> 16, "set and cleared at once"
            show = (show | value & 0xffff) & ~(value >> 16)
        elif style == "SETCLEAR":
            show = show | value if address == REGISTER + 0x18 else show & ~value
        else:
            show = value
        assert not (before ^ show) & ~((2 << bits) - 1 << 3), "another pin has changed"
        writes.append(Write(at, 0, show >> 3))
    return writes


# ------------------------------------------------------------------------------------------ registers

@pytest.mark.parametrize(("machine", "bits"), [("Cortex-M0+", 4), ("Cortex-M4", 4), ("RISC-V", 4), ("Cortex-M4", 8)])
@pytest.mark.parametrize(("style", "edges"), BOTH)
def test_stores_to_a_register_are_the_events(tmp_path: Path, machine: str, bits: int, style: str, edges: int) -> None:
    run = program(machine, tmp_path, *flags_of(style, edges, f"-DHM_BITS={bits}"))
    sent = [Event(0, 0xf0 + n, bytes((37 * k + n) & 255 for k in range(n)))[1:] for n in (0, 1, 2, 14)]
    stores, offset = [], 0
    for event, payload in sent:
        call = run.call("event", event, STACK, len(payload), data=payload)
        assert call.result == 0
        stores += [(offset + at, address, value) for at, address, value in call.stores]
        offset += call.instructions
    assert run.call("event", 1, STACK, 15).stores == []
    nibbles = read_nibbles(pins(style, stores, bits), edges, bits)[0]
    assert [event[1:] for event in read_events(nibbles, bits)] == sent
    assert len(nibbles) == sum(1 + (1 + len(payload)) * 8 // bits for _, payload in sent)
    assert len(nibbles) * {"SETCLEAR": 3}.get(style, 3 - edges) == len(stores)


@pytest.mark.parametrize(("style", "edges"), BOTH)
def test_words_and_nibbles(tmp_path: Path, style: str, edges: int) -> None:
    run = program("Cortex-M4", tmp_path, *flags_of(style, edges))
    stores = run.call("word", 0x89abcdef).stores + run.call("nibble", 3).stores
    assert [value for _, value in read_nibbles(pins(style, stores), edges)[0]] == [15, 14, 13, 12, 11, 10, 9, 8, 3]


@pytest.mark.parametrize("edges", [1, 2])
def test_words_of_four_bytes(tmp_path: Path, edges: int) -> None:
    run = program("Cortex-M4", tmp_path, *flags_of("BSRR", edges, "-DHM_BITS=8"))
    stores = run.call("word", 0x89abcdef).stores + run.call("nibble", 0x7e).stores
    written = [value for _, value in read_nibbles(pins("BSRR", stores, 8), edges, 8)[0]]
    assert written == [0xef, 0xcd, 0xab, 0x89, 0x7e]


@pytest.mark.parametrize(("edges", "cpu_mhz", "between"), [
    (1, 50, 1), (1, 125, 2), (1, 240, 3), (2, 50, 2), (2, 125, 3), (2, 160, 4)])
def test_a_fast_processor_waits_between_stores(tmp_path: Path, edges: int, cpu_mhz: int, between: int) -> None:
    """12 ns with one edge (a clock, aperture, skew), 21 with two (two clocks, aperture), of a board of 100 MHz."""
    run = program("Cortex-M4", tmp_path, *flags_of("BSRR", edges, f"-DHM_CPU_HZ={cpu_mhz}000000u"))
    stores = run.call("event", 0x5a, STACK, 3, data=b"abc").stores
    assert min(b[0] - a[0] for a, b in pairwise(stores)) >= between
    # The processor of this model does nothing in vain; the compiler must not leave out what does nothing.
    listing = subprocess.run(["arm-none-eabi-objdump", "-d", tmp_path / "program.elf"], check=True, capture_output=True,
                             text=True).stdout.splitlines()
    behind = [index for index, line in enumerate(listing) if "#1048]" in line]
    assert behind
    for index in behind:
        assert all("\tnop" in line for line in listing[index + 1:index + between])
        assert "\tnop" not in listing[index + between]


def test_a_slow_bus_is_read_after_each_store(tmp_path: Path) -> None:
    run = program("Cortex-M4", tmp_path, *flags_of("BSRR", 1, "-DHM_HOLD_READS=2"))
    call = run.call("event", 0x5a, 0, 0)
    assert len(call.loads) == 2 * len(call.stores) == 12


# ----------------------------------------------------------------------------------------- interrupts

@pytest.mark.parametrize(("machine", "register", "masked", "open_"), [
    ("Cortex-M0+", arm_const.UC_ARM_REG_PRIMASK, 1, 0), ("Cortex-M33", arm_const.UC_ARM_REG_PRIMASK, 1, 0),
    ("RISC-V", riscv_const.UC_RISCV_REG_MSTATUS, 0, 8)])
@pytest.mark.parametrize("wanted", [0, 1])
def test_interrupts_stay_out_of_an_item(tmp_path: Path, machine: str, register: int, masked: int, open_: int,
                                        wanted: int) -> None:
    run = program(machine, tmp_path, *flags_of("XOR", 1, f"-DHM_INTERRUPTS={wanted}"))
    seen: list[int] = []
    run.on_store = lambda uc: seen.append(uc.reg_read(register) & (masked | open_))
    for before in (open_, masked):
        run.uc.reg_write(register, before)
        for call in (("event", 0x5a, STACK, 2), ("word", 0x12345678), ("nibble", 5)):
            seen.clear()
            assert len(run.call(*call).stores) == len(seen) > 0
            assert set(seen) == {masked if wanted else before}
            assert run.uc.reg_read(register) & (masked | open_) == before, "left as it was found"


@pytest.mark.parametrize(("machine", "flags", "off", "on"), [
    ("AVR", ("-DHM_ADDRESS=0x29u", "-DHM_REGISTER=uint8_t"), r"in\s+r\d+, 0x3f.*\n.*\tcli", r"out\s+0x3f, r\d+"),
    ("Xtensa", ("-DHM_ADDRESS=0x60000304u",), r"rsil\s+a\d+, 3", r"wsr\.ps\s+a\d+.*\n.*rsync")])
def test_interrupts_stay_out_where_nothing_is_emulated(tmp_path: Path, machine: str, flags: tuple[str, ...], off: str,
                                                       on: str) -> None:
    """By the compiled code: masked, then the stores, then as it was."""
    source, out = tmp_path / "program.c", tmp_path / "program.o"
    source.write_text('#include "hypermon.h"\nhm_port port;\nvoid f(void);\nvoid f(void) { hm_nibble(&port, 5); }\n')
    try:
        compile_for(MACHINES[machine], source, out, "-DHM_TARGET=HM_TARGET_REGISTER", "-DHM_STYLE=HM_STYLE_XOR", *flags)
    except MissingError as missing:
        pytest.skip(str(missing))
    objdump = MACHINES[machine].compiler.removesuffix("gcc") + "objdump"
    listing = subprocess.run([objdump, "-d", out], check=True, capture_output=True, text=True).stdout
    masked, restored = re.search(off, listing), re.search(on, listing)
    assert masked
    assert restored
    stores = [found.start() for found in re.finditer(r"out\s+0x09" if machine == "AVR" else r"s32i", listing)]
    assert sum(masked.end() < at < restored.start() for at in stores) >= 2


# ---------------------------------------------------------------------------------- they all compile

COMPILED = {
    "register": ("-DHM_TARGET=HM_TARGET_REGISTER", "-DHM_STYLE=HM_STYLE_WHOLE"),
    "nowhere": ("-DHM_TARGET=HM_TARGET_NONE",),
    "PINB of an AVR": ("-DHM_TARGET=HM_TARGET_REGISTER", "-DHM_STYLE=HM_STYLE_XOR", "-DHM_REGISTER=uint8_t",
                       "-DHM_ADDRESS=0x29u", "-DHM_SHIFT=2", "-DHM_CPU_HZ=16000000u"),
    "RP2040 SIO": ("-DHM_TARGET=HM_TARGET_RP2040_SIO",)}
CROSS = [(machine, name) for machine in MACHINES for name in ("register", "nowhere")]
CROSS += [("AVR", "PINB of an AVR"), ("Cortex-M0+", "RP2040 SIO")]


@pytest.mark.parametrize("edges", [1, 2])
@pytest.mark.parametrize(("machine", "name"), CROSS)
def test_cross_compilers_take_it(tmp_path: Path, machine: str, name: str, edges: int) -> None:
    source = tmp_path / "program.c"
    source.write_text(EVENTS)
    try:
        compile_for(MACHINES[machine], source, tmp_path / "program.o", f"-DHM_EDGES={edges}", *COMPILED[name])
    except MissingError as missing:
        pytest.skip(str(missing))


PIO_CALLS = {"EVENTS": "hm_event(&port, 1, 0, 0)", "WORDS": "hm_word(&port, 1)", "NIBBLES": "hm_nibble(&port, 1)"}


@pytest.mark.parametrize("items", PIO_CALLS)
def test_the_pico_s_pio_compiles(tmp_path: Path, items: str) -> None:
    source = tmp_path / "program.c"
    source.write_text(f'#include "hypermon.h"\nhm_port port;\nvoid f(void);\n'
                      f"void f(void) {{ hm_rp2040_open(&port); {PIO_CALLS[items]}; }}\n")
    try:
        compile_for(MACHINES["Cortex-M0+"], source, tmp_path / "program.o", "-DHM_TARGET=HM_TARGET_RP2040_PIO",
                    f"-DHM_ITEMS=HM_ITEMS_{items}")
    except MissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("language", ["c99", "g++11"])
@pytest.mark.parametrize("flags", [
    ["-DHM_TARGET=HM_TARGET_NONE"], ["-DHM_TARGET=HM_TARGET_GPIOCHIP"],
    ["-DHM_TARGET=HM_TARGET_RP2040_SIO", "-DHM_INTERRUPTS=0"],
    *(["-DHM_TARGET=HM_TARGET_MMAP", f"-DHM_STYLE=HM_STYLE_{style}"] for style in STYLES)],
    ids=lambda flags: " ".join(flag[flag.index("=") + 1:] for flag in flags))
def test_the_host_s_compilers_take_it(compile_c, flags: list[str], language: str) -> None:
    source = EVENTS + "int main(void) { nibble(1); word(2); return event(3, NULL, 0); }\n"
    compile_c(source, *flags, "-D_POSIX_C_SOURCE=200809L", language=language)


@pytest.mark.parametrize(("flags", "message"), [
    (["HM_TARGET=HM_TARGET_REGISTER"], "HM_STYLE must say"),
    (["HM_TARGET=HM_TARGET_REGISTER", "HM_STYLE=HM_STYLE_SETCLEAR", "HM_EDGES=2"], "HM_EDGES must be 1"),
    (["HM_TARGET=HM_TARGET_REGISTER", "HM_STYLE=HM_STYLE_BSRR", "HM_SHIFT=12"], "HM_SHIFT is 11 at most"),
    (["HM_TARGET=HM_TARGET_REGISTER", "HM_STYLE=HM_STYLE_XOR"], "does not know this processor's interrupts"),
    (["HM_TARGET=HM_TARGET_REGISTER", "HM_STYLE=HM_STYLE_BSRR", "HM_SHIFT=8", "HM_BITS=8"], "or 7 with HM_BITS 8"),
    (["HM_BITS=5"], "HM_BITS must be 4"),
    (["HM_TARGET=HM_TARGET_RP2040_PIO", "HM_BITS=8"], "HM_BITS must be 4"),
    (["HM_TARGET=HM_TARGET_GPIOCHIP", "HM_EDGES=2"], "HM_EDGES must be 1"),
    (["HM_TARGET=HM_TARGET_RP2040_PIO", "HM_EDGES=2"], "HM_EDGES must be 1"),
    (["HM_TARGET=HM_TARGET_RP2040_SIO", "HM_PIN=26"], "HM_PIN is the first of five pins"),
    (["HM_TARGET=HM_TARGET_MMAP", "HM_STYLE=HM_STYLE_XOR", "HM_ADDRESS=1"], "not HM_ADDRESS")],
    ids=lambda value: "" if isinstance(value, list) else value)
def test_says_what_cannot_be(tmp_path: Path, flags: list[str], message: str) -> None:
    source = tmp_path / "wrong.c"
    source.write_text('#include "hypermon.h"\n')
    done = subprocess.run(["cc", "-std=c99", *(f"-D{flag}" for flag in flags), f"-I{NODE}", "-c", source,
                           "-o", "/dev/null"], capture_output=True, text=True)
    assert done.returncode != 0
    assert message in done.stderr


# --------------------------------------------------------------------------------- Linux, and Arduino

def test_a_mapped_register(compile_c, tmp_path: Path) -> None:
    """A file of a page for /dev/mem: what is stored last can be read from it."""
    memory = tmp_path / "memory"
    memory.write_bytes(bytes(8192))
    run = compile_c(r"""
        #include "hypermon.h"
        #if HM_HOLD_READS != 1
        #error "a bus may take stores faster than they arrive"
        #endif
        int main(int argc, char **argv)
        {
            hm_port port;
            if (hm_mmap_open(&port, "/nowhere", 0, 0, 0) != -1
                || hm_mmap_open(&port, argv[argc - 1], 4096, 8, 0) != 0)
                return 1;
            hm_nibble(&port, 9);
            hm_mmap_close(&port);
            return 0;
        }""", "-D_POSIX_C_SOURCE=200809L", "-DHM_TARGET=HM_TARGET_MMAP", "-DHM_STYLE=HM_STYLE_WHOLE", "-DHM_SHIFT=7")
    subprocess.run([run, memory], check=True, timeout=patience(20))
    assert memory.read_bytes() == bytes(4096 + 8) + ((16 + 9) << 7).to_bytes(4, "little") + bytes(4096 - 12)


def test_gpio_lines(compile_c) -> None:
    """The kernel is a script here: it says what it is asked for."""
    run = compile_c(r"""
        #include <stdarg.h>
        #include <stdio.h>
        #include <fcntl.h>
        #include <linux/gpio.h>
        #include <sys/ioctl.h>
        #include <unistd.h>
        static int scripted_ioctl(int file, unsigned long what, void *argument)
        {
            if (what == GPIO_V2_GET_LINE_IOCTL) {
                struct gpio_v2_line_request *request = (struct gpio_v2_line_request *)argument;
                unsigned i;
                printf("%d %s %d", file, request->consumer, (int)request->config.flags);
                for (i = 0; i < request->num_lines; i++)
                    printf(" %u", request->offsets[i]);
                printf(" %u;", request->config.num_attrs);
                request->fd = 77;
                return 0;
            }
            if (what == GPIO_V2_LINE_SET_VALUES_IOCTL) {
                struct gpio_v2_line_values *values = (struct gpio_v2_line_values *)argument;
                printf("%d %d/%d;", file, (int)values->bits, (int)values->mask);
                return values->bits == 30 ? -1 : 0;
            }
            return -1;
        }
        #define ioctl(file, what, argument) scripted_ioctl(file, what, argument)
        #define open(path, flags) (printf("%s;", path), 55)
        #define close(file) printf("close %d;", file)
        #include "hypermon.h"
        int main(void)
        {
            static const unsigned lines[5] = { 17, 18, 27, 22, 23 };
            hm_port port;
            if (hm_gpiochip_open(&port, "/dev/gpiochip0", lines) != 0)
                return 1;
            hm_nibble(&port, 5);
            hm_nibble(&port, 14);
            hm_gpiochip_close(&port);
            return port.failed != 1;
        }""", "-D_POSIX_C_SOURCE=200809L", "-DHM_TARGET=HM_TARGET_GPIOCHIP", "-Wno-unused-value")
    said = subprocess.run([run], check=True, timeout=patience(20), capture_output=True, text=True).stdout
    assert said.split(";") == ["/dev/gpiochip0", "55 hypermon 8 17 18 27 22 23 0", "close 55", "77 5/31", "77 21/16",
                               "77 14/31", "77 30/16", "close 77", ""]


#: libgpiod 2, as far as the target wants it, which says what it is asked for.
GPIOD_H = r"""
#include <stdio.h>
enum gpiod_line_value { GPIOD_LINE_VALUE_ERROR = -1, GPIOD_LINE_VALUE_INACTIVE = 0, GPIOD_LINE_VALUE_ACTIVE = 1 };
enum gpiod_line_direction { GPIOD_LINE_DIRECTION_OUTPUT = 3 };
struct gpiod_chip { int a; }; struct gpiod_line_settings { int a; }; struct gpiod_line_config { int a; };
struct gpiod_request_config { int a; }; struct gpiod_line_request { int a; };
#define ONE(type) static inline struct type *type##_made(void) { static struct type one; return &one; }
ONE(gpiod_chip) ONE(gpiod_line_settings) ONE(gpiod_line_config) ONE(gpiod_request_config) ONE(gpiod_line_request)
#define gpiod_chip_open(path) (printf("open %s;", path), path[0] == '/' ? gpiod_chip_made() : NULL)
#define gpiod_line_settings_new gpiod_line_settings_made
#define gpiod_line_config_new gpiod_line_config_made
#define gpiod_request_config_new gpiod_request_config_made
#define gpiod_line_settings_set_direction(settings, direction) (printf("direction %d;", direction), 0)
#define gpiod_line_config_add_line_settings(config, lines, count, settings) \
    (printf("lines %u to %u;", (lines)[0], (lines)[(count) - 1]), 0)
#define gpiod_request_config_set_consumer(request, name) printf("%s;", name)
#define gpiod_chip_request_lines(chip, request, config) gpiod_line_request_made()
#define gpiod_line_request_release(request) printf("release;")
#define gpiod_request_config_free(what) printf("free;")
#define gpiod_line_config_free gpiod_request_config_free
#define gpiod_line_settings_free gpiod_request_config_free
#define gpiod_chip_close gpiod_request_config_free
static inline int gpiod_line_request_set_value(struct gpiod_line_request *request, unsigned line, int value)
{
    (void)request;
    printf("%u=%d;", line, value);
    return 0;
}
static inline int gpiod_line_request_set_values_subset(struct gpiod_line_request *request, size_t count,
                                                       const unsigned *lines, const enum gpiod_line_value *values)
{
    size_t i;
    (void)request;
    for (i = 0; i < count; i++)
        printf("%s%u=%d", i ? "," : "", lines[i], (int)values[i]);
    printf(";");
    return values[0] == GPIOD_LINE_VALUE_ACTIVE ? 0 : -1;
}
"""


def test_gpio_lines_by_libgpiod(compile_c, tmp_path: Path) -> None:
    """The library is a script here; `make guest OF=gpio` runs the real one."""
    (tmp_path / "gpiod.h").write_text(GPIOD_H)
    run = compile_c(r"""
        #include "hypermon.h"
        int main(void)
        {
            static const unsigned lines[5] = { 17, 18, 27, 22, 23 };
            hm_port port;
            if (hm_libgpiod_open(&port, "nowhere", lines) != -1 || hm_libgpiod_open(&port, "/dev/chip", lines) != 0)
                return 1;
            hm_nibble(&port, 5);
            hm_nibble(&port, 14);
            hm_libgpiod_close(&port);
            return port.failed != 1;
        }""", "-DHM_TARGET=HM_TARGET_LIBGPIOD", f"-I{tmp_path}")
    said = subprocess.run([run], check=True, timeout=patience(20), capture_output=True, text=True).stdout
    assert said.split(";") == [
        "open nowhere", *["free"] * 3, "open /dev/chip", "direction 3", "lines 17 to 23", "hypermon", *["free"] * 4,
        "17=1,18=0,27=1,22=0,23=0", "23=1", "17=0,18=1,27=1,22=1,23=0", "23=1", "release", ""]


def test_libgpiod_of_before_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gpiod.h").write_text("#define GPIOD_LINE_BULK_MAX_LINES 64\n")
    done = subprocess.run(["cc", "-std=c99", "-DHM_TARGET=HM_TARGET_LIBGPIOD", f"-I{NODE}", f"-I{tmp_path}", "-xc",
                           "-c", "-o", "/dev/null", "-"], input='#include "hypermon.h"\n', capture_output=True,
                          text=True)
    assert done.returncode != 0
    assert "this is libgpiod 1" in done.stderr


@pytest.mark.parametrize("edges", [1, 2])
def test_arduino_pins_one_after_the_other(compile_c, tmp_path: Path, edges: int) -> None:
    (tmp_path / "Arduino.h").write_text(r"""
        #include <stdint.h>
        #include <stdio.h>
        #define LOW 0
        #define HIGH 1
        #define OUTPUT 1
        static inline void pinMode(uint8_t pin, uint8_t mode) { printf("mode %d %d\n", pin, mode); }
        static inline void digitalWrite(uint8_t pin, uint8_t value) { printf("write %d %d\n", pin, value); }
        static inline void noInterrupts(void) { printf("off\n"); }
        static inline void interrupts(void) { printf("on\n"); }
        """)
    run = compile_c(r"""
        #include "hypermon.h"
        int main(void)
        {
            static const uint8_t pins[5] = { 2, 3, 4, 5, 6 };
            hm_port port;
            hm_arduino_open(&port, pins);
            return hm_event(&port, 0x5a, "\xc3\x3c\xff", 3);
        }""", "-DHM_TARGET=HM_TARGET_ARDUINO", f"-DHM_EDGES={edges}", f"-I{tmp_path}")
    said = subprocess.run([run], check=True, timeout=patience(20), capture_output=True, text=True).stdout.splitlines()
    assert said[:10] == [line for pin in range(2, 7) for line in (f"write {pin} 0", f"mode {pin} 1")]
    assert (said[10], said[-1]) == ("off", "on")
    show, nibbles = 0, []
    for line in said[11:-1]:
        _, pin, value = line.split()
        bit, before = 1 << int(pin) - 2, show
        show = show | bit if value == "1" else show & ~bit
        assert show != before, "a pin is written that does not change"
        if bit == 16 and (edges == 2 or show & 16):
            nibbles.append((len(nibbles), show & 15))  # the data have stood since before this strobe
    assert read_events(nibbles) == [Event(0, 0x5a, b"\xc3\x3c\xff")]
