"""Console output for people: tables and lines that show data unchanged."""

import sys
from typing import Any

from hypermon.host.text.output import plain
from hypermon.host.text.printable import visible
from rich.console import Console
from rich.text import Text

__all__ = ["cell", "make_console"]

#: Columns when the output is not a terminal: nothing is cut or wrapped there.
_WIDE = 1 << 16


def make_console(**options: Any) -> Console:
    """A console, with rich's options, that does not replace ``:names:`` by pictures and cuts nothing in a pipe."""
    if "file" not in options:
        options["file"] = plain(sys.stderr if options.pop("stderr", False) else sys.stdout)
    made = Console(emoji=False, **options)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def cell(value: str) -> Text:
    """A value, unchanged: nothing in it is markup, and control characters are shown as escapes."""
    return Text(visible(value))
