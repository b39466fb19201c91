"""Ties the board's time to the host's: UTC of time 0, clock drift, and the uncertainty of both.

During a recording, the host asks the board for its time once a second. The board latches its time between the moment
before the request and the moment after it. Every answer therefore ties a board time to an interval of host time,
however slow the link is. The estimate is a line through the midpoints, with shorter intervals weighted more. The host's
time is that of a monotonic clock, from the start of the recording on. If UTC is set during the recording, the
uncertainty grows by the amount of that change.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.host.recording.segments import write_json
from hypermon.host.text.json_file import integer, maybe, number, one_of, read_json, table

__all__ = ["CLOCK", "CRYSTALS_PPM", "THRESHOLDS", "Answer", "ClockTie", "WallClock", "load_clock", "save_clock",
           "utc_offset_ns"]

#: The file in a RUN.
CLOCK = "clock.json"
#: Answers that are kept; beyond that, of any two neighbours the less certain one is dropped.
_ANSWERS = 1024
#: Shorter recordings, and fewer answers, do not determine the drift; this is the most that two crystals can differ.
_DRIFT_NS, _LEAST = 10_000_000_000, 8
CRYSTALS_PPM = 100
#: No clock is off by half: a board whose time passes faster or slower than this against the host's is simulated.
_UNRELATED_PPM = 500_000
#: Limits for the file: years 1970 to 2116, so that times of the run can be added.
_SHAPE = table({"utc_ns": integer(0, 1 << 62)}, {
    "drift_ppm": number(-_UNRELATED_PPM, _UNRELATED_PPM), "uncertainty_ns": maybe(integer(0, (1 << 63) - 1)),
    "answers": integer(0, (1 << 63) - 1), "how": one_of("host clock", "pps", "stated"), "pulses": maybe(table({
        "used": integer(0, 1 << 62), "missing": integer(0, 1 << 62), "doubled": integer(0, 1 << 62),
        "strayed": integer(0, 1 << 62), "holdover_s": number(0, 1e12)}, more=True))})
#: A smaller change does not mean that UTC was set: two clocks cannot be read at the same moment.
_SET_NS = 20_000_000
#: The limits that UTC by the host's clock depends on, by their names in output.
THRESHOLDS = {"drift_least_s": _DRIFT_NS / 10**9, "drift_least_answers": _LEAST, "crystals_ppm": CRYSTALS_PPM,
              "unrelated_ppm": _UNRELATED_PPM, "utc_set_ms": _SET_NS / 10**6}


class Answer(NamedTuple):
    """The board's time was ``board_ns`` at some moment between two host times, in nanoseconds of UTC.

    ``set_ns``: by how much UTC has been set since the recording began.
    """

    board_ns: int
    before_ns: int
    after_ns: int
    set_ns: int = 0

    @property
    def unsure_ns(self) -> float:
        return (self.after_ns - self.before_ns) / 2


@dataclass(frozen=True)
class WallClock:
    """Maps the board's time to UTC.

    Parameters
    ----------
    utc_ns : UTC at the board's time 0, in nanoseconds since 1970.
    drift_ppm : how much faster the host's time passes than the board's, in millionths; 0: not measured.
    uncertainty_ns : of UTC by the host's clock, during the recording. The error of that clock itself is not included.
        None: not measured, as for a virtual board, whose time is unrelated to the host's.
    answers : number of the board's answers, or of pulses, on which the estimate is based.
    how : ``host clock``; or ``pps``: by pulses at ``pps_in``, see :mod:`.pulses`; or ``stated``: by an offset from the
        clock of another recording, which a user stated.
    pulses : of ``pps``: the :class:`.pulses.PulseReport`.
    """

    utc_ns: int
    drift_ppm: float = 0.0
    uncertainty_ns: int | None = None
    answers: int = 0
    how: str = "host clock"
    pulses: dict[str, Any] | None = None

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
        if self.how == "stated":
            return f"time 0 was {begin} UTC by the clock of another recording, as an offset stated"
        # The drift was measured, or it is exactly 0.
        drift = f"drift {self.drift_ppm:+.3f} ppm" if self.drift_ppm else "drift not measured"
        if self.how == "pps":
            return f"time 0 was {begin} UTC, to {self.uncertainty_ns:,} ns by pulses; {drift}; {self._pulses()}"
        return f"time 0 was {begin} UTC, to {self.uncertainty_ns / 1000:,.1f} us by the host's clock; {drift}"

    def _pulses(self) -> str:
        said = self.pulses or {}
        faults = [f"{said[name]:,} {word}" for name, word in (
            ("missing", "missing"), ("doubled", "doubled"), ("strayed", "early or late")) if said.get(name)]
        held = f", {said.get('holdover_s', 0):,.1f} s without one" if faults else ""
        return f"{said.get('used', 0):,} pulses{''.join(', ' + fault for fault in faults)}{held}"


def utc_offset_ns() -> int:
    """UTC minus the monotonic clock, in nanoseconds: the most certain of three readings."""
    looks = []
    for _ in range(3):
        before, utc, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        looks.append((after - before, utc - before))
    return min(looks)[1]


class ClockTie:
    """Collects answers, in constant memory.

    Parameters
    ----------
    began_ns : the host's time at the start, used if no answer ever arrives.
    """

    def __init__(self, began_ns: int):
        self._began_ns = began_ns
        self._answers: list[Answer] = []
        self._count = self._set_ns = 0

    def add(self, answer: Answer | None) -> None:
        if answer is None:
            return
        self._count += 1
        self._set_ns = max(self._set_ns, abs(answer.set_ns))
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
        if _unrelated(board, middle, unsure):
            return WallClock(self._began_ns, answers=self._count)
        weight = unsure ** -2.0
        centre = float(np.average(board, weights=weight))
        mean = float(np.average(middle - board, weights=weight))
        drift = 0.0
        drift_known = len(board) >= _LEAST and board[-1] - board[0] >= _DRIFT_NS
        if drift_known:
            spread = board - centre
            drift = float(np.sum(weight * spread * (middle - board - mean)) / np.sum(weight * spread * spread))
        if abs(drift) * 1e6 > _UNRELATED_PPM:
            return WallClock(self._began_ns, answers=self._count)
        # At each answer the error of the line is at most this.
        off = np.abs(middle - board - mean - drift * (board - centre)) + unsure
        uncertainty = (_linear(board, off) if drift_known
                       else float(off.min()) + CRYSTALS_PPM * 1e-6 * float(board[-1] - board[0]))
        if self._set_ns > _SET_NS:
            uncertainty += self._set_ns
        begin = first.before_ns - first.board_ns + round(mean - drift * (centre + first.board_ns))
        return WallClock(begin, drift * 1e6, round(uncertainty), self._count)


def _unrelated(board: npt.NDArray[np.float64], host: npt.NDArray[np.float64], unsure: npt.NDArray[np.float64]) -> bool:
    """The board's time cannot be that of a clock: it is simulated, at a link that does not say so."""
    passed = float(board[-1] - board[0])
    apart = abs(float(host[-1] - host[0]) - passed) - float(unsure[0] + unsure[-1])
    return 0 < passed * _UNRELATED_PPM * 1e-6 < apart


def _linear(at: npt.NDArray[np.float64], off: npt.NDArray[np.float64]) -> float:
    """Bounds the error of a line from the first to the last of some points, given its largest error at each point.

    The bound follows the most certain points of the first and the last quarter, and is extrapolated from there.
    """
    quarter = len(at) // 4 + 1
    low = int(np.argmin(off[:quarter]))
    high = len(at) - quarter + int(np.argmin(off[-quarter:]))
    slope = (off[low] + off[high]) / (at[high] - at[low])
    return float(max(off[low] + (at[low] - at[0]) * slope, off[high] + (at[-1] - at[high]) * slope))


def save_clock(directory: Path, clock: WallClock) -> None:
    """Writes the clock to a RUN."""
    write_json(directory / CLOCK, asdict(clock))


def load_clock(directory: Path) -> WallClock | None:
    """Loads the clock of a RUN; None if none was written. Raises InputError if the file is damaged."""
    try:
        return WallClock(**read_json(directory / CLOCK, _SHAPE))
    except FileNotFoundError:
        return None
