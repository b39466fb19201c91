"""The soak's own modules, and the line of the serial port's tests, by name."""

import sys
from pathlib import Path

for folder in (Path(__file__).parents[2], Path(__file__).parent):
    sys.path.insert(0, str(folder))
