"""Layout of the connectors of dev boards: which hole is a pin of the FPGA, which ground, which a supply.

Each is drawn upright, columns from left to right, as seen from above. If the layout or the supplies of a connector
are not known, :func:`listed` has its pins in the order in which their source numbers them, and no ground.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["Connector", "Hole", "Use", "header", "listed", "pmod"]

#: Highest voltage that the FPGA's pins tolerate; anything above can damage them.
_VOLTS_MAX = 3.3


class Use(Enum):
    """Function of a hole."""

    PIN = "a pin of the FPGA"
    GROUND = "ground"
    SUPPLY = "a supply"
    OTHER = "something else, or nothing"
    UNKNOWN = "not at the FPGA: ground, a supply or nothing"


@dataclass(frozen=True)
class Hole:
    """A hole of a connector.

    Parameters
    ----------
    label : as printed on the board, or its number.
    use : its function.
    pin : pin of the FPGA, as named in :class:`hypermon.boards.model.board.Pin`.
    text : its name, if it is no pin.
    volts : voltage of a supply.
    number : its number; 0 in a list.
    """

    label: str
    use: Use
    pin: str = ""
    text: str = ""
    volts: float = 0
    number: int = 0

    @property
    def burns(self) -> bool:
        """Its voltage would destroy an FPGA."""
        return self.volts > _VOLTS_MAX


@dataclass(frozen=True)
class Connector:
    """A connector.

    Parameters
    ----------
    name : as printed on the board.
    columns : from left to right, each from the top; ``None`` where there is no hole.
    note : how to look at it, and other remarks for users.
    known : its layout and its supplies are known; else the columns are a list.
    ground : where ground is, if it is at no hole.
    """

    name: str
    columns: tuple[tuple[Hole | None, ...], ...]
    note: str = ""
    known: bool = True
    ground: str = ""

    @property
    def holes(self) -> list[Hole]:
        return [hole for column in self.columns for hole in column if hole]

    @property
    def doubtful(self) -> bool:
        """Not all of its grounds are known."""
        return not self.known or any(hole.use is Use.UNKNOWN for hole in self.holes)

    @property
    def grounds(self) -> str:
        """Where ground is, as text for users; empty if that is not known."""
        return self.ground or ", ".join(map(str, sorted(
            hole.number for hole in self.holes if hole.use is Use.GROUND)))


def _holes(platform: str, names: Iterable[int], *, labels: Mapping[int, str], pins: Mapping[int, str],
           ground: Iterable[int], supplies: Mapping[int, float], others: Mapping[int, str],
           unknown: Iterable[int]) -> dict[int, Hole]:
    """Holes by number: a hole without another function is a pin of the platform's connector."""
    made = {}
    for n in names:
        label = labels.get(n, str(n))
        if n in ground:
            made[n] = Hole(label, Use.GROUND, text="GND", number=n)
        elif n in supplies:
            made[n] = Hole(label, Use.SUPPLY, text=others.get(n, f"{supplies[n]:g} V"), volts=supplies[n], number=n)
        elif n in others:
            made[n] = Hole(label, Use.OTHER, text=others[n], number=n)
        elif n in unknown:
            made[n] = Hole(label, Use.UNKNOWN, text="?", number=n)
        else:
            made[n] = Hole(label, Use.PIN, pin=pins.get(n, f"{platform}:{n}"), number=n)
    return made


def header(name: str, platform: str = "", columns: Iterable[Iterable[int]] = (), *, note: str = "",
           labels: Mapping[int, str] | None = None, pins: Mapping[int, str] | None = None,
           ground: Iterable[int] = (), supplies: Mapping[int, float] | None = None,
           others: Mapping[int, str] | None = None, unknown: Iterable[int] = (), where: str = "") -> Connector:
    """A connector whose layout is known.

    Parameters
    ----------
    name, note : see :class:`Connector`.
    platform : its name in the platform.
    columns : numbers of the holes, from the top; 0 where there is none.
    labels : labels of holes that are not printed by number.
    pins : names of pins that are not ``platform:number``.
    ground, supplies, others, unknown : numbers of the holes that are no pins, and volts and names of them; a supply
        that is also among the others has its name from there.
    where : where ground is, if it is at no hole.
    """
    columns = [list(column) for column in columns]
    made = _holes(platform, (n for column in columns for n in column if n), labels=labels or {}, pins=pins or {},
                  ground=set(ground), supplies=supplies or {}, others=others or {}, unknown=set(unknown))
    return Connector(name, tuple(tuple(made.get(n) for n in column) for column in columns), note, ground=where)


def pmod(name: str, platform: str, volts: float = 3.3) -> Connector:
    """Twelve holes as in Digilent's Pmod Interface Specification, seen onto the socket."""
    return header(name, platform, (range(1, 7), range(7, 13)), ground=(5, 11), supplies={6: volts, 12: volts},
                  note="seen onto the socket")


def listed(name: str, pins: Iterable[tuple[str, str]], note: str = "", most: int = 9) -> Connector:
    """Pins and their labels in the order of their source, ``most`` per column: layout and ground are not known."""
    holes = [Hole(label, Use.PIN, pin) for pin, label in pins]
    rows = -(-len(holes) // -(-len(holes) // most))
    return Connector(name, tuple(tuple(holes[at:at + rows]) for at in range(0, len(holes), rows)), note, known=False)
