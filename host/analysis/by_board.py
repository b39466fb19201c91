"""Analyses of a run of many boards: each is one SQL text, for DuckDB on one machine, or for many machines.

A node belongs to one board. So an analysis of nodes needs the events of one board at a time: it is run on each board's
files, wherever a worker reads them, and the answers are put together. Only messages go from board to board. Each
board's sends and receives are therefore divided by message key, and every share is matched on its own. The texts of
:data:`ANALYSES` use what DuckDB and Spark have in common, and integers of 64 bits with sign.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import chain, cycle
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.board_columns import board_tables
from hypermon.host.analysis.locked import SETTINGS, lock
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.table_files import board_of, by_board
from hypermon.host.errors import HypermonError, InputError

__all__ = ["ANALYSES", "LATENCY", "Messages", "analyse", "analyse_with_dask"]

_MS = 1_000_000_000
#: Seconds between looks at a cluster, and without a worker until it is given up.
_LOOK_S, _ALONE_S = 2.0, 30.0
#: Parts of a run for each thread of a cluster, if it has that many boards; and shares of the messages.
_PARTS, _SHARES = 4, 2
#: Settings of a task of a cluster, which has one thread.
_TASK = {**SETTINGS, "threads": 1}
#: The analyses of nodes. ``events`` and ``loss`` have the columns ``board`` and ``node``, and the times of the run.
ANALYSES = {
    "rate": f"""select board, node, time_ps - ((time_ps % {_MS}) + {_MS}) % {_MS} as from_ps, count(*) as events
                from events group by 1, 2, 3""",
    "loss": """select board, node, cast(sum(lost) as bigint) as lost, count(*) as outages, min(from_ps) as first_ps,
               max(to_ps) as last_ps from loss group by 1, 2""",
    "merging": """select board, cast(sum(together) as bigint) as events,
                  cast(sum(case when together > 1 then together else 0 end) as bigint) as merged
                  from (select board, time_ps, count(*) as together from events group by 1, 2) as frames group by 1""",
    "noise": """select board, node, length(bin(gap)) - 1 as gap_log2_ps, count(*) as gaps
                from (select board, node, time_ps - lag(time_ps) over (partition by board, node order by time_ps) as gap
                      from events) as gaps where gap > 0 group by 1, 2, 3""",
}
#: The analysis of messages, for engines without as-of joins; :class:`Messages` says what the three places are.
LATENCY = """select board, node, count(*) as messages, min(took_ps) as least_ps,
             cast(sum(took_ps) as bigint) as total_ps, max(took_ps) as most_ps
             from (select board, node, receives, time_ps - max(case when receives = 0 then time_ps end) over
                   (partition by key order by time_ps, receives rows between unbounded preceding and current row)
                   as took_ps
                   from (select {key} as key, time_ps, board, node, 0 as receives from events where {send} union all
                         select {key} as key, time_ps, board, node, 1 as receives from events where {receive}) as ends)
                  as timed where receives = 1 and took_ps is not null group by 1, 2"""
_EDGES = "select {key} as key, {columns} from events where {where}"
_MATCHED = """select r.board, r.node, count(*) as messages, min(r.time_ps - s.time_ps) as least_ps,
              cast(sum(r.time_ps - s.time_ps) as bigint) as total_ps, max(r.time_ps - s.time_ps) as most_ps
              from receives r asof join sends s on r.key = s.key and r.time_ps >= s.time_ps group by 1, 2"""
_ADDED = """select board, node, cast(sum(messages) as bigint) as messages, min(least_ps) as least_ps,
            cast(sum(total_ps) as bigint) as total_ps, max(most_ps) as most_ps from shares group by 1, 2"""


@dataclass(frozen=True)
class Messages:
    """What sends and receives messages, as SQL over the columns of ``events``.

    Parameters
    ----------
    send, receive : which events do. ``key`` : what a send and its receives have in common.
    """

    send: str
    receive: str
    key: str


@dataclass(frozen=True)
class _Files:
    """Paths of tables: of a run, or of some of its boards."""

    events: tuple[str, ...]
    loss: tuple[str, ...]


def _connect(files: _Files, tables: Iterable[str], settings: Mapping[str, Any] = SETTINGS) -> duckdb.DuckDBPyConnection:
    """A connection that can read nothing but these tables."""
    connection = duckdb.connect(config=dict(settings))
    found = {name: [Path(path) for path in getattr(files, name)] for name in tables}
    for name, paths in found.items():
        if board_of(paths[0]) >= 0:
            connection.execute(f"create view {name} as {board_tables(paths)}")
        else:
            connection.read_parquet([str(path) for path in paths], hive_partitioning=False).project(
                "*, 0::smallint as board").create_view(name)
    lock(connection, chain.from_iterable(found.values()))
    return connection


def _asked(files: _Files, question: str, settings: Mapping[str, Any] = SETTINGS) -> pa.Table:
    """The answer of an analysis of nodes."""
    name = "loss" if question == "loss" else "events"
    try:
        with _connect(files, [name], settings) as connection:
            return connection.sql(f"{ANALYSES[question]} order by all").to_arrow_table()
    except duckdb.Error as error:
        raise InputError(getattr(files, name)[0], None, f"no figures can be computed of it: "
                                                        f"{str(error).splitlines()[0][:300]}") from None


def _ends(messages: Messages) -> dict[str, str]:
    """SQL of the sends and of the receives, with the columns that the match needs."""
    return {"sends": _EDGES.format(key=messages.key, columns="time_ps", where=messages.send),
            "receives": _EDGES.format(key=messages.key, columns="time_ps, node, board", where=messages.receive)}


def _checked(messages: Messages, files: _Files) -> None:
    """Raises HypermonError if the SQL of messages is not that of conditions and a key."""
    with _connect(files, ["events"]) as connection:
        try:
            for where in (messages.send, messages.receive):
                question = _EDGES.format(key=messages.key, columns="time_ps", where=where)
                if len(connection.extract_statements(question)) != 1:
                    raise HypermonError(f"{where!r:.200}: give one condition")
                connection.execute(f"explain {question}")
        except duckdb.Error as error:
            raise HypermonError(f"the messages: {str(error).splitlines()[0]}") from None


def _latencies(files: _Files, messages: Messages) -> pa.Table:
    """The last send before each receive, on one machine."""
    with _connect(files, ["events"]) as connection:
        for name, question in _ends(messages).items():
            connection.execute(f"create view {name} as {question}")
        return connection.sql(f"{_MATCHED} order by all").to_arrow_table()


def _edges(files: _Files, messages: Messages, shares: int) -> list[tuple[pa.Table, pa.Table]]:
    """Sends and receives of some boards, divided by key."""
    with _connect(files, ["events"], _TASK) as connection:
        found = []
        for question in _ends(messages).values():
            connection.execute(f"create or replace temp table edges as select *, hash(key) % {shares:d} as share "
                               f"from ({question})")
            found.append([connection.sql(f"select * exclude (share) from edges where share = {share}").to_arrow_table()
                          for share in range(shares)])
        return list(zip(*found, strict=True))


def _share(edges: Sequence[tuple[pa.Table, pa.Table]]) -> pa.Table:
    """Matches one share of the messages of all boards."""
    with duckdb.connect(config=_TASK) as connection:
        for name, ends in zip(("sends", "receives"), zip(*edges, strict=True), strict=True):
            connection.register(name, pa.concat_tables(ends, promote_options="permissive"))
        return connection.sql(_MATCHED).to_arrow_table()


def _shares(client: Any, boards: Sequence[_Files], messages: Messages, count: int) -> list[Any]:
    """Futures of the shares. A share is picked where it was made, so only what a worker needs goes to it. Shares are
    matched by different workers: left to itself, the scheduler gives several to the one that has most of their rows."""
    edges = client.map(_edges, boards, messages=messages, shares=count, pure=False)
    picked = [client.map(itemgetter(share), edges, pure=False) for share in range(count)]
    return [client.submit(_share, own, pure=False, workers=[worker], allow_other_workers=True)
            for own, worker in zip(picked, cycle(client.nthreads()), strict=False)]


def _files(run: DecodedRun) -> _Files:
    return _Files(tuple(str(path.absolute()) for path in run.event_files()),
                  tuple(str(path.absolute()) for path in run.loss_files()))


def _of_boards(run: DecodedRun, threads: int) -> list[_Files]:
    """Files of neighbouring boards, in a few parts for each thread: to open a board's files takes longer than to ask
    small ones."""
    def listed(boards: Sequence[list[Path]]) -> tuple[str, ...]:
        return tuple(str(path.absolute()) for path in chain.from_iterable(boards))

    events, loss = by_board(run.event_files()), by_board(run.loss_files())
    size = -(-len(events) // (_PARTS * max(threads, 1)))
    return [_Files(listed(events[at:at + size]), listed(loss[at:at + size])) for at in range(0, len(events), size)]


def analyse(run: DecodedRun, question: str, messages: Messages | None = None) -> pa.Table:
    """An analysis on this machine, sorted by all columns.

    Parameters
    ----------
    question : of :data:`ANALYSES`, or ``latency``, which needs ``messages``.

    Raises
    ------
    HypermonError
        if the messages are no valid SQL.
    """
    files = _files(run)
    if question != "latency":
        return _asked(files, question)
    if messages is None:
        raise HypermonError("latency needs to know what sends and receives: give --send, --receive and --key")
    _checked(messages, files)
    return _latencies(files, messages)


def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    """The results; a cluster that loses its last worker would let its users wait for ever."""
    import distributed
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    wait: Any = distributed.wait        # it has no types
    without = 0.0
    while without < _ALONE_S:
        try:
            wait(futures, timeout=_LOOK_S)
            return list(client.gather(futures))
        except TimeoutError:
            without = 0.0 if client.nthreads() else without + _LOOK_S
        except (KilledWorker, CommClosedError, CancelledError) as error:
            why = str(error).splitlines() or ["it has ended"]
            raise HypermonError(f"the cluster: {why[0]}") from None
    raise HypermonError("the cluster has no workers any more; start some with: dask worker")


def analyse_with_dask(run: DecodedRun, question: str, client: Any, messages: Messages | None = None,
                      shares: int | None = None) -> pa.Table:
    """The same, with the same answer, by the workers of a Dask cluster, some boards a task.

    The workers read the RUN by the same absolute path, and have HYPERMON installed.

    Parameters
    ----------
    client : a ``distributed.Client``.
    shares : into how many the messages are divided; None: twice as many as the cluster has threads.

    Raises
    ------
    HypermonError
        if the messages are no valid SQL, or the workers end before the answer is there. If some of them end, the others
        do their work.
    """
    threads = sum(client.nthreads().values())
    boards = _of_boards(run, threads)
    if question != "latency":
        tables = _gathered(client, client.map(_asked, boards, question=question, settings=_TASK, pure=False))
        found = pa.concat_tables(tables)
        return found.sort_by([(name, "ascending") for name in found.schema.names])
    if messages is None:
        raise HypermonError("latency needs to know what sends and receives: give --send, --receive and --key")
    _checked(messages, boards[0])
    parts = _gathered(client, _shares(client, boards, messages, shares or _SHARES * max(threads, 1)))
    with duckdb.connect(config=SETTINGS) as connection:
        connection.register("shares", pa.concat_tables(parts))
        return connection.sql(f"{_ADDED} order by all").to_arrow_table()
