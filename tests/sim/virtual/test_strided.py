"""The rewriting of bits for simulation: the same circuit, with words in place of single bits."""

import pytest
from amaranth.back import verilog
from hypermon.hdl.input.item_framer import ItemFramer
from hypermon.hdl.input.nibble_mask import NibbleMask
from hypermon.sim.virtual.strided import strided

from tests.sim.virtual.test_clocked import equal

STAGES = {
    "framer": lambda: ItemFramer(16), "framer of 11 nodes": lambda: ItemFramer(11), "mask": lambda: NibbleMask(16)}


def module(*lines: str) -> str:
    return "".join(f"{line}\n" for line in (
        "module top(a, b, c);", "  input [63:0] a;", "  input [15:0] b;", "  output [63:0] c;", *lines, "endmodule"))


def bits(name: str, places) -> str:
    return f"{{ {', '.join(f'{name}[{place}]' for place in places)} }}"


@pytest.mark.parametrize("name", STAGES)
def test_same_circuit(name, tmp_path):
    before = verilog.convert(STAGES[name](), name="top", emit_src=False)
    after = strided(before)
    assert after.count("strided_") > before.count("strided_") == 0
    assert equal(before, after, tmp_path)


@pytest.mark.parametrize("places", [
    range(60, -1, -4), range(63, 0, -4), range(54, -1, -6), range(14, -1, -2), range(57, 0, -8)], ids=str)
def test_bits_of_each_group(places, tmp_path):
    """Whatever the distance, the first bit and the number of them."""
    before = module(f"  assign c = {{ {64 - len(places)}'h0, {bits('a', places)[2:-2]} }};".replace(
        f"{64 - len(places)}'h0, ", ""))
    after = strided(before)
    assert "strided_0_1" in after
    assert equal(before, after, tmp_path)


@pytest.mark.parametrize(("planes", "times"), [(16, 4), (16, 2), (8, 8), (11, 4), (3, 5)])
def test_bits_several_times(planes, times, tmp_path):
    before = module(f"  assign c = ~ {bits('b', [k for k in reversed(range(planes)) for _ in range(times)])};")
    after = strided(before)
    assert "strided_0_1" in after
    assert equal(before, after, tmp_path)


def test_another_circuit_is_not_the_same(tmp_path):
    before = module(f"  assign c = {bits('a', range(60, -1, -4))};")
    after = strided(before)
    broken = after.replace(">> 0)", ">> 1)")
    assert broken != after
    assert not equal(before, broken, tmp_path)


@pytest.mark.parametrize("line", [
    f"  assign {bits('c', range(60, -1, -4))} = b;",                  # assigned to
    f"  assign c = {bits('a', range(9, -1, -1))};",                   # neighbours
    f"  assign c = {bits('a', [60, 56, 52, 48, 44, 40, 36, 33])};",   # no pattern
    f"  assign c = {bits('a', range(24, -1, -4))};",                  # too few
    f"  assign c = {bits('b', [3] * 16)};",                           # one bit
    f"  assign c = {bits('a', range(68, -1, -4))};",                  # more than a word
])
def test_other_bits_are_left(line):
    assert strided(module(line)) == module(line)
