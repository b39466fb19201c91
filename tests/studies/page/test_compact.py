"""A compact drawing is the same picture: texts, marks and curves stay where they were."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypermon.studies.page import figures
from hypermon.studies.page.compact import compact

ROOT = Path(__file__).parents[3]
NS = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="72pt">{}</svg>'


def points(path: str) -> list[tuple[float, float]]:
    numbers = [float(one) for one in re.findall(r"-?[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def packed(inside: str) -> ElementTree.Element:
    return ElementTree.fromstring(compact(NS.format(inside)))


def found(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return list(root.iter(f"{{http://www.w3.org/2000/svg}}{name}"))


def test_positions_have_one_decimal_and_shapes_two():
    root = packed('<defs><path id="m" d="M 0 0.75 \nC 0.198911 0.75 0.389705 0.670972 0.53033 0.53033 \nz"/></defs>'
                  '<g><use xlink:href="#m" x="10.26" y="-0.04"/></g>'
                  '<g transform="translate(1.2345 6.789) scale(0.09 -0.09)"/>')
    shape, = found(root, "path")
    assert shape.get("d") == "M0 0.75C0.2 0.75 0.39 0.67 0.53 0.53z"
    mark, = found(root, "use")
    assert (mark.get("x"), mark.get("y")) == ("10.3", "0")
    assert found(root, "g")[1].get("transform") == "translate(1.2 6.8) scale(0.09 -0.09)"


def test_a_line_keeps_the_range_of_each_column():
    root = packed('<path d="M 0 0 \nL 1.01 5 \nL 1.02 9 \nL 1.03 1 \nL 1.04 4 \nL 1.04 4.001 \nL 2 3 \n" '
                  'style="fill: none"/>')
    path, = found(root, "path")
    assert path.get("d") == "M0 0L1 5 1 9 1 1 1 4 2 3"
    assert path.get("style") == "fill:none"


def test_marks_of_one_style_have_it_once_and_no_two_are_on_one_spot():
    marks = "".join(f'<use xlink:href="#m" x="{x}" y="2" style="fill: #123456{more}"/>' for x in (1, 1.01, 3)
                    for more in ("{more}",))
    defs = '<defs><path id="m" d="M 0 0 \nL 0 1 \n"/></defs>'
    group, = found(packed(f"{defs}<g>{marks.replace('{more}', '')}</g>"), "g")
    assert group.get("style") == "fill:#123456"
    assert [(mark.get("x"), mark.get("style")) for mark in group] == [("1", None), ("3", None)]
    # Translucent marks are darker where two are on one spot.
    group, = found(packed(f"{defs}<g>{marks.replace('{more}', '; fill-opacity: 0.5')}</g>"), "g")
    assert [mark.get("x") for mark in group] == ["1", "1", "3"]
    # Two styles stay with their marks.
    other = marks.replace("{more}", "") + '<use xlink:href="#m" x="9" y="2" style="fill: red"/>'
    group, = found(packed(f"{defs}<g>{other}</g>"), "g")
    assert [mark.get("style") for mark in group] == ["fill:#123456"] * 3 + ["fill:red"]


def test_ids_stay_where_they_are_used():
    root = packed('<defs><clipPath id="p0123"><rect x="1.26" y="2" width="3" height="4"/></clipPath></defs>'
                  '<g id="axes_1"><g id="QuadMesh_1"/><path clip-path="url(#p0123)" d="M 0 0 \nL 1 1 \n"/></g>')
    clip, = found(root, "clipPath")
    assert found(root, "path")[0].get("clip-path") == f"url(#{clip.get('id')})"
    assert [group.get("id") for group in found(root, "g")] == [None, "QuadMesh_1"]
    assert found(root, "rect")[0].get("x") == "1.3"


def test_a_plot_has_its_curves_marks_and_texts(tmp_path):
    pytest.importorskip("matplotlib")
    figure, [[axes]] = figures.panes(1, 1, 4, 3)
    xs = [k / 7 for k in range(100)]
    [line] = axes.plot(xs, [((37 * k) % 101) / 10 for k in range(100)], ".-")
    axes.set(xlabel="time, s", title="of 100 points")
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    plain = ElementTree.fromstring(out.getvalue())
    small = ElementTree.fromstring(compact(out.getvalue()))
    figures.save(figure, tmp_path / "a.svg")
    assert len((tmp_path / "a.svg").read_text()) < 0.65 * len(out.getvalue())
    # Each letter and each mark of the plot is there, at most 0.05 points from its place.
    assert len(found(plain, "use")) == len(found(small, "use"))
    for was, now in zip(found(plain, "use"), found(small, "use"), strict=True):
        assert all(abs(float(was.get(axis, 0)) - float(now.get(axis, 0))) <= 0.0501 for axis in "xy")
    before, after = (max((points(path.get("d", "")) for path in found(root, "path")), key=len)
                     for root in (plain, small))
    assert len(before) == len(after) == len(line.get_xdata())
    assert all(abs(a - b) <= 0.0501 for one, other in zip(before, after, strict=True)
               for a, b in zip(one, other, strict=True))


def test_the_committed_drawings_are_compact():
    """Compacting such a drawing again changes nothing but its curves' letters, and so makes it no smaller."""
    drawings = [*(ROOT / "docs" / "paper").glob("*.svg"), *(ROOT / "docs" / "machines").glob("*.svg")]
    assert len(drawings) == 25
    for path in drawings:
        assert not re.search(r"\d\.\d{3}", re.sub(r"scale\([^)]*\)|opacity:[\d.]+|<style>.*?</style>", "",
                                                  path.read_text())), path
        assert not re.search(r' d="[^"]* [A-Za-z]', path.read_text()), path
