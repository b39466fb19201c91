"""``make guest OF=gpio``, with fewer events: the kernel's own GPIO lines, driven by the node library."""

import pytest
from gpio_guest import run
from linux_guest import Steps


@pytest.mark.slow
def test_lines_do_what_was_sent():
    costs = run(30, 100, Steps())
    # A nanosecond is an instruction there, and a nibble two system calls.
    for row in (costs["gpiochip4"], costs["libgpiod8"]):
        assert 2000 < row["2000-instructions"] < 2050
        assert 2 * row["system-call"] < row["nibble"] < 8000
