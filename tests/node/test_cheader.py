"""Headers made of event dictionaries: compiled, and what their functions write is read back with the dictionary."""

import json
import random
import re
import struct
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from cross import NODE
from hypermon.host.dictionary.c_header import c_header
from hypermon.host.dictionary.dictionary import Dictionary, load_dictionary
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.errors import HypermonError
from port_reader import Event, read_events, read_nibbles, read_writes

from tests.patience import patience

#: Every type and width that is different, names that mean something in C, text that would end a comment.
WORK = """
[tick]
id = 0
doc = "Nothing */ in it /* at all."

[numbers]
id = 0x11
fields = { a = "u8", b = "i16", c = "u32", d = "i56" }

[bits]
id = 0x12
[bits.fields]
flag = "u1"
small = "i3"
wide = { type = "u23", doc = "Over four bytes." }
rest = { type = "i5", values = { least = -16, none = 0 } }
long = "u64"

[reals]
id = 0x13
fields = { f = "f32", d = "f64" }

[text]
id = 0x14
[text.fields]
who = "char[4]"
raw = "bytes[3]"
int = "u8"
port = "u8"
SIZE_MAX = "u8"
errno_value = "u8"
errno = "u8"

[line]
id = 0x15
fields = { level = { type = "u4", values = { low = 0, high = 15 } }, unused = "u4", said = "string" }

[dump]
id = 0x16
fields = { level = { type = "u4", values = { low = 0, high = 15 } }, unused = "u4", data = "bytes" }

[big]
id = 0xff
[big.fields.x]
type = "i64"
values = { least = -9223372036854775808, most = 9223372036854775807, some = -5 }
[big.fields.y]
type = "u48"
values = { most = 281474976710655 }
"""

PROGRAM = r"""
#define _POSIX_C_SOURCE 200809L
#include "work.h"

int main(int argc, char **argv)
{
    hm_port port, *ports = &port;
    const uint64_t start = hm_virtual_now();
    unsigned char payload[HM_PAYLOAD_MAX] = { 0 };
    if (argc != 2 || hm_virtual_open(&port, 10000) != 0)
        return 1;
    if (work_tick(&port) || work_numbers(&port, 200, -2, 0x89abcdef, -36028797018963968) ||
        work_bits(&port, 1, -3, 0x654321, WORK_REST_LEAST, UINT64_C(0xfedcba9876543210)) ||
        work_reals(&port, 1.5f, -0.1) || work_text(&port, "ab", "\1\2\3", 4, 5, 6, 7, 8) ||
        work_text(&port, "abcd", "\1\2\3", 4, 5, 6, 7, 8) ||
        work_line(&port, WORK_LEVEL_HIGH, 0, "13 characters") || work_line(&port, 7, 9, "") ||
        work_dump(&port, WORK_LEVEL_LOW, 1, "\0\1", 2) || work_dump(&port, 0, 1, NULL, 0) ||
        work_big(&port, WORK_X_LEAST, WORK_Y_MOST) || work_big(&port, WORK_X_MOST, 1) ||
        work_big(&port, WORK_X_SOME, 2))
        return 2;
    if (work_text(&port, "abcde", "\1\2\3", 4, 5, 6, 7, 8) != -1 || work_line(&port, 0, 0, "fourteen chars") != -1 ||
        work_dump(&port, 0, 0, payload, 14) != -1)
        return 3;
    if (work_bits_pack(payload, 1, -3, 0x654321, 0, 0) != 12 || payload[0] != (1 | 5 << 1 | 1 << 4) ||
        work_line_pack(payload, 0, 0, "abc") != 4 || WORK_BIG != 255)
        return 4;
    return hm_virtual_save(fopen(argv[1], "w"), &ports, 1, start);
}
"""


def dictionary(folder: Path, text: str) -> Dictionary:
    path = folder / "work.toml"
    path.write_text(text)
    return load_dictionary(path)


@pytest.mark.parametrize("language", ["c99", "c11", "g++11", "g++17"])
def test_what_it_writes_is_what_the_dictionary_reads(compile_c, tmp_path: Path, language: str) -> None:
    work = dictionary(tmp_path, WORK)
    (tmp_path / "work.h").write_text(c_header(work, "work.toml", "work"))
    program = compile_c(PROGRAM, f"-I{tmp_path}", language=language)
    out = tmp_path / "out.csv"
    subprocess.run([program, out], check=True, timeout=patience(20))
    events = read_events(read_nibbles(read_writes(out), 1)[0])
    assert events[1][1:] == Event(0, 0x11, struct.pack("<BhI", 200, -2, 0x89abcdef) + b"\0\0\0\0\0\0\x80")[1:]
    table = pa.table({"event": pa.array([e.event for e in events], pa.uint8()),
                      "payload": pa.array([e.payload for e in events], pa.binary())})
    decoded, fit = decode_fields(table, work)
    assert (fit.named, fit.unknown, fit.short, fit.long) == (13, 0, 0, 0)
    known = [{k: v for k, v in row.items() if v is not None and k not in ("event", "payload")}
             for row in decoded.to_pylist()]
    text = {"name": "text", "raw": b"\1\2\3", "int": 4, "port": 5, "SIZE_MAX": 6, "errno_value": 7, "errno": 8}
    assert known == [
        {"name": "tick"},
        {"name": "numbers", "a": 200, "b": -2, "c": 0x89abcdef, "numbers_d": -2**55},
        {"name": "bits", "flag": 1, "small": -3, "wide": 0x654321, "rest": "least", "long": 0xfedcba9876543210},
        {"name": "reals", "f": 1.5, "reals_d": -0.1},
        {**text, "who": "ab"}, {**text, "who": "abcd"},
        {"name": "line", "level": "high", "unused": 0, "said": "13 characters"},
        {"name": "line", "level": "7", "unused": 9, "said": ""},
        {"name": "dump", "level": "low", "unused": 1, "data": b"\0\1"},
        {"name": "dump", "level": "low", "unused": 1, "data": b""},
        {"name": "big", "x": "least", "y": "most"}, {"name": "big", "x": "most", "y": "1"},
        {"name": "big", "x": "some", "y": "2"}]


def test_values_of_one_field_in_two_events(tmp_path: Path) -> None:
    """Named once if they are the same, with the event's name if not."""
    text = c_header(dictionary(tmp_path, """
        [a]
        id = 1
        fields = { s = { type = "u8", values = { x = 1 } }, t = { type = "u8", values = { y = 2 } } }
        [b]
        id = 2
        fields = { s = { type = "u8", values = { x = 3 } }, t = { type = "u8", values = { y = 2 } } }
    """), "work.toml", "w")
    assert re.findall("#define (W_.*)", text)[1:] == ["W_A_S_X 1u", "W_T_Y 2u", "W_B_S_X 3u"]


@pytest.mark.parametrize(("text", "prefix", "reason"), [
    ("", "hm", "names in C cannot begin with 'hm_'"),
    ("", "3d", "names in C cannot begin with '3d_'"),
    ("", "", "names in C cannot begin with '_'"),
    ("[a]\nid = 1\n[a_pack]\nid = 2", "w", "in C w_a_pack would be the packing of a and the function of a_pack"),
    ("[events_h]\nid = 1", "w", "in C W_EVENTS_H would be the header itself and the id of events_h"),
    ("[s_x]\nid = 1\nfields = { s = { type = 'u8', values = { x = 1 } } }", "w",
     "in C W_S_X would be the id of s_x and x of s_x.s"),
    ("[t]\nid = 1", "size", "in C size_t would be the function of t, but has a meaning already; choose another --pre"),
    ("[cast]\nid = 1", "const", "in C const_cast would be the function of cast, but has a meaning already"),
    ("[max]\nid = 1", "int8", "in C INT8_MAX would be the id of max, but has a meaning already"),
])
def test_says_what_cannot_be(tmp_path: Path, text: str, prefix: str, reason: str) -> None:
    with pytest.raises(HypermonError, match=re.escape(f"work.toml: {reason}")):
        c_header(dictionary(tmp_path, text), "work.toml", prefix)


#: Names that have a meaning in C, C++ or the header, or had one with an ending.
NAMES = [
    "text", "text_length", "text_length_", "TEXT", "text_value", "int", "INT", "int_value", "int_length", "payload",
    "payload_value", "length", "port", "hm_i", "hm_0", "_x", "x__y", "X", "x", "I", "uint8_t", "uint64_t", "size_t",
    "NULL", "INT64_C", "true", "class", "new", "and", "linux", "errno", "pack", "d_pack", "event", "events_h",
    "send", "send_pack", "main", "L", "u8", "R"]
TEXTS = ("", "*/", "/*", "/* a */", "\u202e turned", "a??/", "\\", '"', "ü")


def distinct(rng: random.Random, names: list[str], most: int) -> list[str]:
    """Some of the names, none twice but for capital letters."""
    return list({name.lower(): name for name in rng.sample(names, rng.randint(0, most))}.values())


def drawn(rng: random.Random, prefix: str) -> str:
    """A dictionary of a few events, with names that may collide in C."""
    kinds = []
    for number, kind in enumerate(distinct(rng, NAMES, 4)):
        own = [f"{prefix}_{kind}{end}".lower() for end in ("", "_pack", "_length")]
        fields = []
        for name in distinct(rng, [*NAMES, *own], 4):
            form = rng.choice(["u8", "i16", "u24", "u32", "f32", "char[2]", "bytes[1]"])
            more = f', doc = {json.dumps(rng.choice(TEXTS), ensure_ascii=False)}'
            if form in ("u8", "i16", "u24") and rng.random() < 0.3:
                more += f", values = {{ {rng.choice(NAMES)} = {rng.randint(-100 * (form[0] == 'i'), 100)} }}"
            fields.append(f'{name} = {{ type = "{form}"{more} }}')
        taken = {field.partition(" ")[0].lower() for field in fields}
        if rng.random() < 0.5 and (free := [name for name in NAMES if name.lower() not in taken]):
            fields.append(f'{rng.choice(free)} = "{rng.choice(["bytes", "string"])}"')
        doc = json.dumps(rng.choice(TEXTS), ensure_ascii=False)
        kinds.append(f"[{kind}]\nid = {number}\ndoc = {doc}\n[{kind}.fields]\n" + "\n".join(fields))
    return "\n".join(kinds)


@pytest.mark.parametrize(("first", "count"), [(0, 400), pytest.param(400, 10_000, marks=pytest.mark.slow)])
def test_every_header_compiles(tmp_path: Path, first: int, count: int) -> None:
    """Or the dictionary is rejected: its file is malformed, or two things would have one name."""
    headers = []
    for seed in range(first, first + count):
        prefix = f"d{seed}"
        try:
            work = dictionary(tmp_path, drawn(random.Random(seed), prefix))
            (tmp_path / f"{prefix}.h").write_text(c_header(work, "work.toml", prefix))
        except HypermonError:
            continue
        headers.append(f'#include "{prefix}.h"\n')
    assert len(headers) > count // 3
    for begin in range(0, len(headers), 400):
        (tmp_path / "all.c").write_text('#define HM_TARGET 0\n' + "".join(headers[begin:begin + 400]))
        for language in (["-std=c99"], ["-x", "c++", "-std=c++17"]):
            done = subprocess.run(["cc", *language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{NODE}",
                                   "all.c"], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[:2000]


def test_a_length_beside_a_field_of_that_name(compile_c, tmp_path: Path) -> None:
    work = dictionary(tmp_path, """
        [c]
        id = 1
        fields = { text_length = "u16", text = "bytes" }
    """)
    header = c_header(work, "work.toml", "t")
    (tmp_path / "work.h").write_text(header)
    assert "int t_c(hm_port *port, uint16_t text_length, const void *text, size_t text_length_)" in header
    compile_c('#define HM_TARGET 0\n#include "work.h"\nint main(void) { return 0; }\n', f"-I{tmp_path}")


def test_no_events(compile_c, tmp_path: Path) -> None:
    (tmp_path / "work.h").write_text(c_header(dictionary(tmp_path, ""), "work.toml", "work"))
    compile_c('#define HM_TARGET 0\n#include "work.h"\nint main(void) { return 0; }\n', f"-I{tmp_path}")
