"""The case that a bench is to run: what :func:`..runner.run` was given."""

import json
import os
import random
from pathlib import Path

__all__ = ["CASE", "met", "rng"]

#: ``seed`` and the parameters of the case; empty outside a simulation.
CASE: dict = json.loads(os.environ.get("HYPERMON_CASE", "{}"))


def rng(purpose: str = "") -> random.Random:
    """A generator for one purpose; another purpose's use does not disturb it."""
    return random.Random(f"{CASE['seed']} {purpose}")


def met(occasions: dict[str, int]) -> None:
    """How often the run had each kind of occasion: it must have had all, unless many runs are asked for them together,
    to which it is then told."""
    if path := CASE.get("totals"):
        Path(path).write_text(json.dumps(occasions))
    else:
        assert all(occasions.values()), occasions
