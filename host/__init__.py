"""The host: links, recording, decoding, exports, the command line.

>>> from hypermon.host import open_run
>>> run = open_run("RUN")
>>> run.events(), run.loss(), run.stats()

The root contains what a user imports. The sub-packages, from the bottom up: ``text``, ``blocks`` and ``tables`` handle
the formats. ``link`` and ``device`` reach a board. ``recording`` and ``dictionary`` handle the contents of a RUN.
``decode``, ``analysis`` and ``export`` read a RUN, and ``contracts`` judges it. ``compare`` compares two.
``record``, ``report``, ``diagnose`` and ``flash`` are the tasks for a board or a RUN; ``web`` shows ``live`` and
``view``. ``cli`` is the command.

Flow: errors, text, blocks, tables, link, device, recording, dictionary, decode, events, analysis, run,
    contracts, compare, record, diagnose, export, report, live, view, web, flash, cli
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hypermon.host.errors import HypermonError, InputError

if TYPE_CHECKING:
    from hypermon.host.run import Run, open_run

__all__ = ["HypermonError", "InputError", "Run", "open_run"]


def __getattr__(name: str) -> Any:
    """Imports what reads runs when it is first used: it needs Arrow and DuckDB, and the command's help does not."""
    if name in ("Run", "open_run"):
        return getattr(import_module("hypermon.host.run"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
