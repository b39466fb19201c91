"""Nodes with fewer wires in a capture: what ``--port`` says of them, their levels, and the time of a byte."""

import random
from fractions import Fraction

import pytest
from hypermon.hdl.layout import Front
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.port_mapping import Edge, Wiring, parse_ports
from hypermon.sim.stimulus.serial_span import spans_of
from hypermon.sim.stimulus.stimulus import load

from tests.hdl.harness.senders import Wires, spi
from tests.sim.dump import dump


@pytest.mark.parametrize(("text", "channels", "edge", "wiring"), [
    ("0=TX,uart,115200", ("TX",), None, (Front.UART, 115_200, False)),
    ("a.vcd#1=SWO, swo ,12000000", ("SWO",), None, (Front.SWO, 12_000_000, False)),
    ("2=CLK,DATA,serial", ("DATA", "CLK"), None, (Front.TWO_WIRE, None, False)),
    ("2=CLK,DATA,CS,serial,falling,lsb", ("DATA", "CS", "CLK"), Edge.FALLING, (Front.SELECTED, None, True)),
    (r"2=C\,K,D,serial,msb,rising", ("D", "C,K"), Edge.RISING, (Front.TWO_WIRE, None, False)),
    ("3=uart,uart,9600", ("uart",), None, (Front.UART, 9600, False)),
    ("3=a,b,serial,d,e", ("a", "b", "serial", "d", "e"), None, None),
])
def test_what_an_option_says(text, channels, edge, wiring):
    [mapping] = parse_ports([text], ["a.vcd"], 4)
    assert (mapping.channels, mapping.edge) == (channels, edge)
    assert mapping.wiring == (None if wiring is None else Wiring(text, *wiring))


@pytest.mark.parametrize(("text", "reason"), [
    ("0=TX,uart", "LINE,uart,BAUD expected, with a rate in baud such as 115200"),
    ("0=TX,uart,fast", "LINE,uart,BAUD expected"),
    ("0=TX,uart,0", "LINE,uart,BAUD expected"),
    ("0=,swo,9600", "LINE,swo,BAUD expected"),
    ("0=TX,uart,9600,lsb", "five channel names expected"),
    ("0=C,D,serial,rising,falling", r"CLOCK,DATA\[,SELECT\],serial\[,rising\|falling\]\[,msb\|lsb\] expected"),
    ("0=C,,serial", r"CLOCK,DATA\[,SELECT\],serial"),
    ("0=C,D,serial,fast", "five channel names expected"),
    ("9=TX,uart,9600", r"node 9 is not in 0\.\.3"),
])
def test_what_is_wrong_with_one(text, reason):
    with pytest.raises(InputError, match=rf"--port {text.replace('.', '[.]')}: .*{reason}"):
        parse_ports([text], ["a.vcd"], 4)


def test_levels_are_at_the_bits_of_a_port(tmp_path):
    """The clock or the line is the strobe, the data bit 0, the chip select bit 1."""
    path = dump(tmp_path / "a.vcd", {"TX": (1, [(10, 0), (30, 1)]), "C": (0, [(11, 1)]), "D": (1, [(12, 0)]),
                                     "S": (1, [(5, 0), (13, 1)])})
    read = load([path], nodes=4, ports=["0=TX,uart,115200", "1=C,D,S,serial,falling", "3=C,D,serial"])
    assert list(zip(read.time_ps.tolist(), read.node.tolist(), read.port.tolist(), strict=True)) == [
        (5, 1, 0b00001), (10, 0, 0), (11, 1, 0b10001), (11, 3, 0b10001), (12, 1, 0b10000), (12, 3, 0b10000),
        (13, 1, 0b10010), (30, 0, 0b10000)]
    assert read.initial == [0b10000, 0b00011, 0, 0b00001]
    assert read.edge == [Edge.RISING, Edge.FALLING, Edge.RISING, Edge.RISING]
    assert {node: own.front for node, own in read.wiring.items()} == {
        0: Front.UART, 1: Front.SELECTED, 3: Front.TWO_WIRE}


def clocked(tmp_path, wires, **more):
    """The stimulus of wires in ns, as a node with two or three of them."""
    names = ("C", "D", "S")
    path = dump(tmp_path / "clocked.vcd", {
        name: (wires.initial[k], [(int(1000 * time), level) for time, wire, level in wires.changes if wire == k])
        for k, name in enumerate(names)})
    option = "0=C,D,S,serial" if more.get("select") else "0=C,D,serial"
    return load([path], nodes=1, ports=[option + (",falling" if more.get("mode") in (1, 2) else "")])


@pytest.mark.parametrize("select", [False, True])
@pytest.mark.parametrize("mode", range(4))
def test_span_of_regular_bytes(tmp_path, select, mode):
    """Seven periods and some clocks at least; less than fifteen."""
    rng = random.Random(mode)
    wires, at = Wires([mode >> 1, 0, int(select)]), Fraction(1000)
    for _ in range(20):
        _, at = spi(wires, at, 500, bytes(rng.getrandbits(8) for _ in range(rng.randrange(1, 5))), mode,
                    select=select)
        at += rng.randrange(5000, 9000)
    spans = spans_of(clocked(tmp_path, wires, select=select, mode=mode), [0], 100_000_000)
    assert (spans.least, spans.most, spans.fits) == (7 * 50 + 3, 15 * 50 - 2, True)
    assert spans.least < spans.chosen < spans.most


def test_span_of_slow_and_fast_bytes(tmp_path):
    """A byte of 70 us among bytes of 7 us: its span is longer than two of them."""
    wires, at = Wires(), Fraction(1000)
    _, at = spi(wires, at, 1000, b"\x12\x34\x56")
    _, at = spi(wires, at + 20_000, 4000, b"\x55")
    spans = spans_of(clocked(tmp_path, wires), [0], 100_000_000)
    assert (spans.least, spans.most, spans.fits) == (7 * 400 + 3, 15 * 100 - 2, False)
    assert spans.chosen == spans.least


def test_span_leaves_out_what_is_sent_to_others(tmp_path):
    """Edges while the node is not selected, at a clock that is ten times as slow."""
    wires, at = Wires([0, 0, 1]), Fraction(1000)
    for _ in range(5):
        _, at = spi(wires, at, 5000, b"\x55\x33")
        _, at = spi(wires, at + 5000, 500, b"\x12\x34", select=True)
        at += 5000
    spans = spans_of(clocked(tmp_path, wires, select=True), [0], 100_000_000)
    assert (spans.least, spans.most, spans.fits) == (7 * 50 + 3, 15 * 50 - 2, True)


def test_bits_that_are_no_byte_have_no_span(tmp_path):
    wires = Wires()
    spi(wires, 1000, 1000, b"\x12", bits=7)
    assert spans_of(clocked(tmp_path, wires), [0], 100_000_000) is None
    assert spans_of(clocked(tmp_path, Wires()), [0], 100_000_000) is None
