"""The events of a RUN that a rule's names mean: names of its dictionary, ``nibble:V``, or ``event:ID``."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hypermon.host.contracts.rules import Event, Rule, near
from hypermon.host.contracts.trace import Source, UnfitError
from hypermon.host.dictionary.dictionary import Dictionary, EventKind

__all__ = ["Vocabulary", "with_state"]

_PLAIN = re.compile(r"(nibble|event|word):(0[xX][0-9a-fA-F]{1,8}|[0-9]{1,10})", re.ASCII)
_MOST = {"event": 255, "word": 2**32 - 1}


@dataclass(frozen=True)
class Vocabulary:
    """The names of a RUN's events.

    Parameters
    ----------
    columns : the columns of the tables ``events`` (items) and ``framed`` (events that were framed from nibbles), by
        table; only the tables that exist.
    event_mode : some nodes write events as items.
    port_bits : data bits of a port: what a nibble can be.
    """

    dictionary: Dictionary | None
    columns: Mapping[str, tuple[str, ...]]
    event_mode: bool
    port_bits: int = 4

    def source(self, event: Event) -> Source:
        """The events that a name means. Raises ValueError if it means none; the text states the names there are."""
        plain = _PLAIN.fullmatch(event.name)
        if plain is not None and int(plain[2], 0) > (most := _MOST.get(plain[1], (1 << self.port_bits) - 1)):
            raise ValueError(f"{event.name}: there is no such {plain[1]}; there are {plain[1]}:0 to {plain[1]}:{most}")
        if plain is not None and plain[1] != "event":
            if plain[1] not in self.columns["events"]:
                raise ValueError(f"{event.name}: no node of this run writes single {plain[1]}s")
            whole = "not aborted and " if "aborted" in self.columns["events"] else ""
            return Source(f"select time_ps, node, {plain[1]} from events where {whole}{plain[1]} = {int(plain[2], 0)}",
                          (plain[1],), frozenset((plain[1],)), rows=(
                              f"select time_ps, node, {plain[1]} as value from events where {whole}true"
                              if plain[1] == "nibble" else ""), value=int(plain[2], 0))
        if plain is not None:
            number = int(plain[2], 0)
            return self._events(number, self.dictionary.by_id.get(number) if self.dictionary else None)
        kind = self.dictionary.by_name.get(event.name) if self.dictionary else None
        if kind is None:
            raise ValueError(f"there is no event {event.name!r:.60}; there are {self._names(event.name)}")
        return self._events(kind.id, kind)

    def _names(self, name: str) -> str:
        plain = "event:0 to event:255" if self._tables() else f"nibble:0 to nibble:{(1 << self.port_bits) - 1}"
        return f"{near(name, list(self.dictionary.by_name))}, and {plain}" if self.dictionary else (
            f"{plain}; names need a dictionary: hypermon decode RUN --dictionary FILE")

    def _tables(self) -> list[str]:
        return [*(["events"] if self.event_mode else []), *(["framed"] if "framed" in self.columns else [])]

    def _events(self, number: int, kind: EventKind | None) -> Source:
        tables = self._tables()
        if not tables:
            raise ValueError("the run has no events yet: hypermon decode RUN --framing event finds them in nibbles")
        fields = {field.name: self.dictionary.columns[kind.name, field.name] for field in kind.fields} \
            if kind is not None and self.dictionary is not None else {}
        shown = "".join(f', "{column}" as "{name}"' for name, column in fields.items())
        questions = [f"select time_ps, node{shown} from {table} where event = {number} and not aborted"
                     for table in tables]
        whole = frozenset(field.name for field in kind.fields if field.kind in "ui" and field.numeric
                          and (field.bits or 64) < 64) if kind is not None else frozenset()
        ends = (kind.peer, kind.send is not None) if kind is not None and kind.peer is not None else None
        return Source(" union all ".join(questions), tuple(fields), whole, frozenset((number,)), ends,
                      "events" in tables, "framed" in tables, " union all ".join(
                          f"select time_ps, node, event as value from {table} where not aborted" for table in tables),
                      number)


def with_state(rule: Rule, dictionary: Dictionary | None) -> Rule:
    """A rule with the begins and ends of the ``state`` that it names, and the state's key.

    Raises
    ------
    UnfitError
        if the RUN's dictionary has no such state.
    """
    state = rule.values.get("state")
    if state is None:
        return rule
    if dictionary is None:
        raise UnfitError("state", "a state needs a dictionary: hypermon decode RUN --dictionary FILE")
    begins, ends = ([kind for kind in dictionary.events if getattr(kind, way) == state] for way in ("begin", "end"))
    if not begins or not ends:
        known = sorted({kind.begin for kind in dictionary.events if kind.begin is not None})
        raise UnfitError("state", f"there is no state {state!r:.60}; there are {near(str(state), known) or 'none'}")
    keys = {kind.key for kind in (*begins, *ends)} - {None}
    if len(keys) > 1 and not rule.key and rule.kind == "duration":
        raise UnfitError("state", "its events have keys of different names: give begin, end and key")
    events = {**rule.events, "begin": tuple(Event(kind.name) for kind in begins),
              "end": tuple(Event(kind.name) for kind in ends)}
    return dataclasses.replace(rule, events=events, key=rule.key or (
        tuple(key for key in keys if key is not None) if rule.kind == "duration" else ()))
