"""Start and stop conditions of a recording on the board: ``--start``, ``--stop``."""

from dataclasses import dataclass

from hypermon.hdl.layout import PRETRIGGER_MAX
from hypermon.host.errors import HypermonError

__all__ = ["NOTHING", "Match", "parse_match", "refuse_pretrigger", "refuse_strange_node"]

_ON, _EVENT = 1 << 31, 1 << 30


@dataclass(frozen=True)
class Match:
    """An item that matches. Only bits that are set in a number's mask are compared.

    ``event``: the value is an event id, and applies to nodes in event mode. Otherwise the value is the first write of
    an item, and applies to the other nodes: with ``byte`` a byte of a port of 8 bits, else a nibble. ``on``: there is
    something to match at all.
    """

    value: int = 0
    value_mask: int = 0
    node: int = 0
    node_mask: int = 0
    event: bool = False
    byte: bool = False
    on: bool = True

    @property
    def register(self) -> int:
        """The value for TRIGGER_START and TRIGGER_STOP."""
        return ((_ON if self.on else 0) | (_EVENT if self.event else 0) | self.value | self.value_mask << 8
                | self.node << 16 | self.node_mask << 24)


#: No trigger.
NOTHING = Match(on=False)


def parse_match(option: str, text: str) -> Match:
    """A match from ``[node=N[/MASK],]nibble=V[/MASK]``, ``...byte=V[/MASK]`` or ``...event=ID[/MASK]``.

    Raises
    ------
    HypermonError
        naming the option, for anything else.
    """
    fields: dict[str, tuple[int, int]] = {}
    try:
        for part in text.split(","):
            name, _, number = part.partition("=")
            most = {"node": 31, "nibble": 15, "byte": 255, "event": 255}[name]
            one, slash, other = number.partition("/")
            pair = int(one, 0), int(other, 0) if slash else most
            if name in fields or not all(0 <= n <= most for n in pair):
                raise ValueError
            fields[name] = pair
        (kind,) = fields.keys() - {"node"}
    except (KeyError, ValueError):
        raise HypermonError(f"{option} {text}: expected [node=N,]nibble=V (byte=V with ports of 8 bits) or "
                            "[node=N,]event=ID, where /MASK after a number compares only some of its bits") from None
    value, value_mask = fields[kind]
    node, node_mask = fields.get("node", (0, 0))
    return Match(value, value_mask, node, node_mask, kind == "event", kind == "byte")


def refuse_strange_node(option: str, match: Match, nodes: int) -> None:
    """Raises HypermonError if no node of the board can ever match."""
    if match.on and not any((node ^ match.node) & match.node_mask == 0 for node in range(nodes)):
        raise HypermonError(f"{option}: the board has no node {match.node}; it has nodes 0 to {nodes - 1}")


def refuse_pretrigger(count: int, start: Match) -> None:
    """Raises HypermonError if the board cannot keep this number of writes, or there is no start to keep them before."""
    if not 0 <= count <= PRETRIGGER_MAX:
        raise HypermonError(f"--pretrigger {count}: the board keeps at most {PRETRIGGER_MAX} writes")
    if count and not start.on:
        raise HypermonError(f"--pretrigger {count}: it needs --start")
