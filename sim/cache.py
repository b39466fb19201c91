"""Where compiled libraries are kept. The name of each is a hash of all its inputs."""

import os
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """``HYPERMON_CACHE`` if that is set; ``.build/`` in a checkout; else the user's cache directory."""
    if chosen := os.environ.get("HYPERMON_CACHE"):
        return Path(chosen)
    checkout = Path(__file__).parents[1]
    if (checkout / "pyproject.toml").exists() and (checkout / "sim" / Path(__file__).name).exists():
        return checkout / ".build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hypermon"
