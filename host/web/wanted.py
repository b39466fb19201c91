"""Numbers and lists of nodes in a page's requests."""

import re
from collections.abc import Mapping

from aiohttp import web

__all__ = ["nodes", "number"]


def nodes(query: Mapping[str, str], count: int) -> list[int] | None:
    """The nodes that a request lists, such as ``nodes=0-3.7`` or ``nodes=none``; None: it lists none, and is of all.

    Raises aiohttp's error response for another text. Numbers from ``count`` on are left out.
    """
    text = query.get("nodes")
    if text is None or text == "none":
        return None if text is None else []
    if not re.fullmatch(r"\d{1,5}(-\d{1,5})?(\.\d{1,5}(-\d{1,5})?)*", text, re.ASCII):
        raise web.HTTPBadRequest(text=f"nodes is {text[:40]!r}, not a list such as 0-3.7")
    ranges = [(int(first), int(last or first)) for first, _, last in (part.partition("-") for part in text.split("."))]
    return sorted({node for first, last in ranges for node in range(first, min(last + 1, count))})


def number(query: Mapping[str, str], name: str, least: int, most: int) -> int:
    """A whole number of a request. Raises aiohttp's error response, which names it."""
    text = query.get(name, "")
    if not re.fullmatch(r"-?[0-9]{1,20}", text, re.ASCII) or not least <= int(text) <= most:
        raise web.HTTPBadRequest(text=f"{name} is {text[:40]!r}, not a whole number from {least} to {most}")
    return int(text)
