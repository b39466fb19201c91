"""Judges rules on a recording while it is made, in the process of ``record --check``: reports, one line of JSON each.

The recorder neither waits for this process nor needs it. What the reports say is printed by
:mod:`hypermon.host.record.checked`.
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.contracts.growing import Growing
from hypermon.host.contracts.rules import load_rules
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.live.follow import Known, Loss, Note, Part, follow
from hypermon.host.live.tail import Pulse
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.segments import segments
from hypermon.host.tables.parquet import event_schema

__all__ = ["check_live"]

#: Seconds between two looks at a recording that grows all the time; that has not grown; and that does not exist yet.
_LOOK_S, _IDLE_S, _WAIT_S = 0.03, 0.02, 0.02


def check_live(path: Path, rules: Path, dictionary: Path | None, parent: int, say: Callable[[str], None]) -> None:
    """Follows a RUN, which need not exist yet, until it ends, or the recorder's process does.

    Parameters
    ----------
    parent : the recorder's process.
    say : gets a line as soon as there is something to report: ``{"ready": true}``; for each rule its first violation,
        ``{"rule", "time_ps", "node"}``; ``{"stopped": reason}`` if no more is judged before the end.

    Raises
    ------
    InputError
        if the rules do not fit the RUN, or it cannot be read.
    """
    own, book = load_rules(rules), None if dictionary is None else load_dictionary(dictionary)
    say(json.dumps({"ready": True}))
    while not segments(path)[0]:
        if os.getppid() != parent:
            return
        time.sleep(_WAIT_S)
    run, pulse = RunDirectory(path), Pulse(path)

    def fields(table: pa.Table) -> pa.Table:
        return table if book is None or "event" not in table.column_names else decode_fields(table, book)[0]

    schema = fields(event_schema(run.info.item_modes, run.info.nodes).empty_table()).schema
    growing = Growing.of(own, run, schema, book, 0)
    try:
        judge = _Judge(growing, say)
        judge.follow(follow(path, lambda: os.getppid() == parent and pulse.alive(), after=judge.after, look_s=_IDLE_S,
                            stop=lambda: judge.over), fields)
    finally:
        growing.close()


class _Judge:
    """Feeds what arrives into the rules, and looks."""

    def __init__(self, growing: Growing, say: Callable[[str], None]):
        self._growing, self._say = growing, say
        self._known: Known | None = None
        self._fresh, self._due = False, 0.0
        self.over = False

    def follow(self, parts: Iterable[Part], fields: Callable[[pa.Table], pa.Table]) -> None:
        for part in parts:
            if isinstance(part, Loss):
                self._growing.lose(part.node, part.lost, part.from_ps, part.to_ps)
            elif isinstance(part, Note):
                self._note(part)
            elif len(part):
                self._growing.add(fields(part))
                self._fresh = True
            if self.over:
                return

    def _note(self, note: Note) -> None:
        if note.kind == "skipped":
            self._growing.forget()
        elif note.kind in ("reset", "late"):
            self._stop(note.text)

    def _stop(self, why: str) -> None:
        self.over = True
        self._say(json.dumps({"stopped": why}))

    def after(self, known: Known, idle: bool) -> None:
        """For :func:`.follow`."""
        if not known.sure:
            self._stop("regeneration boards report their losses later")
            return
        if known != self._known and known.rejected:
            self._known, self._fresh = known, True
            self._growing.know(known.begin_ps, known.until_ps, known.late, known.rejected, known.discarded)
        now = time.monotonic()
        if not self._fresh or not (idle or now >= self._due):
            return
        for violation in self._growing.look():
            self._say(json.dumps({"rule": violation.rule.name, "kind": violation.rule.kind,
                                  "time_ps": violation.time_ps, "node": violation.node}))
        self._fresh, self._due = False, time.monotonic() + _LOOK_S
        self.over |= not self._growing.watched
