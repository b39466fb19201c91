"""The host: links, recording, decoding, exports, the command line.

>>> from hypermon.host import open_run
>>> run = open_run("RUN")
>>> run.events(), run.loss(), run.stats()

The root contains what a user imports. The sub-packages, from the bottom up: ``text``, ``wire`` and ``tables`` handle
the formats. ``link`` and ``device`` reach a board. ``recording`` and ``dictionary`` handle the contents of a RUN.
``decode``, ``analysis`` and ``export`` read a RUN. ``record``, ``live``, ``report``, ``diagnose`` and ``flash`` are the
tasks for a board or a RUN. ``cli`` is the command.

Flow: errors, text, wire, tables, link, device, recording, dictionary, decode, events, analysis, record, diagnose,
    export, report, live, flash, cli
"""

from hypermon.host.errors import HypermonError, InputError
from hypermon.host.recording.info import Run, open_run

__all__ = ["HypermonError", "InputError", "Run", "open_run"]
