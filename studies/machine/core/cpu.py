"""The processors of a machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Cpu", "Even"]


class Cpu(Protocol):
    """How fast the nodes are."""

    def us(self, node: int, us: float) -> float:
        """How long a node needs for what takes a node of full speed the given time."""


@dataclass(frozen=True)
class Even:
    """All nodes alike, but for some.

    Parameters
    ----------
    slower : by node, how many times as long it needs.
    """

    slower: Mapping[int, float] = field(default_factory=dict)

    def us(self, node: int, us: float) -> float:
        return us * self.slower.get(node, 1.0)
