"""The rules of ``record --check``, from the command line to the verdicts."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.cli.runs import judge_and_print
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.recording.info import RunInfo
from hypermon.host.run import Run
from hypermon.host.text.printable import printable

if TYPE_CHECKING:
    from hypermon.host.record.checked import CheckedRecording

__all__ = ["Contract"]


class Contract:
    """Rules that a recording is judged by while it is made, and after its end.

    Parameters
    ----------
    path : of the rules file.
    dictionary : of the recording's events.
    until_fail : the first violation ends the recording.

    Raises
    ------
    InputError
        if the file is not valid.
    """

    def __init__(self, path: Path, dictionary: Dictionary | None, until_fail: bool):
        from hypermon.host.contracts.rules import load_rules

        self._path, self._dictionary, self._until_fail = path, dictionary, until_fail
        self._rules = load_rules(path)

    def refuse_unfit(self, modes: ItemModes, nodes: int) -> None:
        """Raises InputError if a rule does not fit a recording with these modes."""
        from hypermon.host.record.checked import refuse_rules

        info = RunInfo("", nodes, 10**8, "800", 0, 0, modes=[modes[node].name.lower() for node in range(nodes)])
        refuse_rules(self._rules, info, self._dictionary)

    def watched(self, run: Path, dictionary: Path | None, interrupt: Interrupt) -> "CheckedRecording":
        """Judges what is recorded inside this context. ``dictionary``: its file."""
        from hypermon.host.record.checked import CheckedRecording, later_text

        def say(line: str) -> None:
            click.echo(printable(line), err=True)

        later = later_text(self._rules)
        if later is not None:
            say(later)
        return CheckedRecording(run, self._path, dictionary, interrupt if self._until_fail else None, say)

    def judge(self, run: Path, as_json: bool) -> int:
        """Prints the verdicts on the recording. Returns the exit status of `hypermon check`."""
        return judge_and_print(Run(run), self._rules, as_json)
