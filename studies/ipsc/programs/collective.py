"""Collective operations of several nodes, by messages along the edges of the cube."""

from collections.abc import Callable
from typing import Any

from hypermon.studies.ipsc.machine.machine import Node, Steps

__all__ = ["Receive", "all_gather", "broadcast"]

#: How a node receives: :meth:`Node.receive`, or :meth:`Node.poll` with its interval.
Receive = Callable[[int], Steps]


def all_gather(node: Node, size: int, value: Any) -> Steps:
    """Every node's value, by node, in log2 n exchanges; ``size`` bytes per value."""
    held = {node.number: value}
    bit = 1
    while bit < node.nodes:
        held |= yield from node.exchange(node.number ^ bit, size * len(held), dict(held))
        bit *= 2
    return held


def broadcast(node: Node, root: int, size: int, value: Any, receive: Receive | None = None) -> Steps:
    """The root's value, sent to all nodes along a binomial tree."""
    own, bit = node.number ^ root, 1
    while bit < node.nodes:
        if own < bit:
            yield from node.send((own | bit) ^ root, size, value)
        elif own < 2 * bit:
            value = yield from (receive or node.receive)((own ^ bit) ^ root)
        bit *= 2
    return value
