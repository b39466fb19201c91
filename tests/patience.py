"""How long tests wait for a process, a page or a line: seconds of an idle machine, times how slow this one is now.

A limit in seconds says nothing on a machine that is slower, or busy with something else. The limits of the tests are
therefore written for the machine on which they were chosen, with nothing else running, and :func:`patience` scales
them. A wait that ends too late raises TimeoutError, never an AssertionError: `tests/outcomes.py` tells the two apart.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

__all__ = ["ending", "in_time", "patience", "slowness", "until"]

#: Processor seconds that :func:`_work` took on the machine for which limits were chosen.
_UNIT_S = 0.0078
#: No machine counts as slower than this: a hang has to end.
_MOST = 20.0
_STEP_S = 0.02


def _work() -> int:
    """The unit of work that is timed."""
    total = 0
    for number in range(100_000):
        total = (total * 31 + number) & 0xffff
    return total


@cache
def _processor() -> float:
    """How much slower a core is than the one for which limits were chosen: processor time, so load does not count."""
    times = []
    for _ in range(3):
        began = time.process_time()
        _work()
        times.append(time.process_time() - began)
    return max(1.0, min(times) / _UNIT_S)


def _load() -> float:
    """Processes that want a core now, or wanted one in the last minute, per core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        minute, _, _, now = Path("/proc/loadavg").read_text().split()[:4]
    except OSError:
        return 1.0
    return max(1.0, float(minute) / cores, int(now.partition("/")[0]) / cores)


#: What was measured lately, and when.
_LATELY: deque[tuple[float, float]] = deque()
_LATELY_S = 60.0


def slowness() -> float:
    """How many times longer work takes here than on the idle machine for which limits were chosen; 1 to 20.

    The most that was measured in the last minute: a test that sets a short limit and then waits for it to pass measures
    twice, and the machine may be less busy the second time.
    """
    now = time.monotonic()
    while _LATELY and now - _LATELY[0][0] > _LATELY_S:
        _LATELY.popleft()
    _LATELY.append((now, min(_MOST, _processor() * _load())))
    return max(value for _, value in _LATELY)


def patience(seconds: float) -> float:
    """A limit for a wait that takes at most this long on an idle machine."""
    return seconds * slowness()


def in_time(began: float, seconds: float, what: str = "the end") -> None:
    """Called in a loop that waits, or after work that must be quick.

    Parameters
    ----------
    began : ``time.monotonic()`` when the wait began.
    seconds : the limit on an idle machine.

    Raises
    ------
    TimeoutError
        if it takes longer.
    """
    if (waited := time.monotonic() - began) > patience(seconds):
        raise TimeoutError(f"waited {waited:.1f} s for {what}; {seconds:g} s would do on an idle machine")


def until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Waits until a condition is true.

    Parameters
    ----------
    condition : is called about fifty times a second.
    what : is being waited for; part of the error's text.
    seconds : the limit on an idle machine; it grows while the machine is busy.

    Raises
    ------
    TimeoutError
        if it is not true in time.
    """
    began = time.monotonic()
    while not condition():
        in_time(began, seconds, what)
        time.sleep(_STEP_S)


@contextmanager
def ending(seconds: float, what: str) -> Iterator[None]:
    """Interrupts what has not ended in time, where it is: in the main thread, on systems with interval timers.

    Raises
    ------
    TimeoutError
        with the line of the test, and the innermost line.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    began = time.monotonic()

    def interrupt(_: int, frame: FrameType | None) -> None:
        # The machine may have become slower since.
        if (left := patience(seconds) - (time.monotonic() - began)) > 0:
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        places = []
        while frame is not None:
            places.append(f"{'/'.join(Path(frame.f_code.co_filename).parts[-2:])}:{frame.f_lineno}")
            frame = frame.f_back
        own = next((place for place in places if "/test_" in place), places[-1])
        raise TimeoutError(f"{what} hangs: no end after {time.monotonic() - began:.0f} s, at {own}, in {places[0]}")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, patience(seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
