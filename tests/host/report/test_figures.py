"""What the figures of a report draw, read back from matplotlib's axes."""

from dataclasses import replace

import numpy as np
import pytest
from hypermon.host.analysis.distributions import GAP_BINS, Burst, Distributions
from hypermon.host.analysis.losses import LossSpan
from hypermon.host.report.figures import Figures
from hypermon.host.report.style import INK, TEXT, lines, themed

from tests.host.analysis.test_distributions import DURATION_PS, NODES, made_up, surveyed

pytest.importorskip("matplotlib")
import random

NAMES = ["a", "b", "c", "d"]
OUTAGES = [[], [LossSpan(3, 10**10, 2 * 10**10), LossSpan(1, 4 * 10**10, 4 * 10**10)], [], []]


@pytest.fixture
def axes(monkeypatch):
    """``axes(name, arguments...)``: the figure and the axes of a drawing, which has been made whole."""
    drawn = Figures._drawn

    def draw(name, *arguments):
        seen = []

        def noted(self, how, *size):
            def both(figure, axes):
                how(figure, axes)
                seen.append((figure, axes))
            return drawn(self, both, *size)

        with monkeypatch.context() as patch:
            patch.setattr(Figures, "_drawn", noted)
            text = getattr(Figures(), name)(*arguments)
        assert text.startswith("<svg")
        assert text.rstrip().endswith("</svg>")
        return seen[0]

    return draw


@pytest.fixture
def survey():
    times, nodes = made_up(random.Random(1))
    found = surveyed(times, nodes)
    assert isinstance(found, Distributions)
    return found


def bars(axes):
    """Left end, width and height of each bar."""
    return [(p.get_x(), p.get_width(), p.get_height()) for p in axes.patches]


def test_rates(axes, survey):
    _, drawn = axes("rates", survey, OUTAGES)
    steps, *losses = drawn.patches
    values, edges, _ = steps.get_data()
    assert values * (DURATION_PS / 1e12 / len(values)) == pytest.approx(survey.rates.sum(axis=0))
    assert (edges[0], edges[-1]) == (0, pytest.approx(50))
    assert drawn.get_xlim() == pytest.approx((0, 50))
    assert drawn.get_xlabel() == "time, ms"
    # The short one is as wide as a twentieth of an interval.
    ends = [(p.get_x(), p.get_x() + p.get_width()) for p in losses]
    assert {(p.get_y(), p.get_height()) for p in losses} == {(0, 0.05)}      # a strip: the picture is not painted over
    assert ends == [pytest.approx((10, 20)), pytest.approx((40, 40 + 50 / 100 / 20))]


@pytest.mark.parametrize("count", [800, 1000, 1001, 2500])
def test_volumes(axes, survey, count):
    survey.volumes = np.random.default_rng(count).integers(0, 50, count)
    _, drawn = axes("volumes", survey, 16.0)
    fold = {800: 1, 1000: 1, 1001: 2, 2500: 3}[count]
    mean, edges, _ = drawn.patches[-1].get_data()
    assert edges[-1] == pytest.approx(count * survey.slot_ms)
    assert edges[1] == pytest.approx(fold * survey.slot_ms)
    pieces = [survey.volumes[at:at + fold] for at in range(0, count - fold, fold)]
    scale = 16 / survey.slot_ms
    assert mean[:len(pieces)] == pytest.approx([piece.mean() * scale for piece in pieces])
    assert drawn.get_xlim() == pytest.approx((0, count * survey.slot_ms))
    assert len(drawn.patches) == (1 if fold == 1 else 2)
    assert (drawn.get_legend() is None) == (fold == 1)
    if fold > 1:
        most, _, least = drawn.patches[0].get_data()
        assert most[:len(pieces)] == pytest.approx([piece.max() * scale for piece in pieces])
        assert least[:len(pieces)] == pytest.approx([piece.min() * scale for piece in pieces])


@pytest.mark.parametrize(("bytes_an_event", "links"), [
    (1.2, [1e6, 250_000.0]), (0, []), (1, [1.2e6, 0.3e6]), (0.3, [1e6]), (3e6, []), (1e5, [500.0])])
def test_bursts(axes, survey, bytes_an_event, links):
    """Links that can be told from the axis are marked, those at its ends too."""
    survey.bursts = [Burst(500.0, 30), Burst(10_000.0, 4), Burst(1.2e6, 1)]
    _, drawn = axes("bursts", survey, bytes_an_event)
    curve, *marks = drawn.lines
    assert [*zip(*curve.get_data(), strict=True)] == [(500, 30), (10_000, 4), (1.2e6, 1)]
    assert sorted(mark.get_xdata()[0] for mark in marks) == pytest.approx(sorted(links))
    assert len(drawn.texts) == len(links)


def test_shared(axes, survey):
    survey.shared = np.array([7, 10, 5, 0, 2])
    _, drawn = axes("shared", survey)
    assert [height for _, _, height in bars(drawn)] == pytest.approx([100 * n / 28 for n in (10, 10, 0, 8)])
    assert [x + width / 2 for x, width, _ in bars(drawn)] == pytest.approx([1, 2, 3, 4])
    assert drawn.get_xlim() == (0.4, 4.6)
    assert list(drawn.get_xticks()) == [1, 2, 3, 4]
    for nodes, ticks in ((16, 16), (17, 9), (32, 16)):
        survey.shared = np.ones(nodes + 1, np.int64)
        assert len(axes("shared", survey)[1].get_xticks()) == ticks
    survey.shared = np.zeros(3, np.int64)
    assert [height for _, _, height in bars(axes("shared", survey)[1])] == [0, 0]


def test_gaps(axes, survey):
    _, drawn = axes("gaps", survey)
    *nodes, every = drawn.lines
    assert len(nodes) == NODES
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["each node alone", "all nodes together"]
    bounds, share = every.get_data()
    used = np.flatnonzero(survey.gaps.counts)
    assert bounds == pytest.approx(2.0 ** (used / GAP_BINS) / 1e12)
    assert share == pytest.approx([survey.gaps.counts[at:].sum() / survey.gaps.total for at in used])


def test_units_of_times(axes, survey):
    """Those of the tables."""
    for name, arguments in (("gaps", (survey,)), ("latencies", ({"a": np.ones(2000, np.int64)},))):
        _, drawn = axes(name, *arguments)
        shown = [drawn.xaxis.get_major_formatter()(value, 0) for value in (1e-3, 1e-6, 2e-9)]
        assert [text.replace("$", "") for text in shown] == ["1 ms", "1 us", "2 ns"]


def test_latencies(axes):
    counts = {"short": np.zeros(500, np.int64), "none": np.zeros(500, np.int64)}
    counts["short"][[128, 192]] = 3, 1
    _, drawn = axes("latencies", counts)
    (line,) = drawn.lines
    assert [*zip(*line.get_data(), strict=True)] == [(4e-12, 1), (8e-12, 0.25)]
    assert line.get_label() == "short"


def test_states(axes):
    shares = {"busy": np.array([10.0, 0, 30, 50]), "idle": np.array([80.0, 100, 0, 25])}
    _, drawn = axes("states", shares, NAMES)
    busy, idle = drawn.containers
    assert [bar.get_width() for bar in busy] == [10, 0, 30, 50]
    assert [(bar.get_x(), bar.get_width()) for bar in idle] == [(10, 80), (0, 100), (30, 0), (50, 25)]
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["busy", "idle"]
    assert drawn.get_xlim() == (0, 100)
    assert axes("states", {"twice": np.array([150.0, 0, 0, 0])}, NAMES)[1].get_xlim() == (0, 150)


def test_sixteen_lines_differ():
    assert len({(kind["color"], kind["linestyle"]) for kind in lines(16)}) == 16
    assert lines(17)[16] == lines(1)[0]


def test_colours_follow_the_theme():
    """None of the style's colours is left as it is, and each has a value for both themes."""
    svg = themed(f'<svg xmlns="http://www.w3.org/2000/svg"><path style="fill: {INK}; stroke: {TEXT}"/></svg>')
    begin, _, rest = svg.partition("</style>")
    assert rest == f'<path style="fill: var(--c{INK[1:]}); stroke: var(--c{TEXT[1:]})"/></svg>'
    light, dark = begin.split("@media(prefers-color-scheme:dark)")
    for colour in (INK, TEXT):
        assert f"--c{colour[1:]}:{colour};" in light
        assert f"--c{colour[1:]}:{colour};" not in dark
        assert f"--c{colour[1:]}:#" in dark


def test_timeline(axes, survey):
    figure, drawn = axes("timeline", survey, NAMES, OUTAGES)
    (image,) = drawn.images
    shown, span = image.get_array(), DURATION_PS / 1e12 / survey.timeline.shape[1]
    assert np.ma.filled(shown, 0) == pytest.approx(np.nan_to_num(survey.timeline / span))
    assert image.get_clim() == pytest.approx((1 / span, survey.timeline.max() / span))
    assert image.get_extent() == pytest.approx((0, 50, 3.5, -0.5))
    assert drawn.get_ylim() == (3.5, -0.5)
    assert [label.get_text() for label in drawn.get_yticklabels()] == NAMES
    assert drawn.get_xlabel() == "time, ms"
    boxes = [path.get_extents() for collection in drawn.collections for path in collection.get_paths()]
    assert [(b.x0, b.x1, b.y0, b.y1) for b in boxes] == [
        pytest.approx((10, 20, 1.25, 1.45)), pytest.approx((40, 40 + 50 / 400, 1.25, 1.45))]
    assert len(figure.axes) == 2


def test_outages_that_touch_are_drawn_as_one(axes, survey):
    """However many there are, no more is drawn than can be distinguished; those after the first thousands, too."""
    many = [LossSpan(1, k * 10**7, k * 10**7 + 5 * 10**6) for k in range(4000)] + [LossSpan(1, 49 * 10**9, 49 * 10**9)]
    _, drawn = axes("timeline", survey, NAMES, [[], many[::-1], [], []])
    boxes = [path.get_extents() for collection in drawn.collections for path in collection.get_paths()]
    assert [(b.x0, b.x1) for b in boxes] == [
        pytest.approx((0, 39.99 + 50 / 400)), pytest.approx((49, 49 + 50 / 400))]


def test_many_rows_are_low_and_some_have_names(axes, survey):
    many = replace(survey, timeline=np.tile(survey.timeline, (64, 1)))
    figure, drawn = axes("timeline", many, [str(k) for k in range(256)], [[]] * 256)
    assert [label.get_text() for label in drawn.get_yticklabels()] == [str(k) for k in range(0, 256, 8)]
    assert drawn.get_ylim() == (255.5, -0.5)
    assert figure.get_size_inches()[1] < 20


def test_moment(axes):
    """Events and losses of the time that is shown, those at its ends too."""
    times, nodes = np.array([10**10, 10**10 + 2_000_000, 10**10 + 5_000_000]), np.array([0, 1, 0])
    begin, end = 10**10, 10**10 + 8_000_000
    outages = [[LossSpan(1, 0, begin), LossSpan(1, 0, begin - 1)],
               [LossSpan(2, end, end + 9), LossSpan(2, end - 1, end + 9)], [], []]
    _, drawn = axes("moment", times, nodes, NAMES, (begin, end), outages)
    strokes = [sorted(collection.get_positions()) for collection in drawn.collections[:4]]
    assert strokes == [[0, 5], [2], [], []]
    boxes = [path.get_extents() for collection in drawn.collections[4:] for path in collection.get_paths()]
    assert [(b.x0, b.y0) for b in boxes] == [pytest.approx((-10_000, 0.25)), pytest.approx((7.999999, 1.25))]
    assert drawn.get_xlim() == (0, 8)
    assert drawn.get_xlabel() == "time from 10 ms on, us"


def test_messages(axes):
    counts = np.arange(16).reshape(4, 4)
    figure, drawn = axes("messages", counts, NAMES)
    (image,) = drawn.images
    assert np.ma.filled(image.get_array(), 0).tolist() == counts.tolist()
    assert image.get_clim() == (0, 15)
    assert [label.get_text() for label in drawn.get_xticklabels()] == NAMES
    assert len(figure.axes) == 2


@pytest.mark.parametrize(("duration_ps", "unit"), [
    (2 * 10**12, "s"), (2 * 10**12 - 1, "ms"), (2 * 10**9, "ms"), (2 * 10**9 - 1, "us"), (2 * 10**6, "us"), (5, "ns")])
def test_units(axes, survey, duration_ps, unit):
    survey.duration_ps = duration_ps
    assert axes("rates", survey, [])[1].get_xlabel() == f"time, {unit}"
