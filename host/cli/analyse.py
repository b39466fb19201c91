"""``hypermon analyse``: figures of every node of a run, on this machine or on many."""

import json
from pathlib import Path
from typing import Any

import click
from hypermon.host.cli.complete import runs_like
from hypermon.host.cli.progress_line import decoded
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.recording.directory import refuse_name

__all__ = ["analyse"]

_QUESTIONS = ("rate", "loss", "merging", "noise", "latency")


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path), shell_complete=runs_like)
@click.argument("question", type=click.Choice(_QUESTIONS))
@click.option("--send", metavar="SQL", help="latency: which items send a message, such as 'event = 3'.")
@click.option("--receive", metavar="SQL", help="latency: which items receive one.")
@click.option("--key", metavar="SQL", help="latency: what a send and its receives have in common, such as payload.")
@click.option("--dask", metavar="tcp://HOST:PORT",
              help="Run on the workers of this Dask scheduler, some boards per task.")
@click.option("-o", "--output", "out", metavar="OUT.parquet", type=click.Path(path_type=Path),
              help="Write a Parquet file. Default: JSON, one line per row.")
def analyse(run: Path, question: str, send: str | None, receive: str | None, key: str | None, dask: str | None,
            out: Path | None) -> None:
    """Compute figures of every node of a recorded run: on this machine, or on many.

    rate: items per millisecond. loss: lost items. merging: items that share their time stamp with others of their
    board. noise: the number of gaps between items by length, in powers of two. latency: time from the last send to
    each receive with the same key.
    """
    from hypermon.host.analysis.by_board import Messages
    from hypermon.host.analysis.by_board import analyse as on_this_machine
    from hypermon.host.export.sinks import refuse_output, sink

    given = [send, receive, key]
    if (question == "latency") != all(one is not None for one in given) or (question != "latency" and any(given)):
        raise HypermonError("--send, --receive, --key: latency needs all three, and nothing else needs any")
    messages = Messages(send, receive, key) if send is not None and receive is not None and key is not None else None
    if out is not None:
        refuse_name(out)
        refuse_output(out)
    opened, _ = decoded(run)
    found = on_this_machine(opened, question, messages) if dask is None else _by_dask(opened, question, dask, messages)
    if out is None:
        for batch in found.to_batches():
            for row in batch.to_pylist():
                click.echo(json.dumps(row))
        return
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    with sink(str(out)) as file:
        pq.write_table(found, file)


def _by_dask(run: Any, question: str, scheduler: str, messages: Any) -> Any:
    from hypermon.host.analysis.by_board import analyse_with_dask

    try:
        from distributed import Client
    except ImportError as error:
        raise HypermonError(f"--dask needs {error.name or error}, which is not installed: "
                            f"{to_install('dask')}") from None
    connect: Any = Client       # it has no types
    try:
        client = connect(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise HypermonError(f"--dask {scheduler}: {str(error).splitlines()[0] or 'no scheduler answers'}; start one "
                            "with: dask scheduler") from None
    with client:
        if not client.nthreads():
            raise HypermonError(f"--dask {scheduler}: it has no workers; start one on each machine with: "
                                f"dask worker {scheduler}")
        return analyse_with_dask(run, question, client, messages)
