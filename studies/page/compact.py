"""SVG in few bytes: what no reader sees is left out.

A plot of matplotlib repeats itself: each point of a series has its own style, and each coordinate has six decimals.
Here a coordinate has one decimal, a tenth of a point at a figure's full size, which is less than a pixel. The marks of
a series are one path, whose points have the mark. Letters, whose coordinates are integers, have relative ones; so has
a curve of many points.
"""

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

__all__ = ["compact"]

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_LINK}}}href"
#: Positions have one decimal. Shapes in `defs`, such as a marker, are a few points wide: two decimals.
_POSITION, _SHAPE = 1, 2
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_TRANSLATE = re.compile(r"translate\(([^)]*)\)")
_STEP = re.compile(r"([MLQCz])([^MLQCz]*)")
_RELATIVE = re.compile("[mlhvqc]")
#: Numbers of a step.
_WIDTH = {"M": 2, "L": 2, "Q": 4, "C": 6}
#: Marks that are worth a path of their own.
_MARKS = 8
#: Points of a curve that are worth relative coordinates.
_MANY = 40
#: Groups that the style sheet names; other ids that nothing refers to are left out.
_STYLED = "QuadMesh"

Step = tuple[str, tuple[str, ...]]


def _rounded(text: str, decimals: int) -> str:
    """The text with its numbers rounded, without trailing zeros."""
    def one(found: re.Match[str]) -> str:
        # Plus 0: no negative zero.
        return f"{round(float(found[0]), decimals) + 0:.{decimals}f}".rstrip("0").rstrip(".")

    return _NUMBER.sub(one, text)


def _columns(points: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Of consecutive points with the same x: the first, the lowest, the highest and the last one, in their order."""
    for _, group in groupby(points, key=lambda point: point[0]):
        own = list(group)
        heights = [float(y) for _, y in own]
        kept = sorted({0, heights.index(min(heights)), heights.index(max(heights)), len(own) - 1})
        yield from (point for point, _ in groupby(own[at] for at in kept))


def _steps(text: str, decimals: int) -> Iterator[Step]:
    """Each step with its rounded numbers; a letter that holds for several has become that of each."""
    for letter, rest in _STEP.findall(text):
        numbers = _rounded(rest, decimals).split()
        width = _WIDTH.get(letter, 0)
        if not width:
            yield letter, ()
        for at in range(0, len(numbers), width or 1):
            yield letter, tuple(numbers[at:at + width])


def _tenths(text: str) -> int:
    """A rounded position in tenths of a point: a sum of their differences is exact."""
    return round(10 * float(text))


def _offset(tenths: int) -> str:
    """The text of a difference, such as 12, -3.4 or .5: zero, which needs its digit, is 0."""
    whole, tenth = divmod(abs(tenths), 10)
    return ("-" if tenths < 0 else "") + (str(whole) if whole or not tenth else "") + (f".{tenth}" if tenth else "")


def _curve(points: list[tuple[str, ...]]) -> str:
    """Lines through the rounded points, each after the first as its distance from the one before it."""
    spots = [(_tenths(x), _tenths(y)) for x, y in points]
    offsets = [_offset(b - a) for one, other in pairwise(spots) for a, b in zip(one, other, strict=True)]
    return "l" + " ".join(offsets).replace(" -", "-")


def _relative(steps: list[Step]) -> str:
    """The path with each point as its distance from the one before it; nothing is rounded.

    Parameters
    ----------
    steps : steps whose numbers are all integers
    """
    out, last = "", ""
    here = begin = (0, 0)
    for letter, rest in steps:
        numbers = [int(one) for one in rest]
        name, offsets = letter.lower(), [one - here[at % 2] for at, one in enumerate(numbers)]
        here = begin if letter == "z" else (numbers[-2], numbers[-1])
        if letter == "M":
            begin = here
        if letter == "L" and 0 in offsets:
            name, offsets = ("h", offsets[:1]) if not offsets[1] else ("v", offsets[1:])
        text = " ".join(map(str, offsets)).replace(" -", "-")
        # Numbers after m would be lines.
        repeats = name == last != "m" and bool(text)
        out += ("" if text.startswith("-") else " ") + text if repeats else name + text
        last = name
    return out


def _path(text: str, decimals: int) -> str:
    """The same path; lines have one point less where two are on the same spot, and no point that a column hides.

    A letter needs no blank before it. A relative path is compact already.
    """
    if _RELATIVE.search(text):
        return text
    steps = list(_steps(text, decimals))
    if decimals == _SHAPE and not any("." in one for _, rest in steps for one in rest):
        return _relative(steps)
    out, last = "", ""
    here: tuple[str, ...] = ()
    for letter, group in groupby(steps, key=lambda step: step[0]):
        own = [rest for _, rest in group]
        if letter == "L":
            own = list(_columns(own))
        if letter == "L" and here and len(own) >= _MANY and decimals == _POSITION:
            out += _curve([here, *own])
        else:
            for rest in own:
                # After M, further pairs are lines; a letter that repeats can be left out, but for M and z.
                out += " " + " ".join(rest) if letter == last == "L" else letter + " ".join(rest)
                last = letter
        # What follows z begins where its outline began: matplotlib moves first.
        here, last = own[-1][-2:], letter
    return out


def _style(text: str) -> str:
    return ";".join(part.strip().replace(": ", ":") for part in text.split(";"))


def _placed(element: Element) -> None:
    """A `use` that is only moved has x and y instead of a transform."""
    found = _TRANSLATE.fullmatch(element.get("transform", ""))
    if element.tag != f"{{{_SVG}}}use" or not found or {"x", "y"} & set(element.attrib):
        return
    del element.attrib["transform"]
    for name, value in zip("xy", found[1].split(), strict=False):
        if value != "0":
            element.set(name, value)


def _positions(element: Element, decimals: int) -> None:
    """Rounds what places or shapes the element."""
    # Each point of a path with a mark is a mark, of which no column hides one.
    if (d := element.get("d")) and "marker:" not in element.get("style", ""):
        element.set("d", _path(d, decimals))
    if transform := element.get("transform"):
        element.set("transform", _TRANSLATE.sub(lambda found: f"translate({_rounded(found[1], decimals)})", transform))
        _placed(element)
    for name in ("x", "y", "width", "height"):
        if element.tag != f"{{{_SVG}}}svg" and (value := element.get(name)):
            element.set(name, _rounded(value, decimals))
    if style := element.get("style"):
        element.set("style", _style(style))


def _series(group: Element, name: str) -> None:
    """A group of only `use` with one style: the group has the style, and no two are on the same spot.

    `name` is the id of a marker, if the group gets one.

    Translucent marks stay as they are, since two on the same spot are darker than one.
    """
    marks = list(group)
    styles = {mark.get("style", "") for mark in marks}
    if not marks or len(styles) > 1 or {mark.tag for mark in marks} != {f"{{{_SVG}}}use"}:
        return
    [style] = styles
    if style and group.get("style"):
        return
    if style:
        group.set("style", style)
    style = group.get("style", "")
    seen = set()
    for mark in marks:
        mark.attrib.pop("style", None)
        spot = tuple(sorted(mark.attrib.items()))
        if spot in seen and "opacity" not in style:
            group.remove(mark)
        seen.add(spot)
    _marked(group, name)


def _marked(group: Element, name: str) -> None:
    """Many marks of one shape become one path, which has the shape at each of its points, in the same order."""
    marks = list(group)
    shapes = {mark.get(_HREF) or mark.get("href", "") for mark in marks}
    if len(marks) < _MARKS or len(shapes) > 1 or any(set(mark.attrib) - {_HREF, "href", "x", "y"} for mark in marks):
        return
    points = [(mark.get("x", "0"), mark.get("y", "0")) for mark in marks]
    for mark in marks:
        group.remove(mark)
    # The shape inherits the style of the group, as the marks did; the path itself is not drawn.
    marker = SubElement(group, f"{{{_SVG}}}marker", {"id": name, "markerUnits": "userSpaceOnUse",
                                                     "style": "overflow:visible"})
    SubElement(marker, f"{{{_SVG}}}use", {"href": shapes.pop()})
    begin, *rest = (" ".join(point) for point in points)
    line = _curve(points) if len(points) > _MANY else f"L{' '.join(rest)}"
    SubElement(group, f"{{{_SVG}}}path", {"d": f"M{begin}{line}",
                                          "style": f"fill:none;stroke:none;marker:url(#{name})"})


def _ids(root: Element) -> None:
    """Short ids, and only where something refers to them."""
    text = ElementTree.tostring(root, "unicode")
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    short = {name: f"g{number:x}" for number, name in enumerate(used)}
    for element in root.iter():
        name = element.get("id", "")
        if name in short:
            element.set("id", short[name])
        elif name and not name.startswith(_STYLED):
            del element.attrib["id"]
        if link := element.attrib.pop(_HREF, "") or element.attrib.pop("href", ""):
            # SVG 2 needs no namespace for it. It is first, so that a drawing that is compact already stays as it is.
            rest = dict(element.attrib)
            element.attrib.clear()
            element.attrib.update({"href": f"#{short[link[1:]]}" if link.startswith("#") else link, **rest})
        for place in ("clip-path", "style"):
            if value := element.get(place):
                element.set(place, re.sub(r"url\(#([^)]+)", lambda found: f"url(#{short[found[1]]}", value))


def _flat(element: Element) -> None:
    """A group without attributes is replaced by its members."""
    own: list[Element] = []
    for child in element:
        _flat(child)
        own += list(child) if child.tag == f"{{{_SVG}}}g" and not child.attrib else [child]
    element[:] = own


def compact(svg: str) -> str:
    """The same picture in fewer bytes, one element per line.

    Parameters
    ----------
    svg : a document that matplotlib wrote, in which colours and styles are attributes `style`

    Returns
    -------
    The document without prologue, comments and metadata. Positions differ by at most 0.05 points.
    """
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for found in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(found)
    inside = {element for defs in root.iter(f"{{{_SVG}}}defs") for element in defs.iter()}
    clips = {element for clip in root.iter(f"{{{_SVG}}}clipPath") for element in clip.iter()}
    for element in root.iter():
        _positions(element, _SHAPE if element in inside - clips else _POSITION)
    for number, group in enumerate(list(root.iter(f"{{{_SVG}}}g"))):
        _series(group, f"series-{number}")
    _ids(root)
    _flat(root)
    for element in root.iter():
        element.tail = "\n" if element is not root else None
        if element.tag != f"{{{_SVG}}}style":
            element.text = None
    return ElementTree.tostring(root, "unicode").replace(" />", "/>") + "\n"
