"""Picoseconds, exactly: no time of a stimulus is ever converted to a float."""

import numpy as np
import numpy.typing as npt

__all__ = ["LIMIT_PS", "Times", "rounded_up"]

#: Times must be below this; they are kept in 64 bits with a sign.
LIMIT_PS = 1 << 63

Times = npt.NDArray[np.int64]


def rounded_up(ticks: Times, numerator: int, denominator: int) -> Times:
    """``ticks * numerator / denominator``, rounded up, exact.

    Rounding up ensures that nothing is seen before it has happened.

    Raises
    ------
    OverflowError
        if a result is :data:`LIMIT_PS` or more.
    """
    if not len(ticks):
        return ticks.astype(np.int64)
    last = int(ticks.max())
    if -(-last * numerator // denominator) >= LIMIT_PS:
        raise OverflowError(last)
    if last * numerator + denominator < LIMIT_PS:
        return np.asarray(-(-ticks.astype(np.int64) * numerator // denominator), np.int64)
    return np.array([-(-int(t) * numerator // denominator) for t in ticks], np.int64)
