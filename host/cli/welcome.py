"""Output of ``hypermon`` without a command: the boards and recordings found, and the next steps."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from hypermon.host.errors import HypermonError, checkout, to_install
from hypermon.host.link import find_boards
from hypermon.host.recording.info import RunInfo
from hypermon.host.text.printable import printable

__all__ = ["welcome"]

#: Recordings that are named.
_RUNS = 5
_HELLO = "printf 'time_ns,node,port\\n1000,0,5\\n2000,0,21\\n' > hello.csv"


def welcome(folder: Path) -> str:
    """A few lines for somebody who is in ``folder``."""
    found = find_boards()
    # The virtual board, and the address form of a board elsewhere, are always listed, and no board is there.
    boards = [board for board in found if board.uri.partition(":")[0] not in ("sim", "tcp")]
    usable = next((board.uri for board in boards if board.problem is None), None)
    ready = any(board.uri == "sim:" and board.problem is None for board in found)
    runs = _runs(folder)
    lines = ["HYPERMON: one globally timed trace of up to 32 nodes, from 5-bit ports.", ""]
    named = [f"  {printable(board.uri)}  {printable(board.problem or board.what)}" for board in boards]
    lines += ["Boards:", *named] if boards else [
        "No board is connected" + ("; the virtual board works without hardware." if ready else
                                  "; the virtual board, which needs no hardware, is not installed.")]
    if runs:
        lines += ["", "Recordings here, the newest first:", *(f"  {printable(run.name)}" for run in runs[:_RUNS])]
        lines += [f"  and {len(runs) - _RUNS} more"] * (len(runs) > _RUNS)
    lines += ["", "Next:", *_table(_next(usable, ready, runs, checkout() == folder.resolve()))]
    return "\n".join(lines)


def _next(board: str | None, ready: bool, runs: Sequence[Path], in_checkout: bool) -> list[tuple[str, str]]:
    if board is not None:
        found = [(f"hypermon selftest -b {board}", "let the board test itself, with no node attached"),
                 (f"hypermon record -b {board} -o RUN", "record it until Ctrl-C"),
                 (f"hypermon serve -b {board}", "record it, and show it live as a web page")]
    elif ready:
        found = [(_HELLO, ""), ("hypermon sim hello.csv -o hello", "play that on the virtual board")]
        if in_checkout:
            found.insert(0, ("make demo", "a real program of 16 threads, traced"))
    else:
        found = [(to_install("sim"), ""),
                 ("hypermon devices", "list the boards, and what to do if one is missing")]
    if runs:
        run = runs[0].name
        found += [(f"hypermon stats {run}", "figures and losses"),
                  (f"hypermon export {run} --to csv -", "the nibbles, one per line"),
                  (f"hypermon query {run} \"from events limit 5\"", "query it in SQL"),
                  (f"hypermon report {run}", "figures on one page of HTML")]
    return [*found, ("hypermon --help", "all commands")]


def _table(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(line) for line, what in rows if what)
    room = shutil.get_terminal_size().columns
    # Beside it, if there is room.
    return [f"  {line:{width}}  {what}".rstrip() if width + len(what) + 4 <= max(room, 80) else f"  {line}"
            for line, what in rows]


def _runs(folder: Path) -> list[Path]:
    found = []
    for path in folder.glob("*/recording.json"):
        try:
            found.append((RunInfo.load(path).started, path.parent))
        except HypermonError:
            continue
    return [path for _, path in sorted(found, reverse=True)]
