"""The host: links, recording, decoding, exports, the command line.

>>> from hypermon.host import open_run
>>> run = open_run("RUN")
>>> run.events(), run.loss(), run.stats()
"""

from hypermon.host.errors import HypermonError, InputError
from hypermon.host.recording import Run, open_run

__all__ = ["HypermonError", "InputError", "Run", "open_run"]
