"""Levels of channels, read one change at a time, as tracks of the ports that they are mapped to."""

from dataclasses import dataclass, field

import numpy as np
from hypermon.sim.stimulus.picoseconds import Times
from hypermon.sim.stimulus.rows import Track, level_type

__all__ = ["Port", "Samples", "Targets"]


@dataclass(eq=False)
class Port:
    """State of one mapping while the changes are read."""

    #: The bit that is the strobe.
    strobe: int
    level: int = 0
    #: Bits that have had a known value.
    valued: int = 0
    #: Bits that began with an unknown value, and those that have not had another.
    began: int = 0
    unknown: int = 0
    #: Those of the latter that have one in this sample.
    fresh: int = 0
    #: The strobe's value is unknown, after it was known; that is counted already.
    lapsed: bool = False
    counted: bool = False
    #: How often that was so, and the time of the first.
    lapses: int = 0
    first_lapse: int = 0
    #: Data bits whose value is unknown; and from when to when there are any, in turn.
    blank: int = 0
    blanks: list[int] = field(default_factory=list)
    initial: int = 0
    shown: int = 0
    time: list[int] = field(default_factory=list)
    port: list[int] = field(default_factory=list)

    def track(self, numerator: int = 1, denominator: int = 1, notes: tuple[str, ...] = ()) -> Track:
        """What was read; its times in picoseconds are ``numerator / denominator`` of those given, rounded up."""
        def scaled(times: list[int]) -> Times:
            return np.array([-(-time * numerator // denominator) for time in times], np.int64)

        return Track(self.initial, scaled(self.time), np.array(self.port, level_type(self.strobe.bit_length() - 1)),
                     unknown=bool(self.began & self.strobe), lapses=self.lapses,
                     first_lapse_ps=int(scaled([self.first_lapse])[0]), blanks=scaled(self.blanks), notes=notes)


#: What a variable affects: port, bit of the port, position in the variable's value.
Targets = list[tuple[Port, int, int]]


class Samples:
    """The ports, while changes are read a sample at a time.

    Members
    -------
    now : time of the sample.
    off : unknown values mean that the file has none, for now: they do not count as :attr:`.Track.lapses` or ``blanks``.
    """

    def __init__(self, ports: list[Port]):
        self._ports = ports
        self.now = 0
        self.off = False
        self._began = False      # a time has been given
        self._first = True       # the first sample is still being read
        self._valued = False     # some channel has a value already
        self._touched: set[Port] = set()

    def settle(self) -> None:
        """Ends the sample."""
        for port in self._ports if self._first else self._touched:
            # Their first known values: levels that they may have had from the start.
            port.unknown &= ~port.fresh
            if port.lapsed and not port.counted:
                port.first_lapse = port.first_lapse if port.lapses else self.now
                port.lapses += 1
            port.counted = port.lapsed
            if bool(port.blank) != len(port.blanks) % 2:
                port.blanks.append(-1 if self._first else self.now)
            if port.fresh and not self._first:
                _relevel(port, port.fresh)
            port.fresh = 0
            if self._first:
                port.initial = port.shown = port.level
                port.began = port.unknown
                # The strobe's last value is a level. An even number of changes that lead back to it are pulses.
                excess = len(port.time) % 2
                del port.time[:excess], port.port[:excess]
                port.port[-1:] = [port.level] * bool(port.port)
            elif port.level != port.shown:
                self._show(port)
        self._touched.clear()

    def _show(self, port: Port) -> None:
        port.time.append(self.now)
        port.port.append(port.level)
        port.shown = port.level

    def move_to(self, time: int) -> None:
        """The next changes are at ``time``. Values before any time are the sample at 0."""
        if (self._began and time != self.now) or (self._valued and not self._began and time != 0):
            self.settle()
            self._first = False
        self._began, self.now = True, time

    def assign(self, port: Port, mask: int, digit: str) -> None:
        """Sets bits of a port."""
        if digit in "01":
            level = port.level | mask if digit == "1" else port.level & ~mask
            toggles = level != port.level and mask == port.strobe and (not self._first or port.valued & mask)
            port.level = level
            port.valued |= mask
            if port.unknown & mask:
                port.fresh |= mask
            elif toggles:
                # Other changes at one time are joined. A strobe that changes twice would have a pulse less.
                self._show(port)
        elif self._first and not port.valued & mask:
            port.unknown |= mask
        if self.off:
            pass
        elif mask == port.strobe:
            port.lapsed = digit not in "01" and bool(port.valued & mask)
        else:
            port.blank = port.blank & ~mask if digit in "01" else port.blank | mask
        self._touched.add(port)

    def value(self, concerned: Targets, digit: str) -> None:
        """A variable of one bit has a new value."""
        for port, mask, place in concerned:
            self.assign(port, mask, "0" if place and digit in "01" else digit)
        self._valued = True

    def vector(self, concerned: Targets, digits: str) -> None:
        """A vector has a new value. A short one is extended to the left: 0 and 1 with 0, x and z with themselves."""
        for port, mask, place in concerned:
            digit = digits[-1 - place] if place < len(digits) else digits[0]
            self.assign(port, mask, digit if place < len(digits) or digit not in "01" else "0")
        self._valued = True


def _relevel(port: Port, mask: int) -> None:
    """Gives a bit its present level in all of the past, where it was unknown."""
    bits = port.level & mask
    port.initial = port.initial & ~mask | bits
    port.shown = port.shown & ~mask | bits
    port.port = [value & ~mask | bits for value in port.port]
