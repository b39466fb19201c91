"""Writes COMPACT payloads as docs/frame-format.md describes them, for the oracles of the host's tests.

It shares nothing with ``host/blocks``: a payload is spelled as a string of hexadecimal digits, one for each group of
four bits, and packed at the end.
"""

from itertools import groupby

__all__ = ["compact_payload", "items_payload"]

#: Codes; from how many nodes in one window on WINDOW is the shorter form; values of an age; most groups of a gap.
_WINDOW, _ABORTED, _LATE = "80", "90", "a0"
_MANY, _AGES, _GAP = 4, 1 << 21, 7


def _low_first(value: int, digits: int) -> str:
    assert 0 <= value < 16**digits, f"{value} in {digits} groups"
    return f"{value:0{digits}x}"[::-1]


def _number(value: int) -> str:
    """Octal digits, the lowest first; all but the last with bit 3 set."""
    octal = f"{value:o}"[::-1]
    assert len(octal) <= _GAP, f"{value} is no gap of this block"
    return "".join(f"{8 + int(digit):x}" for digit in octal[:-1]) + octal[-1]


def _packed(digits: str) -> bytes:
    digits += "0" * (len(digits) % 2)
    return bytes.fromhex("".join(high + low for low, high in zip(digits[::2], digits[1::2], strict=True)))


def _spelled(items, nodes: int, longer: int, port_bits: int) -> str:
    """``items`` : window, node, writes, how many writes at the end are filler, late; in the order of the payload."""
    node_digits, vector_digits, write_digits = 1 + (nodes > 16), 8 if nodes > 16 else 4, port_bits // 4
    digits, running = "", None
    for (window, late), same in groupby(items, lambda item: (item[0], item[4])):
        members = list(same)
        if late:
            assert running is not None, "a block begins with a late item"
            gaps = [_LATE + _number((running - window) % _AGES)] * len(members)
            assert -_AGES // 2 <= running - window < _AGES // 2, f"{running - window} windows late"
        else:
            gaps = [_number(window - running if running is not None else 0)] + ["0"] * (len(members) - 1)
            running = window
        if not late and len(members) >= _MANY and not any(longer >> node & 1 for _, node, *_ in members):
            vector = sum(1 << node for _, node, *_ in members)
            digits += _WINDOW + gaps[0] + _low_first(vector, vector_digits)
            digits += "".join(_low_first(writes[0], write_digits) for _, _, writes, *_ in members)
            continue
        for gap, (_, node, writes, filler, _) in zip(gaps, members, strict=True):
            digits += gap + _low_first(node, node_digits) + "".join(_low_first(w, write_digits) for w in writes)
            digits += _ABORTED + _low_first(filler, 2) if filler else ""
    return digits


def compact_payload(items: list[tuple[int, int, int]], nodes: int, port_bits: int = 4) -> bytes:
    """Of single writes: window, node, nibble (or byte)."""
    rows = [(window, node, [nibble], 0, False) for window, node, nibble in items]
    return _packed(_spelled(rows, nodes, 0, port_bits))


def items_payload(items, words: int, events: int, nodes: int, port_bits: int = 4) -> bytes:
    """Of items of any mode, with ``window``, ``node``, ``nibbles``, ``filler``, ``late``; with the head that names the
    nodes in word and in event mode, a bit per node."""
    head = words.to_bytes(4, "little") + events.to_bytes(4, "little") + bytes(8)
    rows = [(item.window, item.node, item.nibbles, item.filler, item.late) for item in items]
    return head + _packed(_spelled(rows, nodes, words | events, port_bits))
