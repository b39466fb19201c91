"""The one seam between host and board: registers and a stream of bytes.

Nothing above it knows what the link is.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from hypermon.hdl.layout import Geometry
from hypermon.host.errors import HypermonError

__all__ = ["Link", "open_link", "open_virtual"]


class Link(Protocol):
    """A board, as far as the host can see it.

    Members
    -------
    uri : what it was opened by.
    ended : nothing will ever come by itself any more. A real board never says so.
    """

    uri: str

    def read(self, address: int) -> int:
        """The 32-bit register at a byte address."""

    def write(self, address: int, value: int) -> None:
        """Sets the register at a byte address."""

    def read_burst(self, address: int, words: int) -> bytes:
        """So many consecutive words from ``address`` on, little-endian."""

    def stream(self, limit: int) -> bytes:
        """Up to ``limit`` bytes of the stream; none if none came within the link's patience."""

    @property
    def ended(self) -> bool: ...

    def close(self) -> None:
        """Lets go of the board."""


def open_link(uri: str, geometry: Geometry | None = None) -> Link:
    """Opens a board by its URI: ``sim:`` is idle, ``sim:FILE`` plays a stimulus.

    Raises
    ------
    HypermonError
        if there is no such link, or no such board.
    """
    kind, colon, rest = uri.partition(":")
    if not colon:
        raise HypermonError(f"no board is called {uri!r}; a board is sim: or sim:FILE")
    if kind == "sim":
        return open_virtual([rest] if rest else [], geometry or Geometry(), uri=uri)
    if kind in ("usb", "uart", "pcie"):
        raise HypermonError(f"{uri} cannot be opened: this version has no {kind} link yet; "
                            "sim: and sim:FILE are the virtual board")
    raise HypermonError(f"{uri} cannot be opened: no link is called {kind!r}; a board is sim: or sim:FILE")


def open_virtual(paths: Sequence[str], geometry: Geometry, *, uri: str | None = None,
                 ports: Sequence[str] = (), edges: Sequence[str] = (), samples: Sequence[str] = (),
                 **options: Any) -> Link:
    """The virtual board, playing stimulus files.

    Parameters
    ----------
    paths : stimulus files; none for a board on which nothing happens.
    ports, edges, samples : as the options of ``hypermon sim``.
    options : of ``hypermon.sim.virtual.VirtualLink``.

    Raises
    ------
    InputError
        if a stimulus is malformed.
    HypermonError
        if what simulates is not installed.
    """
    try:
        # By name: a plain install has the host alone, and nothing of it may need more.
        stimuli = import_module("hypermon.sim.stimulus")
        virtual = import_module("hypermon.sim.virtual")
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
    # How its ports are to be read is said by the stimulus; see Settings.
    link.stimulus = stimulus
    board: Link = link
    return board
