"""The ways from a board to its host, as data: which resource of the platform, and which clocks."""

from dataclasses import dataclass, field

__all__ = ["Link", "uart", "ulpi", "usb_pins"]


@dataclass(frozen=True)
class Link:
    """A way to the host.

    Parameters
    ----------
    kind : ``uart``, ``usb-ulpi`` (a PHY: high speed) or ``usb-pins`` (D+ and D- at the FPGA: full speed).
    resource : its name in the platform.
    clocks : made for it by the board's PLL: name to Hz.
    text : for people.
    baud : of a UART.
    related : the clocks are in phase, and paths from one to another are timed.
    store_less : beats by which the board's store is smaller, so that there are block RAMs for it.
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
        """What it usually brings to a host (docs/links.md): of UART a tenth of its rate, of USB what hosts ask for."""
        return self.baud // 10 or (40_000_000 if self.kind == "usb-ulpi" else 1_000_000)

    @property
    def censuses_per_second(self) -> int:
        """At most, while counters change. Fewer on slow links, which all are but USB at high speed."""
        return 100 if self.kind == "usb-ulpi" else 10


def uart(baud: int = 3_000_000, clock_hz: int = 50_000_000, resource: str = "uart") -> Link:
    """A serial port, mostly behind a USB bridge on the board, whose receiver and sender run at ``clock_hz``."""
    return Link("uart", resource, {"link": clock_hz}, f"UART at {baud / 1e6:g} Mbaud", baud)


def ulpi(resource: str = "usb", clock_from_phy: bool = False) -> Link:
    """A ULPI PHY, which takes its 60 MHz from the FPGA, or gives them."""
    return Link("usb-ulpi", resource, {} if clock_from_phy else {"usb": 60_000_000}, "USB, high speed")


def usb_pins(resource: str = "usb", store_less: int = 0) -> Link:
    """D+, D- and a pull-up at the FPGA."""
    return Link("usb-pins", resource, {"usb_io": 48_000_000, "usb": 12_000_000}, "USB, full speed", related=True,
                store_less=store_less)
