"""The HX8K's bits record what the virtual board does; with any one of them wrong, that is noticed."""

import shutil

import pytest

pytest.importorskip("amaranth_boards")

import check
import damage
import ice40
from stimuli import random_writes

pytestmark = pytest.mark.slow


def outcomes(bits, folder, *, bursts=6, plays=None, only=None):
    """What fails of all checks, or of those of these names, by name."""
    plays = plays or [random_writes(folder, bits.geometry, bits.link.bytes_per_second, bursts=bursts, seed=3,
                                    window="800", edge="rising")]
    return {outcome.name: outcome.text for outcome in check.checks(bits, folder, plays, only) if not outcome.passed}


def test_the_bits_record_what_the_virtual_board_does(hx8k, tmp_path):
    assert outcomes(hx8k, tmp_path, plays=check.plays_of(hx8k, tmp_path, 10)) == {}


def broken(bits, wiring=None, form=None):
    """The same board with other pins, or other bits."""
    return check.Bits(bits.board, bits.built, None, wiring=wiring, form=form or bits.form)


def test_two_pins_exchanged_are_noticed(hx8k, tmp_path):
    failed = outcomes(broken(hx8k, wiring=hx8k.wiring.swapped((2, 1), (2, 3))), tmp_path)
    assert list(failed) == ["random-3"]
    assert "in the simulation" in failed["random-3"]


def table(bits, node, role):
    """Tile and cell of the lookup table that takes a node's pin."""
    return damage.table_of_pin(ice40.verilog_of(bits.form), bits.wiring.nodes[node][role])


def test_a_bit_of_a_lookup_table_is_noticed(hx8k, tmp_path):
    place = damage.lookup_table(*table(hx8k, 3, 2))
    failed = outcomes(broken(hx8k, form=damage.flipped(hx8k.form, place)), tmp_path)
    assert "random-3" in failed


def test_a_bit_of_the_routing_is_noticed(hx8k, tmp_path):
    x, y, _ = table(hx8k, 5, 4)
    form = damage.cleared(hx8k.form, damage.routing(hx8k.form, x, y)[0])
    failed = outcomes(broken(hx8k, form=form), tmp_path)
    assert failed


def test_a_bit_of_a_block_rams_mode_is_noticed(hx8k, tmp_path):
    place = damage.ram_mode(ice40.verilog_of(hx8k.form))
    failed = outcomes(broken(hx8k, form=damage.flipped(hx8k.form, place)), tmp_path)
    assert "random-3" in failed


def test_a_bit_of_a_block_rams_contents_reaches_its_model(hx8k):
    """No board reads a word before it has written it: what is noticed is that the model has it."""
    before = ice40.verilog_of(hx8k.form).splitlines()
    after = ice40.verilog_of(damage.flipped(hx8k.form, damage.ram_bit(hx8k.form))).splitlines()
    changed = [(one.split("'h"), other.split("'h")) for one, other in zip(before, after, strict=True) if one != other]
    ((name, one), (same, other)), = changed
    assert ".INIT_" in name
    assert name == same
    assert (int(one.rstrip("),"), 16) ^ int(other.rstrip("),"), 16)).bit_count() == 1


def test_a_missing_tool_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(check.BitstreamError, match="iceunpack is missing; on Debian: apt-get install fpga-icestorm"):
        ice40.text_of(tmp_path / "x.bin")
