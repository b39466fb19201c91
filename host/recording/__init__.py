"""A RUN on the disk.

>>> from hypermon.host.recording import RunInfo, RunWriter

Flow: info, segments, locking, aside, linked_copy, owned, parts, clock, pulses, drift_log, directory, writer
"""

from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter, refuse_existing

__all__ = ["RunInfo", "RunWriter", "refuse_existing"]
