"""Bit-sliced ("vertical") counters: one small counter for every node, kept as bit planes.

Plane b is a signal of one bit a node; bit i of it is bit b of node i's counter. Counting all nodes
is then a handful of operations on whole planes. It makes the same flip-flops and look-up tables as
a counter a node, reads as one line, and simulates many times faster.
"""

from amaranth.hdl import Array, Cat, Const, Signal

__all__ = ["column", "counted", "late_column", "planes", "stepped"]


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
    """Planes of ``counter``, plus one where only ``up``, less one where only ``down`` is set.

    A bit changes when all below it are ones on the way up, or zeros on the way down, which is known before
    ``down`` is."""
    moves = up ^ down
    result = []
    for plane in counter:
        result.append(plane ^ moves)
        moves = moves & ~(plane ^ up)
    return result


def late_column(m, counter, node, name: str, enable=1):
    """As :func:`column`, a clock later, because sixteen or more nodes are too many for a clock with
    anything else in it: chosen among four, and then among those. Taken at edges with ``enable``.
    Beyond the last node the value means nothing."""
    few = [Signal(len(counter), name=f"{name}_of_{k}") for k in range(0, len(counter[0]), 4)]
    which = Signal(max(1, len(node) - 2), name=f"{name}_which")
    with m.If(enable):
        m.d.sync += which.eq(node[2:])
        m.d.sync += [s.eq(column([plane[4 * k:4 * k + 4] for plane in counter], node[:2]))
                     for k, s in enumerate(few)]
    return Array(few)[which]


def column(counter, node):
    """The counter of one node, as a value of ``len(counter)`` bits; 0 beyond the last node."""
    return Cat((plane >> node)[0] for plane in counter) if counter else Const(0, 0)
