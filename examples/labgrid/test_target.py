"""Two microcontrollers share a lock: what they write, recorded by a driver of labgrid and judged by rules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "pytest"))

from test_locks import RULES, locks


def test_locks(target):
    board = target.get_driver("HypermonDriver")
    with board.recording(locks(300_000), options=["--window", "1"]) as run:
        pass        # with a real board, a power driver starts the nodes here
    run.check(RULES)
