"""Figures of a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hypermon.host.analysis.named_events import events_per_name
from hypermon.host.decode import drift, event_framing
from hypermon.host.decode.alignment import Alignment
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.unrecorded import cut_nodes, is_accounted, is_all_written
from hypermon.host.recording import clock, pulses
from hypermon.host.recording.info import AT_RISK_S
from hypermon.host.recording.parts import PARTS
from hypermon.host.text.numbers import significant

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["causes_text", "completeness", "duration_text", "ended", "extent", "headline", "lost_text", "print_stats",
           "quantity", "stats"]


def stats(run: DecodedRun, done: dict[str, Any] | None = None) -> dict[str, Any]:
    """The figures of a run. Decodes it first if needed.

    Parameters
    ----------
    done : what :func:`.decode.count_run` returned for the run; then no tables are made.

    Returns
    -------
    plain values. Per-node ones are lists of length ``nodes``. ``events`` counts items, as do all keys with that name.
    ``late_nibbles`` were carried into a later window, by ``late_max_ps`` at most. ``merged_percent`` is the share of
    items that share their frame with another (in the extended configuration, which has no frames, their window).
    ``stream_bytes`` crossed the link. ``payload_bytes`` of payload with items arrived, without the heads that state
    the modes of nodes.
    ``duration_ps`` is enable to stop, or to the last data of a run that was cut short; for a ring, from ``begins_ps``,
    before which nothing is kept.
    ``aborted``: words and events that the time-out ended, which are not among ``events``.
    ``stamp_ps``: the unit of time stamps, a window, half or a quarter of a clock, rounded down. With the latter
    two, ``frames`` and ``merged_percent`` also refer to these, not to windows. ``port_bits``: of a write.
    ``rejected``: strobes and items that the glitch filter, the rate limit and the nibble mask filtered out; they are
    neither in ``events`` nor lost. ``discarded``: items that start, stop and event mask have discarded, likewise.
    ``trigger`` is the progress of start and stop, None without them.
    ``events_per_name``: whole events, by the RUN's dictionary; empty without one.
    ``boards``: for a run of several boards, the nodes of each, how their times were aligned, and the uncertainty; see
    :class:`.alignment.Alignment`.
    ``causes`` splits ``lost``: the board's three memories, the link, unspecified.
    ``complete``: nothing was lost, and nothing of the stream is damaged or missing. ``accounted``: every loss has been
    counted; otherwise the stream was cut short, and ``lost`` is the minimum. ``how``: how the recording ended, None if
    that was not recorded. ``proper``: it ended as requested.
    ``cut_nodes``: nodes that ``hypermon trim`` left out; their figures are 0, and nothing is known of them.
    ``thresholds``: the limits that figures of this run depend on, by name; docs/thresholds.md describes them.
    """
    done = done or run.decode()
    info = run.info
    scale = info.scale
    begins, end = _recorded(run, done)
    accounted = is_accounted(run, done)
    names = events_per_name(run) if done.get(PARTS) else {}
    return {
        **{name: done[name] for name in ("events", "frames", "lost", "lost_per_node", "events_per_node", "aborted",
                                         "aborted_per_node")},
        "rejected": sum(done["rejected_per_node"]),
        "rejected_per_node": done["rejected_per_node"],
        "discarded": done["discarded"],
        "trigger": done["trigger"],
        "late_nibbles": done["late_nibbles"],
        "late_max_ps": scale.clocks_ps(done["lag_max"] * scale.window_clocks),
        "stream_bytes": done["stream_size"] - done["host_bytes"],
        "payload_bytes": done["payload_bytes"],
        "begins_ps": begins,
        "duration_ps": end - begins,
        "clock_hz": info.clock_hz,
        "window_ps": scale.window_ps,
        "stamp_ps": scale.stamp_ps,
        "port_bits": info.port_bits,
        "merged_percent": 100 * done["merged"] / done["events"] if done["events"] else 0.0,
        "nodes": info.nodes,
        "causes": done["causes"],
        "complete": accounted and done["complete"],
        "accounted": accounted,
        "how": (info.end or {}).get("how"),
        "proper": info.end is not None and info.end.get("proper", True),
        **{name: done[name] for name in ("missing_blocks", "repeated_blocks", "torn_bytes", "foreign_blocks", "faults",
                                         "surplus")},
        "events_per_name": names,
        "boards": done.get("boards", []),
        "cut_nodes": cut_nodes(run),
        "thresholds": _thresholds(run, accounted, framed=bool(names) and not run.info.item_modes.events,
                                  boards=done.get("boards", [])),
    }


def extent(run: DecodedRun, done: dict[str, Any]) -> tuple[int, int]:
    """The times between which a RUN has its data, by which the report and the timeline divide: from the beginning of
    what was kept to the end of the recording, or of the last window, if that is later.

    Parameters
    ----------
    done : what decoding the RUN returned.
    """
    begins, end = _recorded(run, done)
    last = done["last_time"]
    return begins, max(end, run.info.scale.span_ps(last, last)[1], begins + 1)


def _recorded(run: DecodedRun, done: dict[str, Any]) -> tuple[int, int]:
    """When what was kept of a RUN begins, and when the recording ended."""
    scale, end = run.info.scale, (run.info.end or {}).get("duration_ps")
    if end is None:
        end = max(scale.clocks_ps((done["last_time"] + 1) * scale.window_clocks), 0)
    return scale.clocks_ps(done["begins"] * scale.window_clocks), end


def _thresholds(run: DecodedRun, accounted: bool, *, framed: bool, boards: list[dict[str, Any]]) -> dict[str, float]:
    """The limits that the figures of a run depend on."""
    utc = run.clock
    used: dict[str, float] = {} if accounted else {"at_risk_s": AT_RISK_S}
    if framed:
        used |= event_framing.THRESHOLDS
    if utc.uncertainty_ns is not None:
        used |= pulses.THRESHOLDS if utc.how == "pps" else clock.THRESHOLDS
    if any(board.get("bends") for board in boards):
        used |= drift.THRESHOLDS
    return used


#: What a headline says of stamps that are parts of a clock, by their number per clock.
_STAMPS = {1: "", 2: ", stamps of half a clock", 4: ", stamps of a quarter of a clock"}
#: Names of the causes of a loss.
_CAUSES = {"frame_fifo": "frame FIFO full", "node_fifo": "node FIFO full", "vector_fifo": "vector FIFO full",
           "regeneration_gate": "regeneration board full", "regeneration_line": "lost on a regeneration line",
           "node": "lost by the node itself, at least", "link": "lost on the link", "unsaid": "cause unknown"}


def causes_text(figures: dict[str, Any]) -> str:
    """The causes of the losses, with their counts; empty if nothing was lost.

    "cause not recorded" is for losses that no count of a cause includes: in a RUN whose tables another program wrote.

    Parameters
    ----------
    figures : of :func:`stats`, or of :func:`hypermon.host.decode.account.summary`.
    """
    parts = [f"{_CAUSES[name]}: {count:,}" for name, count in figures["causes"].items() if count]
    rest = figures["lost"] - sum(figures["causes"].values())
    return ", ".join(parts + [f"cause not recorded: {rest:,}"] * (rest > 0))


def headline(path: object, done: dict[str, Any], run: DecodedRun | None = None) -> str | None:
    """One line about problems of the run; None if all is well.

    Parameters
    ----------
    path : the run, as the user calls it.
    done : :func:`hypermon.host.decode.account.summary`.
    run : the same, for facts that only the recording itself contains.
    """
    parts = []
    if run is not None and run.info.end is not None and not run.info.end.get("proper", True):
        parts.append(f"the recording ended early: {run.info.end.get('how')}")
    if done["lost"]:
        least = "" if done["stopped"] else "at least "
        parts.append(f"{least}{done['lost']:,} items lost ({causes_text(done)}), see loss.parquet")
    if not done["stopped"]:
        parts.append("the stream was cut short: everything after the last block here is missing, and whether more was "
                     "lost before is not known")
    if done["changed"]:
        parts.append(done["changed"])
    if run is not None and not is_all_written(run):
        parts.append(f"up to {AT_RISK_S} seconds before that may be missing as well (--keep {run.info.keep})")
    if done["torn"]:
        parts.append(f"{done['torn_bytes']} bytes were damaged")
    if done["missing_blocks"]:
        parts.append(f"{done['missing_blocks']} blocks are missing")
    if done["repeated_blocks"]:
        parts.append(f"{done['repeated_blocks']} blocks arrived more than once and are counted once")
    parts += regeneration_doubts(done)
    if done["uncounted"]:
        parts.append("the contents of the last missing blocks are not known")
    if done["foreign_blocks"]:
        parts.append(f"{done['foreign_blocks']} blocks are from another run")
    if done["surplus"]:
        parts.append(f"{done['surplus']} more items than the board counted: some blocks are from another run")
    if done["too_late"]:
        parts.append(f"{done['too_late']} items arrived later than the board allows, and were sorted into place")
    parts += [f"{n} blocks left out: {reason}" for reason, n in done["faults"].items()]
    return f"{path}: " + "; ".join(parts) if parts else None


def regeneration_doubts(done: dict[str, Any]) -> list[str]:
    """What is not known about the losses of regeneration boards. ``done``: as :func:`headline`."""
    def nodes(link: int) -> str:
        return f"nodes {8 * link} to {8 * link + 7}"

    restarted = done.get("links_restarted", [])
    return [
        *(f"{nodes(k)}: nothing of their regeneration board has arrived, so whatever they wrote is missing; connect "
          "it, or leave these nodes out" for k in done.get("links_absent", [])),
        *(f"{nodes(k)}: their regeneration board was restarted or exchanged, so more may be lost than is counted"
          for k in restarted),
        *(f"{nodes(k)}: their regeneration board was connected late or restarted, or its line was silent at the end, "
          "so more may be lost than is counted" for k in done.get("links_unsure", []) if k not in restarted),
    ]


def lost_text(lost: int, accounted: bool) -> str:
    """The number of lost items; for a stream that was cut short only the minimum is known."""
    return f"{lost:,}" if accounted else f"at least {lost:,}"


def completeness(figures: dict[str, Any]) -> str:
    """Whether anything of a run is missing, and whether the amount is known: yes or no first.

    Parameters
    ----------
    figures : of :func:`stats`.
    """
    cut = figures["cut_nodes"]
    rest = f"; {_nodes_text(cut)} {'is' if len(cut) == 1 else 'are'} not in this part of a run" if cut else ""
    if figures["complete"]:
        aside = [f"{figures[name]:,} {name}" for name in ("rejected", "discarded") if figures[name]]
        if aside:
            return f"yes: nothing that the board accepted was lost; {', '.join(aside)}{rest}"
        return f"yes: nothing was lost{rest}"
    if not figures["accounted"]:
        return (f"no: the recording has no proper end, and everything after {duration_text(figures['duration_ps'])} is "
                f"missing; before that, at least {figures['lost']:,} items were lost{rest}")
    if figures["lost"]:
        share = significant(100 * figures["lost"] / (figures["lost"] + figures["events"]), 3)
        return f"no: {figures['lost']:,} items were lost, {share} % of all; each is counted, with its time{rest}"
    return (f"no: {figures['torn_bytes']:,} bytes of the stream are damaged; by the board's counts no item is missing"
            f"{rest}")


def _nodes_text(nodes: Sequence[int]) -> str:
    """Nodes in words, in ascending order: ``node 3``, ``nodes 0 to 2, 5``."""
    runs = list[list[int]]()
    for node in nodes:
        if runs and runs[-1][-1] == node - 1:
            runs[-1][1:] = [node]
        else:
            runs.append([node])
    return f"node{'' if len(nodes) == 1 else 's'} {', '.join(' to '.join(map(str, one)) for one in runs)}"


def ended(figures: dict[str, Any]) -> str:
    """How the recording ended; ``figures``: of :func:`stats`."""
    if figures["how"] is None:
        return "not known: it is still being recorded, or its recorder was killed"
    return figures["how"] if figures["proper"] else f"early: {figures['how']}"


def quantity(value: float, unit: str) -> str:
    """Three digits and a prefix: 1.23 M."""
    if value <= 0:
        return f"0 {unit}"
    value, power = float(f"{value:.3g}"), 0
    while value >= 1000 and power < 4:
        value, power = value / 1000, power + 1
    return f"{significant(value, 3)} {' kMGT'[power].strip()}{unit}"


def duration_text(ps: int) -> str:
    """Picoseconds for people: 1.5 ms."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if float(f"{ps:.4g}") >= size:
            return f"{significant(ps / size, 4)} {unit}"
    return f"{ps} ps"


def print_stats(run: DecodedRun, console: "Console", done: dict[str, Any] | None = None) -> None:
    """Prints the figures as tables, for people; ``done`` as for :func:`stats`."""
    # Only here: importing rich takes a tenth of the time in which `hypermon view` has its first picture.
    from hypermon.host.text.console import cell
    from rich.table import Table

    figures = stats(run, done)
    seconds = figures["duration_ps"] / 1e12
    head = Table.grid(padding=(0, 2))
    rows = [
        ("board", f"{run.info.board}, {figures['nodes']} nodes, {figures['clock_hz'] / 1e6:g} MHz, "
                  f"windows of {duration_text(figures['window_ps'])}"
                  f"{_STAMPS[run.info.phases]}, {run.info.sink}"
                  f"{', ports of 8 bits' if figures['port_bits'] == 8 else ''}, drained by {run.info.drain}"),
        ("duration", duration_text(figures["duration_ps"])
         + (f", after the first {duration_text(figures['begins_ps'])}, not kept" if figures["begins_ps"] else "")),
        *(("aligned", Alignment(**values).as_text()) for values in figures["boards"]),
        ("clock", run.clock.as_text()),
        ("items", f"{figures['events']:,}" + (f", {quantity(figures['events'] / seconds, '/s')}" if seconds else "")),
        ("frames" if run.info.sink == "classic" else "windows",
         f"{figures['frames']:,}, {figures['merged_percent']:.1f} % of items share theirs"),
        *([("aborted", f"{figures['aborted']:,} words or events that the time-out aborted, not counted above")]
          if run.info.item_modes.longer else []),
        *([("rejected", f"{figures['rejected']:,} strobes or items that the filters rejected")]
          if figures["rejected"] else []),
        *([("discarded", f"{figures['discarded']:,} items before the start, after the stop, or with masked ids")]
          if figures["discarded"] else []),
        *([("trigger", figures["trigger"])] if figures["trigger"] else []),
        *([("named", ", ".join(f"{name}: {count:,}" for name, count in figures["events_per_name"].items()))]
          if figures["events_per_name"] else []),
        ("late", f"{figures['late_nibbles']:,} items carried into a later window, "
                 f"late by at most {duration_text(figures['late_max_ps'])}"),
        ("stream", f"{figures['stream_bytes']:,} bytes, {figures['payload_bytes']:,} of them item payload"),
        ("lost", ", ".join(filter(None, (lost_text(figures["lost"], figures["accounted"]), causes_text(figures))))),
        ("complete", completeness(figures)),
        ("ended", ended(figures)),
    ]
    for name, text in rows:
        head.add_row(f"[bold]{name}", cell(text))
    table = Table("node", box=None, header_style="bold")
    for title in ("items", "per second", "share", "lost" if figures["accounted"] else "lost, at least"):
        table.add_column(title, justify="right")
    cut = set(figures["cut_nodes"])
    for node, (events, lost) in enumerate(zip(figures["events_per_node"], figures["lost_per_node"], strict=True)):
        if node in cut:
            continue
        share = f"{100 * events / figures['events']:.1f} %" if figures["events"] else ""
        table.add_row(str(node), f"{events:,}", quantity(events / seconds, "") if seconds else "", share,
                      f"[red]{lost:,}" if lost else "0")
    console.print(head, "", table, sep="\n")
