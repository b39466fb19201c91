"""Options of nodes with fewer wires: what they say, and what is wrong with them."""

import json
import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypermon.hdl.layout import Front, Geometry, Sink, Window, front_period
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.cli import cli
from hypermon.host.cli.settings import fronts_of, lowest_of, modes_of, rate_settings, refuse_edges
from hypermon.host.device.settings import Identity, Settings, front_registers, refuse_settings
from hypermon.host.errors import HypermonError

BOARD = Geometry.extended(4, fronts=(Front.TWO_WIRE, Front.UART, Front.SWO))


def test_fronts():
    assert fronts_of([], 4, Sink.CLASSIC) == ()
    assert fronts_of(["port"], 2, Sink.EXTENDED) == ()
    assert fronts_of(["uart", "1=two_wire", "2=port"], 3, Sink.EXTENDED) == (Front.UART, Front.TWO_WIRE, Front.PORT)


@pytest.mark.parametrize(("text", "sink", "reason"), [
    ("uart", Sink.CLASSIC, "the classic board has ports of five wires; add --config extended"),
    ("spi", Sink.EXTENDED, r"--front spi: expected \[NODE=\]port\|two_wire\|selected\|uart\|swo"),
    ("9=uart", Sink.EXTENDED, "there are nodes 0 to 3"),
])
def test_wrong_fronts(text, sink, reason):
    with pytest.raises(HypermonError, match=reason):
        fronts_of([text], 4, sink)


def test_rates():
    assert rate_settings([], Sink.CLASSIC) == {}
    assert rate_settings(["spi=5000000", "uart=115200", "swo=2000000"], Sink.EXTENDED) == {
        "spi_hz": 5_000_000, "uart_baud": 115_200, "swo_baud": 2_000_000}


@pytest.mark.parametrize("text", ["uart", "uart=", "uart=x", "uart=-1", "uart=0", "i2c=1", "uart=1.5"])
def test_wrong_rates(text):
    with pytest.raises(HypermonError, match=rf"--front-rate {text}: expected spi\|uart\|swo=RATE"):
        rate_settings([text], Sink.EXTENDED)
    with pytest.raises(HypermonError, match="add --config extended"):
        rate_settings(["uart=1000"], Sink.CLASSIC)


def test_registers():
    """Ten periods of an SPI clock; a bit in 1/256 clocks."""
    assert front_registers(Settings(), BOARD, "sim:") == {"FRONT_LOWEST": 0}
    assert front_registers(Settings(), Geometry.extended(4), "sim:") == {}
    made = front_registers(Settings(spi_hz=8_000_000, uart_baud=115_200, swo_baud=12_000_000, lowest=1), BOARD, "sim:")
    assert made == {"FRONT_LOWEST": 1, "FRONT_SPAN": 125, "UART_PERIOD": front_period(100_000_000, 115_200),
                    "SWO_PERIOD": 2133}


@pytest.mark.parametrize(("wrong", "reason"), [
    ({"spi_hz": 900}, "--front-rate spi=900: a board of 100 MHz receives clocks of 954 to 50000000 Hz"),
    ({"spi_hz": 51_000_000}, "receives clocks of"),
    ({"uart_baud": 13_000_000}, "--front-rate uart=13000000: a board of"),
    ({"swo_baud": 700}, "--front-rate swo=700: a board of 100 MHz receives at 763 to 12500000 baud"),
])
def test_rates_that_the_board_cannot_receive(wrong, reason):
    with pytest.raises(HypermonError, match=reason):
        front_registers(Settings(**wrong), BOARD, "sim:")


def test_rates_of_nodes_that_are_not_there():
    for wrong in ({"spi_hz": 10**6}, {"uart_baud": 10**6}, {"swo_baud": 10**6}):
        with pytest.raises(HypermonError, match=r"sim: has no node with .*; hypermon info shows its front ends"):
            front_registers(Settings(**wrong), Geometry.extended(4), "sim:")
    assert front_registers(Settings(spi_hz=10**6), Geometry.extended(4, fronts=(Front.SELECTED,)), "sim:") == {
        "FRONT_LOWEST": 0, "FRONT_SPAN": 1000}


def test_modes():
    """What a node's items are by default follows from its wires."""
    byte, event, nibble = ItemMode.BYTE, ItemMode.EVENT, ItemMode.NIBBLE
    assert modes_of([], 4, Sink.EXTENDED, BOARD.fronts) == ItemModes.of([byte, byte, event, nibble])
    assert modes_of(["event", "3=word", "2=byte", "0=word"], 4, Sink.EXTENDED, BOARD.fronts) == ItemModes.of(
        [ItemMode.WORD, event, byte, ItemMode.WORD])
    assert modes_of(["2=itm"], 4, Sink.EXTENDED, BOARD.fronts) == modes_of([], 4, Sink.EXTENDED, BOARD.fronts)
    assert modes_of([], 4, Sink.CLASSIC, BOARD.fronts) == ItemModes()
    modes = ItemModes.of([byte, byte, event, nibble])
    assert [modes.said(node) for node in range(4)] == [byte, byte, event, nibble]
    assert [modes[node] for node in range(4)] == [event, event, event, nibble]


@pytest.mark.parametrize(("text", "reason"), [
    ("0=nibble", "--mode 0=nibble: node 0 has a serial clock; its modes are word, event, byte, line"),
    ("1=itm", "--mode 1=itm: node 1 has a UART; its modes are word, event, byte, line"),
    ("2=line", "--mode 2=line: node 2 has SWO; its modes are word, event, byte, itm"),
    ("3=byte", "--mode 3=byte: node 3 has a port; its modes are nibble, word, event"),
    ("3=text", r"--mode 3=text: expected \[NODE=\]nibble"),
])
def test_modes_that_a_node_cannot_have(text, reason):
    with pytest.raises(HypermonError, match=reason):
        modes_of([text], 4, Sink.EXTENDED, BOARD.fronts)


def test_edges_of_nodes_that_have_them():
    """Node 0 has a clock, 1 a UART, 2 SWO; 3 a port, which is not among the fronts."""
    refuse_edges([], [], BOARD.fronts)
    refuse_edges(["both", "0=falling", "3=both"], ["after", "3=after"], BOARD.fronts)
    refuse_edges(["1=both"], ["1=after"], ())


@pytest.mark.parametrize(("edges", "samples", "reason"), [
    (["both", "0=both"], [], "--edge 0=both: node 0 has a serial clock, and samples at rising or at falling edges"),
    (["1=falling"], [], "--edge 1=falling: node 1 has a UART, and has no strobe"),
    ([], ["0=after"], "--sample 0=after: node 0 has a serial clock, and samples at the edge of its clock"),
    ([], ["before", "2=before"], "--sample 2=before: node 2 has SWO, and has no strobe"),
])
def test_edges_that_a_node_cannot_have(edges, samples, reason):
    with pytest.raises(HypermonError) as failed:
        refuse_edges(edges, samples, BOARD.fronts)
    assert str(failed.value) == reason


def test_info_names_the_kinds(monkeypatch):
    """In JSON of each node as far as the registers say, and in short of all; for people in short."""
    identity = Identity(4, 4, ("classic", "extended"), 5, 100_000_000, 64, 512, 16, 0, 1, 1,
                        fronts=("two_wire", "uart", "swo"))
    monkeypatch.setattr("hypermon.host.cli.devices.open_device", lambda board: nullcontext(
        SimpleNamespace(identity=identity, geometry=BOARD)))
    said = json.loads(CliRunner().invoke(cli, ["info", "-b", "sim:", "--json"]).stdout)
    assert said["fronts"] == ["two_wire", "uart", "swo"]
    assert said["ports"] == "0=two_wire,1=uart,2=swo,3=port"
    words = CliRunner().invoke(cli, ["info", "-b", "sim:"], env={"COLUMNS": "100"}).stdout
    assert re.search(r"^ports +0=two_wire,1=uart,2=swo,3=port *$", words, re.MULTILINE)
    assert "fronts" not in words


def test_bit_orders():
    assert lowest_of([], 4) == 0
    assert lowest_of(["lsb", "1=msb"], 4) == 0b1101
    with pytest.raises(HypermonError, match=r"--bit-order 9=lsb: there are nodes 0 to 3"):
        lowest_of(["9=lsb"], 4)


@pytest.mark.parametrize(("wrong", "reason"), [
    ({"modes": ItemModes.of([ItemMode.NIBBLE] * 3 + [ItemMode.BYTE])}, "--mode 3=byte: node 3 of sim: has a port,"),
    ({"lowest": 2}, "--bit-order 1=lsb: node 1 of sim: has no two or three wires"),
    ({"modes": ItemModes.of([ItemMode.BYTE] * 2), "window": Window.NS800}, "with windows of one clock only: --window"),
])
def test_settings_that_front_ends_cannot_have(wrong, reason):
    board = Identity(4, 4, ("classic", "extended"), 5, 100_000_000, 64, 512, 16, 0, 1, 1)
    settings = {"window": Window.CLOCK, "sink": Sink.EXTENDED, **wrong}
    with pytest.raises(HypermonError, match=reason):
        refuse_settings(Settings(**settings), board, BOARD, "sim:")
