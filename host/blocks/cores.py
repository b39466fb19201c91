"""Cores that this process may use."""

import os

__all__ = ["cores"]


def cores() -> int:
    """Number of cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
