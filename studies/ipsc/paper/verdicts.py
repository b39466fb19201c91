"""Compares the measured values with the paper's figures, by their classes."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hypermon.studies.ipsc.machine.recorders import PORTS
from hypermon.studies.ipsc.paper.claims import ARITHMETIC, TOLERANCE, claims, name
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.emulated import STOPS_MS
from hypermon.studies.ipsc.runs.monitor import CLASSIC
from hypermon.studies.ipsc.runs.printed_values import NODES, RATES, TABLE_2, TITLES
from hypermon.studies.ipsc.runs.tables import Evaluation, Row

__all__ = ["UNITS", "Verdict", "arithmetic", "counts", "deviation", "effect", "fit_error", "mean_and_spread", "overrun",
           "predictions", "round_trips", "shortly"]

#: A run of fewer pivots, generations, rows or rounds has no verdict.
LEAST_UNITS = 30
#: The formula of one line: microseconds a nibble, and a byte of software recording, by Table 2's runs on one node.
_NIBBLE_US, _BYTE_US, _WINDOW_S = 26.1, 3.2, 800e-9
#: Nibbles of a software byte, for the run whose frames are not printed.
_NIBBLES = 2.30
UNITS = {"simplex": "pivots", "life": "generations", "matmul": "rows", "place": "rounds"}
_BURST_MB = (2.0, 3.0)
_TWO = 2
#: Bytes per second of a host, as section 5.1 prints them.
_PRINTED_RATES = 5_000_000, 8_000_000, 18_000_000
#: For each figure of Table 2: its value in a run without a board.
_COLUMNS: dict[str, Callable[[Row], float]] = {
    "raw": lambda row: row["raw"], "soft": lambda row: row["soft"], "hard": lambda row: row["hard"],
    "soft bytes": lambda row: row["soft_bytes"], "hard bytes": lambda row: 16 * row["frames"]}


class Verdict(NamedTuple):
    """A row of the tables of verdicts; ``formula`` is the deviation of the formula of one line."""

    what: str
    paper: str
    accept: str
    found: str
    formula: str
    length: str
    met: str


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the standard deviation of a sample; 0 for one value."""
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def deviation(value: float, printed: float) -> str:
    """Percent by which a value is above the printed one."""
    return f"{100 * (value / printed - 1):+.1f} %"


def _met(met: bool, units: int = LEAST_UNITS, unit: str = "") -> str:
    if units < LEAST_UNITS:
        return f"no verdict: {units} {unit}"
    return "yes" if met else "**no**"


def _nibbles(program: str, nodes: int) -> float:
    """Nibbles that Table 2 implies: its frames, and those that chance merged."""
    printed = TABLE_2[program, nodes]
    if printed.frames is None:
        return _NIBBLES * printed.soft_bytes
    rate = printed.frames / printed.hard / nodes
    return printed.frames / (1 - (nodes - 1) * rate * _WINDOW_S / 2)


def effect(program: str, nodes: int, column: str) -> tuple[float, float]:
    """What recording adds to the raw time: as printed, and by the formula of one line from the printed volume."""
    printed = TABLE_2[program, nodes]
    if column == "soft":
        return printed.soft - printed.raw, _BYTE_US * printed.soft_bytes / nodes / 1e6
    return printed.hard - printed.raw, _NIBBLE_US * _nibbles(program, nodes) / nodes / 1e6


def _effects(done: Evaluation) -> Iterator[Verdict]:
    for program, nodes, column in _predicted("soft", "hard"):
        runs = done.whole(program, nodes)
        mean, spread = mean_and_spread([row[column] - row["raw"] for row in runs])
        printed, formula = effect(program, nodes, column)
        bound = TOLERANCE["effect, 2 nodes" if nodes == _TWO else "effect"]
        yield Verdict(f"{name(program, nodes, column)} - raw", f"{printed:.3f} s", f"{bound:g} %",
                      f"{mean:.3f} ± {spread:.3f} s, {deviation(mean, printed)}", deviation(formula, printed),
                      f"{runs[0]['units']:,} {UNITS[program]}",
                      _met(abs(mean / printed - 1) * 100 <= bound, runs[0]["units"], UNITS[program]))


def _predicted(*columns: str) -> Iterator[tuple[str, int, str]]:
    classes = claims()
    for column in columns:
        for program, nodes in TABLE_2:
            if classes.get(name(program, nodes, column)) == "P":
                yield program, nodes, column


def _bytes(done: Evaluation) -> Iterator[Verdict]:
    for program, nodes, column in _predicted("soft bytes", "hard bytes"):
        runs = done.whole(program, nodes)
        mean, spread = mean_and_spread([_COLUMNS[column](row) for row in runs])
        printed, bound = _printed(program, nodes, column), TOLERANCE["bytes"]
        yield Verdict(name(program, nodes, column), f"{printed:,.0f}", f"{bound:g} %",
                      f"{mean:,.0f} ± {spread:,.0f}, {deviation(mean, printed)}", "-",
                      f"{runs[0]['units']:,} {UNITS[program]}",
                      _met(abs(mean / printed - 1) * 100 <= bound, runs[0]["units"], UNITS[program]))


def _printed(program: str, nodes: int, column: str) -> float:
    row = TABLE_2[program, nodes]
    return float({"raw": row.raw, "soft": row.soft, "hard": row.hard, "soft bytes": row.soft_bytes,
                  "hard bytes": row.hard_bytes or 0}[column])


def _bench_overruns(done: Evaluation) -> Iterator[Verdict]:
    rows = [row for row in done.tables["bandwidth"] if row["delay"] == 0]
    length = f"{min(row['nibbles'] for row in rows):,} or more nibbles, on the board"
    for what, own, met in (("overrun from more than two nodes without a delay (5.1)",
                            [row for row in rows if row["nodes"] > _TWO], all),
                           ("no overrun from two (5.1)", [row for row in rows if row["nodes"] == _TWO],
                            lambda lost: not any(lost))):
        lost = [row["lost"] > 0 for row in own]
        expected = "overrun" if met is all else "none"
        found = ", ".join(f"{row['nodes']} nodes: {'overrun' if row['lost'] else 'none'}" for row in own)
        yield Verdict(what, expected, expected, found, "-", length, _met(met(lost)))


def predictions(done: Evaluation) -> list[Verdict]:
    """Every figure of class P."""
    runs = [row for row in done.tables["bursts"] if row["nodes"] == max(row["nodes"] for row in done.tables["bursts"])]
    mean, spread = mean_and_spread([row["burst"] / 1000 for row in runs])
    burst = Verdict("Place 16, maximum in 20 ms (6)", "2 to 3 MB/s", "2 to 3", f"{mean:.2f} ± {spread:.2f} MB/s", "-",
                    f"{runs[0]['units']:,} rounds",
                    _met(_BURST_MB[0] <= mean <= _BURST_MB[1], runs[0]["units"], "rounds"))
    return [*_bytes(done), *_effects(done), *_bench_overruns(done), burst]


def _boards(done: Evaluation) -> list[Row]:
    return [row for row in done.tables["programs"] if row["how"] == "hardware"]


def _off(done: Evaluation) -> tuple[float, str, int]:
    """Frames of the board and of arithmetic: the greatest difference in percent, where, and in how many runs."""
    runs = [(100 * abs(row["frames"] / row["expected_frames"] - 1), f"{row['program']} {row['nodes']}")
            for row in _boards(done) if not row["lost"]]
    return (*max(runs), len(runs))


def round_trips(done: Evaluation) -> list[Verdict]:
    """Figures of class R: what was planted, and what the board's recordings show of it."""
    off, where, count = _off(done)
    still = [row for row in done.tables["bandwidth"] if not row["lost"]]
    merged, at = max((100 * abs(row["merged"] - row["written_merged"]), f"{row['nodes']} nodes, delay {row['delay']}")
                     for row in still)
    closed, there = max((100 * abs(_merged(done, row["nodes"], row["delay"])[0] - row["expected_merged"]),
                         f"{row['nodes']} nodes, delay {row['delay']}") for row in done.tables["bandwidth"])
    seeds = next(iter(done.tables["bench_seeds"]))
    both = [*_boards(done), *done.tables["bandwidth"]]
    same = sum((row["lost"] > 0) == (row["expected_backlog"] > CLASSIC.geometry.frame_depth) for row in both)
    groups, worst = max((100 * row["groups_off"], f"{row['program']} {row['nodes']}") for row in _boards(done))
    fewest = min(row["group_intervals"] for row in _boards(done))
    early = sum(row.get("early", 0) for row in done.tables["programs"] if row["how"] in PORTS)
    sent = sum(row.get("messages", 0) for row in done.tables["programs"] if row["how"] in PORTS)
    trip, points, runs = TOLERANCE["round trip"], TOLERANCE["merging"], "the runs on the board"
    return [
        Verdict("frames of the board against those computed from the port writes", "-", f"{trip:g} %",
                f"{off:.2f} % ({where})", "-", f"{count} runs without an overrun", _met(off <= trip)),
        Verdict("runs that are overrun or not, as computed from the port writes", "-", "all",
                f"{same} of {len(both)}", "-", f"{len(both)} runs", _met(same == len(both))),
        Verdict("merged nibbles of the bandwidth test against those computed from the port writes", "-",
                f"{points:g} points", f"{merged:.2f} points ({at})", "-", f"{len(still)} runs without an overrun",
                _met(merged <= points)),
        Verdict("merged nibbles of the bandwidth test against the closed form", "-", f"{points:g} points",
                f"{closed:.2f} points ({there})", "-", f"{seeds['bytes'] // 1000} kB per node, without a board",
                _met(closed <= points)),
        Verdict("frame rates between first frames of the groups that the host read (footnote 5), against those from "
                "the stamps", "-", f"{TOLERANCE['groups']:g} %", f"{groups:.1f} % ({worst})", "-",
                f"{runs}, {fewest} or more intervals",
                _met(groups <= TOLERANCE["groups"])),
        Verdict("messages received before they were sent, by the board's time", "-", "none",
                f"{early or 'none'} of {sent:,}", "-", runs, _met(not early)),
        *(Verdict(f"rate of a host that is set to {row['rate'] / 1e6:g} MB/s", "-", f"{trip:g} %",
                  f"{row['drained'] / 1e6:.2f} MB/s", "-", f"{row['nodes']} nodes, which overrun the board",
                  _met(abs(row["drained"] / row["rate"] - 1) * 100 <= trip))
          for row in done.tables["bus"] if row["rate"] in _PRINTED_RATES),
    ]


def _merged(done: Evaluation, nodes: int, delay: int) -> tuple[float, float]:
    return mean_and_spread([row["merged"] for row in done.tables["bench_seeds"]
                            if (row["nodes"], row["delay"]) == (nodes, delay)])


def arithmetic() -> list[tuple[str, float, float, bool]]:
    """Figures of class C: what, as printed, what follows from others, whether that is the same when rounded.

    The names of the rates of Table 2 end with ``rate``.
    """
    rows = [(what, printed, follows, abs(printed - follows) <= rounding)
            for what, printed, follows, rounding in ARITHMETIC]
    for program, (soft, hard) in RATES.items():
        for column, printed_rates in (("soft", soft), ("hard", hard)):
            for nodes, rate in zip(NODES, printed_rates, strict=True):
                if rate is not None:
                    follows = _printed(program, nodes, f"{column} bytes") / _printed(program, nodes, column)
                    rows.append((name(program, nodes, f"{column} rate"), rate, follows, abs(rate - follows) < 1))
    return rows


def overrun(done: Evaluation, stop_ms: float) -> list[str]:
    """Runs of Table 2 in which more frames wait than the board holds, for any seed, with pauses of that length."""
    return [f"{TITLES[program]} {nodes}" for program, nodes in TABLE_2
            if any(row[f"backlog_{stop_ms:g}"] > CLASSIC.geometry.frame_depth for row in done.whole(program, nodes))]


def fit_error(done: Evaluation, figures: Sequence[str]) -> str:
    """How far the whole programs are from figures of Table 2 with which a parameter was set."""
    by_name = {name(program, nodes, column): (program, nodes, column) for program, nodes in TABLE_2
               for column in _COLUMNS}
    off = [(100 * (fmean([_COLUMNS[column](row) for row in done.whole(program, nodes)])
                   / _printed(program, nodes, column) - 1), figure)
           for figure in figures if figure in by_name for program, nodes, column in (by_name[figure],)]
    if not off:
        return "-"
    worst, figure = max(off, key=lambda pair: abs(pair[0]))
    return f"{worst:+.1f} % ({figure})" if abs(worst) >= 0.05 else "0.0 %"


def counts(done: Evaluation) -> dict[str, tuple[int, int, int, int]]:
    """By class: figures, and of those with a verdict: met, not met, no verdict."""
    classes = list(claims().values())
    rows = {"P": [row.met for row in predictions(done)], "R": [row.met for row in round_trips(done)],
            "C": [_met(agrees) for *_, agrees in arithmetic()]}
    found = {}
    for kind in "RFPCN":
        mets = rows.get(kind, [])
        number = len(mets) if kind == "R" else classes.count(kind)
        found[kind] = (number, mets.count("yes"), mets.count("**no**"), sum(met.startswith("no v") for met in mets))
    return found


def shortly(done: Evaluation) -> dict[str, Any]:
    """The figures of the page's summary."""
    hard = [(program, nodes) for program, nodes, _ in _predicted("hard")]
    off, formula = [], []
    for program, nodes in hard:
        printed, line = effect(program, nodes, "hard")
        off.append(100 * (fmean([row["hard"] - row["raw"] for row in done.whole(program, nodes)]) / printed - 1))
        formula.append(100 * (line / printed - 1))
    life = [hard.index(("life", nodes)) for nodes in (4, 8)]
    simplex = [100 * (fmean([row["soft_bytes"] for row in done.whole("simplex", nodes)])
                      / TABLE_2["simplex", nodes].soft_bytes - 1) for nodes in (4, 8)]
    boards = [row for row in done.tables["programs"] if row["how"] in PORTS and row["program"] in PROGRAMS]
    lost = sum(row["lost"] for row in (*boards, *done.tables["events"]) if row["how"] != "hardware")
    ratios = {how: [done.row(program, nodes, how)["logged"] / done.row(program, nodes, "software")["logged"]
                    for program in PROGRAMS for nodes in NODES] for how in PORTS}
    early = {seed: sum(row["early"] for row in done.tables["order"] if row["seed"] == seed)
             for seed in {row["seed"] for row in done.tables["order"]}}
    return {
        "hard_least": round(min(off)) + 0, "hard_most": round(max(off)) + 0,
        "formula_least": round(min(formula)) + 0, "formula_most": round(max(formula)) + 0,
        "nearer": sum(abs(ours) < abs(line) for ours, line in zip(off, formula, strict=True)), "hards": len(hard),
        "life_4": off[life[0]], "life_8": off[life[1]], "line_4": formula[life[0]], "line_8": formula[life[1]],
        "simplex_4": simplex[0], "simplex_8": simplex[1], "lost": f"{lost or 'nothing'}",
        "early_mean": fmean(early.values()), "early_least": min(early.values()), "early_most": max(early.values()),
        "messages": sum(row["messages"] for row in done.tables["order"]) // len(early),
        "early": f"{sum(row.get('early', 0) for row in boards) or 'none'}",
        "overrun": ", ".join(overrun(done, CLASSIC.stop_ms)) or "none",
        "stops": [(stop, ", ".join(overrun(done, stop)) or "none") for stop in STOPS_MS],
        "least_1990": min(ratios["hardware"]), "most_1990": max(ratios["hardware"]),
        "least": min(ratios["extended"]), "most": max(ratios["extended"]),
    }
