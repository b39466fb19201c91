"""A run as one self-contained page of HTML: figures inside, no network."""

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import frame_bytes
from hypermon.host.analysis.causality import Causality, causality
from hypermon.host.analysis.distributions import GAP_BINS, GAP_OCTAVES, Distributions, distributions_of
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.analysis.stats import causes_text, completeness, duration_text, ended, lost_text, quantity
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.report.board_map import MANY_NODES, BoardRow, board_map
from hypermon.host.report.figures import Figures
from hypermon.host.report.named import EVENTS_HEAD, STATES_HEAD, event_rows, state_rows, state_shares
from hypermon.host.run import Run
from hypermon.host.text.numbers import significant
from hypermon.host.text.printable import printable

__all__ = ["report_html", "write_report"]

_PERCENTILES = (50, 90, 99, 99.9, 99.99)
#: Maximum outages that are listed, and kinds of messages.
_LISTED = 20
#: Maximum boards that are named in the subtitle.
_NAMED = 8
#: Maximum events of the busiest moment that are drawn.
_STROKES = 20_000

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #161616; --quiet: #555; --ground: #fff; --loss: #a8330a; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e8e8e8; --quiet: #a9afb7; --ground: #15181d; --loss: #ffa07a; }} }}
body {{ max-width: 46rem; margin: 2.5rem auto; padding: 0 1rem; font: 16px/1.45 Georgia, "Times New Roman", serif;
       color: var(--ink); background: var(--ground); }}
h1 {{ font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.12rem; margin: 2.2rem 0 .4rem; }}
p.sub {{ color: var(--quiet); margin: .2rem 0 1.2rem; }}
figure {{ margin: .8rem 0; }}
/* Wide contents scroll by themselves: the page does not, and labels stay legible. */
.wide {{ overflow-x: auto; }}
figure img {{ width: 100%; min-width: 34rem; height: auto; }}
figcaption, td, th {{ font-size: .88rem; }}
figcaption b {{ font-weight: 600; }}
table {{ border-collapse: collapse; margin: .8rem 0; border-top: 1.5px solid; border-bottom: 1.5px solid; }}
th {{ border-bottom: .75px solid; font-weight: normal; font-style: italic; }}
td, th {{ padding: .12rem 1rem .12rem 0; text-align: right; font-variant-numeric: tabular-nums; }}
table.figures td {{ white-space: nowrap; }}
td:first-child, th:first-child {{ text-align: left; }}
.loss {{ color: var(--loss); }}
@media print {{ section {{ break-inside: avoid; }} body {{ margin: 0 auto; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="sub">{subtitle}</p>
{body}
<p class="sub">{clock}; {software}.</p>
</body>
</html>
"""

#: Messages that were seen sent and received, and are matched for sure.
_KNOWN = "latency_ps is not null and lost_ps is null"


def write_report(run: Run, path: Path) -> None:
    """Writes the report of a RUN to a file, at once; raises HypermonError if matplotlib is not installed."""
    from hypermon.host.export.sinks import sink

    text = report_html(run)
    with sink(str(path)) as file:
        file.write(text.encode())


def report_html(run: Run) -> str:
    """The report of a RUN."""
    page = _Page(run)
    info, body = run.info, "\n".join(page.sections())
    boards = info.board if len(info.boards) <= _NAMED else f"{len(info.boards)} boards"
    board = f"{boards}, {info.nodes} nodes, {info.sink}, windows of {duration_text(page.figured['window_ps'])}"
    return _PAGE.format(title=_text(run.path.resolve().name), body=body,
                        subtitle=_text(f"Recorded {info.started} from {board}"),
                        clock=_text(f"Times are the board's, whose {run.clock.as_text()}"),
                        software=_text(info.software))


def _text(text: str) -> str:
    """Untrusted text, for HTML."""
    return html.escape(printable(text))


class _Page:
    """The sections of a report, figures numbered."""

    def __init__(self, run: Run):
        self.draw, self.run = Figures(), run
        run.check_rows()
        self.survey, self.figured = distributions_of(run), run.stats()
        self._begins = self.figured["begins_ps"]
        self.lost = [[LossSpan(lost, from_ps - self._begins, to_ps - self._begins) for lost, from_ps, to_ps in own]
                     for own in outages(run.loss(), run.info.nodes)]
        dictionary = kept_dictionary(run)
        self._has_meanings = dictionary is not None
        self.names = [dictionary.node_name(node) if dictionary is not None else str(node)
                      for node in range(run.info.nodes)]
        boards = self.figured.get("boards") or []
        self._boards = boards if len(boards) > 1 and run.info.nodes > MANY_NODES else []
        self._bytes = self.figured["payload_bytes"] / max(self.figured["events"], 1)
        self._figures = 0

    def sections(self) -> list[str]:
        draw, survey = self.draw, self.survey
        whole = [
            _section("What was recorded", _summary(self.figured)),
            _section("What was lost", self._losses()),
            _section("Rates over time", self._figure(
                draw.rates(survey, self.lost),
                "Items per second in 100 intervals. The strip at the bottom: some node was losing items."),
                     self._nodes_table())]
        if self.figured["events"]:
            whole += self._events()
        # Without a dictionary no event has a name.
        return [*whole, *self._named(), *self._states(), *self._messages()] if self._has_meanings else whole

    def _named(self) -> list[str]:
        rows = event_rows(self.run, self.survey.duration_ps / 1e12)
        return [_section("Events by name", _table(EVENTS_HEAD, rows))] if rows else []

    def _states(self) -> list[str]:
        """What the nodes did, by the states of the dictionary."""
        duration, nodes = self.survey.duration_ps, len(self.names)
        rows = state_rows(self.run, self._begins, duration)
        if not rows:
            return []
        shares = state_shares(self.run, self._begins, duration, nodes)
        picture = [self._figure(self.draw.states(shares, self.names),
                                "Share of each node's time in each state, as far as it is known.")] if shares else []
        return [_section("States", *picture, _table(STATES_HEAD, rows))]

    def _events(self) -> list[str]:
        """The sections for a run that has events."""
        draw, survey = self.draw, self.survey
        slot = _slot(survey)
        return [
            self._over_time(),
            _section("Volume", self._figure(draw.volumes(survey, self._bytes),
                                            f"Bytes of item payload recorded in each {slot}.")),
            _section("Busiest moments", self._moment(),
                     _table((f"{slot} from, ms", "items", "times the mean"),
                            [(f"{at:,}", f"{count:,}", significant(count / max(survey.volumes.mean(), 1e-9), 3))
                             for at, count in survey.busiest])),
            _section("Bursts against buffer depth", self._figure(
                draw.bursts(survey, self._bytes),
                "The buffer that would have lost nothing, by the rate at which it is drained. Lost items are "
                "included, as if each outage had come all at once."),
                     _table(("items drained", "payload drained", "depth without loss"), [
                         (quantity(burst.rate, "/s"), quantity(burst.rate * self._bytes, "B/s"),
                          f"{burst.depth:,} items") for burst in survey.bursts[::3]])),
            _section("Merging", self._figure(draw.shared(survey), (
                "Items by how many of them share their window.")), self._merging()),
            _section("Times between items", self._figure(draw.gaps(survey), (
                "Share of the times between one item and the next that are longer; both axes logarithmic. A percentile "
                f"in the table is a time that occurred, at most {100 * (2 ** (1 / GAP_BINS) - 1):.1f} % too long.")),
                     self._gaps())]

    def _rows(self) -> tuple[list[str], list[list[LossSpan]]]:
        """Names and losses of the rows of a picture: nodes, or boards if there are many nodes."""
        if not self._boards:
            return self.names, self.lost
        return [str(number) for number in range(len(self._boards))], [
            sorted((outage for own in self.lost[board["first_node"]:board["first_node"] + board["nodes"]]
                    for outage in own), key=lambda outage: outage.from_ps) for board in self._boards]

    def _over_time(self) -> str:
        """The nodes over time, or the boards if there are many nodes."""
        survey, what = self.survey, "board" if self._boards else "node"
        if self._boards:
            first = [board["first_node"] for board in self._boards]
            survey = replace(survey, timeline=np.add.reduceat(survey.timeline, first, axis=0))
        return _section(f"{what.capitalize()}s over time", self._figure(
            self.draw.timeline(survey, *self._rows()),
            f"Items per second of every {what}, in 480 intervals. A bar below a row: items of that {what} were lost."))

    def _board_map(self) -> str:
        per_node, lost = self.figured["events_per_node"], self.figured["lost_per_node"]
        rows = []
        for board in self._boards:
            own = slice(board["first_node"], board["first_node"] + board["nodes"])
            rows.append(BoardRow(_text(board["board"]), [_text(name) for name in self.names[own]], per_node[own],
                                 lost[own]))
        return board_map(rows, self.survey.duration_ps / 1e12)

    def _figure(self, svg: str, caption: str) -> str:
        """Each picture separately: names within one are not valid in another."""
        self._figures += 1
        data = base64.b64encode(svg.encode()).decode()
        text = html.escape(caption)
        return (f'<figure><div class="wide"><img alt="{text}" src="data:image/svg+xml;base64,{data}"></div>'
                f"<figcaption><b>Figure {self._figures}.</b> {text}</figcaption></figure>")

    def _losses(self) -> str:
        rows = sorted(((outage.lost, node, outage) for node, own in enumerate(self.lost) for outage in own),
                      reverse=True)
        if not rows:
            return "<p>Nothing.</p>" if self.figured["complete"] else (
                '<p class="loss">No loss is known of, but the run is not complete: see above.</p>')
        total = sum(count for count, *_ in rows)
        share = significant(100 * total / (total + self.figured["events"]), 3)
        listed = [(self.names[node], f"!{count:,}", f"{outage.from_ps / 1e9:,.6f}", f"{outage.to_ps / 1e9:,.6f}")
                  for count, node, outage in rows[:_LISTED]]
        more = f" The largest {_LISTED} of them:" if len(rows) > _LISTED else ""
        known = "each counted, with its time" if self.figured["accounted"] else "as far as is known"
        return (f'<p><span class="loss">{lost_text(total, self.figured["accounted"])} items</span> '
                f"({share} % of all; {html.escape(causes_text(self.figured))}) in {len(rows):,} outages, "
                f"{known}.{more}</p>"
                + _table(("node", "items", "from, ms", "to, ms"), listed))

    def _nodes_table(self) -> str:
        if self._boards:
            return self._board_map()
        per_node, lost = self.figured["events_per_node"], self.figured["lost_per_node"]
        duration = self.survey.duration_ps / 1e12
        busiest = self.survey.rates.max(axis=1) / (duration / self.survey.rates.shape[1])
        return _table(("node", "items", "mean", "busiest interval", "lost"), [
            (name, f"{per_node[node]:,}", quantity(per_node[node] / duration, "/s"), quantity(busiest[node], "/s"),
             f"!{lost[node]:,}" if lost[node] else "0") for node, name in enumerate(self.names)
            if node not in self.figured["cut_nodes"]])

    def _moment(self) -> str:
        """The busiest slot, or the part of it that can be drawn."""
        at, count = self.survey.busiest[0]
        begin = at * 10**9
        length = int(min(1, _STROKES / count) * self.survey.slot_ms * 10**9)
        since = begin + self._begins
        events = self.run.events(from_ps=since, to_ps=since + length, columns=["time_ps", "node"])
        node = events["node"].to_numpy()
        names, lost = self._rows()
        if self._boards:
            node = np.searchsorted([board["first_node"] for board in self._boards], node, "right") - 1
        picture = self.draw.moment(events["time_ps"].to_numpy() - self._begins, node, names,
                                   (begin, begin + length), lost)
        return self._figure(picture, f"Every item of the busiest {_slot(self.survey)}"
                                     f"{'' if count <= _STROKES else ', its beginning'}: one stroke per item.")

    def _merging(self) -> str:
        bits, alone = 8 * self._bytes, 8 * frame_bytes(self.run.info.nodes)
        rows = [("items that share their window with another", f"{self.figured['merged_percent']:.1f} %"),
                ("bits of payload per item, as recorded", f"{bits:.1f}"),
                ("bits, if each item had its own frame", f"{alone}"),
                ("saved against a frame per item", f"{100 * (1 - bits / alone):.1f} %")]
        if not self.run.info.item_modes.longer:
            separate = 32 + self.run.info.port_bits + (self.run.info.nodes - 1).bit_length()
            rows[3:3] = [("bits of separate records: stamp of 32 bits, node, value", f"{separate}")]
        return _table(("", ""), rows)

    def _gaps(self) -> str:
        rows = [("all", self.survey.gaps),
                *((name, gaps) for name, gaps in zip(self.names, self.survey.node_gaps, strict=True) if gaps.total)]
        return _table(("node", *(f"{share:g} %" for share in _PERCENTILES), "longest"),
                      [(name, *(duration_text(gaps.percentile(share)) for share in _PERCENTILES),
                        duration_text(gaps.longest)) for name, gaps in rows])

    def _messages(self) -> list[str]:
        found = causality(self.run)
        if not found.messages:
            return []
        ways = ", ".join(f"quantile_disc(latency_ps, {share / 100})" for share in _PERCENTILES)
        rows = self.run.sql(f"select name, count(*), min(latency_ps), {ways}, max(latency_ps) from messages "
                            f"where {_KNOWN} group by name order by count(*) desc, name "
                            f"limit {_LISTED}").fetchall()
        parts = [_matches(found)]
        if rows:
            parts += [
                self._figure(self.draw.messages(self._matrix(), self.names),
                             "Messages seen sent and received, by sender and receiver."),
                self._figure(self.draw.latencies(self._latencies([name for name, *_ in rows])),
                             "Share of messages whose latency is longer; both axes logarithmic."),
                _table(("latency", "messages", "least", *(f"{share:g} %" for share in _PERCENTILES), "most"),
                       [(name, f"{count:,}", *(_signed(time) for time in times)) for name, count, *times in rows])]
        return [_section("Messages", *parts)]

    def _matrix(self) -> npt.NDArray[np.int64]:
        counts = np.zeros((len(self.names), len(self.names)), np.int64)
        pairs = self.run.sql(f"select sender, receiver, count(*) from messages where {_KNOWN} "
                             f"and sender between 0 and {len(counts) - 1} and receiver between 0 and "
                             f"{len(counts) - 1} group by all").fetchall()
        for sender, receiver, count in pairs:
            counts[sender, receiver] = count
        return counts

    def _latencies(self, names: Sequence[str]) -> dict[str, npt.NDArray[np.int64]]:
        counts = {name: np.zeros(GAP_OCTAVES * GAP_BINS, np.int64) for name in names[:8]}
        bins = self.run.sql(f"select name, floor(log2(latency_ps) * {GAP_BINS})::int, count(*) from messages "
                            f"where latency_ps > 0 and {_KNOWN} group by all").fetchall()
        for name, at, count in bins:
            if name in counts:
                counts[name][at] = count
        return counts


def _section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{html.escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Cells are text; a cell that begins with ``!`` is about loss."""
    def cell(value: object) -> str:
        text = str(value)
        bad = text.startswith("!")
        return f'<td class="loss">{html.escape(text[1:])}</td>' if bad else f"<td>{html.escape(text)}</td>"

    lines = ["<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in head) + "</tr>"] if any(head) else []
    lines += ["<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows]
    return f'<div class="wide"><table{" class=figures" * any(head)}>' + "\n".join(lines) + "</table></div>"


def _summary(figured: dict[str, Any]) -> str:
    seconds = figured["duration_ps"] / 1e12
    return _table(("", ""), [
        ("duration", duration_text(figured["duration_ps"])),
        *([("begins", f"{significant(figured['begins_ps'] / 1e12, 6)} s after the start; times on this page count "
                      "from there")]
          if figured["begins_ps"] else []), ("items", f"{figured['events']:,}"),
        ("items per second", quantity(figured["events"] / seconds, "/s") if seconds else ""),
        ("lost", "nothing" if not figured["lost"] and figured["accounted"] else
         f"!{lost_text(figured['lost'], figured['accounted'])}"),
        ("bytes of the stream", f"{figured['stream_bytes']:,}"),
        ("of them item payload", f"{figured['payload_bytes']:,}"),
        ("complete", f"{'' if figured['complete'] else '!'}{completeness(figured)}"),
        ("ended", f"{'' if figured['proper'] else '!'}{ended(figured)}")])


def _matches(found: Causality) -> str:
    backwards = f"!{found.backwards:,}" if found.backwards else "none"
    return _table(("", ""), [
        ("messages", f"{found.messages:,}"), ("sent and received", f"{found.matched:,}"),
        ("sent only", f"{found.sent_only:,}"), ("received only", f"{found.received_only:,}"),
        *([("after a loss, perhaps matched wrongly: not in the figures below", f"!{found.uncertain:,}")]
          if found.uncertain else []),
        ("received before they were sent", backwards)])


def _slot(survey: Distributions) -> str:
    return "millisecond" if survey.slot_ms == 1 else f"{survey.slot_ms} ms"


def _signed(ps: int) -> str:
    return duration_text(ps) if ps >= 0 else f"-{duration_text(-ps)}"
