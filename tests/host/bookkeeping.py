"""What a ledger makes of a fake board's blocks, or of other bytes."""

from hypermon.hdl.layout import LATENCY
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger

__all__ = ["account", "of"]


def account(board, data=None, epoch=1, piece=None):
    """Ledger, loss rows and events of the board's blocks, or of data; it gets them ``piece`` bytes at a time.

    With short blocks joined it is all the same.
    """
    ledger, rows, found = counted(board, data, epoch, piece, join=False)
    joined, *rest = counted(board, data, epoch, piece, join=True)
    assert rest == [rows, found]
    assert plain(joined) == plain(ledger)
    return ledger, rows, found


def plain(ledger):
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in vars(ledger).items()
            if name not in ("_order", "_sequences", "pins")} | {
                "due": [sequence.due for sequence in ledger._sequences], "pins": vars(ledger.pins)}


def counted(board, data, epoch, piece, join):
    ledger = Ledger(board.nodes, TimeScale(board.clock_hz, board.window, LATENCY), epoch, board.host)
    scanner = BlockScanner(join)
    data = board.data if data is None else data
    found = []  # frames, or items
    pieces = [data] if piece is None else [data[at:at + piece] for at in range(0, len(data), piece)]
    for items in (*map(scanner.feed, pieces), scanner.finish()):
        for rows in ledger.event_rows(items):
            if isinstance(rows, FrameRows):
                found += [tuple(r) for r in rows.words.tolist()]
            else:
                found += zip(rows.windows.tolist(), rows.node.tolist(), rows.nibble.tolist(), strict=True)
    ledger.finish()
    return ledger, ledger.take_losses(), found


def of(rows, node):
    return sum(lost for n, lost, _, _ in rows if n == node)
