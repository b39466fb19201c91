"""Bit-sliced ("vertical") counters: one small counter per node, kept as bit planes.

Plane b is a signal with one bit per node; bit i of it is bit b of node i's counter. Counting all nodes
then needs only a handful of operations on whole planes. The flip-flops and look-up tables are the same as
with a separate counter per node, but the code is one line and simulates many times faster.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from operator import and_, or_, xor

from amaranth.hdl import Array, Cat, Const, Signal, Value

__all__ = ["added", "at_least", "column", "counted", "gathered", "late_column", "planes", "spread", "stepped"]


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


def gathered(value, step: int, bit: int):
    """A plane: bit ``bit`` of each group of ``step`` bits."""
    return Cat(value[k] for k in range(bit, len(value), step))


def spread(plane, step: int):
    """Each bit of a plane, ``step`` times."""
    return Cat(bit.replicate(step) for bit in plane)


def added(counter, number):
    """Planes of ``counter`` plus ``number``, planes of no more bits; wraps."""
    result, carry = [], None
    for k, plane in enumerate(counter):
        terms = [plane, *number[k:k + 1], *([] if carry is None else [carry])]
        result.append(reduce(xor, terms))
        carry = at_least(terms, 2) if len(terms) > 1 else Const(0, len(plane))
    return result


def at_least(which: Sequence[Value], least: int) -> Value:
    """Nodes for which at least ``least`` of these few planes are set."""
    return reduce(or_, (reduce(and_, some) for some in combinations(which, least)))


def stepped(counter, up, down):
    """Planes of ``counter``, plus one where only ``up`` is set, minus one where only ``down`` is set.

    A bit changes when all bits below it are ones (counting up) or zeros (counting down). Both are known before
    ``down`` is."""
    moves = up ^ down
    result = []
    for plane in counter:
        result.append(plane ^ moves)
        moves = moves & ~(plane ^ up)
    return result


def late_column(m, counter, node, name: str, enable=1):
    """As :func:`column`, one clock later. A selection among sixteen or more nodes fits into one clock only if nothing
    else is in it; here it is one among four, then one among those. Registers load at edges with ``enable``.
    Beyond the last node the value is meaningless."""
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
