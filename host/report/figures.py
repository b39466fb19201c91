"""The figures of a report, as SVG, drawn with matplotlib."""

import io
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.analysis.distributions import GAP_BINS, Distributions
from hypermon.host.analysis.losses import LossSpan
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.report.style import GREY, INK, LOSS, STYLE, lines, themed
from hypermon.host.text.numbers import significant

__all__ = ["Figures"]

#: Where losses of all nodes are drawn, as a share of the height of the axes.
_STRIP = (0.0, 0.05)
#: Maximum bars, and curves of nodes, that are drawn one by one.
_MANY = 64
#: Height of a row in inches, of few rows with a name each, and of more.
_ROW, _LOW_ROW = 0.21, 0.06
#: Links by which events leave a board, in bytes per second.
_LINKS = (("UART, 3 Mbaud", 0.3e6), ("USB full speed", 1.2e6), ("USB high speed", 50e6))

_Draw = Callable[[Any, Any], None]


class Figures:
    """Draws with matplotlib, without a screen; raises HypermonError if it is not installed."""

    def __init__(self) -> None:
        try:
            self._matplotlib = import_module("matplotlib")
            self._figure = import_module("matplotlib.figure").Figure
            self._ticker = import_module("matplotlib.ticker")
        except ImportError:
            raise HypermonError("the report needs matplotlib, which is not installed: "
                                f"{to_install('report')}") from None

    def _drawn(self, draw: _Draw, size: tuple[float, float] | None = None) -> str:
        with self._matplotlib.rc_context(STYLE):
            figure = self._figure(layout="constrained", **({"figsize": size} if size else {}))
            draw(figure, figure.add_subplot())
            out = io.StringIO()
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        return themed(text[text.index("<svg"):])

    def _thousands(self, axis: Any) -> None:
        axis.set_major_formatter(self._ticker.EngFormatter())

    def _seconds(self) -> Any:
        """Of times on an axis, with the same names of units as in the tables: us, not µs."""
        formatter = self._ticker.EngFormatter(unit="s")
        formatter.ENG_PREFIXES = {**formatter.ENG_PREFIXES, -6: "u"}
        return formatter

    def rates(self, survey: Distributions, outages: Sequence[Sequence[LossSpan]]) -> str:
        """Events per second over time, in 100 intervals; a strip below the axis where something was lost."""
        def draw(figure: Any, axes: Any) -> None:
            unit, size = _unit(survey.duration_ps)
            span = survey.duration_ps / survey.rates.shape[1]
            edges = np.arange(survey.rates.shape[1] + 1) * span / size
            axes.stairs(survey.rates.sum(axis=0) / (span / 1e12), edges, fill=True, color=INK, alpha=0.85)
            for from_ps, to_ps in _joined([outage for own in outages for outage in own], span / 20):
                axes.axvspan(from_ps / size, to_ps / size, ymin=_STRIP[0], ymax=_STRIP[1], color=LOSS, linewidth=0)
            axes.set(xlabel=f"time, {unit}", ylabel="events/s", xlim=(0, edges[-1]), ylim=(0, None))
            self._thousands(axes.yaxis)

        return self._drawn(draw)

    def volumes(self, survey: Distributions, bytes_an_event: float) -> str:
        """Bytes logged in each millisecond."""
        def draw(figure: Any, axes: Any) -> None:
            count = len(survey.volumes)
            fold = -(-count // 1000)
            padded = np.pad(survey.volumes, (0, -count % fold), mode="edge").reshape(-1, fold)
            at = np.append(np.arange(len(padded)) * fold, count) * survey.slot_ms
            scale = bytes_an_event / survey.slot_ms
            if fold > 1:
                axes.stairs(padded.max(axis=1) * scale, at, baseline=padded.min(axis=1) * scale, fill=True,
                            color=INK, alpha=0.3, label=f"least to most of {fold}")
            axes.stairs(padded.mean(axis=1) * scale, at, color=INK, label="mean")
            axes.set(xlabel="time, ms", ylabel="bytes/ms", ylim=(0, None), xlim=(0, at[-1]))
            self._thousands(axes.yaxis)
            if fold > 1:
                axes.legend(loc="upper right")

        return self._drawn(draw)

    def bursts(self, survey: Distributions, bytes_an_event: float) -> str:
        """Buffer depth against the rate at which the buffer is drained."""
        def draw(figure: Any, axes: Any) -> None:
            rates = [burst.rate for burst in survey.bursts]
            axes.loglog(rates, [burst.depth for burst in survey.bursts], "o-", color=INK, markersize=3)
            for name, link in _LINKS:
                rate = link / bytes_an_event if bytes_an_event else 0
                if rates[0] <= rate <= rates[-1]:
                    axes.axvline(rate, color=GREY, linewidth=0.8, linestyle="--")
                    axes.annotate(f" {name}", (rate, 1), xycoords=("data", "axes fraction"), va="top", fontsize=10,
                                  color=GREY)
            axes.set(xlabel="drain rate, items/s (from the mean rate up)", ylabel="depth without loss, items",
                     ylim=(0.8, None))
            for axis in (axes.xaxis, axes.yaxis):
                self._thousands(axis)

        return self._drawn(draw)

    def shared(self, survey: Distributions) -> str:
        """How many events share their window."""
        def draw(figure: Any, axes: Any) -> None:
            sizes = np.arange(1, len(survey.shared))
            shares = 100 * survey.shared[1:] * sizes / max(int((survey.shared[1:] * sizes).sum()), 1)
            if len(sizes) <= _MANY:
                axes.bar(sizes, shares, color=INK, width=0.7)
            else:
                axes.stairs(shares, np.arange(len(sizes) + 1) + 0.5, color=INK, fill=True)
            axes.set(xlabel="items of the window", ylabel="share of items, %", xlim=(0.4, len(survey.shared) - 0.4))
            axes.set_xticks(sizes[::1 if len(sizes) <= 16 else max(len(sizes) // 16, 2)])

        return self._drawn(draw, (7.2, 2.0))

    def gaps(self, survey: Distributions) -> str:
        """Share of gaps longer than a given length, both logarithmic: of the run, and of the nodes, or of some."""
        def draw(figure: Any, axes: Any) -> None:
            every = -(-len(survey.node_gaps) // _MANY)
            label: str | None = "each node alone" if every == 1 else f"every {every}th node alone"
            for gaps in survey.node_gaps[::every]:
                if gaps.counts.any():
                    axes.loglog(*_tail(gaps.counts, gaps.total), color=GREY, linewidth=0.6, label=label)
                    label = None
            if survey.gaps.counts.any():
                axes.loglog(*_tail(survey.gaps.counts, survey.gaps.total), color=INK, label="all nodes together")
                axes.legend(loc="lower left")
            axes.set(xlabel="time between items", ylabel="share that is longer")
            axes.xaxis.set_major_formatter(self._seconds())

        return self._drawn(draw, (7.2, 3.0))

    def latencies(self, counts: dict[str, npt.NDArray[np.int64]]) -> str:
        """The same for message latencies, by name; ``counts`` as in :class:`.distributions.Gaps`."""
        def draw(figure: Any, axes: Any) -> None:
            for (name, own), kind in zip(counts.items(), lines(len(counts)), strict=True):
                if own.any():
                    axes.loglog(*_tail(own, int(own.sum())), label=name, **kind)
            axes.legend(loc="lower left")
            axes.set(xlabel="latency", ylabel="share that is longer")
            axes.xaxis.set_major_formatter(self._seconds())

        return self._drawn(draw, (7.2, 2.8))

    def timeline(self, survey: Distributions, names: Sequence[str], outages: Sequence[Sequence[LossSpan]]) -> str:
        """Every node's events over time, darker where there are more; red where it lost some."""
        def draw(figure: Any, axes: Any) -> None:
            unit, size = _unit(survey.duration_ps)
            span = survey.duration_ps / 1e12 / survey.timeline.shape[1]
            rate = np.where(survey.timeline, survey.timeline / span, np.nan)
            most = max(float(survey.timeline.max()), 1) / span
            image = axes.imshow(rate, aspect="auto", cmap=self._blues(), interpolation="nearest",
                                norm=self._matplotlib.colors.LogNorm(min(1 / span, most / 1.001), most),
                                extent=(0, survey.duration_ps / size, len(names) - 0.5, -0.5))
            figure.colorbar(image, ax=axes, pad=0.01, label="events/s",
                            format=self._ticker.EngFormatter())
            _mark_losses(axes, outages, 1 / size, survey.duration_ps / 400)
            _name_rows(axes, names)
            axes.set(xlabel=f"time, {unit}", xlim=(0, survey.duration_ps / size))

        return self._drawn(draw, (7.2, _height(len(names))))

    def moment(self, times: npt.NDArray[np.int64], node: npt.NDArray[np.int64], names: Sequence[str],
               span_ps: tuple[int, int], outages: Sequence[Sequence[LossSpan]]) -> str:
        """Every event of a short time as a stroke of its node."""
        def draw(figure: Any, axes: Any) -> None:
            begin, end = span_ps
            axes.eventplot([(times[node == number] - begin) / 1e6 for number in range(len(names))], colors=INK,
                           linelengths=0.7, linewidths=0.5, lineoffsets=np.arange(len(names)))
            shown = [[LossSpan(o.lost, o.from_ps - begin, o.to_ps - begin) for o in own
                      if o.to_ps >= begin and o.from_ps < end] for own in outages]
            _mark_losses(axes, shown, 1e-6, (end - begin) / 400)
            _name_rows(axes, names)
            axes.set(xlabel=f"time from {significant(begin / 1e9, 6)} ms on, us", xlim=(0, (end - begin) / 1e6))

        return self._drawn(draw, (7.2, _height(len(names))))

    def states(self, shares: dict[str, npt.NDArray[np.float64]], names: Sequence[str]) -> str:
        """Share of each node's time in each state, stacked; ``shares`` in percent, a value for each node."""
        def draw(figure: Any, axes: Any) -> None:
            left = np.zeros(len(names))
            for (name, own), kind in zip(shares.items(), lines(len(shares)), strict=True):
                axes.barh(range(len(names)), own, left=left, height=0.75, color=kind["color"], label=name)
                left = left + own
            _name_rows(axes, names)
            axes.set(xlabel="share of the node's time, %", xlim=(0, max(100.0, float(left.max(initial=0)))))
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)

        return self._drawn(draw, (7.2, 1.5 + 0.2 * len(names)))

    def messages(self, counts: npt.NDArray[np.int64], names: Sequence[str]) -> str:
        """Number of messages from each node to each other."""
        def draw(figure: Any, axes: Any) -> None:
            image = axes.imshow(np.where(counts, counts, np.nan), cmap=self._blues(), vmin=0)
            axes.set_xticks(range(len(names)), names, fontsize=9, rotation=90)
            _name_rows(axes, names)
            axes.set(xlabel="receiver", ylabel="sender")
            figure.colorbar(image, ax=axes, shrink=0.8, label="messages")

        return self._drawn(draw, (7.2, 5.0))

    def _blues(self) -> Any:
        """From a blue that is visible on white."""
        blues = self._matplotlib.colormaps["Blues"]
        return self._matplotlib.colors.ListedColormap(blues(np.linspace(0.2, 1, 256)))


def _height(rows: int) -> float:
    return 1.0 + (_ROW if rows <= _MANY else _LOW_ROW) * rows


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    """Names all rows, or of many some."""
    step = 1 if len(names) <= _MANY else 8
    axes.set_yticks(range(0, len(names), step), names[::step], fontsize=9)
    axes.set(ylim=(len(names) - 0.5, -0.5))
    axes.grid(False)


def _mark_losses(axes: Any, outages: Sequence[Sequence[LossSpan]], scale: float, least_ps: float) -> None:
    """Bars below the items of a node, visible however short the outages are."""
    for node, own in enumerate(outages):
        if own:
            axes.broken_barh([(from_ps * scale, (to_ps - from_ps) * scale) for from_ps, to_ps in
                              _joined(own, least_ps)], (node + 0.25, 0.2), facecolors=LOSS)


def _joined(outages: Sequence[LossSpan], least_ps: float) -> list[tuple[float, float]]:
    """Beginnings and ends of what is drawn of outages, each at least so long; those that overlap are one."""
    if not outages:
        return []
    begins = np.array([outage.from_ps for outage in outages], np.float64)
    order = np.argsort(begins, kind="stable")
    begins = begins[order]
    ends = np.maximum(np.array([outage.to_ps for outage in outages], np.float64)[order], begins + least_ps)
    ends = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.append(True, begins[1:] > ends[:-1]))
    return list(zip(begins[first].tolist(), ends[np.append(first[1:], len(ends)) - 1].tolist(), strict=True))


def _unit(duration_ps: int) -> tuple[str, float]:
    return next(((unit, size) for unit, size in (("s", 1e12), ("ms", 1e9), ("us", 1e6)) if duration_ps >= 2 * size),
                ("ns", 1e3))


def _tail(counts: npt.NDArray[np.int64], total: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bounds of bins in seconds, and the share that is longer."""
    used = np.flatnonzero(counts)
    longer = counts[::-1].cumsum()[::-1] / total
    return 2.0 ** (used / GAP_BINS) / 1e12, longer[used]
