"""Links from a board to its host, as data: for each link, the platform's resource and the clocks."""

from dataclasses import dataclass, field

__all__ = ["BoardLink", "uart", "ulpi", "usb_pins"]


@dataclass(frozen=True)
class BoardLink:
    """A link to the host.

    Parameters
    ----------
    kind : ``uart``, ``usb-ulpi`` (a PHY: high speed) or ``usb-pins`` (D+ and D- at the FPGA: full speed).
    resource : its name in the platform.
    clocks : clocks that the board's PLL generates for it: name to Hz.
    text : description for users.
    baud : rate of a UART.
    related : the clocks are in phase, and paths from one to another are timed.
    store_less : beats by which the board's store is smaller, to leave block RAMs for the link.
    """

    kind: str
    resource: str
    clocks: dict[str, int] = field(hash=False)
    text: str
    baud: int = 0
    related: bool = False
    store_less: int = 0

    @property
    def bytes_per_second(self) -> int:
        """Typical throughput to a host (docs/links.md): a tenth of a UART's rate; of USB, the rate at which hosts
        poll.
        """
        return self.baud // 10 or (40_000_000 if self.kind == "usb-ulpi" else 1_000_000)

    @property
    def censuses_per_second(self) -> int:
        """Maximum rate while counters change. It is lower on slow links: all except USB at high speed."""
        return 100 if self.kind == "usb-ulpi" else 10


def uart(baud: int = 3_000_000, clock_hz: int = 50_000_000, resource: str = "uart") -> BoardLink:
    """A serial port, mostly through a USB bridge on the board, whose receiver and transmitter run at ``clock_hz``."""
    return BoardLink("uart", resource, {"link": clock_hz}, f"UART at {baud / 1e6:g} Mbaud", baud)


def ulpi(resource: str = "usb", clock_from_phy: bool = False) -> BoardLink:
    """A ULPI PHY, which receives its 60 MHz from the FPGA, or supplies them."""
    return BoardLink("usb-ulpi", resource, {} if clock_from_phy else {"usb": 60_000_000}, "high-speed USB")


def usb_pins(resource: str = "usb", store_less: int = 0) -> BoardLink:
    """D+, D- and a pull-up at the FPGA."""
    return BoardLink("usb-pins", resource, {"usb_io": 48_000_000, "usb": 12_000_000}, "full-speed USB", related=True,
                store_less=store_less)
