"""The host: links, recording, decoding, exports, the command line.

>>> from hypermon.host import open_run
>>> run = open_run("RUN")
>>> run.events(), run.loss(), run.stats()

The root holds what a user imports. The sub-packages, from the ground up: ``text``, ``wire`` and ``tables`` know the
formats; ``link`` and ``device`` reach a board; ``recording`` and ``dictionary`` are what a RUN holds; ``decode``,
``analysis`` and ``export`` read it; ``record``, ``live``, ``report``, ``diagnose`` and ``flash`` are what one does
with a board or a RUN; ``cli`` is the command.

Flow: errors, text, wire, tables, link, device, recording, dictionary, decode, events, analysis, record, diagnose,
    export, report, live, flash, cli
"""

from hypermon.host.errors import HypermonError, InputError
from hypermon.host.recording.info import Run, open_run

__all__ = ["HypermonError", "InputError", "Run", "open_run"]
