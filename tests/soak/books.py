"""The books of a leg: offered = accepted + lost, accepted = delivered + lost on the link, to the last item."""

from collections import Counter as Tally
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import BlockType, Counter
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.decode.ledger import Ledger
from hypermon.host.run import Run
from plan import CLOCK_PS, Items, Plan

__all__ = ["Books", "closed"]

_I64 = npt.NDArray[np.int64]


@dataclass
class Books:
    """Figures of a leg, and what does not agree.

    Members
    -------
    figures : by name, in the order of the table. ``wrong``: a line for each account that does not close.
    """

    figures: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def agree(self, what: str, one: int, other: int) -> None:
        """Two sides of an account."""
        if one != other:
            self.wrong.append(f"{what}: {one:,} and {other:,}, {one - other:+,}")


def closed(plan: Plan, run: Run, ledger: Ledger) -> Books:
    """The books of a recording that has ended: what the nodes wrote, what the board counted, what the files have.

    ``ledger``: the recorder's.
    """
    books = Books()
    stats, census, losses = run.stats(), ledger.census, run.loss()
    if not (stats["proper"] and stats["accounted"] and ledger.stopped) or census is None:
        books.wrong.append(f"it did not end as it was asked to: {stats['how']}")
        return books
    loss_node, lost, begin, end = (losses[name].to_numpy() for name in ("node", "lost", "from_ps", "to_ps"))
    table = run.events()
    row_node = table["node"].to_numpy()
    columns = {name: table[name] for name in table.column_names if name != "node"}
    order = np.argsort(row_node, kind="stable")
    cuts = np.searchsorted(row_node[order], np.arange(len(plan.items) + 1))
    link_lost = 0
    for node, items in enumerate(plan.items):
        counters = census.counters[node]
        refused, accepted = census.refused(node), counters[Counter.ACCEPTED]
        rows = order[cuts[node]:cuts[node + 1]]
        missed = ledger.link_lost[node]
        link_lost += missed
        name = f"node {node}"
        books.agree(f"{name}: offered, and accepted + refused", len(items), accepted + refused)
        books.agree(f"{name}: accepted, and sent", accepted, counters[Counter.DELIVERED])
        books.agree(f"{name}: sent, and delivered + lost on the link", counters[Counter.DELIVERED], len(rows) + missed)
        books.agree(f"{name}: lost by the ledger, and refused + lost on the link", stats["lost_per_node"][node],
                    refused + missed)
        mine = loss_node == node
        books.agree(f"{name}: lost by the ledger, and in the loss table", stats["lost_per_node"][node],
                    int(lost[mine].sum()))
        taken = {key: column.take(rows) for key, column in columns.items()}
        came = _matched(plan, node, items, taken, books)
        _placed(name, plan.stamps(node)[~came], lost[mine], begin[mine], end[mine], books)
    books.agree("lost by cause, and lost", sum(stats["causes"].values()), stats["lost"])
    books.agree("lost without a cause, and none", stats["causes"]["unsaid"], 0)
    books.agree("more than the board counts, and none", stats["surplus"] + len(stats["faults"]), 0)
    if not plan.leg.line:
        books.agree("lost on a link without faults, and none", link_lost + stats["missing_blocks"], 0)
    books.figures = _figures(plan, stats, ledger, run)
    return books


def _figures(plan: Plan, stats: dict[str, Any], ledger: Ledger, run: Run) -> dict[str, int]:
    causes = stats["causes"]
    assert ledger.census is not None
    return {
        "offered": sum(map(len, plan.items)),
        "accepted": sum(row[Counter.ACCEPTED] for row in ledger.census.counters),
        "delivered": stats["events"] + stats["aborted"], "aborted": stats["aborted"],
        "frame FIFO": causes["frame_fifo"], "node FIFO": causes["node_fifo"],
        "strobe-vector FIFO": causes["vector_fifo"],
        "link": causes["link"], "late": stats["late_nibbles"], "missing blocks": stats["missing_blocks"],
        "censuses": _censuses(run)}


def _censuses(run: Run) -> int:
    """How many have come."""
    scanner, count = BlockScanner(), 0
    for piece in run.pieces():
        count += sum(isinstance(item, Block) and item.head.type is BlockType.CENSUS for item in scanner.feed(piece))
    return count


# ------------------------------------------------------------------------------------------ item by item

def _matched(plan: Plan, node: int, items: Items, rows: dict[str, Any], books: Books) -> npt.NDArray[np.bool_]:
    """Which items have come. Each row must be one that was offered, as it was written, in its time, and only once."""
    came = np.zeros(len(items), np.bool_)
    time = rows["time_ps"].to_numpy()
    if not len(time):
        return came
    if not len(items):
        books.wrong.append(f"node {node}: {len(time)} rows of a node that wrote nothing")
        return came
    stamps = plan.stamps(node)
    # The last group that had begun; in a group of several, values tell them apart.
    heads = np.unique(items.group)
    group = np.searchsorted(stamps[heads], time, side="right") - 1
    early = group < 0
    first = heads[np.maximum(group, 0)]
    index = first
    if items.mode is ItemMode.NIBBLE:
        nibble = rows["nibble"].to_numpy().astype(np.int64)
        index = first + (nibble - items.values[first, 0]) * 13 % 16       # 13 * 5 = 1 modulo 16
    beyond = (index >= len(items)) | early
    index = np.minimum(index, len(items) - 1)
    beyond |= items.group[index] != first
    lag = time - stamps[index]
    window_ps = plan.geometry.window_clocks(plan.leg.window) * CLOCK_PS
    untimely = (lag < 0) | (lag > (index - first) * window_ps) | (lag % window_ps != 0)
    other = _other(items, index, rows)
    strange = beyond | untimely | other
    for what, which in (("never offered", beyond), ("at a wrong time", untimely & ~beyond),
                        ("not as it was written", other & ~beyond & ~untimely)):
        if which.any():
            at = int(np.flatnonzero(which)[0])
            books.wrong.append(f"node {node}: {np.count_nonzero(which):,} delivered items {what}, the first at "
                               f"{time[at]:,} ps")
    twice = [k for k, count in Tally(index[~strange].tolist()).items() if count > 1]
    if twice:
        books.wrong.append(f"node {node}: {len(twice):,} items came more than once")
    came[index[~strange]] = True
    return came


def _other(items: Items, index: _I64, rows: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Which rows are not what was written."""
    if items.mode is ItemMode.NIBBLE:
        return rows["nibble"].to_numpy() != items.values[index, 0]
    cut = items.kept[index] < items.writes[index]
    wrong = rows["aborted"].to_numpy() != cut
    if items.mode is ItemMode.WORD:
        word = (items.values[:, :8].astype(np.int64) << 4 * np.arange(8)).sum(axis=1)
        return wrong | (rows["word"].to_numpy() != word[index])
    data = items.values[:, 1::2] | items.values[:, 2::2] << 4
    whole = (items.kept - 1) // 2
    wanted = [(int(data[k, 0]) if whole[k] else None, data[k, 1:max(whole[k], 1)].tobytes()) for k in index.tolist()]
    found = zip(rows["event"].to_pylist(), rows["payload"].to_pylist(), strict=True)
    return wrong | np.array([one != other for one, other in zip(found, wanted, strict=True)], np.bool_)


def _placed(name: str, missing: _I64, lost: _I64, begin: _I64, end: _I64, books: Books) -> None:
    """Every missing item is in a row of the loss table, and no row has more than are missing there."""
    books.agree(f"{name}: missing items, and in the loss table", len(missing), int(lost.sum()))
    missing = np.sort(missing)
    inside = np.searchsorted(missing, end, side="right") - np.searchsorted(missing, begin)
    if (inside < lost).any():
        at = int(np.flatnonzero(inside < lost)[0])
        books.wrong.append(f"{name}: a loss of {lost[at]:,} from {begin[at]:,} to {end[at]:,} ps, where {inside[at]:,} "
                           "are missing")
    order = np.argsort(begin)
    reach = np.maximum.accumulate(end[order]) if len(end) else end
    row = np.searchsorted(begin[order], missing, side="right") - 1
    uncovered = row < 0
    uncovered[~uncovered] = reach[row[~uncovered]] < missing[~uncovered]
    if uncovered.any():
        books.wrong.append(f"{name}: {np.count_nonzero(uncovered):,} missing items in no row of the loss table, the "
                           f"first at {missing[uncovered][0]:,} ps")
