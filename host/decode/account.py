"""``decode.json``: the accounting of a decoded RUN, and the sources of its tables.

The file is written last. It states the recording that the tables were made of, and lists them with rows, bytes and a
checksum of each. It is used only if it describes the recording and the tables as they are now.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from hypermon.hdl.layout import CensusFlag, Counter
from hypermon.host.decode.alignment import ALIGNMENT
from hypermon.host.decode.ledger import BoardCensus, Ledger
from hypermon.host.decode.table_files import LOSS_TABLE
from hypermon.host.dictionary.run_dictionary import FRAMED
from hypermon.host.errors import InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.parts import ACCOUNT, NEXT, PART, PARTS, Part, described, faults
from hypermon.host.recording.segments import segments, stream_sum, write_json
from hypermon.host.text.json_file import (
    Shape,
    anything,
    flag,
    integer,
    listed,
    mapping,
    maybe,
    read_json,
    table,
    text,
)

__all__ = ["DECODE_FORMAT", "USUAL", "Summary", "changed_stream", "made_of", "made_of_board", "read_account", "summary",
           "tables_of", "usable_account", "write_account"]

#: Version of ``decode.json`` and the files beside it; a RUN with another number is decoded again.
DECODE_FORMAT = 7

_MADE_OF = "made_of"
#: Tables that a decode makes, and one that can be derived from them.
_PART_NAME = re.compile(r"events/part-\d{5,9}\.parquet|loss\.parquet|framed\.parquet|boards\.parquet|"
                        r"(events|loss)/board=\d{3,4}/date=\d{4}-\d\d-\d\d/part-\d{5,9}\.parquet", re.ASCII)
#: Settings of a recording that a decoder must know, and those that distinguish it from others.
_SETTINGS = ("nodes", "clock_hz", "window", "latency", "epoch", "sink", "drain", "modes", "item_timeout_clocks",
             "port_bits", "half_clock", "keep", "boards", "started")
#: Why a decode cannot be used, although nothing is wrong.
_ABSENT, _GROWN, _OTHER = USUAL = (
    "it is missing", "more has been recorded since", "it was written by another version")

#: Gives the tables of a board that was recorded without its stream.
Recorded = Callable[[RunDirectory], Mapping[str, Part]]


# ------------------------------------------------------------------------------ contents

@dataclass(frozen=True)
class Summary:
    """The accounting of a run, in the order of ``decode.json``. Lists have a value for each node.

    Members
    -------
    begins : window before which there is no data.
    complete : nothing is lost, damaged or missing. ``accounted``: every loss has been counted. Neither covers data
        that a recorder could not write; ``recording.json`` states that.
    links_unsure, links_absent, links_restarted : only of a board with regeneration boards: links on which more may be
        lost than is counted, links of which nothing arrived, and links whose board was restarted or exchanged.
    changed : the file of the stream that is not as it was recorded, and why.
    counted_until, rejected_spans : as of :class:`.LossAccounting`; None if all losses are in rows, or if nothing was
        rejected.
    others : see the members of :class:`.Ledger`.
    """

    format: int
    stream_size: int
    begins: int
    events: int
    frames: int
    merged: int
    events_per_node: list[int]
    aborted: int
    aborted_per_node: list[int]
    too_late: int
    lost: int
    lost_per_node: list[int]
    causes: dict[str, int]
    late_nibbles: int
    rejected_per_node: list[int]
    discarded: int
    trigger: str | None
    followed: bool
    marks: dict[str, int]
    lag_max: int
    payload_bytes: int
    host_bytes: int
    last_time: int
    complete: bool
    accounted: bool
    links_unsure: list[int] | None
    links_absent: list[int] | None
    links_restarted: list[int] | None
    stopped: bool
    uncounted: bool
    surplus: int
    missing_blocks: int
    repeated_blocks: int
    torn: int
    torn_bytes: int
    foreign_blocks: int
    faults: dict[str, int]
    changed: str | None
    counted_until: list[int] | None
    rejected_spans: list[list[list[int]]] | None

    def as_dict(self) -> dict[str, Any]:
        """As plain values, without the links if there are none."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None or name not in _OPTIONAL}


_LINKS = ("links_unsure", "links_absent", "links_restarted")
_OPTIONAL = {*_LINKS, "counted_until", "rejected_spans"}


def summary(ledger: Ledger, stream_size: int, begins: int = 0, changed: str | None = None) -> dict[str, Any]:
    """The :class:`Summary` of a ledger, as plain values; ``begins``: window before which there is no data."""
    census = ledger.census
    unsure, absent, restarted = ([k for k in range(4) if bits >> k & 1] for bits in (
        (census.unsure, census.absent, census.restarted) if census is not None else (0, 0, 0)))
    accounted = ledger.stopped and not unsure and not absent
    linked = ledger.linked
    return Summary(
        format=DECODE_FORMAT, stream_size=stream_size, begins=begins,
        events=ledger.events, frames=ledger.frames, merged=ledger.merged,
        events_per_node=ledger.per_node.tolist(),
        aborted=int(ledger.aborted.sum()), aborted_per_node=ledger.aborted.tolist(), too_late=ledger.too_late,
        lost=ledger.lost, lost_per_node=ledger.lost_per_node, causes=ledger.causes(),
        late_nibbles=sum(ledger.counted(Counter.CARRIED)),
        rejected_per_node=ledger.counted(Counter.REJECTED) or [0] * ledger.nodes,
        discarded=census.discarded if census is not None else 0, trigger=_trigger(census),
        followed=_followed(census), marks=ledger.pins.as_dict(),
        lag_max=max((row[Counter.LAG_MAX] for row in (census.counters if census is not None else [])), default=0),
        payload_bytes=ledger.payload_bytes, host_bytes=ledger.host_bytes, last_time=ledger.last_time,
        complete=accounted and ledger.torn == 0 and ledger.lost == 0 and changed is None, accounted=accounted,
        links_unsure=unsure if linked else None, links_absent=absent if linked else None,
        links_restarted=restarted if linked else None,
        stopped=ledger.stopped, uncounted=ledger.uncounted, surplus=ledger.surplus,
        missing_blocks=ledger.missing_blocks, repeated_blocks=ledger.repeated_blocks,
        torn=ledger.torn, torn_bytes=ledger.torn_bytes,
        foreign_blocks=ledger.foreign, faults=ledger.faults, changed=changed,
        counted_until=None if accounted else ledger.counted_until,
        rejected_spans=ledger.rejected_spans if any(ledger.rejected_spans) else None,
    ).as_dict()


def _trigger(census: BoardCensus | None) -> str | None:
    """The final state of the triggers of a run."""
    if census is None:
        return None
    for bit, state in ((CensusFlag.ENDED, "stop found"), (CensusFlag.TRIGGERED, "start found"),
                        (CensusFlag.AWAITS, "start never found")):
        if bit in census.flags:
            return state
    return None


def _followed(census: BoardCensus | None) -> bool:
    """Time was that of another board, over the sync wire, from the start to the last census."""
    return census is not None and CensusFlag.FOLLOWS in census.flags and CensusFlag.STRAYED not in census.flags


# ------------------------------------------------------------------------------ reading

def usable_account(run: RunDirectory, recorded: Recorded, whole: bool = False) -> tuple[dict[str, Any] | None, str]:
    """The contents of ``decode.json``; None, and the reason, if it is out of date or a table is not whole.

    A reason that is one of :data:`USUAL` is no fault.

    Parameters
    ----------
    whole : each table is read completely once.
    """
    try:
        values, reason = read_account(run, recorded, whole)
    except FileNotFoundError:
        return None, _ABSENT
    except InputError as error:
        return None, error.reason
    if not reason and run.info.keep == "raw" and (stray := _stray(run, values[PARTS])):
        reason = f"{stray} is not of this decode"
    return (None, reason) if reason else (values, "")


def read_account(run: RunDirectory, recorded: Recorded, whole: bool = False) -> tuple[dict[str, Any], str]:
    """The contents of ``decode.json``, and the reason why it cannot be used, or "".

    Raises FileNotFoundError and InputError.
    """
    values = read_json(run.path / ACCOUNT, anything())
    if values.get("format") != DECODE_FORMAT:
        return values, _OTHER
    values.setdefault("marks", {})      # an older version wrote none
    try:
        _shape(run.info.nodes)("", values)
    except ValueError as error:
        return values, f"it makes no sense: {error}"
    losses = any(name == LOSS_TABLE or name.startswith("loss/") for name in values[PARTS])
    if not losses or (run.info.keep == "raw" and not any(name.startswith("events/") for name in values[PARTS])):
        return values, "it names no tables"
    return values, _outdated(run, values, recorded) or _broken(run, values, whole)


def _shape(nodes: int) -> Shape:
    """The required shape of ``decode.json``: a :class:`Summary`, and more."""
    count = integer(-1, (1 << 64) - 1)
    kinds: dict[Any, Shape] = {
        int: count, bool: flag(), str | None: maybe(text()), dict[str, int]: mapping(count),
        list[int]: listed(count, nodes, nodes), list[int] | None: listed(integer(0, 3), 0, 4),
        list[list[list[int]]] | None: listed(listed(listed(integer(0, (1 << 64) - 1), 3, 3)), nodes, nodes)}
    shapes = {name: kinds[kind] for name, kind in get_type_hints(Summary).items()}
    optional = {name: shapes.pop(name) for name in _OPTIONAL} | {"counted_until": kinds[list[int]]}
    return table({**shapes, _MADE_OF: mapping(anything()), PARTS: _named, NEXT: _named},
                 {**optional, "boards": listed(ALIGNMENT)})


def _named(where: str, values: Any) -> None:
    """The shape of tables by name."""
    mapping(PART)(where, values)
    for name in values:
        if not _PART_NAME.fullmatch(name):
            raise ValueError(f"{where} has {name[:60]!r}, which is no table of a run")


def _outdated(run: RunDirectory, values: Mapping[str, Any], recorded: Recorded) -> str:
    """In what the recording differs from the one that was decoded."""
    now = made_of(run, recorded)
    changed = [name for name in now if now[name] != values[_MADE_OF].get(name)]
    if not changed:
        return ""
    grown = set(changed) <= {"recorded", "stream_size", "begins"} and now.get("recorded") is None
    return _GROWN if grown else f"the recording has changed since ({', '.join(changed)})"


def _broken(run: RunDirectory, values: Mapping[str, Any], whole: bool) -> str:
    """The first table that is not as described. A table that is being replaced is the old or the new one."""
    parts = values[PARTS]
    for name, part in values[NEXT].items():
        # If killed between the two, either of them is valid.
        if faults(run.path, {name: parts[name]} if name in parts else {}):
            parts[name] = part
    wrong = faults(run.path, {name: part for name, part in parts.items() if name != FRAMED}, whole)
    return wrong[0] if wrong else ""


def _stray(run: RunDirectory, parts: Mapping[str, Part]) -> str | None:
    """A file that readers of a directory of tables would read, and that is not one of the parts."""
    there = sorted(path.relative_to(run.path).as_posix() for name in ("events", "loss")
                   for path in (run.path / name).rglob("*.parquet"))
    return next((name for name in there if name not in parts), None)


# ------------------------------------------------------------------------------ what the tables were made of

def made_of(run: RunDirectory, recorded: Recorded) -> dict[str, Any]:
    """The data and settings that tables are made of: if one changes, the tables are out of date."""
    settings = _settings(run.info)
    if run.info.boards:
        wires = {"wires": asdict(run.info)["wires"]} if any(run.info.wires) else {}
        return {**settings, **wires, **{part.path.name: made_of_board(part, recorded) for part in run.parts()}}
    if run.info.keep != "raw":
        return settings
    return {**settings, "recorded": (run.info.end or {}).get("stream"), "stream_size": run.stream_size,
            "begins": 0 if run.begins is None else int(run.begins["window"])}


def made_of_board(part: RunDirectory, recorded: Recorded) -> dict[str, Any]:
    """The data and settings that the tables of one of several boards are made of."""
    tables = {} if part.info.keep == "raw" else {name: one["crc32"] for name, one in recorded(part).items()}
    # The means by which the clock was compared change no time, and an older version did not state them.
    clock = {name: value for name, value in asdict(part.clock).items() if name not in ("how", "pulses")}
    return {**made_of(part, recorded), "clock": clock, "tables": tables}


def _settings(info: RunInfo) -> dict[str, Any]:
    """The settings that all tables are made of; the last two only if set, because older versions did not state them."""
    values = asdict(info)
    return {"settings": {name: values[name] for name in _SETTINGS}
            | ({"quarter_clock": True} if info.quarter_clock else {})
            | ({"late_clocks": info.late_clocks} if info.late_clocks else {})}


def changed_stream(run: RunDirectory) -> str | None:
    """The file of the stream that differs from the recorded one, if the recording has ended and describes it."""
    said = (run.info.end or {}).get("stream")
    if said is None:
        return None
    there = {path.name: path for path in segments(run.path)[0]}
    for name, (size, total) in said.items():
        if name not in there:
            return f"{name} is missing"
        if there[name].stat().st_size != size or stream_sum(there[name]) != total:
            return f"{name} is not as it was recorded"
    more = there.keys() - said.keys()
    return f"{min(more)} was not recorded" if more else None


# ------------------------------------------------------------------------------ writing

def tables_of(directory: Path) -> dict[str, Part]:
    """The tables that a decode has made in a directory."""
    paths = [*sorted((directory / "events").glob("*.parquet")), directory / LOSS_TABLE]
    return {path.relative_to(directory).as_posix(): described(path) for path in paths}


def write_account(run: Path, info: RunInfo, values: dict[str, Any], parts: Mapping[str, Part],
                  made_of: dict[str, Any] | None = None) -> dict[str, Any]:
    """Writes ``decode.json`` into a RUN: a :func:`summary`, and the tables that belong to it.

    Parameters
    ----------
    made_of : what the tables were made of, besides the settings of the recording.
    """
    account = {**values, _MADE_OF: made_of or _settings(info), PARTS: dict(parts), NEXT: {}}
    write_json(run / ACCOUNT, account)
    return account
