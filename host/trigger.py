"""What starts and stops a recording on the board: ``--start``, ``--stop``."""

from dataclasses import dataclass

from hypermon.hdl.layout import PRETRIGGER_MAX
from hypermon.host.errors import HypermonError

__all__ = ["NOTHING", "Match", "parse_match", "refuse_pretrigger"]

_ON, _EVENT = 1 << 31, 1 << 30


@dataclass(frozen=True)
class Match:
    """An item that matches: of each number the bits that are set in its mask count.

    ``event``: the value is an event id, and nodes in event mode are meant; else it is the first nibble
    of an item, and the other nodes are. ``on``: there is something to match at all.
    """

    value: int = 0
    value_mask: int = 0
    node: int = 0
    node_mask: int = 0
    event: bool = False
    on: bool = True

    @property
    def register(self) -> int:
        """As TRIGGER_START and TRIGGER_STOP take it."""
        return ((_ON if self.on else 0) | (_EVENT if self.event else 0) | self.value | self.value_mask << 8
                | self.node << 16 | self.node_mask << 24)


#: No trigger.
NOTHING = Match(on=False)


def parse_match(option: str, text: str) -> Match:
    """A match from ``[node=N[/MASK],]nibble=V[/MASK]`` or ``...event=ID[/MASK]``.

    Raises
    ------
    HypermonError
        naming the option, for anything else.
    """
    fields: dict[str, tuple[int, int]] = {}
    try:
        for part in text.split(","):
            name, _, number = part.partition("=")
            most = {"node": 31, "nibble": 15, "event": 255}[name]
            one, slash, other = number.partition("/")
            pair = int(one, 0), int(other, 0) if slash else most
            if name in fields or not all(0 <= n <= most for n in pair):
                raise ValueError
            fields[name] = pair
        if ("nibble" in fields) == ("event" in fields):
            raise ValueError
    except (KeyError, ValueError):
        raise HypermonError(f"{option} {text}: it is [node=N,]nibble=V or [node=N,]event=ID, each with a /MASK if only "
                            "some of its bits count") from None
    value, value_mask = fields.get("event") or fields["nibble"]
    node, node_mask = fields.get("node", (0, 0))
    return Match(value, value_mask, node, node_mask, "event" in fields)


def refuse_pretrigger(count: int, start: Match) -> None:
    """Raises HypermonError if so many nibbles cannot be kept, or there is no start to keep them before."""
    if not 0 <= count <= PRETRIGGER_MAX:
        raise HypermonError(f"--pretrigger {count}: the board keeps up to {PRETRIGGER_MAX} nibbles")
    if count and not start.on:
        raise HypermonError(f"--pretrigger {count}: before what? Add --start")
