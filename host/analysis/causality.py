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
    beyond : those of them that are not explained by the uncertainty of the boards' alignment: within one board all; of
        boards whose uncertainty is not known, all, too.
    least_ps : the shortest latency of a matched one; None if there is none.
    uncertain : matched, but perhaps wrongly, because of a loss: see :mod:`.semantics`. ``backwards``, ``beyond`` and
        ``least_ps`` are of the others.
    """

    messages: int
    matched: int
    sent_only: int
    received_only: int
    backwards: int
    beyond: int
    least_ps: int | None
    uncertain: int


def causality(run: DecodedRun) -> Causality:
    """Whether any message was received before it was sent."""
    of, unsure = (_by_node(run, what) for what in ("first_node", "uncertainty_ns"))
    excused = (f"case when {of.format('sender')} = {of.format('receiver')} then 0 else "
               f"1000 * ({unsure.format('sender')} + {unsure.format('receiver')}) end")
    rows = sql(run, f"""select count(*), count(latency_ps), count(*) filter (received_ps is null),
                              count(*) filter (sent_ps is null),
                              count(*) filter (lost_ps is null and latency_ps < 0),
                              count(*) filter (lost_ps is null and latency_ps < -({excused})),
                              min(latency_ps) filter (lost_ps is null), count(lost_ps)
                       from messages""").fetchall()
    return Causality(*rows[0])


def _by_node(run: DecodedRun, what: str) -> str:
    """SQL for a figure of the board of a node, ``{}``; 0 if it is not known, or there is one board."""
    boards = run.decode().get("boards", [])
    cases = " ".join(f"when {{0}} < {own['first_node'] + own['nodes']} then {own[what] or 0}" for own in boards)
    return f"(case {cases} else 0 end)" if cases else "0"
