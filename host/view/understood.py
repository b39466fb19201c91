"""Parses the text of a search, and makes the message if the run has nothing of that name.

    send of node 3 to node 5        the next message sent by 3 to 5; receive of node 5 from node 3
    iteration of node 2             the next item of that name; part of a name is enough
    iteration number=7              the same, with a field; also != < <= > >=, see :mod:`.conditions`
    computing of node 2             the next beginning of a state; `state computing` if an event has that name, too
    node 4                          any item of a node, by its number or its name
    iteration of nodes 2-4,7        the same, of several; also: of node 2 and 7
    loss of node 4                  the next loss

Every word is used, or the text is not understood. ``previous`` before a text turns the direction of the search.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.text.printable import printable
from hypermon.host.view.conditions import Condition, conditions

__all__ = ["Names", "Wanted", "near", "said", "understood"]

_LONGEST = 200
_WAY = re.compile(r"\s*(next|previous)\s+", re.IGNORECASE)
_NODE = re.compile(r"\b(?P<word>of|on|from|to)?\s*\bnodes?\s+(?P<nodes>\d{1,5}(?:\s*(?:-|,|\band\b)\s*\d{1,5})*)\b",
                   re.IGNORECASE)
#: A name, and numbers of nodes without the word.
_LISTED = re.compile(r"(?P<before>.*\S)\s+(?P<nodes>\d{1,5}(?:\s*[-,]\s*\d{1,5})+)$")
_PLACE = re.compile(r"\b(?P<word>of|on|from|to)\s+(?P<name>.+?)(?=\s+(?:of|on|from|to)\s|$)", re.IGNORECASE)
#: Items that have no name: of unknown ids, words and nibbles.
_UNNAMED = re.compile(r"#?[0-9a-f]{1,8}|#\d+|\?", re.IGNORECASE)
_KINDS = {"send": "send", "sends": "send", "receive": "receive", "receives": "receive", "message": "message",
          "state": "state", "loss": "loss", "lost": "loss"}
#: Characters of a list of names, and names that are near.
_LIST, _NEAR = 240, 3


@dataclass
class Names:
    """The names that a run may have.

    Members
    -------
    nodes : how many there are.
    node_names, events, states, messages : of the dictionary; without one there are none.
    """

    nodes: int
    node_names: Mapping[int, str] = field(default_factory=dict)
    events: Collection[str] = ()
    states: Collection[str] = ()
    messages: Collection[str] = ()

    @classmethod
    def of(cls, nodes: int, dictionary: Dictionary | None) -> "Names":
        if dictionary is None:
            return cls(nodes)
        kinds = dictionary.events
        return cls(nodes, dictionary.nodes, [kind.name for kind in kinds],
                   _distinct(name for kind in kinds for name in (kind.begin, kind.end)),
                   _distinct(name for kind in kinds for name in (kind.send, kind.receive)))


@dataclass
class Wanted:
    """The parts of a text.

    Members
    -------
    kind : send, receive, message, state, loss, or nothing: an item.
    name : name that is searched for, or part of it.
    nodes : numbers of nodes in order, by the words before them: of, on, from, to.
    fields : conditions on fields.
    back : the direction of the search is turned.
    """

    kind: str
    name: str
    nodes: dict[str, tuple[int, ...]]
    fields: list[Condition]
    back: bool = False

    def node(self, *words: str) -> tuple[int, ...] | None:
        return next((self.nodes[word] for word in words if word in self.nodes), None)


def understood(text: str, names: Names) -> Wanted:
    """Parses a text.

    Raises
    ------
    HypermonError
        with the part that is not understood, in one line: no such node or name, and which are near.
    """
    if len(text) > _LONGEST:
        raise HypermonError(f"search: it has more than {_LONGEST} characters")
    way = _WAY.match(text)
    fields, rest = conditions(text[way.end():] if way else text)
    rest = rest.strip()
    if not rest and not fields:
        raise HypermonError("search: an event's name, node 3, loss, or send of node 3 to node 5")
    nodes, rest, unknown = _nodes(rest, names)
    wanted = Wanted("", rest, nodes, fields, bool(way and way[1].lower() == "previous"))
    numbers = {name.lower(): node for node, name in names.node_names.items()}
    if rest.lower() in numbers:
        _put(nodes, "of", (numbers[rest.lower()],))
        return replace(wanted, name="")
    kind, _, name = rest.partition(" ")
    if kind.lower() in _KINDS and rest.lower() not in _others(names):
        wanted = replace(wanted, kind=_KINDS[kind.lower()], name=name.strip())
        _check(wanted, unknown, names)
        return wanted
    return _plain(wanted, unknown, names)


def _nodes(rest: str, names: Names) -> tuple[dict[str, tuple[int, ...]], str, str]:
    """The nodes in a text, the rest of it, and the first name after ``of``, ``on``, ``from`` or ``to`` of no node."""
    nodes: dict[str, tuple[int, ...]] = {}
    for match in _NODE.finditer(rest):
        _put(nodes, (match["word"] or "of").lower(), _numbers(match["nodes"], names.nodes))
    rest = _NODE.sub(" ", rest)
    numbers = {name.lower(): node for node, name in names.node_names.items()}
    unknown = ""
    for match in list(_PLACE.finditer(rest)):
        name = match["name"].strip()
        if name.lower() in numbers:
            _put(nodes, match["word"].lower(), (numbers[name.lower()],))
            rest = rest.replace(match[0], " ")
        else:
            unknown = unknown or name
    return nodes, " ".join(rest.split()), unknown


def _numbers(text: str, count: int) -> tuple[int, ...]:
    """The nodes of a list such as 3,5 or 2-4 and 7. Raises HypermonError if one of them does not exist."""
    found = set[int]()
    for part in re.split(r",|and", text, flags=re.IGNORECASE):
        first, *rest = map(int, part.split("-"))
        last = rest[-1] if rest else first
        for node in (first, last):
            if not node < count:
                raise HypermonError(f"search: there is no node {node}; nodes are 0 to {count - 1}")
        if len(rest) > 1 or last < first:
            raise HypermonError(f"search: {part.strip()!r} is no range of nodes, such as 3-5")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def said(nodes: Sequence[int]) -> str:
    """Nodes as a search has them: node 3, or nodes 3,5."""
    return f"node{'s' if len(nodes) > 1 else ''} {','.join(map(str, nodes))}"


def _put(nodes: dict[str, tuple[int, ...]], word: str, own: tuple[int, ...]) -> None:
    if nodes.setdefault(word, own) != own:
        both = tuple(sorted({*nodes[word], *own}))
        raise HypermonError(f"search: {word} {said(nodes[word])}, and {word} {said(own)}: only one is possible; "
                            f"{word} {said(both)} is of both")


def _others(names: Names) -> set[str]:
    """Names of events that begin with one of those words, and are longer."""
    return {name.lower() for name in names.events if " " in name}


def _check(wanted: Wanted, unknown: str, names: Names) -> None:
    """Raises HypermonError if there is no state or message of that name."""
    known = {"state": names.states, "loss": ()}.get(wanted.kind, names.messages)
    if not wanted.name or _known(wanted.name, known) or not (known or wanted.kind == "loss"):
        return
    if unknown:
        raise HypermonError(_no_node(unknown, names))
    what = "message" if wanted.kind in ("send", "receive") else wanted.kind
    if wanted.kind == "loss":
        raise HypermonError(f"search: {printable(wanted.name)!r} is not understood: loss, or loss of node 3")
    raise HypermonError(f"search: there is no {what} {printable(wanted.name)!r}; {near(wanted.name, known)}")


def _plain(wanted: Wanted, unknown: str, names: Names) -> Wanted:
    """An item, or the state or message that has the name; raises HypermonError if nothing has."""
    name = wanted.name.lower()
    if not name:
        return wanted
    kinds = (("", names.events), ("state", names.states), ("message", names.messages))
    for kind, known in kinds:
        if name in map(str.lower, known):
            return replace(wanted, kind=kind)
    for kind, known in kinds:
        if _known(name, known):
            return replace(wanted, kind=kind)
    if _UNNAMED.fullmatch(name):
        return wanted
    if re.match(r"[-+]?[\d.,]*\d", name):
        raise HypermonError(f"search: nothing is named {printable(wanted.name)!r}; a time has a unit: 1 ms, 0.25 s")
    if unknown:
        raise HypermonError(_no_node(unknown, names))
    if listed := _LISTED.search(wanted.name):
        raise HypermonError(f"search: {printable(wanted.name)!r} is not understood: nodes are "
                            f"{printable(listed['before'])} of nodes {printable(listed['nodes'])}")
    known = [*names.events, *names.states, *names.messages, *names.node_names.values()]
    if not known:
        raise HypermonError(f"search: nothing is named {printable(wanted.name)!r}: this run has no dictionary, so "
                            f"items are hexadecimal digits; node 3 and loss are understood, too")
    raise HypermonError(f"search: nothing is named {printable(wanted.name)!r}; "
                        f"{near(wanted.name, _distinct([*known, 'loss']))}")


def _known(part: str, names: Iterable[str]) -> bool:
    return any(part.lower() in name.lower() for name in names)


def _no_node(name: str, names: Names) -> str:
    said = near(name, names.node_names.values()) if names.node_names else "nodes have no names here"
    return f"search: no node is named {printable(name)!r}; {said}; nodes are 0 to {names.nodes - 1}"


def near(name: str, known: Iterable[str]) -> str:
    """The names that are near a name, or else all, as far as a line has room."""
    by_name = {each.lower(): each for each in known}
    found = [by_name[each] for each in difflib.get_close_matches(name.lower(), by_name, _NEAR, 0.5)]
    if found:
        return f"near: {printable(', '.join(found))[:_LIST]}"
    return f"there are {printable(', '.join(by_name.values()))[:_LIST]}"


def _distinct(names: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name is not None))
