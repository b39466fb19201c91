"""The page of the evaluation: measured values next to those of the paper."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any

from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.recorders import PORTS, WITH_EVENT
from hypermon.studies.ipsc.paper.claims import CLASSES, NOT_REPRODUCED, PARAMETERS, claims, name
from hypermon.studies.ipsc.paper.verdicts import (
    UNITS,
    Verdict,
    arithmetic,
    counts,
    deviation,
    effect,
    fit_error,
    mean_and_spread,
    predictions,
    round_trips,
    shortly,
)
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.emulated import SEEDS
from hypermon.studies.ipsc.runs.monitor import CLASSIC, EXTENDED
from hypermon.studies.ipsc.runs.printed_values import (
    NODES,
    ONE_NODE,
    TABLE_2,
    TITLES,
    TWO_NODES,
    VOLUMES,
    Printed,
)
from hypermon.studies.ipsc.runs.tables import TABLES, Evaluation
from hypermon.studies.page.markdown import table

__all__ = ["page"]

_PAGE = Path(__file__).with_name("page.md")
_FIGURES = (3, 4, 8, 9, 10, 11, 12, 13, 14)
#: Figures with which a parameter was set: at most this number is named.
_SHOWN = 5
#: Additional bytes that a record of Figure 14 may have had if it came from merged traces: a node's number, and 32 bits
#: of time instead of 16.
_MERGED_BYTES = 3


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    return table(head, rows, numbers=True)


def _beside(value: float, printed: float, form: str = ",.0f") -> str:
    """A figure, the paper's, and the deviation."""
    return f"{value:{form}} ({printed:{form}}) {deviation(value, printed)}"


def _each() -> list[tuple[str, int, Printed]]:
    return [(program, nodes, TABLE_2[program, nodes]) for program in PROGRAMS for nodes in NODES]


def _spread(values: Iterable[float], form: str = ".3f") -> str:
    mean, spread = mean_and_spread(list(values))
    return f"{mean:{form}} ± {spread:{form}}"


def _class(program: str, nodes: int, column: str) -> str:
    return claims().get(name(program, nodes, column), "-")


def _times(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        runs, cells = done.whole(program, nodes), []
        for column in ("soft", "hard"):
            theirs, formula = effect(program, nodes, column)
            own = [row[column] - row["raw"] for row in runs]
            cells += [f"{_spread(own)} ({theirs:.3f})", deviation(mean_and_spread(own)[0], theirs),
                      _class(program, nodes, column), deviation(formula, theirs)]
        hard = mean_and_spread([row["hard"] for row in runs])[0]
        rows.append((f"{TITLES[program]} {nodes}", f"{mean_and_spread([row['raw'] for row in runs])[0]:.3f} "
                     f"({printed.raw:.3f})", *cells, _beside(hard, printed.hard, ".3f")))
    return _table(("program, nodes", "raw, s (F)", "soft - raw, s", "deviation", "class", "formula", "hard - raw, s",
                   "deviation", "class", "formula", "hard, s"), rows)


def _volumes(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        runs = done.whole(program, nodes)
        soft = mean_and_spread([row["soft_bytes"] for row in runs])[0]
        hard = mean_and_spread([16 * row["frames"] for row in runs])[0]
        theirs = "overrun" if printed.hard_bytes is None else f"{printed.hard_bytes:,}"
        off = "-" if printed.hard_bytes is None else deviation(hard, printed.hard_bytes)
        ratio = "-" if printed.hard_bytes is None else f"{printed.hard_bytes / printed.soft_bytes:.1f}"
        rows.append((f"{TITLES[program]} {nodes}", _beside(soft, printed.soft_bytes),
                     _class(program, nodes, "soft bytes"), f"{hard:,.0f} ({theirs})", off,
                     _class(program, nodes, "hard bytes"),
                     f"{hard / soft:.1f} ({ratio})", _spread((100 * row["merged"] for row in runs), ".2f"),
                     f"{max(row[f'backlog_{CLASSIC.stop_ms:g}'] for row in runs):,}"))
    return _table(("program, nodes", "soft, bytes", "class", "hard, bytes", "deviation", "class", "hard : soft",
                   "merged, %", "frames waiting, at most"), rows)


def _played(done: Evaluation) -> str:
    rows = []
    for program, nodes, _ in _each():
        row = done.row(program, nodes, "hardware")
        units = row["units"]
        rows.append((f"{TITLES[program]} {nodes}", f"{units:,} {UNITS[program]}", f"{100 * row['share']:.3g} %",
                     f"{row['frames']:,}", f"{row['expected_frames']:,}", f"{row['expected_backlog']:,}",
                     f"{row['lost']:,} of {row['writes']:,}" if row["lost"] else "-", f"{100 * row['merged']:.1f}"))
    return _table(("program, nodes", "length", "part of the whole", "frames", "by arithmetic", "waiting, at most",
                   "nibbles refused", "merged, %"), rows)


def _wished(done: Evaluation) -> tuple[str, str]:
    slower, larger = [], []
    for program, nodes, _ in _each():
        raw, soft = (done.row(program, nodes, how) for how in ("raw", "software"))
        boards = [done.row(program, nodes, how) for how in PORTS]
        name = f"{TITLES[program]} {nodes}"
        slower.append((name, f"{raw['seconds']:.3f}",
                       *(f"{100 * (row['seconds'] / raw['seconds'] - 1):.2f} %" for row in (soft, *boards))))
        larger.append((name, f"{soft['logged']:,}", *(f"{row['logged'] / soft['logged']:.2f}" for row in boards),
                       *(f"{row['lost']:,}" for row in boards)))
    boards = ("1990", "extended", "8-bit ports", "adapter")
    return (_table(("program, nodes", "raw, s", "software", *boards), slower),
            _table(("program, nodes", "software, bytes", *boards, *(f"lost: {board}" for board in boards)), larger))


def _pessimistic(done: Evaluation) -> str:
    """Slowdown on eight nodes if the kernel's cost per event comes on top of an adapter's stores."""
    nodes, rows = NODES[-1], []
    for program in PROGRAMS:
        raw, soft, own = (done.row(program, nodes, how)["seconds"] for how in ("raw", "software", "adapter"))
        worst = next(row["value"] for row in done.tables["tried"]
                     if (row["question"], row["what"]) == (WITH_EVENT, program))
        rows.append((f"{TITLES[program]} {nodes}",
                     *(f"{100 * (value / raw - 1):.2f} %" for value in (soft, own, worst))))
    return _table(("program, nodes", "software", "adapter", "adapter, with the kernel's cost per event"), rows)


def _bench(done: Evaluation) -> str:
    rows = []
    for row in done.tables["bandwidth"]:
        seeds = [own for own in done.tables["bench_seeds"]
                 if (own["nodes"], own["delay"]) == (row["nodes"], row["delay"])]
        printed = {(1, 0): ONE_NODE, (2, 0): TWO_NODES}.get((row["nodes"], row["delay"]))
        rate = mean_and_spread([own["frames_per_second"] for own in seeds])[0]
        rows.append((row["nodes"], row["delay"], _spread((own["frames_per_second"] for own in seeds), ",.0f"),
                     f"{row['expected_frames_per_second']:,.0f}",
                     f"{printed:,} {deviation(rate, printed)}" if printed else "-",
                     _spread((100 * own["merged"] for own in seeds), ".2f"), f"{100 * row['expected_merged']:.2f}",
                     f"{row['nibbles']:,}", f"{row['frames_per_second']:,.0f}", f"{row['bytes_per_second'] / 1e6:.2f}",
                     f"{100 * row['merged']:.1f} ({100 * row['written_merged']:.1f})",
                     f"{row['lost']:,} refused" if row["lost"] else "-"))
    return _table(("nodes", "delay", "frames/s", "closed form", "paper", "merged, %", "closed form",
                   "on the board: nibbles", "frames/s", "MB/s", "merged, % (computed)", "overrun"), rows)


def _bus(done: Evaluation) -> str:
    printed = {5: "5, by software (an input)", 8: "8, with overheads", 18: "18, peak"}
    return _table(("the host is set to, MB/s", "paper, MB/s", "nodes that write", "window, ns", "it reads, MB/s"),
                  [(f"{row['rate'] / 1e6:g}", printed.get(row["rate"] // 1_000_000, "-"), row["nodes"],
                    row["window_ns"], f"{row['drained'] / 1e6:.2f}") for row in done.tables["bus"]])


def _counts(done: Evaluation) -> str:
    rows = []
    for kind, (number, met, missed, without) in counts(done).items():
        meaning, proves = CLASSES[kind]
        rows.append((f"**{kind}** {meaning}", proves, number, *((met, missed, without) if kind in "PRC" else "---")))
    return _table(("class", "what it can prove", "figures", "agree", "disagree", "no verdict"), rows)


def _verdicts(rows: Iterable[Verdict]) -> str:
    return _table(("figure", "paper", "accepted", "found", "formula", "length", "met"), rows)


def _evenly(done: Evaluation) -> str:
    off, where = max((row["spread_off"], f"{row['program']} {row['nodes']}") for row in done.tables["programs"]
                     if row["how"] == "hardware")
    return f"{100 * off:.1f} % on average in the worst run ({where})"


def _trips(rows: Iterable[Verdict]) -> str:
    return _table(("recovered figure", "accepted", "found", "length", "met"),
                  [(row.what, row.accept, row.found, row.length, row.met) for row in rows])


def _fitted(done: Evaluation) -> str:
    rows = []
    for parameter in PARAMETERS:
        figures = list(parameter.figures)
        shown = "; ".join(figures) if len(figures) <= _SHOWN else f"{len(figures)} figures: {figures[0]}, ..."
        rows.append((parameter.what, parameter.values, shown, fit_error(done, figures)))
    return _table(("parameter", "values", "fitted to", "largest deviation of the fit"), rows)


def _missing(done: Evaluation) -> str:
    two = _spread((row["frames_per_second"] for row in done.tables["bench_seeds"]
                   if (row["nodes"], row["delay"]) == (2, 0)), ",.0f")
    means = [_spread((row["bytes"] / row["ms"] for row in done.tables["bursts"] if row["nodes"] == nodes), ".0f")
             for nodes in VOLUMES]
    found = (two, *(f"{mean} KB/s" for mean in means), "-")
    return _table(("figure", "found", "why"),
                  [(what, here, why) for (what, why), here in zip(NOT_REPRODUCED, found, strict=True)])


def _arithmetic() -> str:
    return _table(("figure", "printed", "follows from others"),
                  [(what, f"{printed:g}", f"**{follows:.4g}**" if not agrees else f"{follows:.4g}")
                   for what, printed, follows, agrees in arithmetic() if not what.endswith(" rate")])


def _order(done: Evaluation) -> str:
    rows = []
    for program, nodes, _ in _each():
        own = [row for row in done.tables["order"] if (row["program"], row["nodes"]) == (program, nodes)]
        if own:
            rows.append((f"{TITLES[program]} {nodes}", f"{own[0]['units']:,} {UNITS[program]}",
                         _spread((row["early"] for row in own), ".0f"), f"{own[0]['messages']:,}",
                         *(f"{row['early']:,} of {row['messages']:,}" for row in
                           (done.row(program, nodes, how) for how in PORTS))))
    return _table(("program, nodes", "length", "early by the nodes' clocks", "messages", "by the board of 1990",
                   "by the extended board", "with 8-bit ports", "with adapters"), rows)


def _events(done: Evaluation) -> str:
    rows = []
    for nodes in sorted({row["nodes"] for row in done.tables["events"]}):
        cells: list[str] = []
        for how in ("extended", "wide"):
            row = next(row for row in done.tables["events"] if (row["nodes"], row["how"]) == (nodes, how))
            cells += [f"{row['events_per_second']:,.0f}", f"{row['bytes_per_second'] / 1e6:.3f}", f"{row['lost']:,}"]
        rows.append((nodes, *cells))
    return _table(("nodes", "events/s", "MB/s", "lost", "8-bit ports: events/s", "MB/s", "lost"), rows)


def _bursts(done: Evaluation) -> str:
    rows = []
    for nodes, printed in VOLUMES.items():
        runs = [row for row in done.tables["bursts"] if row["nodes"] == nodes]
        means = [mean_and_spread([total(row) for row in runs])[0] for total in (
            lambda row: row["bytes"] / row["ms"], lambda row: row["bytes"] / row["ms"] / 1.024,
            lambda row: (row["bytes"] + row["events"]) / row["ms"], lambda row: row["bytes"] / row["busy_ms"],
            lambda row: (row["bytes"] + _MERGED_BYTES * row["events"]) / row["ms"])]
        rows.append((nodes, f"{runs[0]['units']:,} rounds, {runs[0]['ms'] / 1000:.1f} s", printed,
                     *(f"{value:.0f} {deviation(value, printed)}" for value in means),
                     _spread((row["burst"] / 1000 for row in runs), ".2f")))
    return _table(("nodes", "length", "paper, KB/s", "here", "of 1024 bytes", "by the port", "without silent ms",
                   "merged traces", "20 ms, MB/s"), rows)


def _merged_record() -> float:
    """Bytes of a record that grows by the excess of Figure 14's mean on eight nodes over Table 2's."""
    printed = TABLE_2["place", 8]
    return _MERGED_BYTES / (1000 * VOLUMES[8] / (printed.soft_bytes / printed.soft) - 1)


def _two(done: Evaluation) -> str:
    rows = [(row["what"], f"{row['value']:,.0f}", deviation(row["value"], TWO_NODES), row.get("more", ""))
            for row in done.tables["tried"] if row["question"] == "two nodes"]
    return _table(("two nodes, no delay", "frames/s", f"deviation from {TWO_NODES:,}", "note"), rows)


def _polling(done: Evaluation) -> str:
    rows = []
    for nodes in NODES[1:]:
        cells = [f"{16 * sum(row['frames'] for row in runs) / sum(row['soft_bytes'] for row in runs):.1f}"
                 for runs in (done.whole("simplex", nodes), done.whole("simplex-blocked", nodes))]
        printed = TABLE_2["simplex", nodes]
        rows.append((nodes, f"{(printed.hard_bytes or 0) / printed.soft_bytes:.1f}", *cells))
    return _table(("nodes", "hard : soft, paper", "with polling", "with blocking receives"), rows)


def _place(done: Evaluation) -> str:
    rounds = {row["what"]: row["value"] for row in done.tables["tried"] if row["question"] == "place"}
    rows = [(nodes, f"{nodes * TABLE_2['place', nodes].raw / TABLE_2['place', 1].raw:.2f}",
             f"{rounds[nodes] / rounds[1]:.2f}") for nodes in NODES]
    return _table(("nodes", "sum of the nodes' raw times, paper", "rounds of annealing"), rows)


def page(done: Evaluation) -> str:
    """The whole page: ``page.md``, with the measured values."""
    cpu, made = Cpu(), done.tables["made"][0]
    figures = {f"figure_{number}": f"![Figure {number}](paper/figure-{number}.svg)" for number in _FIGURES}
    checked = "\n".join(f"- *{TITLES[program]}*: {done.whole(program, NODES[-1])[0]['checked']}"
                        for program in PROGRAMS)
    slower, larger = _wished(done)
    predicted, short = predictions(done), shortly(done)
    kinds = counts(done)
    stop, drained = CLASSIC.stop_ms / CLASSIC.every_ms, (CLASSIC.rate or 0) / 1e6
    values: dict[str, Any] = {
        "command": made["command"], "note": f" {made['note']}" if "note" in made else "",
        "cpu_minutes": made["cpu_minutes"],
        "clock": CLASSIC.geometry.clock_hz / 1e6, "tick": 1e9 / EXTENDED.geometry.clock_hz,
        "node_depth": CLASSIC.geometry.node_depth, "frame_depth": CLASSIC.geometry.frame_depth,
        "seeds": len(SEEDS), "parameters": sum(parameter.values for parameter in PARAMETERS),
        "compared": len(claims()), "counts": _counts(done), "predicted": _verdicts(predicted),
        "trips": _trips(round_trips(done)), "spread": _evenly(done), "fitted": _fitted(done), "missing": _missing(done),
        "arithmetic": _arithmetic(), "figures_f": kinds["F"][0], "figures_c": kinds["C"][0],
        "figures_p": kinds["P"][0], "figures_n": kinds["N"][0], "met": kinds["P"][1],
        "missed": kinds["P"][2],
        "missed_effects": sum(row.met == "**no**" and row.what.endswith("- raw") for row in predicted),
        "bench": _bench(done), "bus": _bus(done), "times": _times(done), "volumes": _volumes(done),
        "played": _played(done),
        "stops": _table(("length of each pause, ms of every 6.5 ms", "overrun in"), short.pop("stops")),
        "slower": slower, "larger": larger, "events": _events(done), "order": _order(done), "bursts": _bursts(done),
        "two_tried": _two(done), "polling": _polling(done), "place": _place(done), "checked": checked,
        "two": _spread((row["frames_per_second"] for row in done.tables["bench_seeds"]
                        if (row["nodes"], row["delay"]) == (2, 0)), ",.0f"),
        "two_expected": done.bench_row(2, 0)["expected_frames_per_second"],
        "pessimistic": _pessimistic(done), "write": cpu.write, "record_byte": cpu.record_byte,
        "one_write": cpu.nibble - cpu.write, "event": cpu.event, "drained": drained, "stop": 100 * stop,
        "average": drained * (1 - stop), "stop_ms": CLASSIC.stop_ms, "merged_record": _merged_record(), **figures,
        "tables": fill(", ".join(f"`{name}.csv`" for name in TABLES), 120),
        "delays": ", ".join(sorted({str(row["delay"]) for row in done.tables["bandwidth"]}, key=int)), **short}
    return _PAGE.read_text("utf-8").format(**values)
