"""A RUN on the disk.

>>> from hypermon.host.recording import Run, RunInfo, RunWriter

Flow: recording, segments, parts, wallclock
"""

from hypermon.host.recording.recording import Run, RunInfo, RunWriter, open_run, refuse_existing

__all__ = ["Run", "RunInfo", "RunWriter", "open_run", "refuse_existing"]
