"""Bit-sliced ("vertical") counters: one small counter for every node, kept as bit planes.

Plane b is a signal of one bit a node; bit i of it is bit b of node i's counter. Counting all nodes
is then a handful of operations on whole planes. It makes the same flip-flops and look-up tables as
a counter a node, reads as one line, and simulates many times faster.
"""

from amaranth.hdl import Cat, Const, Signal

__all__ = ["column", "counted", "planes", "stepped"]


def planes(bits: int, nodes: int, name: str, **kwargs) -> list[Signal]:
    """``bits`` planes of ``nodes`` bits each, least significant first."""
    return [Signal(nodes, name=f"{name}{b}", **kwargs) for b in range(bits)]


def counted(counter, up):
    """Planes of ``counter`` plus one where ``up`` is set; wraps."""
    result = []
    for plane in counter:
        result.append(plane ^ up)
        up = up & plane
    return result


def stepped(counter, up, down):
    """Planes of ``counter``, plus one where only ``up``, less one where only ``down`` is set."""
    up, down = up & ~down, down & ~up
    result = []
    for plane in counter:
        result.append(plane ^ (up | down))
        up, down = up & plane, down & ~plane
    return result


def column(counter, node):
    """The counter of one node, as a value of ``len(counter)`` bits; 0 beyond the last node."""
    return Cat((plane >> node)[0] for plane in counter) if counter else Const(0, 0)
