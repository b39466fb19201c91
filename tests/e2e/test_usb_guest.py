"""``make guest``, with fewer events: the kernel's own USB stack at the other end of the cable."""

import pytest
from linux_guest import Steps
from usb_guest import run


@pytest.mark.slow
def test_recorded_by_linux():
    run(4, 300, Steps())
