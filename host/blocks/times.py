"""Converts window numbers to picoseconds, exactly."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Window

__all__ = ["PS_MAX", "TimeScale"]

#: Times are int64 everywhere after the decoder.
PS_MAX = 2**63 - 1


@dataclass(frozen=True)
class TimeScale:
    """The board's time base as a recording states it.

    An edge at the pads is counted into a window ``latency`` clocks later. A window therefore starts ``(stamp *
    window_clocks - latency)`` clocks after time 0, which is negative for the first windows.

    Parameters
    ----------
    clock_hz : capture clock.
    window : window setting.
    latency : clocks from pad to window.
    phases : 2 or 4: with a window of one clock, stamps of items count this number of parts per clock. The last part of
        a window is the one that ends at the clock edge of its strobes. 1: stamps count windows.
    """

    clock_hz: int
    window: Window
    latency: int
    phases: int = 1

    @property
    def window_clocks(self) -> int:
        return self.window.clocks(self.clock_hz)

    @property
    def window_ps(self) -> int:
        """Length of a window, rounded down (it is a whole number of picoseconds unless it is one clock)."""
        return self.clocks_ps(self.window_clocks)

    @property
    def ratio(self) -> tuple[int, int]:
        """Picoseconds per clock as numerator and denominator in lowest terms."""
        g = math.gcd(10**12, self.clock_hz)
        return 10**12 // g, self.clock_hz // g

    def clocks_ps(self, clocks: int) -> int:
        """The given number of clocks in picoseconds, rounded down."""
        numerator, denominator = self.ratio
        return clocks * numerator // denominator

    @property
    def stamp_window(self) -> int:
        """Stamps per window: 1, 2 half clocks, or 4 quarters."""
        return self.phases

    @property
    def stamp_ps(self) -> int:
        """Picoseconds per stamp, rounded down."""
        ticks, _, numerator, denominator = self._ticks
        return ticks * numerator // denominator

    @property
    def _ticks(self) -> tuple[int, int, int, int]:
        """For stamps: ticks per stamp, ticks of the latency, and picoseconds per tick as a fraction."""
        numerator, denominator = self.ratio
        if self.phases == 1:
            return self.window_clocks, self.latency, numerator, denominator
        g = math.gcd(numerator, self.phases)
        return 1, self.phases * (self.latency + 1) - 1, numerator // g, denominator * self.phases // g

    def start_ps(self, stamp: int) -> int:
        """Start of a window, or of the part of a clock after which its strobes were first seen, rounded down: the time
        of the items with this stamp.
        """
        ticks, latency, numerator, denominator = self._ticks
        return (stamp * ticks - latency) * numerator // denominator

    def span_ps(self, first: int, last: int) -> tuple[int, int]:
        """Earliest and latest time of the edges counted into windows ``first`` to ``last``.

        From two clocks before the first window to the end of the last one, rounded outwards. An edge is seen only by
        the next clock, or by the one after that if it arrives just as the next clock samples.
        """
        numerator, denominator = self.ratio
        begin = (first * self.window_clocks - self.latency - 2) * numerator // denominator
        end = -(((last + 1) * self.window_clocks - self.latency) * -numerator // denominator)
        return max(begin, -PS_MAX), min(end, PS_MAX)

    def stamp_at(self, time_ps: int) -> int:
        """The last stamp whose start, as :meth:`start_ps` rounds it, is not later than the given time."""
        ticks, latency, numerator, denominator = self._ticks
        return (-((time_ps + 1) * -denominator // numerator) - 1 + latency) // ticks

    @property
    def window_max(self) -> int:
        """The last window whose end is still a valid time: 106 days."""
        numerator, denominator = self.ratio
        return (PS_MAX * denominator // numerator + self.latency) // self.window_clocks - 1

    @property
    def stamp_max(self) -> int:
        """The last stamp of :attr:`window_max`."""
        return self.window_max * self.phases + self.phases - 1

    def starts_ps(self, stamps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """:meth:`start_ps` of an array of stamps, each at most :attr:`stamp_max`; exact."""
        ticks, latency, numerator, denominator = self._ticks
        if denominator == 1:
            times: npt.NDArray[np.int64] = stamps * (ticks * numerator)
            times -= latency * numerator
            return times
        clocks = stamps * ticks
        clocks -= latency
        # clocks * numerator would soon exceed 64 bits; whole denominators first, then the rest.
        whole = clocks // denominator
        clocks -= whole * denominator
        clocks *= numerator
        clocks //= denominator
        whole *= numerator
        whole += clocks
        return whole
