"""What all tests share."""

import os

# Here, before anything is built, and in the environment, because commands under test build boards too.
os.environ.setdefault("HYPERMON_BUILD", "quick")
