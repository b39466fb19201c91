"""Whether the items of a RUN make sense: how many have unknown ids or impossible lengths, or were aborted.

With a wrong active edge, sample point or mode, or data wires in another order, a board records faithfully what nobody
wrote. Such a run is complete, and only its contents show that something is wrong.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.analysis.named_events import named_files
from hypermon.host.decode.decode import stream_tables
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.payload import one_array, sizes_of
from hypermon.host.dictionary.run_dictionary import kept_dictionary

__all__ = ["LEAST", "SHARE", "THRESHOLDS", "Junk", "Lengths", "find_junk", "lengths_of"]

#: From this share on, and from this number on, items that make no sense are worth a line.
SHARE, LEAST = 0.25, 4
#: Rows that are looked at: a wrong setting is wrong from the first item on.
_ROWS = 100_000
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
    """

    items: int = 0
    unknown: int = 0
    lengths: int = 0
    aborted: int = 0

    def __add__(self, other: "Junk") -> "Junk":
        return Junk(self.items + other.items, self.unknown + other.unknown, self.lengths + other.lengths,
                    self.aborted + other.aborted)

    @property
    def count(self) -> int:
        return self.unknown + self.lengths + self.aborted

    @property
    def high(self) -> bool:
        """So many that a setting or a wire is probably wrong."""
        return self.count >= LEAST and self.count >= SHARE * self.items

    def as_dict(self) -> dict[str, Any]:
        """The counts, ``high``, and the ``thresholds`` of that."""
        return {**asdict(self), "high": self.high, "thresholds": THRESHOLDS}

    def as_text(self) -> str:
        """What is wrong, and with how many; the threshold."""
        counts = {"of unknown ids": self.unknown, "of impossible lengths": self.lengths, "aborted": self.aborted}
        parts = [f"{count:,} {what}" for what, count in counts.items() if count]
        return (f"{self.count:,} of the first {self.items:,} items make no sense ({', '.join(parts)}; reported from "
                f"{100 * SHARE:.0f} % on)")


def lengths_of(dictionary: Dictionary) -> Lengths:
    """The lengths that payloads may have, by id."""
    found = {kind.id: (kind.size, 255 if kind.open_ended else kind.size) for kind in dictionary.events}
    logging = dictionary.logging
    return found if logging is None else found | dict.fromkeys((logging.piece, logging.log, logging.text), (0, 255))


def find_junk(run: DecodedRun, *, decoded: bool) -> Junk | None:
    """Counts the items of a RUN that make no sense, among its first 100,000; reads no more of it.

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
    total, left = Junk(), _ROWS
    for table in _tables(run, longer, decoded):
        total += _judge(table.slice(0, left), lengths)
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
            for batch in file.iter_batches(1 << 16, columns=wanted):
                table = pa.Table.from_batches([batch])
                yield table.filter(pc.is_in(table["node"], nodes)) if path.parent.name == "events" else table


def _judge(table: pa.Table, lengths: Lengths | None) -> Junk:
    aborted = _filled(table["aborted"], False)
    count = int(np.count_nonzero(aborted))
    if lengths is None or "event" not in table.column_names:
        return Junk(table.num_rows, aborted=count)
    event = _filled(table["event"].cast(pa.int16()), -1)
    sizes = sizes_of(one_array(pc.fill_null(table["payload"], b"")))
    least, most = np.full(256, -1), np.full(256, -1)
    for number, (low, high) in lengths.items():
        least[number], most[number] = low, high
    whole = ~aborted & (event >= 0)
    unknown = whole & (most[event] < 0)
    wrong = whole & ~unknown & ((sizes < least[event]) | (sizes > most[event]))
    return Junk(table.num_rows, int(np.count_nonzero(unknown)), int(np.count_nonzero(wrong)), count)


def _filled(column: pa.ChunkedArray, value: object) -> npt.NDArray[Any]:
    return np.asarray(one_array(pc.fill_null(column, value)).to_numpy(zero_copy_only=False))
