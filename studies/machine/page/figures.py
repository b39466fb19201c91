"""The figures of ``docs/machines.md``: SVG. Black crosses are the paper's printed values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypermon.host.report.style import GREY, GRID, INK, TEXT
from hypermon.studies.machine.core.network import ecube
from hypermon.studies.machine.machines.ipsc860 import EDGES_1, EDGES_2, NODE_PATHS
from hypermon.studies.machine.page import asciq_rows, qsnet_rows, sp2_rows
from hypermon.studies.machine.page.rows import Data
from hypermon.studies.page.figures import cross, legend, panes, save

__all__ = ["draw"]

_EXPERIMENT = {"edges-1": 2, "edges-2": 3, "edges-3": 4, "nodes": 5}


def _axes(columns: int = 1, height: float = 3.2, width: float = 7.0) -> tuple[Any, Any]:
    """A figure, and its axes in one row."""
    return panes(1, columns, width, height)


def _crosses(axes: Any, x: Sequence[float], y: Sequence[float], label: str = "printed") -> None:
    cross(axes, x, y, label)


def _band(axes: Any, x: Sequence[float], values: Sequence[Sequence[float]], label: str, marker: str = ".-") -> None:
    """Means, and a band of one standard deviation."""
    mean = np.array([np.mean(own) for own in values])
    spread = np.array([np.std(own, ddof=1) if len(own) > 1 else 0.0 for own in values])
    [line] = axes.plot(x, mean, marker, label=label)
    axes.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.25, linewidth=0)


def paths(data: Data, path: Path) -> bool:
    """Figures 2 to 4."""
    rows = data.rows("path")
    if not rows:
        return False
    figure, [[small, middle, large]] = _axes(3, 3.0, 9.0)
    for hops in sorted({row["hops"] for row in rows}):
        own = sorted((row["bytes"], row["us"]) for row in rows if row["hops"] == hops)
        for axes, low, high in ((small, 0, 200), (middle, 200, 1000), (large, 1000, 10_000)):
            part = [(size, us) for size, us in own if low <= size <= high]
            [line] = axes.plot(*zip(*part, strict=True), linewidth=1, label=f"distance {hops}")
            size = np.array([one for one, _ in part if one > 0], float)
            formula = np.where(size <= 100, 65 + 0.425 * size + 10 * hops, 147 + 0.390 * size + 30.5 * hops)
            axes.plot(size, formula, "--", linewidth=0.6, color=line.get_color())
    _crosses(small, [0, 0], [67, 131])
    for axes, title in ((small, "Figure 2"), (middle, "Figure 3"), (large, "Figure 4")):
        axes.set(xlabel="message, bytes", title=title, ylim=(0, None))
    small.set(ylabel="one way, us")
    large.plot([], [], "--", color=GREY, linewidth=0.6, label="the paper's\nformula")
    _crosses(large, [], [])
    legend(large)
    save(figure, path)
    return True


def _sweep(data: Data, axes: Any, experiment: str, variant: str, column: str, low: int, high: int) -> bool:
    rows = [row for row in data.rows("ratios", experiment=_EXPERIMENT[experiment], variant=variant)
            if low <= row["bytes"] <= high and row.get(column) is not None]
    for number in sorted({row["paths"] for row in rows}):
        own = sorted((row["bytes"], row[column] / 1000) for row in rows if row["paths"] == number)
        axes.plot(*zip(*own, strict=True), ".-", markersize=3, linewidth=1,
                  label=f"{number} path{'s' * (number > 1)}")
    axes.set(xlabel="message, bytes", ylim=(0, None))
    return bool(rows)


def first_contention(data: Data, path: Path) -> bool:
    """Figures 6 and 7."""
    figure, [[left, right]] = _axes(2, 3.2, 8.5)
    there = [_sweep(data, axes, "edges-1", f"sweep {variant}", "round_trip_us", 0, 7000)
             for axes, variant in ((left, "ends"), (right, "around"))]
    left.set(ylabel="round trip, ms", title="software at each end of each leg")
    right.set(title="software before and after")
    legend(right)
    if all(there):
        save(figure, path)
    return all(there)


def details(data: Data, path: Path) -> bool:
    """Figures 8 and 9."""
    figure, [[small, chaos]] = _axes(2, 3.2, 8.5)
    if not _sweep(data, small, "edges-1", "sweep ends", "round_trip_us", 0, 200):
        return False
    _sweep(data, chaos, "edges-1", "sweep ends", "round_trip_us", 1800, 2600)
    small.axvline(80, linestyle="--", color=GREY, linewidth=0.8)
    small.text(80, 0, " 80 bytes", fontsize=8, va="bottom")
    small.set(ylabel="round trip, ms", title="Figure 8")
    chaos.set(title="Figure 9")
    chaos.axvspan(2210, 2221, color=GRID, label="the printed\npulse is here")
    legend(chaos)
    save(figure, path)
    return True


def second_contention(data: Data, path: Path) -> bool:
    """Figures 11 and 12."""
    figure, [[large, small]] = _axes(2, 3.2, 8.5)
    there = _sweep(data, large, "edges-2", "sweep", "round_trip_us", 0, 7000)
    _sweep(data, small, "edges-2", "sweep", "round_trip_us", 0, 200)
    alone = {row["bytes"]: row for row in data.rows("ratios", experiment=3, variant="sweep", paths=1)}
    if not there or 7000 not in alone:
        return False
    for axes, size, times, label in ((large, 7000, 7, "7 times one path"), (small, 0, 4, "4 times one path")):
        axes.axhline(times * alone[size]["round_trip_us"] / 1000, linestyle="--", color=TEXT, linewidth=0.8)
        axes.text(size or 200, times * alone[size]["round_trip_us"] / 1000, label, ha="right", va="bottom", fontsize=8)
    small.axhline(0.132, linestyle="--", color=GREY, linewidth=0.8)
    small.text(200, 0.132, "132 us, the printed echo", ha="right", va="bottom", fontsize=8)
    large.set(ylabel="with the echo, ms", title="Figure 11")
    small.set(title="Figure 12")
    legend(small)
    save(figure, path)
    return True


def third_and_nodes(data: Data, path: Path) -> bool:
    """Figures 13 and 14."""
    figure, [[left, right]] = _axes(2, 3.2, 8.5)
    there = _sweep(data, left, "edges-3", "sweep", "period_us", 0, 7000)
    left.axhline(1, linestyle="--", color=GREY, linewidth=0.8)
    left.text(7000, 1, "1 ms, the printed gsync", ha="right", va="bottom", fontsize=8)
    left.set(ylabel="ms per exchange, without gsync", title="Figure 13")
    rows = [row for row in data.rows("ratios", experiment=5) if row["bytes"] == 7000]
    numbers = sorted({row["paths"] for row in rows})
    if not there or not rows:
        return False
    _band(right, numbers, [[row["round_trip_us"] / 2000 for row in rows if row["paths"] == number]
                           for number in numbers], "7000 bytes")
    right.set(xlabel="paths at once", ylabel="half round trip, ms", ylim=(0, 4), title="Figure 14", xticks=numbers)
    for axes in (left, right):
        axes.legend()
    save(figure, path)
    return True


def drawing(data: Data, path: Path) -> bool:
    """Figures 5, 10 and of section 8: the paths."""
    figure, panels = _axes(3, 3.4, 10.0)
    for axes, title, pairs in zip(panels[0], ("Figure 5", "Figure 10", "Section 8"), (EDGES_1, EDGES_2, NODE_PATHS),
                                  strict=True):
        nodes = sorted({node for pair in pairs for edge in ecube(*pair) for node in edge})
        by_weight: dict[int, list[int]] = {}
        for node in nodes:
            by_weight.setdefault(node.bit_count(), []).append(node)
        at = {node: (weight, place - (len(own) - 1) / 2) for weight, own in by_weight.items()
              for place, node in enumerate(own)}
        for number, pair in enumerate(pairs):
            route = [pair[0], *(edge[1] for edge in ecube(*pair))]
            shift = (number - len(pairs) / 2) * 0.03
            axes.plot([at[node][0] for node in route], [at[node][1] + shift for node in route], linewidth=1.2,
                      label=f"{pair[0]}-{pair[1]}")
        for node, (x, y) in at.items():
            axes.text(x, y, str(node), ha="center", va="center", fontsize=7,
                      bbox={"boxstyle": "round,pad=0.2", "fc": GRID, "ec": GREY, "lw": 0.5})
        axes.set(title=title)
        axes.axis("off")
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0, 0.0), ncols=4)
    save(figure, path)
    return True


def noise(data: Data, path: Path) -> bool:
    """Figures 2.4 to 2.6."""
    rows, nodes = data.rows("freezes", task="quantum"), data.rows("nodes", task="quantum")
    if not rows:
        return False
    figure, panels = panes(2, 3, 9.0, 5.2)
    mean, first, *others = panels.ravel()
    mean.bar([row["node"] for row in nodes], [100 * (row["normalized"] - 1) for row in nodes])
    mean.axhline(2.5, linestyle="--", color=TEXT, linewidth=0.8)
    mean.text(0, 2.5, "the printed maximum, 2.5 %", va="bottom", fontsize=7)
    mean.set(xlabel="node of the partition", ylabel="longer than without freezes, %", title="Figure 2.4", ylim=(0, 3))
    first.bar([row["node"] for row in nodes], [row["over_twice_us"] / 1e6 for row in nodes])
    first.set(xlabel="node of the partition", ylabel="overhead, s in 400 s", title="Figure 2.5")
    for axes, node, name in zip(others, (5, 0, 1, 31), ("another node", "node 0", "node 1", "node 31"), strict=True):
        own = [row for row in rows if row["node"] == node]
        axes.vlines([row["ms"] for row in own], 0.7, [row["count"] for row in own])
        axes.plot([row["ms"] for row in own], [row["count"] for row in own], ".", label="recorded")
        printed = (*asciq_rows.BACKGROUND, *asciq_rows.TABLE.get(node, ()))
        _crosses(axes, [ms for _, ms in printed], [400 / s for s, _ in printed], "Table 2.1")
        axes.set(xlabel="freeze, ms", yscale="log", title=f"Figure 2.6: {name}", xscale="log", xlim=(5, 500),
                 ylim=(0.7, 800))
        axes.set_xticks((5, 20, 100, 500), ("5", "20", "100", "500"))
        axes.minorticks_off()
    for axes in others[:2]:
        axes.set(ylabel="freezes in 400 s")
    legend(others[0])
    save(figure, path)
    return True


def arrivals(data: Data, path: Path) -> bool:
    """Figure 3.1, from pins."""
    rows = data.rows("arrivals")
    if not rows:
        return False
    figure, [[axes]] = _axes(1, 2.4)
    nodes = sorted({row["node"] for row in rows if row["what"] == "arrive"})
    ends = sorted(row["us"] / 1000 for row in rows if row["what"] == "leave")
    for place, node in enumerate(nodes):
        own = sorted(row["us"] / 1000 for row in rows if row["node"] == node and row["what"] == "arrive")
        begins = [own[0] - 5, *ends][:len(own)]
        axes.barh([place] * len(own), [end - begin for begin, end in zip(begins, own, strict=False)], left=begins,
                  height=0.5, color=INK, label="computation and freezes" if not place else None)
    for end in ends:
        axes.axvline(end, color=TEXT, linewidth=0.8)
    axes.plot([], [], color=TEXT, linewidth=0.8, label="allreduce ends")
    axes.set(yticks=range(len(nodes)), yticklabels=[f"node {node}" for node in nodes], xlabel="time, ms")
    legend(axes)
    save(figure, path)
    return True


def scaling(data: Data, path: Path) -> bool:
    """Figure 3.2."""
    means = {nodes: data.values("bsp", "latency_ms", compute_us=5000, case="nodes", nodes=nodes)
             for nodes in (32, 64, 128, 256, 512)}
    means[1024] = asciq_rows.latency(data, 5000, "all")
    there = [nodes for nodes, own in means.items() if own]
    if not there:
        return False
    figure, [[axes]] = _axes()
    _band(axes, there, [[value - 5 for value in means[nodes]] for nodes in there], "5 ms of computation")
    if one := asciq_rows.latency(data, 1000, "all"):
        _band(axes, [1024], [[value - 1 for value in one]], "1 ms of computation", "o")
    _crosses(axes, [1024, 1024], [13.76, 5.84], "printed\n(Table 4.1)")
    axes.set(xlabel="nodes", ylabel="overhead of an allreduce, ms", xlim=(0, 1100), ylim=(0, None))
    legend(axes)
    save(figure, path)
    return True


def removal(data: Data, path: Path) -> bool:
    """Figure 4.1 and Table 4.1."""
    figure, panels = _axes(2, 3.4, 9.0)
    names = [case.replace("without ", "- ") for case in asciq_rows.CASES]
    for axes, us in zip(panels[0], (5000, 1000), strict=True):
        values = {rule: [asciq_rows.latency(data, us, case, rule) for case in asciq_rows.CASES]
                  for rule in ("timeline", "absorb", "defer")}
        if not all(own for rule in values.values() for own in rule):
            return False
        at = np.arange(len(names))
        low, high = ([float(np.mean(own)) for own in values[rule]] for rule in ("absorb", "defer"))
        axes.fill_between(at, low, high, color=GRID, linewidth=0, label="from absorb\nto defer")
        _band(axes, list(at), values["timeline"], "timeline")
        _crosses(axes, list(at), asciq_rows.LATENCY[us], "printed")
        axes.set(title=f"{us / 1000:g} ms of computation", ylim=(0, None))
        axes.set_xticks(at, names, rotation=30, ha="right")
    panels[0][0].set(ylabel="latency, ms")
    legend(panels[0][1])
    save(figure, path)
    return True


def sage(data: Data, path: Path) -> bool:
    """Figure 5.1 at 1024 nodes."""
    whole = [value - 5 for value in asciq_rows.latency(data, 5000, "all")]
    values = [[0.703 + 0.537 * (value - 5) / of for value, of in zip(asciq_rows.latency(data, 5000, case), whole,
                                                                    strict=False)] for case in asciq_rows.CASES[1:]]
    if not all(values):
        return False
    figure, [[axes]] = _axes()
    at = list(range(len(values)))
    _band(axes, at, values, "from our reductions", "o-")
    _crosses(axes, at, (1.16, 1.15, 1.17, 1.02, 0.78), "printed\n(Table 5.1)")
    axes.axhline(1.24, linestyle="--", color=GREY, linewidth=0.8, label="measured then: 1.24 s")
    axes.axhline(0.68, linestyle=":", color=GREY, linewidth=0.8, label="their model: 0.68 s")
    axes.set(ylabel="cycle time, s", ylim=(0, None))
    axes.set_xticks(at, list(asciq_rows.CASES[1:]), rotation=20, ha="right")
    legend(axes)
    save(figure, path)
    return True


def exchanges(data: Data, path: Path) -> bool:
    """Figures 3 to 6 of the SP2's paper; shapes only."""
    bins, idle = data.rows("exchange_bins", task="exchange"), data.rows("idle", task="all-to-all")
    points = data.rows("series", task="exchange")
    if not bins or not idle or not points:
        return False
    figure, panels = panes(2, 2, 8.0, 5.2)
    left, series, four, many = panels.ravel()
    series.plot([row["ms"] for row in points], [row["us"] for row in points], ".", markersize=2)
    series.set(yscale="log", xlabel="time, ms", ylabel="exchange of 1024 bytes, us", title="Figure 4 (shape only)")
    series.set_yticks((170, 200, 500, 1000, 2000), ("170", "200", "500", "1000", "2000"))
    series.minorticks_off()
    left.bar([row["us"] for row in bins], [row["count"] for row in bins], width=5, align="edge")
    left.set(yscale="log", xlabel="exchange of 1024 bytes, us", ylabel="exchanges", title="Figure 3 (shape only)",
             xlim=(150, 400))
    for axes, nodes, title in ((four, 4, "Figure 5 (shape only)"), (many, 32, "Figure 6 (shape only)")):
        own = [row["us"] / 1000 for row in idle if row["nodes"] == nodes]
        axes.hist(own, bins=20, label="recorded")
        for row in data.rows("resampling", task="all-to-all", nodes=nodes)[:1]:
            axes.axvline(row["idle_us"] / 1000, linestyle="--", color=TEXT, linewidth=0.8, label="resampled: mean")
        axes.set(xlabel="idle time of node 0, ms", ylabel="all-to-alls", title=title)
        axes.legend(fontsize=7)
    save(figure, path)
    return True


def throughput(data: Data, path: Path) -> bool:
    """Table 1 of the SP2's paper."""
    figure, [[axes]] = _axes()
    nodes = list(sp2_rows.PRINTED)
    for name, match in (("timers and faults", {"task": "all-to-all"}), ("free: 30 ms every 12 s", {"variant": "free"})):
        values = [data.values("all_to_all", "mb_per_s", nodes=number, **match) for number in nodes]
        if not all(values):
            return False
        _band(axes, nodes, values, name)
    for ms in sp2_rows.STALLS:
        values = [data.values("all_to_all", "mb_per_s", nodes=number, variant=f"{ms:g} ms") for number in nodes]
        if all(values):
            axes.plot(nodes, [np.mean(own) for own in values], ":", linewidth=1, label=f"bounded: {ms:g} ms")
    _crosses(axes, nodes, list(sp2_rows.PRINTED.values()), "printed (Table 1)")
    axes.set(xlabel="nodes", ylabel="throughput of a node, MB/s", ylim=(38, 41.5))
    legend(axes)
    save(figure, path)
    return True


def pings(data: Data, path: Path) -> bool:
    """Latency and bandwidth of QsNet, in one direction and in both."""
    rows = [row for row in data.rows("latency", variant=qsnet_rows.OWN) if not str(row["task"]).startswith("blind")]
    if {row["both"] for row in rows} != {False, True}:
        return False
    figure, [[small, large, both]] = _axes(3, 3.2, 11.0)
    modes = [("put", *ends) for ends in qsnet_rows.MEMORIES] + [("mpi", "main", "main"), ("get", "main", "main")]
    for mode in modes:
        name = "MPI" if mode[0] == "mpi" else f"{mode[0]}, {mode[1]} to {mode[2]}"
        for axes, both_ways in ((small, False), (large, False), (both, True)):
            own: dict[int, list[float]] = {}
            for row in rows:
                if (row["operation"], row["source"], row["destination"]) == mode and row["both"] == both_ways:
                    own.setdefault(row["bytes"], []).append(row["us"])
            sizes = sorted(size for size in own if size <= 4096 or axes is not small)
            sizes = [size for size in sizes if size and (axes is small or size >= 256) and not size & (size - 1)]
            if sizes:
                _band(axes, sizes, [own[size] if axes is small else [size / us for us in own[size]] for size in sizes],
                      name)
            else:
                axes.plot([], [])
    for axes, text, bound in ((small, "2 us", qsnet_rows.BOUNDS[0]), (large, "300 MB/s", qsnet_rows.BOUNDS[1])):
        axes.axhline(bound, linestyle="--", color=TEXT, linewidth=0.8, label=f"bound: {text}")
    for axes, title in ((small, "latency"), (large, "bandwidth, one direction"),
                        (both, "of each direction, both at once")):
        axes.set(xlabel="message, bytes", xscale="log", title=title, ylim=(0, None))
        axes.set_xscale("log", base=2)
    small.set(ylabel="us")
    large.set(ylabel="MB/s")
    both.set(ylim=large.get_ylim())
    small.legend(fontsize=7)
    large.legend(large.get_lines()[-1:], [f"bound: {qsnet_rows.BOUNDS[1]:g} MB/s"], fontsize=7,
                 loc="lower right")
    save(figure, path)
    return True


def hotspots(data: Data, path: Path) -> bool:
    """Many nodes at one block of QsNet."""
    rows = data.rows("hotspot", variant=qsnet_rows.OWN)
    if not rows:
        return False
    figure, [[axes]] = _axes()
    nodes = sorted({row["nodes"] for row in rows})
    for operation, name in (("get", "read"), ("put", "write")):
        whole = [[row["mb_per_s"] for row in rows if (row["operation"], row["nodes"]) == (operation, number)]
                 for number in nodes]
        _band(axes, nodes, whole, f"{name}, all nodes")
        _band(axes, nodes, [[value / number for value in own] for number, own in zip(nodes, whole, strict=True)],
              f"{name}, a node")
    axes.set(xlabel="nodes at one block", ylabel="MB/s", ylim=(0, None), xticks=nodes)
    legend(axes)
    save(figure, path)
    return True


#: File, what draws it, and the caption.
FIGURES = {
    "ipsc860": (
        ("ipsc860-path", paths, "Figures 2 to 4: one-way time by size and distance. Dashed: the paper's formula; "
                                "crosses: its two printed times of 0 bytes."),
        ("ipsc860-paths-drawn", drawing, "Figures 5 and 10, and the paths of section 8, by e-cube routing."),
        ("ipsc860-edges-1", first_contention, "Figures 6 and 7, for both positions of the software time, s = 0.5. "
                                              "Shape only: the text does not contain the values of the curves."),
        ("ipsc860-details", details, "Figures 8 and 9, software time at each endpoint of each leg, s = 0.5, in steps "
                                     "of 25 bytes (below 200 bytes, of 10 bytes). Shape only: the paper's steps are of "
                                     "one byte."),
        ("ipsc860-edges-2", second_contention, "Figures 11 and 12. Dashed: the paper's bounds. Shape only."),
        ("ipsc860-edges-3", third_and_nodes, "Figures 13 and 14. Shape only; the band is one standard deviation."),
    ),
    "asciq": (
        ("asciq-noise", noise, "Figures 2.4 to 2.6, from the recording; crosses: Table 2.1, with 19 ms. On node "
                               "31, every freeze of 16 ms may coincide with one of 7 ms, because 24 s is a multiple of "
                               "1 s."),
        ("asciq-arrivals", arrivals, "Figure 3.1, from the recording: four nodes of 1024. If an allreduce ends later "
                                     "than the last of the four arrives, a node without a port was late."),
        ("asciq-scaling", scaling, "Figure 3.2; the band is one standard deviation over the seeds."),
        ("asciq-removal", removal, "Figure 4.1 and Table 4.1. Gray: the range between the two other rules of noise."),
        ("asciq-sage", sage, "Figure 5.1 at 1024 nodes."),
    ),
    "sp2": (
        ("sp2-exchange", exchanges, "Figures 3 to 6. Shape only. Figure 3 ends at 400 us; the longest exchanges are "
                                    "in Figure 4."),
        ("sp2-throughput", throughput, "Table 1: throughput by nodes; the band is one standard deviation. Dotted: "
                                       "stalls of one length, at the bound."),
    ),
    "qsnet": (
        ("qsnet-ping", pings, "Unidirectional and bidirectional ping. Shape only: the text has no digits, so there are "
                              "no crosses; dashed: the bounds of the published abstract."),
        ("qsnet-hotspot", hotspots, "Read and write hotspot: the sum of all nodes, and the share of one. Shape only."),
    ),
}


def draw(data: Data, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Draws all figures there are runs for; returns their files and captions, by machine."""
    from matplotlib import pyplot

    done: dict[str, list[tuple[str, str]]] = {}
    for machine, figures in FIGURES.items():
        for name, function, caption in figures:
            if function(data, folder / f"{name}.svg"):
                done.setdefault(machine, []).append((f"{name}.svg", caption))
            pyplot.close("all")
    return done
