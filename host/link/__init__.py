"""The interface between host and board: registers and a stream of bytes.

Nothing above this interface depends on the kind of link.

Flow: usb, uart, uart_packets, pcie, vfio, pcie_functions, tcp, relay, access, udev
"""

from importlib import import_module
from typing import NamedTuple, Protocol

from hypermon.hdl.layout import Geometry
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.errors import HypermonError

__all__ = ["Found", "Link", "Outage", "Played", "Scheme", "find_boards", "open_link", "split_uri"]

#: The kinds of link by the scheme of their URIs; each module is a :class:`Scheme`. Names, because a kind of link is
#: imported when it is used: the virtual board is in another part.
_LINKS = {"sim": "hypermon.sim.virtual.open", "uart": "hypermon.host.link.uart", "usb": "hypermon.host.link.usb",
          "pcie": "hypermon.host.link.pcie", "tcp": "hypermon.host.link.tcp"}


class Outage(NamedTuple):
    """A time in which a board could not be reached: UTC, ISO 8601."""

    since: str
    until: str


class Found(NamedTuple):
    """A board, or a candidate: its URI, its description, and if it cannot be opened, the reason and the command that
    helps.
    """

    uri: str
    what: str
    problem: str | None = None


class Played(Protocol):
    """The port writes that a virtual board plays.

    Members
    -------
    rising, falling, after : how the ports are to be read: values of EDGE_RISING, EDGE_FALLING and SAMPLE_AFTER.
    end_ps : time of the last write; None: there is none.
    """

    @property
    def rising(self) -> int: ...

    @property
    def falling(self) -> int: ...

    @property
    def after(self) -> int: ...

    @property
    def end_ps(self) -> int | None: ...

    def complaints(self, clock_hz: int, *, port_bits: int, rising: int | None, falling: int | None,
                   after: int | None, kept: int | None) -> list[str]:
        """Lines about writes that the board may not see as they are meant; none if nothing is wrong.

        Parameters
        ----------
        clock_hz, port_bits : of the board; data bits of its ports.
        rising, falling, after : how the ports are read; None: as they are to be.
        kept : nodes that count, one bit per node; None: all.
        """

    def other_reading(self, modes: ItemModes, *, clock_hz: int, port_bits: int, timeout_ps: int, rising: int | None,
                      falling: int | None, after: int | None, lengths: dict[int, tuple[int, int]] | None) -> str | None:
        """What to change so that the writes make sense, as a clause; None if nothing is better.

        Parameters
        ----------
        modes, timeout_ps : of the nodes' items; how long one waits for its next nibble.
        lengths : shortest and longest payload by id; None: any events are right. For the others see
            :meth:`complaints`.
        """

    def other_wire(self, node: int, front: str, bit_ps: float) -> str | None:
        """Why the bytes of a UART or SWO do not arrive, as a clause; None if nothing is found.

        Parameters
        ----------
        front : ``uart`` or ``swo``.
        bit_ps : length of a bit, as the rate was set.
        """


class Link(Protocol):
    """A board, as the host sees it.

    Members
    -------
    uri : the URI it was opened with.
    slow : so slow that censuses are ten times as far apart.
    slowness : by this factor the board may take longer than a real one at this kind of link, at least 1: it may be
        simulated.
    board_ps : board time of a virtual board, in picoseconds; None: a real board, which is asked through its registers.
    played : what a virtual board plays; None if that is not known, and for a real board.
    outages : past times in which the board could not be reached. The link reopens it automatically as soon as it is
        back; until then registers raise ``LinkError``, and the stream returns nothing.
    away : an outage is in progress.
    ended : no more data will arrive on its own. A real board never reports this.
    """

    uri: str
    slow: bool
    outages: list[Outage]

    def read(self, address: int) -> int:
        """The 32-bit register at a byte address."""

    def write(self, address: int, value: int) -> None:
        """Sets the register at a byte address."""

    def read_burst(self, address: int, words: int) -> bytes:
        """N consecutive words from ``address`` on, little-endian."""

    def stream(self, limit: int) -> bytes:
        """Up to ``limit`` bytes of the stream; none if none arrived within the link's time-out."""

    def discard(self) -> None:
        """Discards data of earlier runs that has arrived or is in transit."""

    @property
    def slowness(self) -> float: ...

    @property
    def board_ps(self) -> int | None: ...

    @property
    def played(self) -> Played | None: ...

    @property
    def away(self) -> bool: ...

    @property
    def ended(self) -> bool: ...

    def close(self) -> None:
        """Releases the board."""


class Scheme(Protocol):
    """A kind of link, as its module offers it."""

    def open_board(self, uri: str, geometry: Geometry | None = None) -> Link:
        """Opens a board. ``geometry``: of a board that is made when it is opened; any other has its own.

        Raises HypermonError if there is no such board.
        """

    def find_boards(self) -> list[Found]:
        """The boards that can be found; or one entry, which states how such a board is named."""


def _scheme(kind: str) -> Scheme:
    module: Scheme = import_module(_LINKS[kind])
    return module


def open_link(uri: str, geometry: Geometry | None = None) -> Link:
    """Opens a board by its URI: ``sim:`` is idle, ``sim:FILE`` plays a stimulus, ``usb:`` is at a USB port,
    ``uart:DEVICE`` at a serial port, ``pcie:BDF`` in a PCIe slot, ``tcp:HOST:PORT`` at another machine.

    Parameters
    ----------
    geometry : of a virtual board; None: that of :class:`.Geometry`.

    Raises
    ------
    HypermonError
        if there is no such link, or no such board.
    """
    kind, _ = split_uri(uri)
    if kind in _LINKS:
        return _scheme(kind).open_board(uri, geometry)
    raise HypermonError(f"{uri} cannot be opened: there is no link {kind!r}; a board is {_KINDS}")


def split_uri(uri: str) -> tuple[str, str]:
    """Splits a board's URI into the kind of link and the text after the colon; raises HypermonError without a colon."""
    kind, colon, rest = uri.partition(":")
    if not colon:
        raise HypermonError(f"there is no board {uri!r}; a board is {_KINDS}")
    return kind, rest


#: For messages.
_KINDS = "sim:, sim:FILE, usb:, usb:SERIAL, uart:DEVICE, pcie:BDF or tcp:HOST:PORT"


def find_boards() -> list[Found]:
    """Every board that can be found, the virtual one first."""
    return [found for kind in _LINKS for found in _scheme(kind).find_boards()]
