"""Whether the messages of a RUN arrived after they were sent."""

from typing import NamedTuple

from hypermon.host.analysis.query import sql
from hypermon.host.decode.decoded_run import DecodedRun

__all__ = ["Causality", "causality"]


class Causality(NamedTuple):
    """Messages of a run.

    Members
    -------
    messages : all; ``matched``: seen at both endpoints.
    sent_only, received_only : seen at one endpoint.
    backwards : matched, and received before they were sent, by the board's time: none, if dictionary, nodes and board
        are right.
    least_ps : the shortest latency of a matched one; None if there is none.
    """

    messages: int
    matched: int
    sent_only: int
    received_only: int
    backwards: int
    least_ps: int | None


def causality(run: DecodedRun) -> Causality:
    """Whether any message was received before it was sent."""
    rows = sql(run, """select count(*), count(latency_ps), count(*) filter (received_ps is null),
                             count(*) filter (sent_ps is null), count(*) filter (latency_ps < 0), min(latency_ps)
                      from messages""").fetchall()
    return Causality(*rows[0])
