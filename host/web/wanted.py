"""Numbers in a page's requests."""

import re
from collections.abc import Mapping

from aiohttp import web

__all__ = ["number"]


def number(query: Mapping[str, str], name: str, least: int, most: int) -> int:
    """A whole number of a request. Raises aiohttp's error response, which names it."""
    text = query.get(name, "")
    if not re.fullmatch(r"-?[0-9]{1,20}", text, re.ASCII) or not least <= int(text) <= most:
        raise web.HTTPBadRequest(text=f"{name} is {text[:40]!r}, not a whole number from {least} to {most}")
    return int(text)
