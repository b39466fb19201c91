"""The readers of dumps and of CSV files against others: pyvcd, and readers as plain as possible."""

import io
import os
import random
import re
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.csv_file import read_csv
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.port_mapping import Mapping
from hypermon.sim.stimulus.rows import joined
from hypermon.sim.stimulus.vcd_file import read_vcd

reader = pytest.importorskip("vcd.reader", reason="pyvcd comes with hypermon[sim]")

#: Inputs of each kind in the slow tests: ``HYPERMON_INPUTS=340000`` for more.
INPUTS = int(os.environ.get("HYPERMON_INPUTS", "20000"))

Changes = tuple[int, list[tuple[int, int]]]
CHANNELS = ("v[0]", "v[1]", "w", "v[3]", "s")
KNOWN = {"0": 0, "1": 1, "l": 0, "h": 1}
#: Femtoseconds.
UNITS = {"s": 10**15, "ms": 10**12, "us": 10**9, "ns": 10**6, "ps": 1000, "fs": 1}


def dump(rng: random.Random) -> bytes:
    """Three variables in a scope, and changes of them. Values are those of Verilog: pyvcd reads no others."""
    def blank() -> str:
        return rng.choice([" ", "\n", "\t", " \n "])

    number = rng.choice([1, 10, 100])
    unit = rng.choice(["ps", "ns", "us", "fs"])
    left, right = rng.choice([(3, 0), (0, 3)])
    digits = rng.choice(["01", "01xz", "01XZ", "0011x"])
    text = [f"$timescale {number}{blank()}{unit} $end", "$scope module top $end",
            f"$var wire 4 ! v [{left}:{right}] $end", '$var reg 1 " w $end', "$var wire 1 s s $end",
            "$var real 64 r volts $end", "$upscope $end", "$enddefinitions $end"]
    time = 0
    for _ in range(rng.randrange(12)):
        if rng.random() < 0.8:
            time += rng.choice([0, 1, 1, 5, 1000])
            text.append(f"#{time}")
        for _ in range(rng.randrange(4)):
            text.append(rng.choice([
                lambda: f'{rng.choice(digits)}"', lambda: f"{rng.choice(digits)}s", lambda: f"{rng.choice(digits)}s",
                lambda: f"b{''.join(rng.choices(digits, k=rng.randint(1, 4)))} !", lambda: "r1.5 r",
                lambda: f"$dumpvars {rng.choice(digits)}s $end", lambda: "$comment #5 1s $end"])())
    return "".join(word + blank() for word in text).encode()


def by_pyvcd(data: bytes) -> Changes:
    """The port of :data:`CHANNELS`: its level at the first time, and changes after it."""
    factor, right, now, began = 0, 0, 0, False
    names: dict[str, str] = {}
    levels: dict[str, int] = {}
    # Time and levels of each sample; -1: unknown from the beginning.
    samples: list[tuple[int, dict[str, int]]] = []
    for token in reader.tokenize(io.BytesIO(data)):
        kind = token.kind
        if kind is reader.TokenKind.TIMESCALE:
            factor = token.timescale.magnitude.value * UNITS[token.timescale.unit.value]
        elif kind is reader.TokenKind.VAR:
            names[token.var.id_code] = token.var.reference
            if token.var.reference == "v":
                right = token.var.bit_index[1]
        elif kind is reader.TokenKind.CHANGE_TIME:
            if (began and token.data != now) or (levels and not began and token.data != 0):
                samples.append((now, dict(levels)))
            now, began = token.data, True
        elif kind in (reader.TokenKind.CHANGE_SCALAR, reader.TokenKind.CHANGE_VECTOR):
            vector = kind is reader.TokenKind.CHANGE_VECTOR
            change = token.vector_change if vector else token.scalar_change
            word = format(change.value, "b") if isinstance(change.value, int) else str(change.value).lower()
            name = names[change.id_code]
            for channel in CHANNELS:
                if channel.partition("[")[0] != name:
                    continue
                place = abs(int(channel[2:-1]) - right) if "[" in channel else 0
                digit = word.rjust(4, "0" if word[0] in "01lh" else word[0])[-1 - place]
                if digit in KNOWN:
                    levels[channel] = KNOWN[digit]
                else:
                    levels.setdefault(channel, 0 if samples else -1)
    samples.append((now, levels))
    initial = {channel: next((level for _, sample in samples if (level := sample.get(channel, 0)) >= 0), 0)
               for channel in CHANNELS}
    ports = []
    for _, sample in samples:
        of = [sample.get(channel, 0) for channel in CHANNELS]
        ports.append(sum((initial[channel] if level < 0 else level) << bit
                         for bit, (channel, level) in enumerate(zip(CHANNELS, of, strict=True))))
    seen = {-(-time * factor // 1000): port for (time, _), port in zip(samples[1:], ports[1:], strict=True)}
    return ports[0], changed(ports[0], list(seen.items()))


def changed(shown: int, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rows that change something."""
    result = []
    for time, port in rows:
        if port != shown:
            result.append((time, port))
        shown = port
    return result


def by_hypermon(path: Path) -> Changes:
    """The same; changes that change nothing, where a strobe has had no width, are left out."""
    (track,) = read_vcd(InputFile(str(path)), [Mapping("", str(path), 0, CHANNELS, None, None)])
    rows, _ = joined(track.rows(0))
    return track.initial, changed(track.initial, list(zip(rows.time.tolist(), rows.port.tolist(), strict=True)))


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A few bytes after the declarations are replaced, removed or repeated."""
    end = data.index(b"$enddefinitions $end") + 21
    head, data = data[:end], data[end:]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice([b"", bytes([rng.choice(b"01xzb#$! \n\"svw[]:39")]), data[at:at + 5] * 2]) + data[
            at + rng.randrange(3):]
    return head + data


@pytest.mark.parametrize(("first", "count"), [(0, 1500), pytest.param(1500, INPUTS, marks=pytest.mark.slow)])
def test_dumps(tmp_path: Path, first: int, count: int) -> None:
    path = tmp_path / "x.vcd"
    for seed in range(first, first + count):
        data = dump(random.Random(seed))
        path.write_bytes(data)
        assert by_hypermon(path) == by_pyvcd(data), (seed, data)


@pytest.mark.parametrize(("first", "count"), [(0, 1500), pytest.param(1500, INPUTS, marks=pytest.mark.slow)])
def test_damaged_dumps(tmp_path: Path, first: int, count: int) -> None:
    """Both read the same, or one of them rejects it."""
    path, both = tmp_path / "x.vcd", 0
    for seed in range(first, first + count):
        rng = random.Random(seed)
        data = mutated(rng, dump(rng))
        if re.search(rb"\$end(?!definitions)\S", data):
            continue  # pyvcd ends a comment there, though it is no word
        path.write_bytes(data)
        try:
            mine = by_hypermon(path)
        except InputError:
            continue
        try:
            other = by_pyvcd(data)
        except Exception:  # of pyvcd, or because the declarations are others
            continue
        both += 1
        assert mine == other, (seed, data)
    assert both > count // 10


def plainly(text: str) -> list[tuple[int, int, int]] | None:
    """Rows of a CSV file; None if it is malformed."""
    head, *lines = text.split("\n")
    if head.rstrip("\r") != "time_ns,node,port":
        return None
    while lines and not lines[-1].strip():
        lines.pop()
    rows: list[tuple[int, int, int]] = []
    before = Decimal(0)
    for line in lines:
        fields = [field.strip(" \t\r") for field in line.split(",")]
        if len(fields) != 3 or not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", fields[0], re.ASCII):
            return None
        if not all(re.fullmatch(r"[+-]?\d+", field, re.ASCII) for field in fields[1:]):
            return None
        time, node, port = Decimal(fields[0]), int(fields[1]), int(fields[2])
        if time < before or not 0 <= node < 16 or not 0 <= port < 32:
            return None
        before = time
        rows.append((int((time * 1000).to_integral_value(ROUND_CEILING)), node, port))
        if rows[-1][0] >= 1 << 63:
            return None
    return rows


@pytest.mark.parametrize(("first", "count"), [(0, 3000), pytest.param(3000, INPUTS, marks=pytest.mark.slow)])
def test_csv(tmp_path: Path, first: int, count: int) -> None:
    """Rows, and damaged ones: the same rows, or both reject them."""
    path = tmp_path / "x.csv"
    for seed in range(first, first + count):
        rng = random.Random(seed)
        time, lines = Decimal(0), ["time_ns,node,port"]
        for _ in range(rng.randrange(6)):
            time += rng.choice([Decimal(0), Decimal(1), Decimal("0.25"), Decimal("1000.0001"), Decimal(10)**12])
            lines.append(f"{time},{rng.randrange(16)},{rng.randrange(32)}")
        text = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
        if rng.random() < 0.7 and len(lines) > 1:
            at = rng.randint(min(len(text), 19), len(text))
            some = rng.choice(["", "0", "-", "+", ".", ",", " ", "\n", "e1", "x", "\t", "9" * 20, '"'])
            text = text[:at] + some + text[at + rng.randrange(3):]
        path.write_bytes(text.encode())
        try:
            rows = read_csv(InputFile(str(path)), 16)
            mine = list(zip(rows.time.tolist(), rows.node.tolist(), rows.port.tolist(), strict=True))
        except InputError:
            mine = None
        assert mine == plainly(text), (seed, text)
