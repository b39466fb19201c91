"""Rules that are judged while a recording is made: ``record --check``."""

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from hypermon.host.contracts.growing import only_at_end, refuse_unfit
from hypermon.host.contracts.judged import time_text
from hypermon.host.contracts.rules import Rules
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.record.process import hypermon_command
from hypermon.host.recording.info import RunInfo
from hypermon.host.tables.parquet import event_schema

__all__ = ["CheckedRecording", "later_text", "refuse_rules"]

#: Seconds for the process to load; and to read the rest of a recording that has ended.
_READY_S, _REST_S = 60.0, 10.0


def refuse_rules(rules: Rules, info: RunInfo, dictionary: Dictionary | None) -> None:
    """Raises InputError if a rule does not fit the planned recording. Only nodes and modes of ``info`` are used."""
    table = event_schema(info.item_modes, info.nodes).empty_table()
    if dictionary is not None and "event" in table.column_names:
        table = decode_fields(table, dictionary)[0]
    refuse_unfit(rules, info, table.schema, dictionary)


def later_text(rules: Rules) -> str | None:
    """The line about the rules that are judged after the end only; None if there are none."""
    names = ", ".join(rule.name for rule in rules.rules if only_at_end(rule))
    return f"judged after the end only: {names}" if names else None


class CheckedRecording:
    """Judges by a separate process, ``hypermon check RUN RULES --of``. While the recording is made, nothing
    waits for that process. Use as a context manager: the process is ready inside, and has ended after it.

    Parameters
    ----------
    run, rules, dictionary : the RUN, and the files of rules and of the dictionary.
    interrupt : ends the recording at the first violation; None: a violation does not end it.
    say : called with each line for people.
    """

    def __init__(self, run: Path, rules: Path, dictionary: Path | None, interrupt: Interrupt | None,
                 say: Callable[[str], None]):
        self._run, self._interrupt, self._say = run, interrupt, say
        self._command = hypermon_command("check", str(run), str(rules), "--of", str(os.getpid()),
                                         *(["--dictionary", str(dictionary)] if dictionary is not None else []))
        self._ready, self._told = threading.Event(), False

    def __enter__(self) -> "CheckedRecording":
        # Not of the terminal's group: Ctrl-C ends the recording, and the rest is judged after it.
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        assert self._process.stdout is not None
        self._thread = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._thread.start()
        self._ready.wait(_READY_S)
        return self

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            report = json.loads(line)
            if "rule" in report:
                self._violated(report["rule"], report["kind"], report["time_ps"], report["node"])
            elif "stopped" in report:
                self._told = True
                self._say(f"{self._run}: no rule is judged before the end any more: {report['stopped']}")
            self._ready.set()
        self._ready.set()
        status = self._process.wait()
        if status and not self._told:
            said = self._process.stderr.read().strip().splitlines() if self._process.stderr is not None else []
            why = said[-1].removeprefix("hypermon: ") if said else f"the process that judges ended with status {status}"
            self._say(f"{self._run}: no rule is judged before the end any more: {why}")

    def _violated(self, name: str, kind: str, time_ps: int, node: int) -> None:
        self._say(f"{self._run}: {time_text(time_ps)}, node {node}: violates {name!r} ({kind})")
        if self._interrupt is not None and not self._interrupt.hit:
            self._interrupt.why = f"stopped at a violation of {name!r}"
            self._interrupt.hit = True

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if kind is None or issubclass(kind, Exception):
                self._thread.join(_REST_S if self._run.is_dir() else 0)
        finally:
            self._told = True
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            self._thread.join()
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
