"""The pieces of the way from bits to a netlist, each on a text that is small enough to read."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("amaranth_boards")
sys.path.insert(0, str(Path(__file__).parent))

import damage
import ice40
from netlist import BitstreamError, Clocks, Wiring, wrapped

CLOCKS = Clocks(oscillator_hz=12_000_000, capture_hz=45_000_000, link_hz=45_000_000)
#: What icebox_vlog writes of a pin's register, a table, a flip-flop and the PLL that clocks them.
VERILOG = """
module chip (input pin_J3, input pin_R9, output pin_B12);

wire n1, pin_J3, n2;
wire pin_R9;
reg n5 = 0;

SB_PLL40_CORE #(
  .FEEDBACK_PATH("SIMPLE"),
  .PLLOUT_SELECT("GENCLK"),
  .DIVR(4'b0000),
  .DIVF(7'b0111011),
  .DIVQ(3'b100)
) PLL_16_33 (
  .REFERENCECLK(pin_J3),
  .PLLOUTGLOBAL(n1),
  .LOCK(n6),
  .BYPASS(n3),
  .RESETB(n4)
);

reg n7;
always @(posedge n1) if (n4) n7 <= pin_R9;
assign n2 = n7;
assign n8  = /* LUT   16 22  4 */ (n2 ? n5 : 1'b0);
/* FF 16 22  4 */ always @(posedge n1) n5 <= n8;
assign pin_B12 = n5;

endmodule
"""
WIRING = Wiring(clock="J3", rx="A1", tx="B12", lamp="C1", lamp_low=True, nodes=(("R9", "R1", "R2", "R3", "R4"),))


def test_the_pll_is_a_clock_of_the_top():
    text, link_hz = ice40.chip(VERILOG, CLOCKS)
    assert "SB_PLL" not in text
    assert "assign n1 = clk & pin_J3 & n4 & ~n3;" in text
    assert "assign n6 = pin_J3 & n4 & ~n3;" in text
    assert link_hz == 45_000_000


@pytest.mark.parametrize(("divider", "hz"), [("DIVF(7'b0111011)", 45_750_000), ("DIVQ(3'b100)", 22_500_000)])
def test_a_pll_of_another_rate_is_refused(divider, hz):
    other = {"DIVF(7'b0111011)": "DIVF(7'b0111100)", "DIVQ(3'b100)": "DIVQ(3'b101)"}[divider]
    with pytest.raises(BitstreamError, match=f"{hz / 1e6:g} MHz; the board's clocks are 45 MHz"):
        ice40.chip(VERILOG.replace(divider, other), CLOCKS)


def test_a_pll_may_make_twice_what_a_board_halves():
    slow = Clocks(oscillator_hz=12_000_000, capture_hz=15_000_000, link_hz=15_000_000)
    text, link_hz = ice40.chip(VERILOG.replace("DIVF(7'b0111011)", "DIVF(7'b1001111)").replace(
        "DIVQ(3'b100)", "DIVQ(3'b101)"), slow)
    assert link_hz == 30_000_000
    assert "assign n1 = link_clk & " in text


def test_pins_are_declared_once():
    text, _ = ice40.chip(VERILOG, CLOCKS)
    assert text.count("pin_R9;") == 1    # where it is used
    assert "wire n1, n2;" in text


def chip(*ports):
    return f"module chip ({', '.join(('input clk', 'input link_clk', *ports))});\nendmodule\n"


PORTS = ("input pin_J3", "input pin_A1", "output pin_B12", "output pin_C1",
         *(f"input pin_{pin}" for pin in WIRING.nodes[0]))


def test_pins_are_wired_by_the_table():
    text = wrapped(chip(*PORTS), WIRING)
    assert ".pin_J3(1'b1)" in text
    assert ".pin_R9(strobe[0]), .pin_R1(data[0]), .pin_R2(data[1])" in text
    assert "assign running = ~lamp;" in text
    swapped = wrapped(chip(*PORTS), WIRING.swapped((0, 1), (0, 2)))
    assert ".pin_R1(data[1]), .pin_R2(data[0])" in swapped


@pytest.mark.parametrize(("ports", "said"), [
    (PORTS[:-1], r"R4 \(data\[3\]\) is unused, not input"),
    ((*PORTS[:-1], "output pin_R4"), r"R4 \(data\[3\]\) is output, not input"),
    ((*PORTS, "input pin_T1"), "the board does not name: pin_T1")])
def test_pins_that_are_not_the_boards_are_named(ports, said):
    with pytest.raises(BitstreamError, match=said):
        wrapped(chip(*ports), WIRING)


RAM = """SB_RAM40_4K{0} #(
  .READ_MODE(0)
) ram40_8_1 (
  .WADDR({{n1, n2}}),
  .WCLK{1}(n3),
  .RCLK{2}(n4)
);
"""


@pytest.mark.parametrize("written", [("", "", ""), ("NR", "", "N"), ("NW", "N", ""), ("NRNW", "N", "N")])
@pytest.mark.parametrize(("lower", "upper", "right"), [
    ("0", "0", ("", "", "")), ("1", "0", ("NR", "", "N")), ("0", "1", ("NW", "N", "")), ("1", "1", ("NRNW", "N", "N"))])
def test_clock_edges_of_a_block_ram_are_its_tiles(monkeypatch, written, lower, upper, right):
    """Whatever the unpacker says of them."""
    monkeypatch.setattr(ice40, "_ran", lambda *_: RAM.format(*written))
    text = f".device 5k\n.ramb_tile 8 1\n{lower}01\n.ramt_tile 8 2\n{upper}10\n"
    assert ice40.verilog_of(text) == RAM.format(*right)


def tile(kind, x, y, rows, width):
    return f".{kind} {x} {y}\n" + "\n".join("0" * width for _ in range(rows)) + "\n\n"


def test_damage_is_one_bit():
    text = tile("logic_tile", 1, 1, 16, 54) + tile("logic_tile", 16, 22, 16, 54) + tile("ram_data", 8, 1, 16, 64)
    place = damage.lookup_table(*damage.table_of_pin(VERILOG, "R9"))
    assert place == damage.Place("logic_tile", 16, 22, 8, 40)
    for at in (place, damage.ram_bit(text)):
        broken = damage.flipped(text, at)
        assert sum(a != b for a, b in zip(text, broken, strict=True)) == 1
        assert damage.flipped(broken, at) == text
    assert damage.routing(text, 16, 22) == []
    wire = damage.Place("logic_tile", 16, 22, 3, 50)
    assert damage.routing(damage.flipped(text, wire), 16, 22) == [wire]


def gowin_netlist(*more):
    """A table from a pin by way of a column's wire, and what else is switched."""
    gowin = pytest.importorskip("gowin", reason="needs apycula")
    cells = {"IBUF": ("IBUF", {}, {"O": "R1C1_F6", "I": "pad"}),
             "LUT": ("LUT4", {"INIT": "16'haaaa"}, {"F": "R2C2_F0", "I0": "R2C2_A0", "I1": "R2C2_B0", "I2": "R2C2_C0"}),
             "FF": ("DFFE", {}, {"Q": "R3C3_Q0", "D": "R2C2_F0", "CLK": "R3C3_CLK0"}),
             "RAM": ("SDP36", {}, {"DO": ["R9C9_F1", "R9C9_F0"], "CLKA": "R9C9_CLK0"})}
    aliases = {"R2C2_LB01": "R2C1_LBO0", "R2C1_LT01": "R1C1_LT02"}
    switched = [("R2C2_A0", "R2C2_LB01"), ("R2C1_LBO0", "R2C1_LT01"), ("R1C1_LT02", "R1C1_F6"), ("R2C2_B0", "VCC"),
                ("R2C2_C0", "R2C2_F6"), ("R9C9_CLK0", "R2C2_F0"), *more]
    return gowin.Netlist(cells, aliases, switched)


def test_wires_are_followed_through_switches_and_other_names():
    net = gowin_netlist()
    assert net.wired("LUT") == {"F": ["R2C2_F0"], "I0": ["R1C1_F6"], "I1": ["1'b1"], "I2": ["1'b1"]}
    assert net.wired("RAM")["DO"] == ["R9C9_F1", "R9C9_F0"]
    assert net.before(["R3C3_Q0"]) == {"FF", "LUT", "IBUF"}
    assert net.before(["R9C9_F0"]) == {"RAM", "LUT", "IBUF"}


def test_a_switch_has_the_fuses_of_wires_to_which_it_is_not_connected():
    gowin = pytest.importorskip("gowin", reason="needs apycula")
    cell = SimpleNamespace(pips={"SEL7": {"X01": {(6, 51)}, "X03": {(6, 48)}}, "A0": {"X01": {(1, 1)}}},
                           alonenode={"SEL7": [({"X03"}, {(4, 52)})], "B0": [({"X03"}, {(2, 2)})]})
    gowin._complete(SimpleNamespace(tiles={1: cell}))
    assert cell.pips == {"SEL7": {"X01": {(6, 51), (4, 52)}, "X03": {(6, 48)}}, "A0": {"X01": {(1, 1)}}}


def test_a_wire_with_two_drivers_is_refused():
    # Its other end is switched to what drives nothing.
    assert gowin_netlist(("R1C1_LT02", "R1C1_A6")).source("R2C2_A0") == "R1C1_F6"
    with pytest.raises(BitstreamError, match="R1C1_LT02 is driven by R1C1_F6 and R3C3_Q0"):
        gowin_netlist(("R1C1_LT02", "R3C3_Q0")).source("R2C2_A0")
