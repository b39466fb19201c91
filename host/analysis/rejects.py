"""Nodes of fewer wires than a port of whose bytes the board rejects many: nothing is lost, and yet little arrives."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypermon.host.analysis.junk import LEAST, SHARE
from hypermon.host.recording.info import RunInfo

__all__ = ["THRESHOLDS", "Rejecting", "rejecting"]

#: The limits that the line depends on, by their names in output.
THRESHOLDS = {"junk_share": SHARE, "junk_least": LEAST}
#: Bits from the first edge of a byte to its stamp, and clocks in addition; see `hypermon.hdl.layout.front_latency`.
_LATE_BITS, _LATE_CLOCKS = 9.5, 8
_LINES = ("uart", "swo")


@dataclass(frozen=True)
class Rejecting:
    """A node.

    Members
    -------
    front : how it is wired: ``uart``, ``swo``, ``two_wire`` or ``selected``.
    rejected, items : bytes and items that were rejected, items that were not.
    bit_ps : of a UART and SWO, the length of a bit as set, to about 1 %.
    """

    node: int
    front: str
    rejected: int
    items: int
    bit_ps: float | None = None

    def as_text(self) -> str:
        """The counts; the threshold."""
        return (f"node {self.node} ({self.front}): {self.rejected:,} bytes rejected, {self.items:,} items (reported "
                f"from {100 * SHARE:.0f} % on)")


def rejecting(info: RunInfo, items: Sequence[int], rejected: Sequence[int]) -> list[Rejecting]:
    """The nodes that have no port, and of which the board has rejected as many as :data:`THRESHOLDS` say, or more.

    Parameters
    ----------
    items, rejected : of each node; ``rejected`` may be empty.
    """
    found = []
    for node, (front, count) in enumerate(zip(info.identity.get("fronts") or (), rejected, strict=False)):
        if front == "port" or count < LEAST or count < SHARE * (count + items[node]):
            continue
        late = info.late_clocks[node] if front in _LINES and info.late_clocks else None
        bit_ps = None if late is None else (late - _LATE_CLOCKS) / _LATE_BITS * 10**12 / info.clock_hz
        found.append(Rejecting(node, front, int(count), int(items[node]), bit_ps))
    return found
