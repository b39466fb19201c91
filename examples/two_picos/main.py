"""Two Picos throw a ball to and fro. Both run this file in MicroPython; docs/first-picture.md has the wiring.

GP2 to GP5 are the port's data, GP6 its strobe. GP14 throws: its level changes. GP15 sees the other Pico's throw. The
Pico whose GP16 is connected to ground begins.
"""

import struct
import time

from hypermon_port import PioPort
from machine import Pin

#: Ids of picos.toml.
AIM, THROW, WAIT, CATCH = 1, 2, 3, 4
#: Clock of the slowest board on the page, an iCEBreaker: levels last long enough for every board.
CLOCK_HZ = 15_000_000


def play(throws):
    """Plays until the ball was thrown so many times; 0: for ever."""
    port = PioPort(2, clock_hz=CLOCK_HZ)
    hand, ball = Pin(14, Pin.OUT, value=0), Pin(15, Pin.IN, Pin.PULL_DOWN)
    has_it = Pin(16, Pin.IN, Pin.PULL_UP).value() == 0
    number = thrown = seen = 0
    while throws == 0 or number < throws:
        if has_it:
            port.event(AIM)
            time.sleep_us(1000 + number * 61 % 97 * 40)     # it aims for 1 to 5 ms
            number += 1
            port.event(THROW, struct.pack("<H", number & 0xffff))
            thrown = 1 - thrown
            hand.value(thrown)
        else:
            port.event(WAIT)
            while ball.value() == seen:
                pass
            seen = 1 - seen
            number += 1
            port.event(CATCH, struct.pack("<H", number & 0xffff))
        has_it = not has_it


if __name__ == "__main__":
    play(0)
