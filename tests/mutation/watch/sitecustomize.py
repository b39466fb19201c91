"""Watches processes that tests start; see reached.py. In a folder of its own, which is on the path only for that."""

import os

if os.environ.get("HYPERMON_REACHED"):
    import reached

    reached.watch()
