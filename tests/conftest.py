"""What all tests share."""

import gc
import os

# Here, before anything is built, and in the environment, because commands under test build boards too.
os.environ.setdefault("HYPERMON_BUILD", "quick")


def pytest_collection_finish(session):
    """Looks for garbage a tenth as often: elaborating and simulating make many objects, few of them garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
