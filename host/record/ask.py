"""Asks a board for its time.

:mod:`.clock` ties the answers to the host's time.
"""

import time

from hypermon.host.device.device import Device
from hypermon.host.recording.clock import Answer, utc_offset_ns

__all__ = ["ask"]


def ask(device: Device, offset_ns: int) -> Answer | None:
    """Asks a board for its time; None for a virtual board. Raises LinkError like an access to registers.

    ``offset_ns``: :func:`utc_offset_ns` when the recording began.
    """
    if device.link.board_ps is not None:
        return None
    before = time.monotonic_ns() + offset_ns
    device.write("LATCH", 1)
    after = time.monotonic_ns() + offset_ns
    now_ns = utc_offset_ns()
    windows = device.latched_windows()
    return Answer(device.scale.clocks_ps(windows * device.scale.window_clocks) // 1000, before, after,
                  now_ns - offset_ns)
