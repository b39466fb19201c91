"""Long messages and log lines: what a program has written is what a reader sees, or it is said that it is not whole."""

import csv
import ctypes
import json
import random
import struct
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from cross import NODE
from hypermon.host import cli
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.log_strings import elf_strings, filled
from hypermon.host.dictionary.long_messages import Joiner
from hypermon.host.errors import InputError
from hypermon.host.run import open_run
from port_reader import read_events, read_nibbles, read_writes

from tests.patience import patience
from tests.programs import MissingError, working

#: Texts of every length, records of an event of its own, and lines that printf prints as well.
PROGRAM = r"""
#define _POSIX_C_SOURCE 200809L
#include "hypermon.h"
#include "hypermon/log.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define SAY(format, ...) do { printf(format "\n", ##__VA_ARGS__); HM_LOG(&port, format, ##__VA_ARGS__); } while (0)

struct fields { unsigned low : 3; int signed_one : 5; unsigned long long wide : 40; };

int main(int argc, char **argv)
{
    hm_port port;
    hm_port *all[1];
    struct fields fields = {5u, -16, 0xfedcba9876u};
    unsigned char bytes[300];
    unsigned i;
    uint64_t start = hm_virtual_now();
    FILE *out = fopen(argv[argc - 1], "w");
    all[0] = &port;
    if (out == NULL || hm_virtual_open(&port, 100000) != 0)
        return 1;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)('a' + i % 26);
    for (i = 0; i <= 60; i++)
        if (hm_text(&port, (const char *)bytes, i) != 0)
            return 2;
    if (hm_long(&port, 7, bytes, sizeof bytes) != 0 || hm_long(&port, 7, bytes, 70000) != -1)
        return 3;
    SAY("plain");
    SAY("sensor %u: %d mV", 3u, 120);
    SAY("%d %i %u %x %X %o %c %%", -5, 7, 4000000000u, 0xbeefu, 0xbeefu, 8u, 'z');
    SAY("[%5d] [%-5d] [%05d] [%+d] [% d] [%.3d] [%#x] [%#o] [%-3c] [%3c]", 42, 42, 42, 42, 42, 42, 42u, 42u, 'a', 'b');
    SAY("[%hhd] [%hu] [%hhx]", (signed char)-1, (unsigned short)65535, (unsigned char)255);
    SAY("%u %u %u %u %u %u %u %u %u %u %u %u", 0u, 127u, 128u, 16383u, 16384u, 2097151u, 2097152u, 268435455u,
        268435456u, 4294967295u, 1u, 2u);
    SAY("");
    SAY("%lld bytes at %llx, %llu", 5000000000LL, 0x123456789abcULL + (unsigned)argc, 0xffffffffffffffffULL);
    SAY("%lld %lld %ld %li", -1LL, (long long)INT64_MIN, -2L, 3L);
    SAY("%lu %zu %zd %td", 4000000000UL, sizeof bytes, (ptrdiff_t)-5, (ptrdiff_t)5);
    SAY("%jd %ju %d", (intmax_t)-6000000000, (uintmax_t)6000000000, -1);
    SAY("[%" PRId64 "] [%" PRIx64 "] [%" PRIu32 "]", INT64_C(-7000000000), UINT64_C(0xfedcba9876543210), UINT32_C(9));
    SAY("[%8.3d] [%.0d] [%5.0x] [%-+7d] [%#.0o]", 5, 0, 0u, 7, 0u);
    SAY("%u %d %llx", fields.low, fields.signed_one, (unsigned long long)fields.wide);
    i = 3;
    puts("3, once");
    HM_LOG(&port, "%u, once", i++);
    SAY("%u", i);
    if (hm_virtual_save(out, all, 1, start) != 0)
        return 4;
    hm_virtual_close(&port);
    return fclose(out) != 0;
}
"""
DICTIONARY = """
[record]
id = 7
fields = { bytes = "bytes" }
[logging]
"""
#: Compilers, and their flags.
CPP_MACHINES = ("arm-none-eabi-g++ -mcpu=cortex-m0plus -mthumb", "arm-none-eabi-g++ -mcpu=cortex-m4 -mthumb",
                "arm-none-eabi-g++ -marm", "avr-g++ -mmcu=atmega328p",
                "riscv64-unknown-elf-g++ -march=rv32imac_zicsr -mabi=ilp32", "xtensa-lx106-elf-g++")
LOOSE = ("-Wno-pedantic", "-Wno-variadic-macros", "-Wno-gnu-zero-variadic-macro-arguments",
         "-Wno-format-zero-length")


@pytest.fixture(scope="module")
def made(compile_c, tmp_path_factory):
    """A program's port writes, its dictionary with the strings, and what printf printed."""
    folder = tmp_path_factory.mktemp("log")
    program = compile_c(PROGRAM, *LOOSE, "-DHM_EDGES=1", language="c11")
    done = subprocess.run([program, folder / "out.csv"], check=True, timeout=patience(60), capture_output=True,
                          text=True)
    (folder / "hand.toml").write_text(DICTIONARY)
    assert cli._run(["dict", str(folder / "hand.toml"), "--elf", str(program), "-o", str(folder / "own.toml")]) == 0
    return folder, done.stdout.splitlines()


def events_of(folder):
    nibbles = read_nibbles(read_writes(folder / "out.csv"), 1)
    return [{"time_ps": k * 1000, "node": 0, "event": event[1], "payload": event[2], "aborted": False}
            for k, event in enumerate(read_events(nibbles[0]))]


TEXT = "".join(chr(ord("a") + i % 26) for i in range(300))


def test_texts_and_lines(made):
    folder, printed = made
    joiner = Joiner(load_dictionary(folder / "own.toml"))
    lines = [*joiner.add(events_of(folder)), *joiner.finish()]
    assert all(line.complete for line in lines)
    assert [line.text for line in lines if line.name == "text"] == [TEXT[:i] for i in range(61)]
    assert [line.text for line in lines if line.name == "log"] == printed
    assert [line.payload for line in lines if line.name == "record"] == [TEXT.encode()]


def test_costs(made):
    """As the header states them: events of a message, and bytes of a line."""
    folder, _ = made
    events = events_of(folder)
    pieces = [event for event in events if event["event"] == 0xfd]
    long = {0xfb: [*range(15, 61)], 7: [300]}       # bytes of the messages of each id
    begins = [event["payload"] for event in pieces if event["payload"][0] >> 7]
    sizes = [int.from_bytes(begin[2:4], "little") for begin in begins]
    assert {own: [size for size, begin in zip(sizes, begins, strict=True) if begin[1] == own] for own in long} == long
    assert len(pieces) == sum(1 + -(-(size - 10) // 13) for size in sizes)
    assert [event["payload"][2:] for event in events if event["event"] == 0xfc][:2] == [b"", bytes([3, 120])]


@pytest.mark.parametrize("seed", range(100))
def test_a_message_is_whole_or_said_not_to_be(made, seed):
    """Whatever is lost: with the loss known, no text is one that was never written."""
    folder, printed = made
    rng = random.Random(seed)
    events = events_of(folder)
    kept, losses, at = [], [], 0
    while at < len(events):
        some = rng.randint(1, 25)
        kept += events[at:at + some]
        at += some
        lost = rng.choice([0, 1, 1, 2, 15, 16, 17, 40])
        if lost and at < len(events):
            losses.append((0, events[at]["time_ps"], events[min(at + lost, len(events)) - 1]["time_ps"]))
        at += lost
    joiner = Joiner(load_dictionary(folder / "own.toml"), losses)
    lines = [*joiner.add(kept), *joiner.finish()]
    whole = [line for line in lines if line.complete]
    assert {line.text for line in whole if line.name == "text"} <= {TEXT[:i] for i in range(61)}
    assert {line.text for line in whole if line.name == "log"} <= set(printed)
    assert {line.payload for line in whole if line.name == "record"} <= {TEXT.encode()}
    assert all("incomplete" in line.text for line in lines if not line.complete)
    # Every message that began is either whole or reported.
    begun = sum(event["event"] in (0xfb, 0xfc) or (event["event"] == 0xfd and event["payload"][0] >> 7)
                for event in kept)
    assert len(lines) >= begun


def pieces_of(text, number=0):
    """The pieces of a text, as hypermon/log.h cuts it."""
    begin = bytes([0x80 | number << 4, 0xfb, *len(text).to_bytes(2, "little")]) + text[:10]
    rest = [bytes([number << 4 | (k + 1) & 15]) + text[at:at + 13] for k, at in enumerate(range(10, len(text), 13))]
    return [{"node": 0, "event": 0xfd, "payload": payload, "aborted": False} for payload in [begin, *rest]]


def said_of(made, pieces, losses=()):
    joiner = Joiner(load_dictionary(made[0] / "own.toml"), losses)
    return [*joiner.add([{"time_ps": k, **piece} for k, piece in enumerate(pieces)]), *joiner.finish()]


def test_pieces_of_two_messages_are_not_joined(made):
    """Of the eighth message after another, which has the same number and length; only the loss tells them apart."""
    first, second = pieces_of(b"a" * 100), pieces_of(b"b" * 100)
    assert [line.complete for line in said_of(made, [*first, *second])] == [True, True]
    assert not any(line.complete for line in said_of(made, [*first[:4], *second[4:]], [(0, 3, 4)]))
    assert [line.complete for line in said_of(made, [*first, *second], [(1, 3, 4)])] == [True, True]


def test_a_piece_that_is_missing(made):
    """Even if another one makes up for its length, and no loss is known."""
    pieces = pieces_of(bytes(range(32, 132)))
    lines = said_of(made, [*pieces[:3], pieces[4], *pieces[4:]])
    assert [line.complete for line in lines] == [False]
    assert lines[0].text == "(a message is incomplete: a piece of it is missing; 36 of 100 bytes arrived)"


def test_messages_of_interrupts_between_the_pieces_of_another(made):
    folder, _ = made
    events = events_of(folder)
    first = [event for event in events if event["event"] == 0xfd and event["payload"][0] >> 4 & 7 == 1][:2]
    other = [event for event in events if event["event"] == 0xfd and event["payload"][0] >> 4 & 7 == 2][:2]
    joiner = Joiner(load_dictionary(folder / "own.toml"))
    lines = list(joiner.add([first[0], *other, first[1]]))
    assert [line.text for line in lines] == [TEXT[:17], TEXT[:16]]


def test_a_program_of_other_strings(made):
    folder, _ = made
    own = load_dictionary(folder / "own.toml").logging.strings
    numbers = {text: number for number, text in own.items()}
    two = numbers["sensor %u: %d mV"].to_bytes(2, "little")
    assert filled(own, two + bytes([3, 5])) == "sensor 3: 5 mV"
    for wrong in (two + b"\x03", two + b"\x03\x05\x06", two + b"\x03\x85", b"\xfe\xff", b"\x01", b""):
        assert filled(own, wrong) is None
    [line] = Joiner(load_dictionary(folder / "own.toml")).add(
        [{"time_ps": 1, "node": 0, "event": 0xfc, "payload": b"\xfe\xff", "aborted": False}])
    assert "are not those of this program" in line.text


def test_lines_are_those_of_printf():
    """Random conversions and values against the C library."""
    library, rng = ctypes.CDLL(None), random.Random(1)
    room = ctypes.create_string_buffer(200)
    for _ in range(10_000):
        letter = rng.choice("diuxXoc")
        flags = "".join(rng.choices("-+ #0" if letter != "c" else "-", k=rng.randrange(4)))
        width = rng.choice(["", "", str(rng.randint(1, 30))])
        precision = "" if letter == "c" else rng.choice(["", "", ".", f".{rng.randint(0, 30)}"])
        size = "" if letter == "c" else rng.choice(["", "", "hh", "h", "ll", "j"])
        wide = size in ("ll", "j")
        value = rng.choice([0, 1, -1, 127, 128, 255, 256, 2**31 - 1, -2**31, rng.randrange(-2**31, 2**31),
                            *([2**63 - 1, -2**63, rng.randrange(-2**63, 2**63)] if wide else [])])
        value = rng.randrange(1, 128) if letter == "c" else value
        text = f"<%{flags}{width}{precision}{size}{letter}>"
        library.snprintf(room, len(room), text.encode(), (ctypes.c_longlong if wide else ctypes.c_int)(value))
        payload = b"\3\0" + varint(value % 2**(64 if wide else 32))
        assert filled({3: text}, payload) == room.value.decode(), (text, value)


def varint(value):
    """Seven bits per byte, the lowest first."""
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def test_values_that_are_too_long():
    """A value of 64 bits for a conversion of 32, as a program might write despite a warning, is not cut."""
    for text, least in (("%d", 2**32), ("%hu", 2**32), ("%c", 2**32), ("%lld", 2**64), ("%jx", 2**64)):
        assert filled({0: text}, b"\0\0" + varint(least - 1)) is not None
        assert filled({0: text}, b"\0\0" + varint(least)) is None


def test_sizes_of_programs(tmp_path):
    """A long has 64 bits in a program of 64 bits, and 32 in others."""
    for wide, first in ((1, "%lld %llu %5llx"), (0, "%d %u %5x")):
        section = b"%ld %zu %5lx\0%lld %jd %hd %%\0\0%d\0"
        own = elf_of(section, wide)
        (tmp_path / "own").write_bytes(own)
        assert list(elf_strings(tmp_path / "own").values()) == [first, "%lld %jd %hd %%", "", "%d"]
    # An int of an AVR or an MSP430 has 16 bits, so has a size_t; -1 is written like one of 32.
    for machine in (83, 105):
        own = bytearray(elf_of(b"%d %i %u %x %zx %td %hhu %lx %lld %c %%\0", 0))
        own[18] = machine
        (tmp_path / "own").write_bytes(own)
        strings = elf_strings(tmp_path / "own")
        assert list(strings.values()) == ["%hd %hi %hu %hx %hx %hd %hhu %x %lld %c %%"]
        minus = varint(2**32 - 1)
        payload = b"\0\0" + 8 * minus + varint(2**64 - 1) + varint(ord("z"))
        assert filled(strings, payload) == "-1 -1 65535 ffff ffff -1 255 ffffffff -1 z %"
    (tmp_path / "own").write_bytes(elf_of(b"a" * 65535 + b"\0", 1))
    assert list(elf_strings(tmp_path / "own")) == [0]
    (tmp_path / "own").write_bytes(elf_of(b"a" * 65536 + b"\0", 1))
    with pytest.raises(InputError, match="its format strings have 65,537 bytes; 65,536 are the most"):
        elf_strings(tmp_path / "own")
    (tmp_path / "own").write_bytes(elf_of(b"%lc\0", 1))
    with pytest.raises(InputError, match="%lc cannot be logged"):
        elf_strings(tmp_path / "own")


def elf_of(section, wide):
    """An ELF file with two sections: the names, and that of the strings."""
    names = b"\0.names\0hypermon_log\0"
    start = 64 if wide else 52
    table = start + len(names) + len(section)
    if wide:
        head = struct.pack("<4sBB34xQ10xHHH", b"\x7fELF", 2, 1, table, 64, 2, 0)
        rows = [struct.pack("<I20xQQ24x", name, at, size) for name, at, size in (
            (1, start, len(names)), (8, start + len(names), len(section)))]
    else:
        head = struct.pack("<4sBB26xI10xHHH", b"\x7fELF", 1, 1, table, 40, 2, 0)
        rows = [struct.pack("<I12xII16x", name, at, size) for name, at, size in (
            (1, start, len(names)), (8, start + len(names), len(section)))]
    return head + names + section + b"".join(rows)


def test_what_is_no_program(tmp_path, compile_c, made, capsys):
    folder, _ = made
    (tmp_path / "text").write_text("no ELF")
    with pytest.raises(InputError, match="not an ELF file"):
        elf_strings(tmp_path / "text")
    (tmp_path / "short").write_bytes(b"\x7fELF\x02\x01")
    # Its only section has a name that does not end.
    (tmp_path / "endless").write_bytes(struct.pack("<4sBB34xQ10xHHH", b"\x7fELF", 2, 1, 64, 64, 1, 0)
                                       + struct.pack("<I20xQQ16x", 64, 64, 10))
    with pytest.raises(InputError, match="its ELF headers are damaged"):
        elf_strings(tmp_path / "endless")
    with pytest.raises(InputError, match="damaged"):
        elf_strings(tmp_path / "short")
    with pytest.raises(InputError, match=r"no HM_LOG\(\) is in"):
        elf_strings(compile_c("int main(void) { return 0; }"))
    strange = compile_c('static const char s[] __attribute__((section("hypermon_log"), used)) = "%s";\n'
                        "int main(void) { return 0; }")
    with pytest.raises(InputError, match="%s cannot be logged"):
        elf_strings(strange)
    assert cli._run(["dict", str(folder / "hand.toml"), "--elf", str(strange)]) == 2
    assert "belong together" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [
    ("[logging]\npiece = 300", "piece"), ("[logging]\nwhat = 1", "what"), ("[logging]\nlog = 1\ntext = 1", "differ"),
    ("[logging]\n[logging.strings]\nx = \"a\"", "a number and a text"),
    ("[logging]\n[logging.strings]\n1 = \"%s\"", "%s cannot"), ("[a]\nid = 0xfc\n[logging]", "is an id of logging")])
def test_tables_that_are_wrong(tmp_path, text, said):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        load_dictionary(tmp_path / "x.toml")


def test_through_the_board(made, tmp_path: Path, capsys):
    """Played on the virtual board: the table, the export, the trace and the lines."""
    folder, printed = made
    run = tmp_path / "run"
    assert cli._run(["sim", str(folder / "out.csv"), "-o", str(run), "--config", "extended", "--mode", "event",
                     "--nodes", "4"]) == 0
    assert cli._run(["decode", str(run), "--dictionary", str(folder / "own.toml")]) == 0
    said = capsys.readouterr().out
    assert "unknown ids" not in said
    texts = [TEXT[:i] for i in range(61)]
    table: pa.Table = open_run(run).sql("from logs").to_arrow_table()
    assert [row["text"] for row in table.to_pylist() if row["text"] is not None] == texts + printed
    assert cli._run(["export", str(run), "--to", "logs", str(tmp_path / "x.csv")]) == 0
    with open(tmp_path / "x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows if row["name"] != "record"] == texts + printed
    capsys.readouterr()
    assert cli._run(["tail", str(run), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines if line.get("name") in ("log", "text")] == texts + printed
    assert not [line for line in lines if line["kind"] == "event"]
    assert cli._run(["export", str(run), "--to", "perfetto", str(tmp_path / "x.pf")]) == 0
    data = (tmp_path / "x.pf").read_bytes()
    assert all(text.encode() in data for text in printed)


def lines_of(folder, program):
    """The log lines of a program's writes, filled with its strings."""
    (folder / "own.toml").write_text("[logging]\n")
    assert cli._run(["dict", str(folder / "own.toml"), "--elf", str(program), "-o", str(folder / "log.toml")]) == 0
    joiner = Joiner(load_dictionary(folder / "log.toml"))
    return [line.text for line in joiner.add(events_of(folder)) if line.name == "log"]


def test_cpp_writes_what_c_writes(compile_c, made, tmp_path):
    """Values of every type, with warnings as errors; the strings are the same, so are all lines."""
    program = compile_c(PROGRAM, *LOOSE, "-DHM_EDGES=1", language="g++11")
    subprocess.run([program, tmp_path / "out.csv"], check=True, timeout=patience(60), capture_output=True)
    own = load_dictionary(made[0] / "own.toml").logging.strings
    assert sorted(elf_strings(program).values()) == sorted(own.values())
    assert lines_of(tmp_path, program) == made[1]


#: Functions that the compiler writes several times, or in several source files, and their lines.
HEADER = r"""
#define _POSIX_C_SOURCE 200809L
#include "hypermon.h"
#include "hypermon/log.h"
extern hm_port port;
void other();
struct Sensor {
    void read(int value) { HM_LOG(&port, "sensor %d mV", value); HM_LOG(&port, "again %d", value); }
    static void empty() { HM_LOG(&port, ""); }
};
namespace inner {
template <typename type> type half(type value) { HM_LOG(&port, "half of %lld", (long long)value); return value / 2; }
template <int number> struct Numbered { void say() const { HM_LOG(&port, "number %d", number); } };
inline void twice() { HM_LOG(&port, "in\a \"quotes\" \\ \303\274 " "and two literals %" "d", 2); }
}
inline void long_line(int value)
{
    HM_LOG(&port, "@LONG@ %d", value);
}
"""
FIRST = r"""
hm_port port;
int main(int, char **argv)
{
    hm_port *all[1] = {&port};
    uint64_t start = hm_virtual_now();
    FILE *out = fopen(argv[1], "w");
    if (out == NULL || hm_virtual_open(&port, 100000) != 0)
        return 1;
    HM_LOG(&port, "begin");
    Sensor().read(5);
    Sensor::empty();
    inner::half(-7);
    inner::half(9.5);
    inner::half(5000000000LL);
    inner::Numbered<3>().say();
    inner::Numbered<4>().say();
    inner::twice();
    auto lambda = [](int value) { HM_LOG(&port, "lambda %d", value); };
    for (int value = 0; value < 3; value++)
        lambda(value);
    long_line(1);
    other();
    return hm_virtual_save(out, all, 1, start) != 0 || fclose(out) != 0;
}
"""
SECOND = r"""
static void own() { HM_LOG(&port, "the other's own"); }
void other() { own(); Sensor().read(6); inner::half(-7); inner::Numbered<4>().say(); inner::twice(); long_line(2); }
"""
LONG = "0123456789" * 44


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O3", "-std=c++17"], ["-Os", "-fPIC"], ["-ffunction-sections"]])
def test_functions_that_are_written_several_times(compile_c, tmp_path, flags):
    """Members, inline functions and templates, in two source files."""
    header = HEADER.replace("@LONG@", LONG)
    (tmp_path / "second.cpp").write_text(header + SECOND)
    program = compile_c(header + FIRST, *LOOSE, *flags, "-DHM_EDGES=1", str(tmp_path / "second.cpp"), language="g++11")
    subprocess.run([program, tmp_path / "out.csv"], check=True, timeout=patience(60), capture_output=True)
    in_both = ["half of -7", "number 4", 'in\a "quotes" \\ \u00fc and two literals 2']
    assert lines_of(tmp_path, program) == [
        "begin", "sensor 5 mV", "again 5", "", "half of -7", "half of 9", "half of 5000000000", "number 3",
        *in_both[1:], "lambda 0", "lambda 1", "lambda 2",
        f"{LONG} 1", "the other's own", "sensor 6 mV", "again 6", *in_both,
        f"{LONG} 2"]


@pytest.mark.parametrize("machine", CPP_MACHINES)
def test_cpp_of_other_processors(tmp_path, machine):
    """Their assemblers place the same strings."""
    compiler, *flags = machine.split()
    try:
        compiler = working(compiler)
    except MissingError as missing:
        pytest.skip(str(missing))
    (tmp_path / "x.cpp").write_text(HEADER.replace("@LONG@", LONG) + SECOND)
    subprocess.run([compiler, *flags, "-std=gnu++11", "-Os", "-ffreestanding", "-DHM_TARGET=HM_TARGET_NONE", "-Wall",
                    "-Wextra", "-Werror", "-Wno-format-zero-length", f"-I{NODE}", "-c", tmp_path / "x.cpp",
                    "-o", tmp_path / "x.o"],
                   check=True, timeout=patience(60))
    number = "%hd" if compiler.endswith("avr-g++") else "%d"
    assert sorted(elf_strings(tmp_path / "x.o").values()) == sorted([
        "the other's own", f"sensor {number} mV", f"again {number}", "half of %lld", f"number {number}",
        f'in\a "quotes" \\ \u00fc and two literals {number}', f"{LONG} {number}"])
