"""A node's port for MicroPython: copy this file to the microcontroller.

    from hypermon_port import PioPort

    port = PioPort(2)                   # GP2 to GP5 are the data, GP6 the strobe
    port.event(17, b"abc")

`PioPort` needs an RP2040 or RP2350; `PinPort` runs wherever `machine.Pin` exists. A port belongs to one thread at a
time, and interrupt handlers do not write to it.
"""

import machine

try:
    import rp2
except ImportError:  # another microcontroller: PinPort only
    rp2 = None

#: Maximum bytes of an event after its id.
PAYLOAD_MAX = 14
#: What is written to a PioPort, and nothing else.
EVENTS, WORDS, NIBBLES = "events", "words", "nibbles"


def _check_event(event, payload):
    if not 0 <= event <= 255 or len(payload) > PAYLOAD_MAX:
        raise ValueError(f"an event has an id 0..255 and up to {PAYLOAD_MAX} bytes, not {event} and {len(payload)}")


class PinPort:
    """Five pins (data 0 to 3, strobe), or nine (data 0 to 7, strobe), which become outputs, 0.

    The pins change one after the other, the strobe last. With one edge, a nibble is strobe 0 and then 1. With two
    edges it is one change of the strobe; the board then needs `--edge both --sample before`.

    Raises
    ------
    ValueError
        for another number of pins or edges, or a pin named twice.
    """

    def __init__(self, pins, edges=1):
        if len(pins) not in (5, 9) or len(set(pins)) != len(pins):
            raise ValueError("expected five or nine different pins")
        if edges not in (1, 2):
            raise ValueError("edges must be 1 or 2")
        self.bits = len(pins) - 1
        self._edges = edges
        self._data = [machine.Pin(pin, machine.Pin.OUT, value=0) for pin in pins[:-1]]
        self._strobe = machine.Pin(pins[-1], machine.Pin.OUT, value=0)
        self._shown, self._level = 0, 0

    def nibble(self, nibble):
        """One nibble, 0..15; with nine pins a byte."""
        if self._edges == 1:
            self._strobe.value(0)
        changed = (self._shown ^ nibble) & ((1 << self.bits) - 1)
        for at in range(self.bits):
            if changed >> at & 1:
                self._data[at].value(nibble >> at & 1)
        self._shown ^= changed
        self._level = 1 if self._edges == 1 else 1 - self._level
        self._strobe.value(self._level)

    def word(self, word):
        """32 bits, for a node in word mode: eight nibbles or four bytes, the lowest first."""
        for shift in range(0, 32, self.bits):
            self.nibble(word >> shift)

    def event(self, event, payload=b""):
        """An id 0..255 and up to 14 bytes; for others ValueError, and nothing is written."""
        _check_event(event, payload)
        self.nibble(len(payload) + 1)
        self._byte(event)
        for byte in payload:
            self._byte(byte)

    def _byte(self, byte):
        self.nibble(byte)
        if self.bits == 4:
            self.nibble(byte >> 4)


class PioPort:
    """Five consecutive pins of an RP2040 or RP2350, by a state machine of its PIO: one edge.

    Parameters
    ----------
    pin : first of the pins: four for the data, then the strobe.
    state_machine : 0..3 of PIO0, 4..7 of PIO1.
    items : EVENTS, WORDS or NIBBLES: the one method that may be called.
    clock_hz : the board's clock. Levels last at least one of its periods and a nanosecond.

    Raises
    ------
    ValueError
        for other items, or a board so slow that a level would last more than 16 clocks of the chip.
    """

    def __init__(self, pin=2, state_machine=0, items=EVENTS, clock_hz=100000000):
        if items not in (EVENTS, WORDS, NIBBLES):
            raise ValueError("items must be EVENTS, WORDS or NIBBLES")
        level_ns = (1000000000 + clock_hz - 1) // clock_hz + 1
        level = max(2, (level_ns * (machine.freq() // 1000000) + 999) // 1000)
        if level > 16:
            raise ValueError(f"a level can last 16 clocks of the chip, not {level}: the board's clock is too slow")
        self._items = items
        self._machine = rp2.StateMachine(state_machine, _program(items, level),
                                         out_base=machine.Pin(pin), sideset_base=machine.Pin(pin + 4))
        self._machine.active(1)

    def nibble(self, nibble):
        """One nibble, 0..15. Waits while the FIFO is full."""
        self._put(NIBBLES, nibble & 15)

    def word(self, word):
        """32 bits, for a node in word mode. Waits while the FIFO is full."""
        self._put(WORDS, word & 0xFFFFFFFF)

    def event(self, event, payload=b""):
        """An id 0..255 and up to 14 bytes; for others ValueError, and nothing is written. Waits while the FIFO is
        full."""
        _check_event(event, payload)
        word, filled = len(payload) + 1 | event << 4, 12
        for byte in payload:
            word |= byte << filled
            filled += 8
            if filled > 32:  # never 32: an event is an odd number of nibbles
                self._put(EVENTS, word & 0xFFFFFFFF)
                word, filled = byte >> 4, 4
        self._put(EVENTS, word)

    def _put(self, items, word):
        if items != self._items:
            raise ValueError(f"this port writes {self._items}, not {items}")
        self._machine.put(word)


# ruff: noqa: F821 -- the names below are the assembler's.

def _program(items, level):
    """The program of `rp2040_pio.h` for these items, whose levels last the given number of clocks."""
    # The assembler empties the module's globals while it runs a program: what a program needs is its default.
    assembler = rp2.asm_pio(out_init=(rp2.PIO.OUT_LOW,) * 4, sideset_init=rp2.PIO.OUT_LOW,
                            out_shiftdir=rp2.PIO.SHIFT_RIGHT, autopull=True,
                            pull_thresh=4 if items == NIBBLES else 32, fifo_join=rp2.PIO.JOIN_TX)

    def events(more=level - 1):
        wrap_target()
        out(x, 4).side(0)                   # the length ...
        mov(pins, x).side(0)[more - 1]      # ... is the first nibble, ...
        jmp("strobe").side(0)               # which stays as long before its strobe as the others
        label("byte")
        out(pins, 4).side(0)[more]          # a byte's low nibble
        nop().side(1)[more]
        out(pins, 4).side(0)[more]          # its high nibble
        label("strobe")
        jmp(x_dec, "byte").side(1)[more]    # the given number of bytes
        out(null, 32).side(1)               # the rest of the last word is unused
        wrap()

    def nibbles(more=level - 1):
        wrap_target()
        out(pins, 4).side(0)[more]
        nop().side(1)[more]
        wrap()

    return assembler(events if items == EVENTS else nibbles)
