"""Item modes: how a node's strobes combine into items."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from hypermon.hdl.layout import PORT_BITS, event_writes, word_writes

__all__ = ["ALL_NIBBLES", "ItemMode", "ItemModes", "TIMEOUT_MS", "hold_windows"]

#: How long an item waits for its next nibble, by default.
TIMEOUT_MS = 10.0


class ItemMode(enum.IntEnum):
    """What one item of a node is."""

    NIBBLE = 0
    WORD = 1
    EVENT = 2
    #: A byte that a front end receives: in the stream, an event of one byte, which is its id.
    BYTE = 3
    #: The same, of text: lines are put together by :func:`hypermon.host.export.text_lines.text_lines`.
    LINE = 4


@dataclass(frozen=True)
class ItemModes:
    """The modes of a board's nodes, as registers WORD_NODES and EVENT_NODES have them: bit i of ``words`` or of
    ``events`` is set if node i is in that mode, and both are if it is in byte mode. ``lines``: the nodes in byte mode
    whose bytes are text."""

    words: int = 0
    events: int = 0
    lines: int = 0

    @classmethod
    def of(cls, modes: Sequence[ItemMode]) -> "ItemModes":
        """The modes from a list with the mode of every node."""
        single = (ItemMode.BYTE, ItemMode.LINE)
        return cls(*(sum(1 << node for node, mode in enumerate(modes) if mode in wanted) for wanted in (
            (ItemMode.WORD, *single), (ItemMode.EVENT, *single), (ItemMode.LINE,))))

    @property
    def longer(self) -> int:
        """Bits of the nodes whose items have more than one nibble."""
        return self.words | self.events

    def on(self, nodes: int) -> "ItemModes":
        """The modes without bits of nodes that a board with the given number of nodes does not have."""
        every = (1 << nodes) - 1
        return ItemModes(self.words & every, self.events & every, self.lines & every)

    def in_stream(self, nodes: int) -> "ItemModes":
        """The modes as the stream has them: byte mode is event mode, and no other bits."""
        return ItemModes(self.words & ~self.events, self.events).on(nodes)

    def said(self, node: int) -> ItemMode:
        """The mode of a node, as it was set."""
        if not self.words & self.events & 1 << node:
            return self[node]
        return ItemMode.LINE if self.lines >> node & 1 else ItemMode.BYTE

    def __getitem__(self, node: int) -> ItemMode:
        """The mode of a node as the stream and the tables have it: EVENT for a node in byte mode."""
        if self.events >> node & 1:
            return ItemMode.EVENT
        return ItemMode.WORD if self.words >> node & 1 else ItemMode.NIBBLE

    def writes(self, node: int, first: int, port_bits: int = PORT_BITS) -> int:
        """Number of writes to the port, nibbles or bytes, of an item of this node that begins with ``first``."""
        return (1, word_writes(port_bits), event_writes(port_bits, first & 15))[self[node]]


#: The only modes of the classic board.
ALL_NIBBLES = ItemModes()


def hold_windows(timeout_clocks: int, clock_hz: int, window_clocks: int) -> int:
    """The number of windows by which an item can be older than the newest one before it in the stream, rounded up.

    The longest item waits for all its nibbles but the first, each time for a time-out at most, and until the last
    time-out is noticed. Then it is queued. A millisecond is ample for that, because the newest item is queued likewise.
    """
    clocks = event_writes(PORT_BITS) * timeout_clocks + clock_hz // 1000
    return -(-clocks // window_clocks) + 1
