"""SVG in few bytes: what no reader sees is left out.

A plot of matplotlib repeats itself: each point of a series has its own style, and each coordinate has six decimals.
Here a coordinate has one decimal, a tenth of a point at a figure's full size, which is less than a pixel.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

__all__ = ["compact"]

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_LINK}}}href"
#: Positions have one decimal. Shapes in `defs`, such as a marker, are a few points wide: two decimals.
_POSITION, _SHAPE = 1, 2
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_TRANSLATE = re.compile(r"translate\(([^)]*)\)")
_STEP = re.compile(r"([MLQCz])([^MLQCz]*)")
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


def _path(text: str, decimals: int) -> str:
    """The same path; lines have one point less where two are on the same spot, and no point that a column hides.

    A letter needs no blank before it.
    """
    steps: list[Step] = [(letter, tuple(_rounded(rest, decimals).split())) for letter, rest in _STEP.findall(text)]
    out, last = [], ""
    for letter, group in groupby(steps, key=lambda step: step[0]):
        own = [rest for _, rest in group]
        if letter == "L":
            own = list(_columns(own))
        for rest in own:
            # After M, further pairs are lines; a letter that repeats can be left out, but for M and z.
            out.append(" " + " ".join(rest) if letter == last == "L" else letter + " ".join(rest))
            last = letter
    return "".join(out)


def _style(text: str) -> str:
    return ";".join(part.strip().replace(": ", ":") for part in text.split(";"))


def _positions(element: Element, decimals: int) -> None:
    """Rounds what places or shapes the element."""
    if d := element.get("d"):
        element.set("d", _path(d, decimals))
    if transform := element.get("transform"):
        element.set("transform", _TRANSLATE.sub(lambda found: f"translate({_rounded(found[1], decimals)})", transform))
    for name in ("x", "y", "width", "height"):
        if element.tag != f"{{{_SVG}}}svg" and (value := element.get(name)):
            element.set(name, _rounded(value, decimals))
    if style := element.get("style"):
        element.set("style", _style(style))


def _series(group: Element) -> None:
    """A group of only `use` with one style: the group has the style, and no two are on the same spot.

    Translucent marks stay as they are, since two on the same spot are darker than one.
    """
    marks = list(group)
    styles = {mark.get("style", "") for mark in marks}
    if not marks or len(styles) > 1 or {mark.tag for mark in marks} != {f"{{{_SVG}}}use"} or group.get("style"):
        return
    [style] = styles
    if style:
        group.set("style", style)
    seen = set()
    for mark in marks:
        mark.attrib.pop("style", None)
        spot = tuple(sorted(mark.attrib.items()))
        if spot in seen and "opacity" not in style:
            group.remove(mark)
        seen.add(spot)


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
        if link := element.attrib.pop(_HREF, ""):
            # SVG 2 needs no namespace for it.
            element.set("href", f"#{short[link[1:]]}" if link.startswith("#") else link)
        if clip := element.get("clip-path"):
            element.set("clip-path", re.sub(r"#([^)]+)", lambda found: f"#{short[found[1]]}", clip))


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
    for group in root.iter(f"{{{_SVG}}}g"):
        _series(group)
    _ids(root)
    for element in root.iter():
        element.tail = "\n" if element is not root else None
        if element.tag != f"{{{_SVG}}}style":
            element.text = None
    return ElementTree.tostring(root, "unicode").replace(" />", "/>") + "\n"
