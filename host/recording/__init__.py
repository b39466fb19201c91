"""A RUN on the disk.

>>> from hypermon.host.recording import Run, RunInfo, RunWriter

Flow: info, segments, parts, clock
"""

from hypermon.host.recording.info import Run, RunInfo, RunWriter, open_run, refuse_existing

__all__ = ["Run", "RunInfo", "RunWriter", "open_run", "refuse_existing"]
