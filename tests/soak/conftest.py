"""The soak's own modules, and the line of the serial port's tests, by name."""

import sys
from pathlib import Path

for folder in ("host", "soak"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
