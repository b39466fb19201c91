"""The files of a RUN: no command replaces one of them by its output."""

import os
import re
from pathlib import Path

from hypermon.host.errors import HypermonError

__all__ = ["refuse_owned"]

#: Relative paths in a RUN. Other names, such as report.html, are free for the outputs of commands.
_OWNED = re.compile(
    r"(recording|clock|decode|partition|ring|semantics|logs|bookmarks)\.json|stream(-\d+)?\.bin|drift\.bin|dictionary\.toml|"
    r"(boards|counters|counts|events|framed|groups|logs|loss|messages|overview|states|states_overview)\.parquet|"
    r"(events|loss)(/.*)?|board-\d+|\..*")


def refuse_owned(out: str | os.PathLike[str]) -> None:
    """Raises HypermonError if an output at this path would be in the place of a file of a RUN.

    Symbolic links are followed, as a command that writes its output follows them.
    """
    path = Path(out).resolve()
    for run in path.parents:
        if (run / "recording.json").is_file() and _OWNED.fullmatch(path.relative_to(run).as_posix()):
            raise HypermonError(f"{out}: this is a file of the recording {run.name}, which is never overwritten; "
                                "choose another name")
