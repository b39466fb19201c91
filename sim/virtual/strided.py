"""Rewrites the gateware's Verilog for simulation: bits that are gathered from every k-th place of a word, or spread
over it, need a few operations on whole words instead of some for each bit.

Bit planes of all nodes are made from nibbles in this way, and nibbles from planes (``hdl/lib/bit_sliced.py``). Only
words of up to 64 bits are rewritten.
"""

import re

__all__ = ["strided"]

#: Bits from which on it pays.
_LEAST, _WORD = 8, 64
_BIT = r"(?:\\\S+ |\w+ ?)\[\d+(?::\d+)?\]"
_BITS = re.compile(rf"\{{ ({_BIT}(?:, {_BIT}){{{_LEAST - 1},}}) \}}")
_NAMED = re.compile(r"(\\\S+ |\w+) ?\[(\d+)(?::(\d+))?\]")


def strided(verilog: str) -> str:
    """The same Verilog with words instead of such bits."""
    return "".join(map(_module, re.split(r"(?<=^endmodule\n)", verilog, flags=re.MULTILINE)))


def _module(text: str) -> str:
    wires: dict[tuple[str, ...], str] = {}

    def wire(*steps: str) -> str:
        """The last of a chain of wires; in each step, ``@`` is the one before."""
        return wires.setdefault(steps, f"strided_{len(wires)}_{len(steps) - 1}")

    def replaced(bits: re.Match[str]) -> str:
        # Only values: a concatenation on the left-hand side is followed by an assignment.
        if re.match(r" *<?=(?!=)", text[bits.end():bits.end() + 6]):
            return bits[0]
        found = _NAMED.findall(bits[1])
        names = {name for name, _, _ in found}
        places = [place for _, high, low in found for place in range(int(high), int(low or high) - 1, -1)][::-1]
        if len(names) > 1:
            return bits[0]
        return _gathered(names.pop(), places, wire) or bits[0]

    new = _BITS.sub(replaced, text)
    lines = []
    for steps, name in wires.items():
        stem = name.rpartition("_")[0]
        for k, step in enumerate(steps):
            value = step.replace("@", f"{stem}_{k - 1}")
            lines.append(f"  wire [{_WORD - 1}:0] {stem}_{k};\n  assign {stem}_{k} = {value};\n")
    return new.removesuffix("endmodule\n") + "".join(lines) + "endmodule\n" if lines else new


def _gathered(name: str, places: list[int], wire) -> str:
    """Bits, the lowest first, as a word; empty if they have another pattern."""
    count, first = len(places), places[0]
    if len(set(places)) == count:
        step = places[1] - first
        if step < 2 or places != list(range(first, first + step * count, step)) or places[-1] >= _WORD:
            return ""
        chain, size = [f"({name} >> {first}) & {_each(1, step, count)}"], 1
        while size < count:
            chain.append(f"(@ | (@ >> {(step - 1) * size})) & {_each(2 * size, 2 * size * step, count)}")
            size *= 2
        return f"{wire(*chain)}[{count - 1}:0]"
    step = places.count(first)
    planes = count // step
    if step < 2 or planes < 2 or count > _WORD or places != [first + k // step for k in range(planes * step)]:
        return ""
    size = 1 << (planes - 1).bit_length()
    chain = [f"({name} >> {first}) & {_each(planes, _WORD, 1)}"]
    while size > 1:
        size //= 2
        chain.append(f"(@ | (@ << {(step - 1) * size})) & {_each(size, size * step, planes)}")
    chain.append(" | ".join(f"(@ << {k})" if k else "@" for k in range(step)))
    return f"{wire(*chain)}[{count - 1}:0]"


def _each(bits: int, step: int, count: int) -> str:
    """The lowest bits of each group of ``step`` bits."""
    mask = sum((1 << bits) - 1 << step * k for k in range(count) if step * k < _WORD) % (1 << _WORD)
    return f"64'h{mask:016x}"
