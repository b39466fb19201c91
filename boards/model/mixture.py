"""Nodes of different kinds on one board, as ``--ports`` states them: which node is wired how."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from hypermon.hdl.layout import NODES_MAX, Front

__all__ = ["KINDS", "Mixture", "kind", "parse_mixture", "short", "stated"]

#: Kinds of nodes by the names of ``--ports``; ``serial`` is the word of ``hypermon sim --port`` for two wires.
KINDS = {**{front.name.lower(): front for front in Front}, "serial": Front.TWO_WIRE}
_PART = re.compile(r"(?:(?P<first>[0-9]{1,4})(?:-(?P<last>[0-9]{1,4}))?=)?(?P<kind>[^=]*)")


@dataclass(frozen=True)
class Mixture:
    """What ``--ports`` asks for.

    Parameters
    ----------
    text : the option's value, for messages.
    own : the nodes that it names, and how each is wired.
    rest : how all others are wired; None if it does not say.
    """

    text: str
    own: dict[int, Front]
    rest: Front | None


def kind(front: Front) -> str:
    """The name of a kind of nodes."""
    return front.name.lower()


def parse_mixture(text: str) -> Mixture:
    """Parses ``[FIRST[-LAST]=]KIND,...``: a kind without numbers is that of all nodes that are not named.

    Raises
    ------
    ValueError
        that says what is wrong, for anything else, for a kind that does not exist, and for a node that a board cannot
        have or that is named twice.
    """
    own: dict[int, Front] = {}
    rest: Front | None = None
    for part in text.replace(" ", "").split(","):
        found = _PART.fullmatch(part)
        if not found or not part:
            raise ValueError(f"{part!r} is not [FIRST[-LAST]=]KIND, such as 0-3=port")
        if found["kind"] not in KINDS:
            raise ValueError(f"there is no kind {found['kind']!r}, but {', '.join(KINDS)}")
        front = KINDS[found["kind"]]
        if found["first"] is None:
            if rest is not None:
                raise ValueError(f"{part!r}: the nodes that are not named have a kind already, {kind(rest)}")
            rest = front
            continue
        first, last = int(found["first"]), int(found["last"] or found["first"])
        if not first <= last < NODES_MAX:
            raise ValueError(f"{part!r}: a board has nodes 0 to {NODES_MAX - 1}, and the lower number comes first")
        for node in range(first, last + 1):
            if node in own:
                raise ValueError(f"node {node} is named twice, as {kind(own[node])} and as {kind(front)}")
            own[node] = front
    return Mixture(text, own, rest)


def _runs(fronts: Sequence[Front]) -> list[tuple[int, int, Front]]:
    """First node, last node and kind of each group of neighbours of one kind."""
    runs, first = [], 0
    for front, group in groupby(fronts):
        count = len(list(group))
        runs.append((first, first + count - 1, front))
        first += count
    return runs


def stated(fronts: Sequence[Front]) -> str:
    """The value of ``--ports`` for these nodes, in its shortest form without a kind for the rest."""
    return ",".join(f"{first}{f'-{last}' if last > first else ''}={kind(front)}" for first, last, front in
                    _runs(fronts))


def short(fronts: Sequence[Front]) -> str:
    """The same for names of files: ``4port-6uart``."""
    return "-".join(f"{last - first + 1}{kind(front)}" for first, last, front in _runs(fronts))
