"""The case that a bench is to run: what :func:`..runner.run` was given."""

import json
import os
import random

__all__ = ["CASE", "rng"]

#: ``seed`` and the parameters of the case; empty outside a simulation.
CASE: dict = json.loads(os.environ.get("HYPERMON_CASE", "{}"))


def rng(purpose: str = "") -> random.Random:
    """A generator for one purpose; another purpose's use does not disturb it."""
    return random.Random(f"{CASE['seed']} {purpose}")
