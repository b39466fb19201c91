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


def absolute(path: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Each step of a path with its points, wherever it says them relative to the one before."""
    out, here, begin = [], (0.0, 0.0), (0.0, 0.0)
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        numbers = [float(one) for one in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        if letter in "hv":
            numbers = [one for k in numbers for one in ((k, 0) if letter == "h" else (0, k))]
        if letter in "zZ":
            here = begin
            out.append(("z", []))
        width = {"q": 4, "c": 6}.get(letter.lower(), 2)
        for at in range(0, len(numbers), width):
            own = list(zip(numbers[at:at + width:2], numbers[at + 1:at + width:2], strict=True))
            own = [(x + here[0], y + here[1]) if letter.islower() else (x, y) for x, y in own]
            here = own[-1]
            if letter in "mM":
                begin = here
            out.append(("L" if letter in "hv" else letter.upper(), own))
    return out


def points(path: str) -> list[tuple[float, float]]:
    return [(round(x, 6), round(y, 6)) for _, own in absolute(path) for x, y in own]


def packed(inside: str) -> ElementTree.Element:
    return ElementTree.fromstring(compact(NS.format(inside)))


def found(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return list(root.iter(f"{{http://www.w3.org/2000/svg}}{name}"))


def places(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Where each letter and each mark is, in their order."""
    within = {one for marker in found(root, "marker") for one in marker}
    out = []
    for one in root.iter():
        if one.tag.endswith("}use") and one not in within:
            moved = re.search(r"translate\(([^)]*)", one.get("transform", ""))
            out.append(tuple(map(float, moved[1].split())) if moved else
                       (float(one.get("x", 0)), float(one.get("y", 0))))
        elif "marker:" in one.get("style", ""):
            out += points(one.get("d", ""))
    return out


def test_positions_have_one_decimal_and_shapes_two():
    root = packed('<defs><path id="m" d="M 0 0.75 \nC 0.198911 0.75 0.389705 0.670972 0.53033 0.53033 \nz"/></defs>'
                  '<g><use xlink:href="#m" x="10.26" y="-0.04"/></g>'
                  '<g transform="translate(1.2345 6.789) scale(0.09 -0.09)"/>')
    shape, = found(root, "path")
    assert shape.get("d") == "M0 0.75C0.2 0.75 0.39 0.67 0.53 0.53z"
    mark, = found(root, "use")
    assert (mark.get("x"), mark.get("y")) == ("10.3", "0")
    assert found(root, "g")[0].get("transform") == "translate(1.2 6.8) scale(0.09 -0.09)"


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
    root = packed(f"{defs}<g>{other}</g>")
    assert [mark.get("style") for mark in found(root, "use")] == ["fill:#123456"] * 3 + ["fill:red"]


def test_ids_stay_where_they_are_used():
    root = packed('<defs><clipPath id="p0123"><rect x="1.26" y="2" width="3" height="4"/></clipPath></defs>'
                  '<g id="axes_1"><g id="QuadMesh_1"/><path clip-path="url(#p0123)" d="M 0 0 \nL 1 1 \n"/></g>')
    clip, = found(root, "clipPath")
    assert found(root, "path")[0].get("clip-path") == f"url(#{clip.get('id')})"
    # A group without attributes is replaced by its members.
    assert [group.get("id") for group in found(root, "g")] == ["QuadMesh_1"]
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
    # The committed drawings were made by compacting drawings that were compact.
    assert compact((tmp_path / "a.svg").read_text()) == (tmp_path / "a.svg").read_text()
    assert len((tmp_path / "a.svg").read_text()) < 0.65 * len(out.getvalue())
    # Each letter and each mark of the plot is there, at most 0.05 points from its place.
    was, now = places(plain), places(small)
    assert len(was) == len(now) > 150
    assert all(abs(a - b) <= 0.0501 for one, other in zip(was, now, strict=True)
               for a, b in zip(one, other, strict=True))
    [before] = (points(path.get("d", "")) for path in found(plain, "path") if path.get("d", "").count("L") == 99)
    [after] = (curve for path in found(small, "path") if "marker" not in path.get("style", "")
               if len(curve := points(path.get("d", ""))) == 100)
    assert len(before) == len(after) == len(line.get_xdata())
    assert all(abs(a - b) <= 0.0501 for one, other in zip(before, after, strict=True)
               for a, b in zip(one, other, strict=True))


def test_a_letter_has_relative_points_and_the_same_shape():
    # Two outlines, curves, upright and level lines, and a line to where it is.
    outline = ("M 30 32 \nL 30 23 \nQ 25 10 -22 -58 \nQ 9 -38 21 48 \nL 50 48 \nL 50 48 \nL 7 -1 \nz \n"
               "M 3 4 \nL 5 6 \nL 4 5 \nC 1 2 3 4 5 7 \nz \n")
    path, = found(packed(f'<defs><path id="a" d="{outline}"/></defs><use xlink:href="#a"/>'), "path")
    assert path.get("d") == "m30 32v-9q-5-13-52-81 31 20 43 106h29 0l-43-49zm-27-28l2 2-1-1c-3-3-1-1 1 2z"
    assert absolute(path.get("d")) == absolute(outline)


@pytest.mark.parametrize("count", [40, 41])
def test_a_curve_of_many_points_has_relative_ones(count):
    """With tenths as they were: what is added up does not drift. The path goes on where the curve ends."""
    spots = [(k + (k * k % 10) / 10, round((37 * k % 101) / 10, 1)) for k in range(count)]
    text = "".join(f"{'L' if k else 'M'} {x} {y} \n" for k, (x, y) in enumerate(spots))
    path, = found(packed(f'<path d="{text}Q 1 2 3 4 \nz \nM 5 6 \nL 0 0 \n"/>'), "path")
    assert ("l" in path.get("d")) == (count > 40)
    assert [(letter, [(round(x, 6), round(y, 6)) for x, y in own]) for letter, own in absolute(path.get("d"))] == [
        ("M", spots[:1]), *(("L", [spot]) for spot in spots[1:]), ("Q", [(1, 2), (3, 4)]), ("z", []),
        ("M", [(5, 6)]), ("L", [(0, 0)])]
    defs = '<defs><path id="m" d="M 0 0 \nL 0 1 \n"/></defs>'
    marks = "".join(f'<use xlink:href="#m" x="{x}" y="{y}"/>' for x, y in spots)
    marked, = (one for one in found(packed(f"{defs}<g>{marks}</g>"), "path") if "marker" in one.get("style", ""))
    assert ("l" in marked.get("d")) == (count > 40)
    assert points(marked.get("d")) == spots


def test_a_letter_that_is_moved_has_x_and_y():
    root = packed('<defs><path id="a" d="M 0 0 \nL 1 1 \n"/></defs><g style="fill: red"><use xlink:href="#a" '
                  'transform="translate(42.34 0)"/><use xlink:href="#a" transform="translate(5 0.4)"/>'
                  '<use xlink:href="#a" transform="translate(5 1) scale(2)"/></g>')
    places = [{name: value for name, value in one.attrib.items() if name != "href"} for one in found(root, "use")]
    assert places == [{"x": "42.3"}, {"x": "5", "y": "0.4"}, {"transform": "translate(5 1) scale(2)"}]


def test_many_marks_are_one_path_which_has_a_mark_at_each_point():
    """In their order, also where two are in one column: a later mark is above an earlier one."""
    spots = [(1, 1), (2, 5), (2, 3), (2, 4), (2, 9), (3, 0), (0, 3), (1, 2), (7, 7)]
    defs = '<defs><path id="m" d="M 0 0 \nL 0 1 \n" style="stroke: blue"/></defs>'
    def text(count):
        return defs + "<g>" + "".join(f'<use xlink:href="#m" x="{x}" y="{y}" style="fill: red"/>'
                                      for x, y in spots[:count]) + "</g>"

    assert len(found(packed(text(7)), "use")) == 7
    root = packed(text(9))
    group, = found(root, "g")
    assert group.get("style") == "fill:red"
    marker, path = group
    mark, = marker
    shape, = (one for one in found(root, "path") if one is not path)
    assert mark.attrib == {"href": f"#{shape.get('id')}"}
    assert points(path.get("d")) == spots
    assert path.get("style") == f"fill:none;stroke:none;marker:url(#{marker.get('id')})"
    # Nothing is hidden at the mark's edge, and the width of the path does not scale it.
    assert (marker.get("markerUnits"), marker.get("style")) == ("userSpaceOnUse", "overflow:visible")
    # Of two shapes, or with something else than a place: they stay.
    assert len(found(packed(text(9).replace('#m" x="7"', '#n" x="7"') + defs.replace('"m"', '"n"')), "use")) == 9
    assert len(found(packed(text(9).replace('x="7"', 'x="7" transform="scale(2)"')), "use")) == 9


def drawings() -> list[Path]:
    return [*(ROOT / "docs" / "paper").glob("*.svg"), *(ROOT / "docs" / "machines").glob("*.svg")]


def test_the_committed_drawings_are_compact():
    """Compacting such a drawing again changes nothing: it is what the generator writes."""
    assert len(drawings()) == 25
    for path in drawings():
        text = path.read_text()
        assert compact(text) == text, path
        assert not re.search(r"\d\.\d{3}", re.sub(r"scale\([^)]*\)|opacity:[\d.]+|<style>.*?</style>", "", text)), path


def test_what_a_committed_drawing_refers_to_is_there():
    for path in drawings():
        text = path.read_text()
        ids = re.findall(r' id="([^"]+)"', text)
        assert len(set(ids)) == len(ids), path
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(ids), path
