"""Tests the predictions: deviations from the paper, against the expected ones."""

from typing import Any

from hypermon.sim.ipsc.machine.recorders import PORTS
from hypermon.sim.ipsc.programs import PROGRAMS
from hypermon.sim.ipsc.runs.printed_values import NODES, TABLE_2, TITLES
from hypermon.sim.ipsc.runs.tables import Evaluation, Row

__all__ = ["agreement", "verdicts"]

#: Expected: hardware times on one and two nodes, on more, logged frames, in percent; merging, in points.
_FEW, _MANY, _FRAMES, _MERGING = 2.0, 7.0, 3.0, 2.0


def _worst(runs: list[tuple[float, str]]) -> tuple[float, str]:
    return max(runs, default=(0.0, "-"))


def _hard(done: Evaluation, nodes: tuple[int, ...]) -> tuple[float, str]:
    """The hardware time that deviates most from the paper's, in percent."""
    return _worst([(100 * abs(row["seconds"] / row["share"] / TABLE_2[program, count].hard - 1),
                    f"{TITLES[program]} {count}")
                   for program in PROGRAMS for count in nodes
                   if not (row := done.row(program, count, "hardware"))["lost"]])


def _frames(done: Evaluation, *programs: str) -> tuple[float, str]:
    """The bytes of frames that deviate most from the paper's, in percent; *Simplex* on one node only."""
    runs = []
    for program, nodes in TABLE_2:
        row, printed = done.row(program, nodes, "hardware"), TABLE_2[program, nodes].hard_bytes
        if program in programs and printed and not row["lost"] and (program != "simplex" or nodes == 1):
            runs.append((100 * abs(row["logged"] / row["share"] / printed - 1), f"{TITLES[program]} {nodes}"))
    return _worst(runs)


def _merging(done: Evaluation) -> tuple[float, str]:
    """The merged share that deviates most from the closed form, in points."""
    return _worst([(100 * abs(row["merged"] - row["expected_merged"]), f"{row['nodes']} nodes, delay {row['delay']}")
                   for row in done.tables["bandwidth"] if not row["lost"]])


def _overruns(rows: list[Row]) -> str:
    return ", ".join(f"{TITLES[row['program']]} {row['nodes']}" for row in rows if row["lost"]) or "none"


def _met(met: bool) -> str:
    return "yes" if met else "**no**"


def verdicts(done: Evaluation) -> list[tuple[str, str, str, str]]:
    """One row per prediction: its subject, the expected deviation, the actual one, whether it is met."""
    table = []
    for what, bound, unit, (value, which) in (
            ("hardware times, 1 and 2 nodes", _FEW, " %", _hard(done, (1, 2))),
            ("hardware times, 4 and 8 nodes", _MANY, " %", _hard(done, (4, 8))),
            ("logged frames, Simplex on one node only", _FRAMES, " %", _frames(done, *PROGRAMS)),
            ("merging in the bandwidth test, of the closed form", _MERGING, " points", _merging(done))):
        table.append((what, f"within {bound:g}{unit}", f"{value:.1f}{unit} ({which})", _met(value <= bound)))
    runs = [row for row in done.tables["programs"] if row["how"] == "hardware" and row["program"] in PROGRAMS]
    found = _overruns(runs)
    table.append(("overruns of Table 2", "Place 8", found, _met(found == "Place 8")))
    still = [row for row in done.tables["bandwidth"] if row["delay"] == 0]
    overrun = ", ".join(str(row["nodes"]) for row in still if row["lost"]) or "none"
    expected = ", ".join(str(row["nodes"]) for row in still if row["nodes"] > 2)
    table.append(("nodes that overrun the bandwidth test without a delay", expected, overrun,
                  _met(overrun == expected)))
    early = sum(row.get("early", 0) for row in done.tables["programs"] if row["how"] in PORTS)
    table.append(("messages received before they were sent, by the board's time", "none", f"{early or 'none'}",
                  _met(not early)))
    lost = sum(row["lost"] for name in ("programs", "events") for row in done.tables[name]
               if row["how"] in ("extended", "wide"))
    table.append(("lost on the extended board", "nothing", f"{lost or 'nothing'}", _met(not lost)))
    return table


def agreement(done: Evaluation) -> dict[str, Any]:
    """The figures for the page's introduction, in percent and points; and the counts."""
    table = [row for row in done.tables["programs"] if row["program"] in PROGRAMS]
    software = [row for row in table if row["how"] == "software"]
    boards = [row for row in table if row["how"] in PORTS]
    after = [row for row in boards if row["how"] != "hardware"]
    lost = sum(row["lost"] for row in (*after, *done.tables["events"]))
    ratios = {how: [done.row(program, nodes, how)["logged"] / done.row(program, nodes, "software")["logged"]
                    for program in PROGRAMS for nodes in NODES] for how in PORTS}
    return {
        "few": _hard(done, (1, 2))[0], "many": _hard(done, (4, 8))[0], "frames": _frames(done, *PROGRAMS)[0],
        "merged": _merging(done)[0], "overrun": _overruns([row for row in boards if row["how"] == "hardware"]),
        "early_soft": sum(row["early"] for row in software), "messages": sum(row["messages"] for row in software),
        "early": f"{sum(row['early'] for row in boards) or 'none'}", "lost": f"{lost or 'nothing'}",
        "least_1990": min(ratios["hardware"]), "most_1990": max(ratios["hardware"]),
        "least": min(ratios["extended"]), "most": max(ratios["extended"]),
    }
