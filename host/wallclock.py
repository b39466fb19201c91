"""The board's time tied to the host's: where its time 0 lies in UTC, how fast its clock is, and how sure that is.

While a recording goes on, the board is asked for its time once a second. It latches the time between the moment before
and the moment after the question, so every answer ties a board time to a stretch of host time, however slow the link
is. A line through the middles, the shorter stretches counting more, is the estimate.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.host.device import Device
from hypermon.host.segments import write_json

__all__ = ["CLOCK", "Answer", "ClockTie", "WallClock", "ask", "load_clock", "save_clock"]

#: The file of a RUN.
CLOCK = "clock.json"
#: Answers that are kept; then of any two neighbours the less sure one goes.
_ANSWERS = 1024
#: Shorter recordings say nothing about the drift; as much as two crystals can have.
_DRIFT_NS = 10_000_000_000
_CRYSTALS_PPM = 100


class Answer(NamedTuple):
    """The board's time was ``board_ns`` at some moment between two of the host's, in nanoseconds of UTC."""

    board_ns: int
    before_ns: int
    after_ns: int

    @property
    def unsure_ns(self) -> float:
        return (self.after_ns - self.before_ns) / 2


@dataclass(frozen=True)
class WallClock:
    """What UTC it was.

    Parameters
    ----------
    utc_ns : at the board's time 0, nanoseconds since 1970.
    drift_ppm : how much more time goes by on the host than on the board, in millionths.
    uncertainty_ns : of UTC by the host's clock, while the recording went on; that clock's own error comes on top.
        None: not measured, as of a virtual board, whose time is none of the host's.
    answers : of the board, on which that is founded.
    """

    utc_ns: int
    drift_ppm: float = 0.0
    uncertainty_ns: int | None = None
    answers: int = 0

    def utc(self, times_ps: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """UTC of times of the board, to the nanosecond."""
        board_ns = np.asarray(times_ps, np.int64) // 1000
        since = board_ns + np.rint(board_ns * (self.drift_ppm * 1e-6)).astype(np.int64)
        utc: npt.NDArray[np.datetime64] = (since + self.utc_ns).astype("datetime64[ns]")
        return utc

    def as_text(self) -> str:
        """One line, for people."""
        begin = np.datetime_as_string(self.utc(0))
        if self.uncertainty_ns is None:
            return f"time 0 was about {begin} UTC (not measured)"
        return (f"time 0 was {begin} UTC, to {self.uncertainty_ns / 1000:,.1f} us by the host's clock; "
                f"drift {self.drift_ppm:+.3f} ppm")


def ask(device: Device) -> Answer | None:
    """What time it is on a board; None of a virtual one. Raises LinkError as registers do."""
    if hasattr(device.link, "board_ps"):
        return None
    before = time.time_ns()
    device.write("LATCH", 1)
    after = time.time_ns()
    windows = device.read("TIME_HIGH") << 32 | device.read("TIME_LOW")
    return Answer(device.scale.clocks_ps(windows * device.scale.window_clocks) // 1000, before, after)


class ClockTie:
    """Collects answers, in constant memory.

    Parameters
    ----------
    began_ns : the host's time at the start, if no answer ever comes.
    """

    def __init__(self, began_ns: int):
        self._began_ns = began_ns
        self._answers: list[Answer] = []
        self._count = 0

    def add(self, answer: Answer | None) -> None:
        if answer is None:
            return
        self._count += 1
        self._answers.append(answer)
        if len(self._answers) == _ANSWERS:
            pairs = zip(self._answers[::2], self._answers[1::2], strict=True)
            self._answers = [min(pair, key=lambda one: one.unsure_ns) for pair in pairs]

    def estimate(self) -> WallClock:
        if not self._answers:
            return WallClock(self._began_ns)
        first = self._answers[0]
        board = np.array([one.board_ns - first.board_ns for one in self._answers], np.float64)
        middle = np.array([(one.before_ns + one.after_ns) / 2 - first.before_ns for one in self._answers])
        unsure = np.array([max(one.unsure_ns, 1.0) for one in self._answers])
        weight = unsure ** -2.0
        centre = float(np.average(board, weights=weight))
        mean = float(np.average(middle - board, weights=weight))
        drift = 0.0
        drift_known = len(board) >= 8 and board[-1] - board[0] >= _DRIFT_NS
        if drift_known:
            spread = board - centre
            drift = float(np.sum(weight * spread * (middle - board - mean)) / np.sum(weight * spread * spread))
        # At each answer the line is no farther off than this.
        off = np.abs(middle - board - mean - drift * (board - centre)) + unsure
        uncertainty = (_linear(board, off) if drift_known
                       else float(off.min()) + _CRYSTALS_PPM * 1e-6 * float(board[-1] - board[0]))
        begin = first.before_ns - first.board_ns + round(mean - drift * (centre + first.board_ns))
        return WallClock(begin, drift * 1e6, round(uncertainty), self._count)


def _linear(at: npt.NDArray[np.float64], off: npt.NDArray[np.float64]) -> float:
    """How far a straight error can be off from the first to the last of some places, if at each it is at most that.

    By the surest place in the first and the last quarter, and straight on from there.
    """
    quarter = len(at) // 4 + 1
    low = int(np.argmin(off[:quarter]))
    high = len(at) - quarter + int(np.argmin(off[-quarter:]))
    slope = (off[low] + off[high]) / (at[high] - at[low])
    return float(max(off[low] + (at[low] - at[0]) * slope, off[high] + (at[-1] - at[high]) * slope))


def save_clock(directory: Path, clock: WallClock) -> None:
    """Writes it down in a RUN."""
    write_json(directory / CLOCK, asdict(clock))


def load_clock(directory: Path) -> WallClock | None:
    """Of a RUN; None if nobody wrote it down."""
    try:
        values: dict[str, Any] = json.loads((directory / CLOCK).read_text("utf-8"))
        return WallClock(**values)
    except (OSError, ValueError, TypeError):
        return None
