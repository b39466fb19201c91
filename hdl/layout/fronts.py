"""Front ends: how a node is wired to the board, and how it writes its items over fewer wires than a port has."""

import enum
from fractions import Fraction

__all__ = [
    "FRONT_CRC", "FRONT_CRC_INIT", "FRONT_FRACTION_BITS", "FRONT_NIBBLE_CLOCKS", "FRONT_PERIOD_BITS",
    "FRONT_SPAN_BITS", "FRONT_SPAN_BYTES", "FRONT_WIRES", "Front", "ITM_OVERFLOW", "front_latency", "front_period",
    "front_span",
]


class Front(enum.IntEnum):
    """How a node is wired. Registers FRONTS_0 to FRONTS_3 have four bits for each node."""

    #: A strobe and the data bits: the port of section 3.1.
    PORT = 0
    #: Clock and data, as an SPI master sends.
    TWO_WIRE = 1
    #: Clock, data and a chip select.
    SELECTED = 2
    #: One wire, as a UART sends: 8 data bits, no parity, one stop bit.
    UART = 3
    #: One wire: the SWO of a Cortex-M in UART coding, with ITM packets.
    SWO = 4


#: Number of wires from a node.
FRONT_WIRES = {Front.PORT: 5, Front.TWO_WIRE: 2, Front.SELECTED: 3, Front.UART: 1, Front.SWO: 1}
#: Bits of FRONT_SPAN, in clocks; of UART_PERIOD and SWO_PERIOD, of which these are a fraction of a clock.
FRONT_SPAN_BITS, FRONT_PERIOD_BITS, FRONT_FRACTION_BITS = 20, 25, 8
#: The least and the largest span, in periods of the node's clock, with bytes that follow each other directly; and some
#: clocks more or less.
FRONT_SPAN_BYTES = 7, 15
#: CRC-8 of an event: polynomial x^8+x^2+x+1, highest bit first, and its state before the first byte.
FRONT_CRC, FRONT_CRC_INIT = 0x07, 0xFF
#: Id of the event for which an overflow packet of an ITM stands; stimulus ports have 0 to 31, the DWT 32 to 63.
ITM_OVERFLOW = 64
#: Clocks from a nibble that a front end delivers to its next.
FRONT_NIBBLE_CLOCKS = 8


def front_period(clock_hz: int, baud: int) -> int:
    """Value of UART_PERIOD or SWO_PERIOD for a rate; raises ValueError for one that the board cannot receive."""
    period = ((clock_hz << FRONT_FRACTION_BITS + 1) // baud + 1) >> 1 if baud > 0 else 0
    if not 8 << FRONT_FRACTION_BITS <= period < 1 << FRONT_PERIOD_BITS:
        raise ValueError(f"a board of {clock_hz / 1e6:g} MHz receives at "
                         f"{clock_hz / ((1 << FRONT_PERIOD_BITS - FRONT_FRACTION_BITS) - 1):.0f} to {clock_hz / 8:.0f} "
                         f"baud, not {baud}")
    return period


def front_span(clock_hz: int, spi_hz: int | Fraction) -> int:
    """Value of FRONT_SPAN for nodes whose clock has this frequency: ten of its periods, 30 % more than the least span,
    two thirds of the largest one. Raises ValueError for a rate that the board cannot receive."""
    span = round(10 * clock_hz / spi_hz) if spi_hz > 0 else 0
    if 2 * spi_hz > clock_hz or not 0 < span < 1 << FRONT_SPAN_BITS:
        raise ValueError(f"a board of {clock_hz / 1e6:g} MHz receives clocks of "
                         f"{10 * clock_hz // ((1 << FRONT_SPAN_BITS) - 1) + 1} to {clock_hz // 2} Hz")
    return span


def front_latency(front: Front, setting: int) -> int:
    """Clocks by which the stamp of an item is later than that of a five-wire port whose strobe rises with the first
    edge of the item: with ``setting``, the value of FRONT_SPAN, UART_PERIOD or SWO_PERIOD."""
    if front is Front.PORT:
        return 0
    if front in (Front.TWO_WIRE, Front.SELECTED):
        return setting + 8
    # The middle of the stop bit: half a bit after the start, and nine more, each one rounded.
    left, clocks = setting >> 1, 0
    for _ in range(10):
        steps = left - (2 << FRONT_FRACTION_BITS) >> FRONT_FRACTION_BITS
        clocks += steps + 2
        left += setting - (steps + 2 << FRONT_FRACTION_BITS)
    return clocks + 8
