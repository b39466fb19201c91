"""An ECP5's bits record what the virtual board does; with any one of them wrong, that is noticed."""

import re

import pytest

pytest.importorskip("amaranth_boards")

import check
import ecp5
from netlist import Clocks
from test_check import broken, outcomes

pytestmark = pytest.mark.slow
#: What is asked of damaged bits: the self-test of this board takes minutes.
DAMAGED = {"random-3"}


def test_the_bits_record_what_the_virtual_board_does(ulx3s, tmp_path):
    assert outcomes(ulx3s, tmp_path, plays=check.plays_of(ulx3s, tmp_path, 10)) == {}


def test_two_pins_exchanged_are_noticed(ulx3s, tmp_path):
    failed = outcomes(broken(ulx3s, wiring=ulx3s.wiring.swapped((0, 1), (0, 3))), tmp_path, only=DAMAGED)
    assert "in the simulation" in failed["random-3"]


def table(bits, node, role):
    """Tile, slice and half of a lookup table that takes what comes from a node's pin, flip-flop by flip-flop."""
    verilog, _ = ecp5.chip(bits.form, "CABGA381", Clocks.of(bits.board, bits.link, bits.geometry))
    net = rf"pin_{bits.wiring.nodes[node][role]}"
    while not (found := re.search(rf"^assign R(\d+)C(\d+)_F(\d)_SLICE = .*\b{net}\b", verilog, re.MULTILINE)):
        net = re.search(rf"^always @.*? (\w+) <= {net};$", verilog, re.MULTILINE)[1]
    row, column, number = map(int, found.groups())
    return f".tile R{row}C{column}:PLC2\n", "ABCD"[number // 2], number


def changed(text, tile, old, new):
    """The text with something else in that tile, there once."""
    before, _, rest = text.partition(tile)
    inside, _, after = rest.partition("\n\n")
    assert len(re.findall(old, inside, re.MULTILINE)) == 1
    return f"{before}{tile}{re.sub(old, new, inside, flags=re.MULTILINE)}\n\n{after}"


def test_a_bit_of_a_lookup_table_is_noticed(ulx3s, tmp_path):
    """Its entry for all inputs low; those that are not used are high."""
    tile, letter, number = table(ulx3s, 0, 2)
    inside = ulx3s.form.partition(tile)[2].partition("\n\n")[0]
    entry = sum(1 << "ABCD".index(pin) for pin in "ABCD" if f"enum: SLICE{letter}.{pin}{number % 2}MUX 1" in inside)
    form = changed(ulx3s.form, tile, rf"^(word: SLICE{letter}\.K{number % 2}\.INIT [01]{{{15 - entry}}})([01])",
                   lambda found: f"{found[1]}{1 - int(found[2])}")
    assert "random-3" in outcomes(broken(ulx3s, form=form), tmp_path, only=DAMAGED)


def test_a_switch_is_noticed(ulx3s, tmp_path):
    """One to an input of that table, which is then high."""
    tile, _, number = table(ulx3s, 0, 4)
    inside = ulx3s.form.partition(tile)[2].partition("\n\n")[0]
    pin = re.search(rf"^arc: ([ABCD]{number}) ", inside, re.MULTILINE)[1]
    form = changed(ulx3s.form, tile, rf"^arc: {pin} .*$", "")
    assert "random-3" in outcomes(broken(ulx3s, form=form), tmp_path, only=DAMAGED)
