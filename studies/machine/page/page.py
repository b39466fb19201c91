"""The page: counts of the classes, every prediction with its deviation, then a table and figures for each machine."""

from collections import Counter
from pathlib import Path
from textwrap import fill

from hypermon.studies.machine.page import asciq_rows, ipsc860_rows, qsnet_rows, sp2_rows
from hypermon.studies.machine.page.blind_rows import blind
from hypermon.studies.machine.page.rows import CLASSES, LEAST, Data, Row, judged
from hypermon.studies.page.markdown import table
from hypermon.studies.page.tables import Row as Plain
from hypermon.studies.page.tables import Tables

__all__ = ["all_rows", "page", "plain"]

_PAGE = Path(__file__).with_name("page.md")
_TITLES = {"ipsc860": "iPSC/860 (Bokhari 1990)", "asciq": "ASCI Q (Hoisie and others 2002)",
           "sp2": "SP2 (Tabe, Hardwick, Stout 1995)",
           "qsnet": "QsNet, relations only (Petrini and others 2001)"}
_MODULES = {"ipsc860": ipsc860_rows, "asciq": asciq_rows, "sp2": sp2_rows,
            "qsnet": qsnet_rows}


#: Machine, begin of a run's name, and its full length.
_PROGRAMS = (
    ("ipsc860", "path ", "100 of each size"), ("ipsc860", "path, all sizes", "100 of each size"),
    ("ipsc860", "edges-1", "100 exchanges of each size"), ("ipsc860", "edges-2", "100 exchanges of each size"),
    ("ipsc860", "edges-3", "100 exchanges of each size"), ("ipsc860", "nodes", "100 exchanges of each size"),
    ("ipsc860", "blind", "-"), ("asciq", "quantum", "400 s, 32 ports"), ("asciq", "each quantum", "20 s, 4 ports"),
    ("asciq", "bsp 5 ms", "300 s"), ("asciq", "bsp 1 ms", "60 s"), ("asciq", "bsp 0 ms", "0.3 s"),
    ("asciq", "bsp of", "100 s"), ("asciq", "barrier", "300 s"), ("asciq", "blind", "400 s"),
    ("sp2", "exchange", "100,000 exchanges"), ("sp2", "all-to-all", "100 for each number of nodes"),
    ("sp2", "bounded", "100 for each number of nodes"), ("sp2", "free", "100 for each number of nodes"),
    ("sp2", "nCUBE", "2,000 exchanges"), ("sp2", "blind", "20,000 exchanges"), ("qsnet", "ping", "100 of each size"),
    ("qsnet", "bidirectional", "31 of each size"), ("qsnet", "hotspot", "100 messages"), ("qsnet", "blind", "-"),
)


#: What each picture shows, for readers who do not see it.
_ALT = {
    "ipsc860-path.svg": "Curves of the one-way time over message size, at distances 1 to 7, with the paper's formula",
    "ipsc860-paths-drawn.svg": "Diagrams of the hypercube paths of Figures 5 and 10 and of section 8",
    "ipsc860-edges-1.svg": "Curves of the round trip over message size, for 1 to 4 paths that share edges",
    "ipsc860-details.svg": "Curves of the round trip over message size: below 200 bytes, and from 1800 to 2600 bytes",
    "ipsc860-edges-2.svg": "Curves of the round trip over message size, for 1 to 8 paths, with the paper's bounds",
    "ipsc860-edges-3.svg": "Time per exchange over message size, after a gsync; round trips for paths that share nodes",
    "asciq-noise.svg": "Bars of the noise of each node of a partition, and the number of freezes by length",
    "asciq-arrivals.svg": "Time bars of the computation of four nodes, and the ends of the allreduces",
    "asciq-scaling.svg": "Curve of the overhead of an allreduce over the number of nodes, with Table 4.1's values",
    "asciq-removal.svg": "Curves of the latency without some sources of noise, with crosses at Table 4.1's values",
    "asciq-sage.svg": "Cycle times without some sources of noise, with crosses at Table 5.1's values",
    "sp2-exchange.svg": "Times of exchanges one by one and as a histogram, and idle times of node 0",
    "sp2-throughput.svg": "Curves of the throughput over the number of nodes, with crosses at Table 1's values",
    "qsnet-ping.svg": "Curves of latency and bandwidth over message size, in one direction and in both at once",
    "qsnet-hotspot.svg": "Curves of the rate of all nodes and of one node over the number of nodes at one block",
}


def all_rows(data: Data) -> dict[str, list[Row]]:
    """The rows of each machine."""
    return {name: [*judged(data, module.rows(data)), *blind(data, name)] for name, module in _MODULES.items()}


def plain(rows: dict[str, list[Row]]) -> list[Plain]:
    """The same as a table for a CSV file."""
    return [{"machine": name, **row._asdict()} for name, own in rows.items() for row in own]


def _met(row: Row) -> str:
    if not row.ours:
        return "no run yet"
    return "-" if row.met is None else "yes" if row.met else "**no**"


def _counts(rows: dict[str, list[Row]]) -> str:
    kinds = {name: Counter(row.kind for row in own) for name, own in rows.items()}
    body = [(f"**{kind}**", CLASSES[kind], *(str(kinds[name][kind]) for name in rows),
             str(sum(own[kind] for own in kinds.values()))) for kind in CLASSES]
    return table(("class", "meaning", *(_TITLES[name].split(" (")[0] for name in rows), "all"), body)


def _predicted(rows: dict[str, list[Row]]) -> str:
    return table(("machine", "predicted", "paper", "here", "deviation", "accepted", "met"),
                  ((_TITLES[name].split(" (")[0], row.what, row.paper, row.ours or "-", row.deviation, row.accept,
                    _met(row)) for name, own in rows.items() for row in own if row.kind == "P"))


def _lengths(runs: list[Plain]) -> str:
    """How long the runs of each program were."""
    lines = []
    for machine, begin, full in _PROGRAMS:
        own = [row for row in runs if row["machine"] == machine and str(row["task"]).startswith(begin)]
        seconds = [float(row["seconds"]) for row in own]
        if own:
            spent = [float(row["cpu_s"]) for row in own if "cpu_s" in row]
            lines.append((_TITLES[machine].split(",")[0].split(" (")[0], begin.strip(", "), str(len(own)),
                          f"{sum(int(row['events']) for row in own):,}", f"{sum(seconds) / len(own):.3g} s", full,
                          f"{sum(spent):.0f} s" if spent else "-"))
    return table(("machine", "prefix of the runs' names", "runs", "events", "emulated time per run",
                   "full length", "processor time"), lines)


def _machine(name: str, rows: list[Row], figures: list[tuple[str, str]]) -> str:
    module = _MODULES[name]
    compared = sum(row.kind in ("P", "F") for row in rows)
    free = "".join(f"- {one}\n" for one in module.FREE)
    listed = table(("figure", "paper", "class", "accepted", "here", "deviation", "met", "why"),
                   ((row.what, row.paper, row.kind, row.accept, row.ours or "-", row.deviation, _met(row), row.note)
                    for row in rows))
    drawn = "\n\n".join(f"![{_ALT[file]}](machines/{file})\n\n{caption}" for file, caption in figures)
    return (f"## {_TITLES[name]}\n\n{module.TERMS}\n\nFree parameters {len(module.FREE)}, figures compared {compared}"
            f"{':' if free else '.'}\n\n{free + chr(10) if free else ''}{listed}\n\n{drawn}\n")


def _lost(items: int) -> str:
    return f"{items:,} items were lost." if items else "None was lost."


def _made(made: Plain, runs: int) -> str:
    """The command, and what it took."""
    if "options" not in made:
        return "[Lengths](#lengths) lists how long the runs of each program are."
    own, new = int(made["runs"]), int(made["recorded"])
    which = "All runs are" if own == runs else f"{own} of the runs are"
    kept = f"; the other {own - new} had been kept" if own > new else ""
    return fill(f"{which} from one command, `make machines ARGS='{made['options']}'`. It took "
            f"{int(made['cpu_s']) / 60:.0f} minutes of processor time and made {new} of the recordings{kept}. "
            "[Lengths](#lengths) lists how long the runs of each program are.", 120, break_on_hyphens=False)


def page(tables: Tables, figures: dict[str, list[tuple[str, str]]]) -> str:
    """The whole page: ``page.md``, with the tables."""
    data = Data(tables)
    rows = all_rows(data)
    made, runs = tables["made"][0], tables.get("runs", [])
    disturbed = [row for row in runs if "disturbed" in row]
    missed = sum(row.met is False and row.kind == "P" for own in rows.values() for row in own)
    missing = sum(not row.ours for own in rows.values() for row in own)
    return _PAGE.read_text("utf-8").format(
        counts=_counts(rows), predicted=_predicted(rows), events=int(made["events"]), runs=len(runs),
        missed=f"{missed} prediction{' misses its tolerance' if missed == 1 else 's miss their tolerances'}.",
        missing=f" {missing} rows have no run yet." if missing else "",
        least=LEAST, lost=_lost(sum(int(row["lost"]) for row in runs)), made=_made(made, len(runs)),
        lengths=_lengths(runs),
        disturbed=table(("run", "events", "slowdown compared with the run without events"), (
            (row["task"], f"{int(row['events']):,}", f"{100 * float(row['disturbed']):.3f} %" + (
                ": **above 0.5 %**" if float(row["disturbed"]) > 0.005 else "")) for row in disturbed)),
        machines="\n".join(_machine(name, own, figures.get(name, [])) for name, own in rows.items()))
