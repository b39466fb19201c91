"""Shell completion: boards, recordings, formats."""

from pathlib import Path

import click
from hypermon.host import link

__all__ = ["boards_and_runs_like", "boards_like", "formats_like", "runs_like"]


def boards_like(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Boards that are found."""
    return [board.uri for board in link.find_boards() if board.uri.startswith(begun) and board.uri != "sim:FILE"
            and board.uri.isprintable()]


def runs_like(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Recordings, and folders on the way to some."""
    folder, _, name = begun.rpartition("/")
    there = Path(f"{folder}/" if "/" in begun else ".")
    if not there.is_dir():
        return []
    prefix = begun[:len(begun) - len(name)]
    found = sorted(path for path in there.iterdir() if path.is_dir() and path.name.startswith(name)
                   and not path.name.startswith("."))
    runs = [f"{prefix}{path.name}" for path in found if (path / "recording.json").is_file()]
    return runs or [f"{prefix}{path.name}/" for path in found]


def boards_and_runs_like(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Both."""
    return boards_like(context, parameter, begun) + runs_like(context, parameter, begun)


def formats_like(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Formats of ``hypermon export``."""
    from hypermon.host.export.formats import FORMATS

    return [form for form in FORMATS if form.startswith(begun)]
