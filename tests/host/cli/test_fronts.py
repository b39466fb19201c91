"""Options of nodes with fewer wires: what they say, and what is wrong with them."""

import pytest
from hypermon.hdl.layout import Front, Geometry, Sink, front_period
from hypermon.host.cli.settings import fronts_of, rate_settings
from hypermon.host.device.settings import Settings, front_registers
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
    assert front_registers(Settings(), BOARD, "sim:") == {}
    made = front_registers(Settings(spi_hz=8_000_000, uart_baud=115_200, swo_baud=12_000_000), BOARD, "sim:")
    assert made == {"FRONT_SPAN": 125, "UART_PERIOD": front_period(100_000_000, 115_200), "SWO_PERIOD": 2133}


@pytest.mark.parametrize(("wrong", "reason"), [
    ({"spi_hz": 15_000}, "--front-rate spi=15000: a board of 100 MHz receives clocks of 15260 to 50000000 Hz"),
    ({"spi_hz": 51_000_000}, "receives clocks of"),
    ({"uart_baud": 13_000_000}, "--front-rate uart=13000000: a board of"),
    ({"swo_baud": 24_000}, "--front-rate swo=24000: a board of 100 MHz receives at 24420 to 12500000 baud"),
])
def test_rates_that_the_board_cannot_receive(wrong, reason):
    with pytest.raises(HypermonError, match=reason):
        front_registers(Settings(**wrong), BOARD, "sim:")


def test_rates_of_nodes_that_are_not_there():
    for wrong in ({"spi_hz": 10**6}, {"uart_baud": 10**6}, {"swo_baud": 10**6}):
        with pytest.raises(HypermonError, match=r"sim: has no node with .*; hypermon info shows its front ends"):
            front_registers(Settings(**wrong), Geometry.extended(4), "sim:")
    assert front_registers(Settings(spi_hz=10**6), Geometry.extended(4, fronts=(Front.SELECTED,)), "sim:") == {
        "FRONT_SPAN": 1000}
