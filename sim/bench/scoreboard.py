"""Compares the writes of a bench's nodes with the items that the host's tools read from the recording."""

from hypermon.host import Run

from .board import BenchBoard
from .node import APERTURE_PS, Sent

__all__ = ["check"]

#: Columns of the item table by the kind of item.
_COLUMN = {"nibble": "nibble", "word": "word", "event": "event"}


def check(board: BenchBoard, run: Run) -> int:
    """Compares each item of each node with the recording: what, in which order, and when.

    A stamp is right if it is later than the strobe's edge less a window, and at most a clock and the aperture after the
    edge. Where the board reports that items were carried into later windows, that many windows are added.

    Returns
    -------
    items compared.

    Raises
    ------
    AssertionError
        at the first difference; it names the node, the item and the times. Also if an item was lost.
    """
    stats = run.stats()
    assert stats["lost"] == 0, f"the board lost {stats['lost']} items: slower nodes or a faster reader keep all"
    window_ps = run.info.scale.clocks_ps(run.info.scale.window_clocks)
    latest = board.clock_ps + APERTURE_PS + stats["late_max_ps"]
    compared = 0
    for number, node in sorted(board.nodes.items()):
        rows = run.events(nodes=[number]).to_pylist()
        for k, (sent, row) in enumerate(zip(node.sent, rows, strict=False)):
            where = f"node {number}, item {k}"
            assert _same(sent, row), f"{where}: wrote {sent}, the recording has {row}"
            off = row["time_ps"] - (sent.ps - board.zero_ps)
            assert -window_ps < off <= latest, f"{where}: stamped {off} ps after its strobe, {sent}"
            compared += 1
        assert len(rows) == len(node.sent), f"node {number}: wrote {len(node.sent)} items, {len(rows)} are recorded"
    return compared


def _same(sent: Sent, row: dict) -> bool:
    return row[_COLUMN[sent.kind]] == sent.value and (sent.kind != "event" or row["payload"] == sent.payload)
