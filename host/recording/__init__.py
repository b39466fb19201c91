"""A RUN on the disk.

>>> from hypermon.host.recording import Run, RunInfo, RunWriter

Flow: info, segments, locking, aside, parts, clock, pulses, drift_log, directory, writer
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter, refuse_existing

if TYPE_CHECKING:
    from hypermon.host.run import Run, open_run

__all__ = ["Run", "RunInfo", "RunWriter", "open_run", "refuse_existing"]

#: Names that are offered here, and that packages above this one define.
_ABOVE = {"Run": "hypermon.host.run", "open_run": "hypermon.host.run"}


def __getattr__(name: str) -> Any:
    if name in _ABOVE:
        return getattr(import_module(_ABOVE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
