"""What is printed for people: tables and lines in which data stay as they are."""

from typing import Any

from hypermon.host.text.printable import visible
from rich.console import Console
from rich.text import Text

__all__ = ["cell", "make_console"]

#: Columns of what is no terminal: nothing is cut or wrapped there.
_WIDE = 1 << 16


def make_console(**options: Any) -> Console:
    """A console, of rich's options, that makes no pictures of ``:names:`` and cuts nothing in a pipe."""
    made = Console(emoji=False, **options)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def cell(value: str) -> Text:
    """A value as it is: nothing in it is markup, and control characters are shown as escapes."""
    return Text(visible(value))
