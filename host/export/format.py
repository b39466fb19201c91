"""What a format of exports is: its writer, the runs that it cannot represent, and the tables that it needs."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.errors import InputError
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["Format", "Tables", "refuse_other_modes", "refuse_several_boards", "refuse_without_items"]


class Tables(Enum):
    """The tables from which a format is made; all are checked before the first byte is written."""

    #: None: it is made from the stream.
    STREAM = "stream"
    #: Items as they were captured, and losses.
    ITEMS = "items"
    #: The same; instead of nibbles, the events framed from them.
    FRAMED = "framed"
    #: The same, and what a dictionary's events begin, end, send and count.
    STORIES = "stories"


def refuse_without_items(run: Run, selection: Selection) -> None:
    """Raises InputError if the run was recorded without events."""
    run.refuse_without_events()


@dataclass(frozen=True)
class Format:
    """A format.

    Parameters
    ----------
    name : as users choose it.
    write : writes a run to a file or directory of that name.
    tables : what it is made from.
    refuse : raises HypermonError if the format cannot represent this run, before anything is decoded.
    directory : it is a directory, not a file.
    """

    name: str
    write: Callable[[Run, str, Selection], None]
    tables: Tables = Tables.ITEMS
    refuse: Callable[[Run, Selection], None] = refuse_without_items
    directory: bool = False


def refuse_several_boards(run: Run) -> None:
    """Raises InputError for a run of several boards."""
    if run.info.boards:
        raise InputError(run.path, None, "a run of several boards, each with its own windows; export one of "
                                         f"them: {run.path / run.info.boards[0]}")


def refuse_other_modes(run: Run, modes: Collection[ItemMode]) -> None:
    """Raises InputError if no node of the run was in one of these modes."""
    if not any(run.info.item_modes.said(node) in modes for node in range(run.info.nodes)):
        raise InputError(run.path, None, "no node of this run was in nibble mode: export its events with --to events; "
                                         "its words are in RUN/events/*.parquet")
