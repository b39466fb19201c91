"""Port writes as comma-separated values: exact times, every malformed row."""

import random
import re
from decimal import Decimal
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus import csv_file
from hypermon.sim.stimulus.csv_file import read_csv
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.stimulus import load

HEADER = "time_ns,node,port\n"


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file of 16 nodes."""
    def read(text, nodes=16, port_bits=4):
        path = tmp_path / "in.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_csv(InputFile(str(path)), nodes, port_bits)
    return read


def columns(rows):
    return list(zip(rows.time.tolist(), rows.node.tolist(), rows.port.tolist(), strict=True))


def test_rows(read):
    assert columns(read(HEADER + "0,0,3\n0,1,19\n12.5,15,31\n12.5,15,0\n")) == [
        (0, 0, 3), (0, 1, 19), (12_500, 15, 31), (12_500, 15, 0)]


@pytest.mark.parametrize("text", [
    "time_ns,node,port", HEADER, HEADER + "\n", HEADER + "\r\n\n", "\ufeff" + HEADER, '"time_ns","node","port"\n'])
def test_header_alone_is_valid(read, text):
    assert len(read(text)) == 0


@pytest.mark.parametrize("text", [
    HEADER + "1,2,3", HEADER + "1,2,3\n\n", HEADER.replace("\n", "\r\n") + "1,2,3\r\n", HEADER + " 1 ,\t2, 3\n",
    HEADER + "+1,+2,3\n", HEADER + "1e0,2,3\n", HEADER + "0.1E1,2,3\n", HEADER + "1.,02,3\n", HEADER + "001,2,3\n",
    "\ufeff" + HEADER + "1,2,3\n"])
def test_ways_to_write_a_row(read, text):
    assert columns(read(text)) == [(1000, 2, 3)]


@pytest.mark.parametrize(("text", "picoseconds"), [
    ("0.001", 1), ("0.0001", 1), ("0.3", 300), (".3", 300), ("0.30000000000000004", 301), ("1e-9", 1), ("-0", 0),
    ("4503599627370496.001", 4503599627370496001),  # beyond what a float holds
    ("9007199254740993", 9007199254740993000), ("9223372036854775.807", 2**63 - 1),
    ("9.223372036854775807e15", 2**63 - 1)])
def test_times_are_exact_and_rounded_up(read, text, picoseconds):
    assert columns(read(HEADER + text + ",0,0\n")) == [(picoseconds, 0, 0)]


@pytest.mark.parametrize("decimals", range(6))
def test_random_times_are_exact(read, decimals, monkeypatch):
    rng = random.Random(decimals)
    times = sorted(rng.randrange(10**rng.randrange(1, 20)) for _ in range(300))
    texts = [str(Decimal(time).scaleb(-decimals)) for time in times]
    if decimals <= 3 and "E" not in "".join(texts):
        # Plain numbers never need the slow reader.
        monkeypatch.setattr(csv_file, "_read_slowly", None)
    texts = [t for t in texts if Fraction(t) * 1000 < 2**63]
    rows = read(HEADER + "".join(f"{text},3,{i % 32}\n" for i, text in enumerate(texts)))
    assert rows.time.tolist() == [ceil(Fraction(text) * 1000) for text in texts]
    assert rows.port.tolist() == [i % 32 for i in range(len(texts))]


def test_both_readers_agree(read, monkeypatch):
    rng = random.Random(1)
    text = HEADER
    time = 0
    for _ in range(2000):
        time += rng.randrange(3) * rng.randrange(10**6)
        text += f"{Decimal(time).scaleb(-3)},{rng.randrange(16)},{rng.randrange(32)}\n"
    fast = read(text)
    monkeypatch.setattr(csv_file, "_read_fast", lambda *_: None)
    slow = read(text)
    for name in ("time", "node", "port"):
        assert (getattr(fast, name) == getattr(slow, name)).all()
        assert getattr(fast, name).dtype == getattr(slow, name).dtype


#: Rows, the line that is wrong, a part of the reason.
MALFORMED = [
    ("1,2\n", 2, "3 fields"), ("1,2,3,4\n", 2, "3 fields expected (time_ns,node,port), not 4"),
    ("1,2,3,\n", 2, "3 fields"), ("\n1,2,3\n", 2, "not 0"), ("1,2,3\n\n2,2,3\n", 3, "3 fields"),
    ("1;2;3\n", 2, "3 fields"), ("1,2,3 # comment\n", 2, "port is not a number"),
    ("x,2,3\n", 2, "time_ns is not a number: 'x'"), (",2,3\n", 2, "time_ns is not a number"),
    ("nan,2,3\n", 2, "not a number"), ("inf,2,3\n", 2, "not a number"), ("0x10,2,3\n", 2, "not a number"),
    ("1_000,2,3\n", 2, "not a number"), ("1e,2,3\n", 2, "not a number"), ("1.2.3,2,3\n", 2, "not a number"),
    ("\u0663,2,3\n", 2, "not a number"), ('"1",2,3\n', 2, "not a number"), ("NULL,2,3\n", 2, "not a number"),
    ("1,two,3\n", 2, "node is not a number: 'two'"), ("1,2.0,3\n", 2, "node is not a number"),
    ("1,,3\n", 2, "node is not a number"), ("1,2,0x1f\n", 2, "port is not a number"),
    ("1,2,\n", 2, "port is not a number"), ("1,2,1e1\n", 2, "port is not a number"),
    ("-1,2,3\n", 2, "negative time: -1"), ("-0.0001,2,3\n", 2, "negative"), ("-1e99,2,3\n", 2, "negative"),
    ("5,2,3\n4.999,2,3\n", 3, "time decreases: 4.999 after 5"), ("1.0004,2,3\n1.0003,2,3\n", 3, "decreases"),
    ("9223372036854775.808,2,3\n", 2, "beyond 2^63 ps"), ("1e99,2,3\n", 2, "beyond 2^63 ps"),
    ("9223372036854775.8071,2,3\n", 2, "beyond 2^63 ps"), ("99999999999999999999999999,2,3\n", 2, "beyond 2^63 ps"),
    ("1,16,3\n", 2, "node 16 is not in 0..15"), ("1,-1,3\n", 2, "node -1 is not in 0..15"),
    ("1,65552,3\n", 2, "node 65552 is not"), ("1,2,32\n", 2, "port 32 is not in 0..31"),
    ("1,2,-1\n", 2, "port -1 is not"), ("1,2,288\n", 2, "port 288 is not"),
    ("1,2,99999999999999999999\n", 2, "port 99999999999999999999 is not"),
    ("1,2,3\n2,2,3\n3,2,3\n4,2,x\n5,99,3\n", 5, "port is not a number"), ("1,2,\xff\n".encode("latin-1"), 2, "port"),
    ("1,2,3\x00\n", 2, "port"), ("1,2,3\r2,2,3\n", 2, "3 fields expected (time_ns,node,port), not 5"),
    # More digits than Python reads at once.
    ("9" * 5000 + ",2,3\n", 2, "beyond 2^63 ps"), ("-" + "9" * 5000 + ",2,3\n", 2, "negative"),
    ("1," + "9" * 5000 + ",3\n", 2, "is not in 0..15"), ("1,-" + "9" * 5000 + ",3\n", 2, "is not in 0..15"),
    ("1,2," + "9" * 5000 + "\n", 2, "is not in 0..31"), ("1." + "9" * 5000 + "x,2,3\n", 2, "not a number"),
    ("1e" + "9" * 5000 + ",2,3\n", 2, ""), ("5,2,3\n4." + "9" * 5000 + ",2,3\n", 3, "time decreases"),
]


@pytest.mark.parametrize(("rows", "line", "reason"), MALFORMED)
def test_malformed_rows(read, rows, line, reason):
    rows = rows if isinstance(rows, bytes) else rows.encode()
    with pytest.raises(InputError) as error:
        read(HEADER.encode() + rows)
    assert error.value.line == line
    assert reason in error.value.reason
    assert str(error.value).startswith(f"{error.value.file}:{line}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [
    "", "\n", "1,2,3\n", "time,node,port\n", "time_ns,node\n", "time_ns,node,port,x\n", "node,time_ns,port\n1,2,3\n",
    "\n" + HEADER, b"\xff\xfe\x00"])
def test_missing_header(read, text):
    with pytest.raises(InputError, match=r"in\.csv:1: the header time_ns,node,port is missing"):
        read(text)


def test_ports_of_8_bits(read, monkeypatch):
    """The strobe is bit 8, and both readers know."""
    text = HEADER + "0,0,255\n1,0,511\n2,1,256\n"
    want = [(0, 0, 255), (1000, 0, 511), (2000, 1, 256)]
    assert columns(read(text, port_bits=8)) == want
    monkeypatch.setattr(csv_file, "_read_fast", lambda *_: None)
    assert columns(read(text, port_bits=8)) == want
    with pytest.raises(InputError, match=r"3: port 512 is not in 0\.\.511"):
        read(HEADER + "0,0,3\n1,0,512\n", port_bits=8)


def test_node_within_the_board(read):
    assert len(read(HEADER + "1,31,3\n", nodes=32)) == 1
    with pytest.raises(InputError, match=r"node 2 is not in 0\.\.1"):
        read(HEADER + "1,2,3\n", nodes=2)


def test_unreadable(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load([tmp_path / "none.csv"])
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load([tmp_path / "none"])


def test_malformed_late_in_a_big_file(read):
    """The place of a fault is exact behind what the fast reader takes."""
    rows = HEADER + "".join(f"{i},0,{i % 32}\n" for i in range(100_000))
    assert len(read(rows)) == 100_000
    with pytest.raises(InputError, match=r":100002: time decreases"):
        read(rows + "5,0,0\n")


def test_the_last_of_two_rows_counts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "5,1,1\n5,0,2\n5,1,3\n5,1,4\n6,1,5\n")
    stimulus = load([path])
    assert list(zip(stimulus.time_ps.tolist(), stimulus.node.tolist(), stimulus.port.tolist(), strict=True)) == [
        (5000, 0, 2), (5000, 1, 4), (6000, 1, 5)]


def test_arrays_are_what_the_board_takes(read):
    rows = read(HEADER + "1,2,3\n")
    assert (rows.time.dtype, rows.node.dtype, rows.port.dtype) == (np.int64, np.int16, np.uint8)


@pytest.mark.parametrize(("text", "said"), [
    (b"time_ns\tnode\tport\n1\t0\t5\n", "instead there is time_ns node port"),
    (b"time_ns,node,port\r1,0,5\r", "its lines end with carriage returns alone: convert them with tr"),
    (b"\x01\x02,\n", "it is no text")])
def test_what_is_there_instead_of_a_header(tmp_path, text, said):
    """The message says what the file is, and does not call a text none."""
    path = tmp_path / "in.csv"
    path.write_bytes(text)
    with pytest.raises(InputError, match=re.escape(said)):
        read_csv(InputFile(str(path)), 16)
