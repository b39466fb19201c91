"""The page of the evaluation: measured values beside those of the paper."""

from collections.abc import Iterable
from pathlib import Path

from hypermon.sim.ipsc.machine.cpu import Cpu
from hypermon.sim.ipsc.machine.recorders import PORTS
from hypermon.sim.ipsc.paper.verdicts import agreement, verdicts
from hypermon.sim.ipsc.programs import PROGRAMS
from hypermon.sim.ipsc.runs.benchmark import NIBBLES
from hypermon.sim.ipsc.runs.monitor import CLASSIC, EXTENDED
from hypermon.sim.ipsc.runs.printed_values import (
    MILLION_HARD,
    MILLION_SOFT,
    NODES,
    ONE_NODE,
    TABLE_2,
    TITLES,
    TWO_NODES,
    VOLUMES,
    Printed,
)
from hypermon.sim.ipsc.runs.tables import Evaluation

__all__ = ["page"]

_PAGE = Path(__file__).with_name("page.md")
_FIGURES = {"simplex": 10, "life": 11, "matmul": 12, "place": 13}
#: Additional bytes that a record of Figure 14 may have had if it came from merged traces: a node's number, and 32 bits
#: of time instead of 16.
_MERGED_BYTES = 3


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(head)]
    lines += [["---", *["---:"] * (len(lines[0]) - 1)], *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _deviation(value: float, printed: float) -> str:
    return f"{100 * (value / printed - 1):+.1f} %"


def _beside(value: float, printed: float, form: str = ",.0f") -> str:
    """A figure, the paper's, and the deviation."""
    return f"{value:{form}} ({printed:{form}}) {_deviation(value, printed)}"


def _each() -> list[tuple[str, int, Printed]]:
    return [(program, nodes, TABLE_2[program, nodes]) for program in PROGRAMS for nodes in NODES]


def _times(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        runs = [done.row(program, nodes, how) for how in ("raw", "software", "hardware")]
        rows.append((f"{TITLES[program]} {nodes}", f"{100 * runs[0]['share']:.3g} %",
                     *(_beside(row["seconds"] / row["share"], theirs, ".3f") for row, theirs in
                       zip(runs, printed[:3], strict=True))))
    return _table(("program, nodes", "played", "raw, s", "soft, s", "hard, s"), rows)


def _volumes(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        soft, hard = (done.row(program, nodes, how) for how in ("software", "hardware"))
        soft_bytes, hard_bytes = soft["logged"] / soft["share"], hard["logged"] / hard["share"]
        theirs = "overrun" if printed.hard_bytes is None else f"{printed.hard_bytes:,}"
        if hard["lost"]:
            said = f"overrun, {hard['lost']:,} of {hard['writes']:,} nibbles refused ({theirs})"
        elif printed.hard_bytes is None:
            said = f"{hard_bytes:,.0f} ({theirs})"
        else:
            said = _beside(hard_bytes, printed.hard_bytes)
        ratio = "-" if printed.hard_bytes is None else f"{printed.hard_bytes / printed.soft_bytes:.1f}"
        rows.append((f"{TITLES[program]} {nodes}", _beside(soft_bytes, printed.soft_bytes), said,
                     f"{hard_bytes / soft_bytes:.1f} ({ratio})", f"{100 * hard['merged']:.1f} %"))
    return _table(("program, nodes", "soft, bytes", "hard, bytes", "hard : soft", "merged"), rows)


def _rates(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        soft, hard = (done.row(program, nodes, how) for how in ("software", "hardware"))
        theirs = None if printed.hard_bytes is None else printed.hard_bytes / printed.hard
        rate = hard["logged"] / hard["seconds"]
        rows.append((f"{TITLES[program]} {nodes}",
                     _beside(soft["logged"] / soft["seconds"], printed.soft_bytes / printed.soft),
                     "overrun" if hard["lost"] else _beside(rate, theirs) if theirs else f"{rate:,.0f} (overrun)"))
    return _table(("program, nodes", "soft, bytes/s", "hard, bytes/s"), rows)


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
    boards = ("1990", "extended", "8-bit ports")
    return (_table(("program, nodes", "raw, s", "software", *boards), slower),
            _table(("program, nodes", "software, bytes", *boards, *(f"lost: {board}" for board in boards)), larger))


def _causality(done: Evaluation) -> str:
    rows = []
    for program, nodes, _ in _each():
        if nodes > 1:
            cells = [f"{row['early']:,} of {row['messages']:,}" for row in
                     (done.row(program, nodes, how) for how in ("software", *PORTS))]
            rows.append((f"{TITLES[program]} {nodes}", *cells))
    return _table(("program, nodes", "by the nodes' clocks", "by the board of 1990", "by the extended board",
                   "with 8-bit ports"), rows)


def _bench(done: Evaluation) -> str:
    rows = []
    for row in done.tables["bandwidth"]:
        printed = {(1, 0): ONE_NODE, (2, 0): TWO_NODES}.get((row["nodes"], row["delay"]))
        overrun = f"{row['lost']:,} refused" if row["lost"] else "-"
        rate = row["frames_per_second"]
        rows.append((row["nodes"], row["delay"], f"{rate:,.0f}", f"{row['expected_frames_per_second']:,.0f}",
                     f"{printed:,} {_deviation(rate, printed)}" if printed else "shape only",
                     f"{row['bytes_per_second'] / 1e6:.2f}", f"{100 * row['merged']:.1f}",
                     f"{100 * row['expected_merged']:.1f}", overrun))
    return _table(("nodes", "delay", "frames/s", "closed form", "paper", "MB/s", "merged, %", "closed form", "overrun"),
                  rows)


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
    series, events = done.volumes(), done.volumes("events")
    for nodes, own in series.items():
        mean, share = own.sum() / len(own), own.sum() / own[own > 0].size
        merged = (own.sum() + _MERGED_BYTES * events[nodes].sum()) / len(own)
        port = (own.sum() + events[nodes].sum()) / len(own)
        twenty = max(own[at:at + 20].sum() for at in range(max(len(own) - 19, 1))) / 20
        rows.append((nodes, f"{len(own) / 1000:.2f}", VOLUMES[nodes],
                     *(f"{value:.0f} {_deviation(value, VOLUMES[nodes])}"
                       for value in (mean, mean / 1.024, port, share, merged)),
                     f"{twenty / 1000:.2f}", f"{own.max() / 1000:.2f}"))
    return _table(("nodes", "s", "paper, KB/s", "here", "of 1024 bytes", "by the port", "not silent ms only",
                   "merged traces", "20 ms, MB/s", "1 ms, MB/s"), rows)


def _merged_record() -> float:
    """Bytes of a record that grows by the excess of Figure 14's mean on eight nodes over Table 2's."""
    printed = TABLE_2["place", 8]
    return _MERGED_BYTES / (1000 * VOLUMES[8] / (printed.soft_bytes / printed.soft) - 1)


def _two(done: Evaluation) -> str:
    rows = [(row["what"], f"{row['value']:,.0f}", _deviation(row["value"], TWO_NODES), row.get("more", ""))
            for row in done.tables["tried"] if row["question"] == "two nodes"]
    return _table(("two nodes, no delay", "frames/s", f"of {TWO_NODES:,}", ""), rows)


def _polling(done: Evaluation) -> str:
    rows = []
    for nodes in NODES[1:]:
        cells = []
        for program in ("simplex", "simplex-blocked"):
            soft, hard = (done.row(program, nodes, how) for how in ("software", "hardware"))
            cells.append(f"{hard['logged'] / soft['logged']:.1f}")
        printed = TABLE_2["simplex", nodes]
        rows.append((nodes, f"{(printed.hard_bytes or 0) / printed.soft_bytes:.1f}", *cells))
    return _table(("nodes", "hard : soft, paper", "polling", "blocked"), rows)


def _place(done: Evaluation) -> str:
    rounds = {row["what"]: row["value"] for row in done.tables["tried"] if row["question"] == "place"}
    rows = [(nodes, f"{nodes * TABLE_2['place', nodes].raw / TABLE_2['place', 1].raw:.2f}",
             f"{rounds[nodes] / rounds[1]:.2f}") for nodes in NODES]
    return _table(("nodes", "all nodes' raw time, paper", "rounds of annealing"), rows)


def page(done: Evaluation) -> str:
    """The whole page: ``page.md``, with the measured values."""
    cpu, made = Cpu(), done.tables["made"][0]
    alone, two = done.bench_row(1, 0)["frames_per_second"], done.bench_row(2, 0)
    million = NIBBLES * 1e6 / alone
    stop, drained = CLASSIC.stop_ms / CLASSIC.every_ms, (CLASSIC.rate or 0) / 1e6
    figures = "\n\n".join(
        f"**Figure {number}**, *{TITLES[program]}*:\n\n![Figure {number}](paper/figure-{number}.svg)"
        for program, number in _FIGURES.items())
    checked = "\n".join(f"- *{TITLES[program]}*: {done.row(program, NODES[-1], 'hardware')['checked']}"
                        for program in PROGRAMS)
    slower, larger = _wished(done)
    return _PAGE.read_text("utf-8").format(
        command=made["command"], minutes=made["minutes"], cpu_minutes=made["cpu_minutes"],
        clock=CLASSIC.geometry.clock_hz / 1e6, tick=1e9 / EXTENDED.geometry.clock_hz,
        node_depth=CLASSIC.geometry.node_depth, frame_depth=CLASSIC.geometry.frame_depth,
        alone=_beside(alone, ONE_NODE), million=_beside(million, MILLION_HARD, ".1f"),
        million_soft=MILLION_SOFT, ratio=million / MILLION_SOFT, printed_ratio=MILLION_HARD / MILLION_SOFT,
        two=_beside(two["frames_per_second"], TWO_NODES), two_expected=two["expected_frames_per_second"],
        nibble=cpu.nibble, iteration=cpu.iteration, event=cpu.event, one_write=cpu.nibble - cpu.write,
        drained=drained, stop=100 * stop, stop_ms=CLASSIC.stop_ms, average=drained * (1 - stop),
        bench=_bench(done), times=_times(done), volumes=_volumes(done), rates=_rates(done),
        verdicts=_table(("predicted", "expected", "found", "met"), verdicts(done)), slower=slower, larger=larger,
        events=_events(done), causality=_causality(done), bursts=_bursts(done), two_tried=_two(done),
        polling=_polling(done), place=_place(done), figures=figures, checked=checked,
        delays=", ".join(sorted({str(row["delay"]) for row in done.tables["bandwidth"]}, key=int)),
        merged_record=_merged_record(), **agreement(done))
