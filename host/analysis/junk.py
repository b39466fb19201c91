"""Whether the items of a RUN make sense: how many have unknown ids or impossible lengths, or were aborted.

With a wrong active edge, sample point or mode, or data wires in another order, a board records faithfully what nobody
wrote. Such a run is complete, and only its contents show that something is wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.analysis.named_events import named_files
from hypermon.host.decode.decode import stream_tables
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.soundness import check_batch
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.payload import one_array, sizes_of
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import InputError

__all__ = ["LEAST", "SHARE", "THRESHOLDS", "Junk", "Lengths", "find_junk", "lengths_of", "of_nodes"]

#: From this share of a node's items on, and from this number on, items that make no sense are worth a line.
SHARE, LEAST = 0.25, 4
#: Rows that are looked at: a wrong setting is wrong from the first item on.
_ROWS = 100_000
#: Nodes that a line names.
_NAMED = 8
_REPORTED = f"reported from {100 * SHARE:.0f} % on"
#: The limits that the line depends on, by their names in output.
THRESHOLDS = {"junk_share": SHARE, "junk_least": LEAST, "junk_items": _ROWS}

#: Shortest and longest payload in bytes of each id that a dictionary knows.
Lengths = dict[int, tuple[int, int]]


@dataclass(frozen=True)
class Junk:
    """Of ``items`` words and events, the first of a RUN: those that make no sense, each counted once.

    ``aborted`` : ended by the time-out, by a loss, or by the end of the run.
    ``unknown`` : whole, of an id that the dictionary does not know. ``lengths``: of a known id, but shorter or longer
        than its fields. Both are 0 without a dictionary.
    ``nodes`` : the same of each node that has items.
    """

    items: int = 0
    unknown: int = 0
    lengths: int = 0
    aborted: int = 0
    nodes: Mapping[int, "Junk"] = field(default_factory=dict)

    def __add__(self, other: "Junk") -> "Junk":
        nodes = {node: self.nodes.get(node, Junk()) + other.nodes.get(node, Junk())
                 for node in sorted({*self.nodes, *other.nodes})}
        return Junk(self.items + other.items, self.unknown + other.unknown, self.lengths + other.lengths,
                    self.aborted + other.aborted, nodes)

    @property
    def count(self) -> int:
        return self.unknown + self.lengths + self.aborted

    @property
    def high(self) -> bool:
        """So many, of all nodes or of one, that a setting or a wire is probably wrong."""
        return self._many or bool(self.bad)

    @property
    def _many(self) -> bool:
        return self.count >= LEAST and self.count >= SHARE * self.items

    @property
    def bad(self) -> list[int]:
        """The nodes of which that is so."""
        return [node for node, own in self.nodes.items() if own._many]

    @property
    def some(self) -> bool:
        """It is so of some nodes, and not of others, which have items, too."""
        return 0 < len(self.bad) < len(self.nodes)

    def as_dict(self) -> dict[str, Any]:
        """The counts, ``high``, the ``bad_nodes``, and the ``thresholds`` of that."""
        return {"items": self.items, "unknown": self.unknown, "lengths": self.lengths, "aborted": self.aborted,
                "high": self.high, "bad_nodes": self.bad, "thresholds": THRESHOLDS}

    def as_text(self) -> str:
        """What is wrong, with how many, and of which nodes; the threshold."""
        if not self.some:
            return f"{self.count:,} of the first {self.items:,} items make no sense ({self._parts(_REPORTED)})"
        bad = [f"node {node}: {own.count:,} of its first {own.items:,} items make no sense ({own._parts()})"
               for node, own in self.nodes.items() if node in self.bad[:_NAMED]]
        others = [own for node, own in self.nodes.items() if node not in self.bad]
        return (f"{'; '.join(bad)}{_more(len(self.bad))}; of {_counted(len(others))}: "
                f"{sum(own.count for own in others):,} of {sum(own.items for own in others):,} ({_REPORTED})")

    def _parts(self, *more: str) -> str:
        counts = {"of unknown ids": self.unknown, "of impossible lengths": self.lengths, "aborted": self.aborted}
        return "; ".join([", ".join(f"{count:,} {what}" for what, count in counts.items() if count), *more])


def of_nodes(junk: Junk) -> str:
    """Of which nodes the unknown ids and impossible lengths are, for people; empty: there are none."""
    found = [(node, own.unknown + own.lengths, own.items) for node, own in junk.nodes.items()
             if own.unknown + own.lengths]
    parts: Sequence[str] = [f"{count:,} of {items:,} events of node {node}" for node, count, items in found[:_NAMED]]
    return ", ".join(parts) + _more(len(found))


def _more(count: int) -> str:
    return f"; {count - _NAMED:,} more nodes likewise" if count > _NAMED else ""


def _counted(others: int) -> str:
    return "the other node" if others == 1 else f"the other {others:,} nodes"


def lengths_of(dictionary: Dictionary) -> Lengths:
    """The lengths that payloads may have, by id."""
    found = {kind.id: (kind.size, 255 if kind.open_ended else kind.size) for kind in dictionary.events}
    logging = dictionary.logging
    return found if logging is None else found | dict.fromkeys((logging.piece, logging.log, logging.text), (0, 255))


def find_junk(run: DecodedRun, *, decoded: bool, rows: int = _ROWS) -> Junk | None:
    """Counts the items of a RUN that make no sense, among its first ``rows``; reads no more of it.

    Parameters
    ----------
    decoded : read the tables, also of events framed from nibbles, decoding first if needed. If not, read the blocks, if
        the RUN has them.

    Returns
    -------
    None if the RUN has no words and events.

    Raises
    ------
    InputError
        if the RUN cannot be read, and, unless ``decoded``, if items in it came too late to be in order.
    """
    modes = run.info.item_modes.on(run.info.nodes)
    longer = modes.longer & ~(modes.words & modes.events)       # a byte is any
    if run.info.keep == "stats" or not (longer or decoded):
        return None
    dictionary = kept_dictionary(run)
    lengths = None if dictionary is None else lengths_of(dictionary)
    total, left = Junk(), rows
    for table in _tables(run, longer, decoded):
        total += _per_node(table.slice(0, left), lengths)
        left -= table.num_rows
        if left <= 0:
            break
    return total if total.items else None


def _tables(run: DecodedRun, longer: int, decoded: bool) -> Iterator[pa.Table]:
    """The rows of words and events, with at least the column ``aborted``."""
    nodes = pa.array([node for node in range(run.info.nodes) if longer >> node & 1], pa.int16())
    if not decoded and run.info.keep == "raw":
        for table in stream_tables(run):
            yield table.filter(pc.is_in(table["node"], nodes))
        return
    files = dict.fromkeys([*(run.event_files() if longer else []), *named_files(run)])
    for path in files:
        with pq.ParquetFile(path) as file:
            wanted = [name for name in ("node", "event", "payload", "aborted") if name in file.schema_arrow.names]
            if not {"node", "aborted"} <= {*wanted}:
                raise InputError(path, None, "it has no column `node` or `aborted`, which tables of this run have")
            for batch in file.iter_batches(1 << 16, columns=wanted):
                check_batch(run, batch, path)
                table = pa.Table.from_batches([batch])
                yield table.filter(pc.is_in(table["node"], nodes)) if path.parent.name == "events" else table


def _per_node(table: pa.Table, lengths: Lengths | None) -> Junk:
    node = _filled(table["node"].cast(pa.int32()), 0)
    aborted, unknown, wrong = _judge(table, lengths)
    each = [np.bincount(node, which) for which in (None, unknown, wrong, aborted)]
    total = Junk()
    for k in np.flatnonzero(each[0]):
        counts = [int(count[k]) for count in each]
        total += Junk(counts[0], counts[1], counts[2], counts[3],
                      {int(k): Junk(counts[0], counts[1], counts[2], counts[3])})
    return total


def _judge(table: pa.Table, lengths: Lengths | None) -> tuple[npt.NDArray[np.bool_], ...]:
    """Which rows are aborted, of unknown ids, and of impossible lengths."""
    aborted = _filled(table["aborted"], False)
    if lengths is None or "event" not in table.column_names:
        none = np.zeros(len(aborted), np.bool_)
        return aborted, none, none
    event = _filled(table["event"].cast(pa.int16()), -1)
    sizes = sizes_of(one_array(pc.fill_null(table["payload"], b"")))
    least, most = np.full(256, -1), np.full(256, -1)
    for number, (low, high) in lengths.items():
        least[number], most[number] = low, high
    whole = ~aborted & (event >= 0)
    unknown = whole & (most[event] < 0)
    wrong = whole & ~unknown & ((sizes < least[event]) | (sizes > most[event]))
    return aborted, unknown, wrong


def _filled(column: pa.ChunkedArray, value: object) -> npt.NDArray[Any]:
    return np.asarray(one_array(pc.fill_null(column, value)).to_numpy(zero_copy_only=False))
