"""How a node's port is read: active edge and sample point, and the channels of its wires.

Only this module parses the texts of ``--port``, ``--edge``, ``--sample``, ``--delay`` and
``--start-at``.
"""

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import TypeVar

from hypermon.hdl.layout import Front
from hypermon.host.errors import InputError
from hypermon.host.text.numbers import whole
from hypermon.sim.stimulus.picoseconds import LIMIT_PS

__all__ = ["Edge", "Mapping", "Part", "Sample", "Wiring", "option_text", "parse_delays", "parse_ports",
           "parse_setting", "parse_start"]


E = TypeVar("E", bound=enum.Enum)


class Edge(enum.Enum):
    """Active edge of a node's strobe."""

    RISING = "rising"
    FALLING = "falling"
    BOTH = "both"


class Sample(enum.Enum):
    """When a node's data is sampled: before the edge, or after it."""

    BEFORE = "before"
    AFTER = "after"


class Part(enum.Enum):
    """The part of a port that is delayed."""

    DATA = "data"
    STROBE = "strobe"


@dataclass(frozen=True)
class Wiring:
    """A node that has fewer wires than a port.

    ``text`` is the option as given, for messages; ``rate`` is that of a UART or SWO in baud, and None of others;
    ``lowest``: bytes come lowest bit first.
    """

    text: str
    front: Front
    rate: int | None = None
    lowest: bool = False


@dataclass(frozen=True)
class Mapping:
    """Channels of one input file that are one node's port.

    ``text`` is the option as given, for messages; ``channels`` are the names of the data bits, lowest first, and of the
    strobe; ``edge`` and ``sample`` are None where the option leaves them out. With ``wiring``, the strobe is the clock
    or the one wire, and the data bits are the data and the chip select, as far as there are any.
    """

    text: str
    file: str
    node: int
    channels: tuple[str, ...]
    edge: Edge | None
    sample: Sample | None
    wiring: Wiring | None = None


def option_text(channel: str) -> str:
    """A channel's name as it is written in ``--port``."""
    return channel.replace("\\", "\\\\").replace(",", "\\,")


def _words(names: str) -> list[str]:
    r"""What commas separate; ``\,`` and ``\\`` are a comma and a backslash, and other backslashes are themselves."""
    words = re.findall(r"((?:\\[\\,]?|[^\\,])*),", names + ",")
    return [re.sub(r"\\([\\,])", r"\1", word.strip(" \t")) for word in words]


def parse_ports(options: Sequence[str], files: Sequence[str], nodes: int, port_bits: int = 4) -> list[Mapping]:
    r"""Parses ``[FILE#]NODE=D0,D1,D2,D3,STROBE[,rising|falling|both][,before|after]``, and ``[FILE#]NODE=`` with
    ``LINE,uart,BAUD``, ``LINE,swo,BAUD`` or ``CLOCK,DATA[,SELECT],serial[,rising|falling][,msb|lsb]``.

    A comma in a name is written ``\,``, and a backslash before a comma ``\\``.

    Parameters
    ----------
    options : the texts.
    files : inputs with channels, as given on the command line; ``FILE#`` may be left out if there is just one.
    nodes, port_bits : of the board; with 8 bits, D0 to D7 precede the strobe.

    Raises
    ------
    InputError
        that names the option, if it is malformed, names no such file or node, or a node that another one has mapped
        already.
    """
    mappings: list[Mapping] = []
    for text in options:
        mapping = _parse_port(text, files, nodes, port_bits)
        if any(m.node == mapping.node for m in mappings):
            raise InputError(f"--port {text}", None, f"node {mapping.node} has a port already")
        mappings.append(mapping)
    return mappings


def _parse_port(text: str, files: Sequence[str], nodes: int, port_bits: int) -> Mapping:
    data = ",".join(f"D{bit}" for bit in range(port_bits))

    def wrong(reason: str) -> InputError:
        return InputError(f"--port {text}", None, reason)

    # A file's name may itself contain "#" and "=": the longest match is used.
    named = [f for f in files
             if text.startswith(f + "#") and re.match(r"[0-9]+=", text.removeprefix(f + "#"))]
    if named:
        file = max(named, key=len)
        rest = text.removeprefix(file + "#")
    elif re.match(r"[0-9]+=", text):
        if len(files) != 1:
            raise wrong("which file? Write FILE#NODE=..." if files else "no input file has channels")
        file, rest = files[0], text
    elif re.match(r".*#[0-9]+=", text):
        raise wrong(f"there is no input with channels called {re.split(r'#[0-9]+=', text)[0]!r}")
    else:
        raise wrong(f"not [FILE#]NODE={data},STROBE[,rising|falling|both][,before|after], "
                    "[FILE#]NODE=LINE,uart|swo,BAUD or "
                    "[FILE#]NODE=CLOCK,DATA[,SELECT],serial[,rising|falling][,msb|lsb]")
    number, _, names = rest.partition("=")
    node = whole(number)
    if node >= nodes:
        raise wrong(f"node {node} is not in 0..{nodes - 1}")
    words = _words(names)
    if (fewer := _fewer(text, file, node, words, wrong)) is not None:
        return fewer
    count = port_bits + 1
    if len(words) < count or not all(words):
        raise wrong(f"{'five' if count == 5 else 'nine'} channel names expected: {data},STROBE")
    edge: Edge | None = None
    sample: Sample | None = None
    for word in words[count:]:
        if word in (e.value for e in Edge) and edge is None:
            edge = Edge(word)
        elif word in (s.value for s in Sample) and sample is None:
            sample = Sample(word)
        else:
            raise wrong(f"{word!r} is not one edge (rising, falling, both) or one sample point (before, after)")
    return Mapping(text, file, node, tuple(words[:count]), edge, sample)


def _fewer(text: str, file: str, node: int, words: list[str],
           wrong: Callable[[str], InputError]) -> Mapping | None:
    """The mapping of a node with fewer wires than a port; None if the words are those of a port."""
    if len(words) in (2, 3) and words[1] in ("uart", "swo"):
        rate = words[2] if len(words) == 3 else ""
        if not words[0] or not re.fullmatch(r"[0-9]{1,9}", rate) or int(rate) < 1:
            raise wrong(f"LINE,{words[1]},BAUD expected, with a rate in baud such as 115200")
        return Mapping(text, file, node, (words[0],), None, None, Wiring(text, Front[words[1].upper()], int(rate)))
    at = next((at for at in (2, 3) if words[at:at + 1] == ["serial"]
               and set(words[at + 1:]) <= {"rising", "falling", "msb", "lsb"}), None)
    if at is None:
        return None
    edges, orders = ([word for word in words[at + 1:] if word in pair]
                     for pair in (("rising", "falling"), ("msb", "lsb")))
    if not all(words[:at]) or len(edges) > 1 or len(orders) > 1:
        raise wrong("CLOCK,DATA[,SELECT],serial[,rising|falling][,msb|lsb] expected")
    clock, *others = words[:at]
    return Mapping(text, file, node, (*others, clock), Edge(edges[0]) if edges else None, None,
                   Wiring(text, Front.SELECTED if at == 3 else Front.TWO_WIRE, None, orders == ["lsb"]))


def parse_setting(option: str, texts: Sequence[str], kind: type[E],
                  nodes: int) -> tuple[E | None, dict[int, E]]:
    """Parses ``[NODE=]VALUE``; a later option overrides an earlier one.

    Returns
    -------
    the setting of all nodes, None if not given; the settings of single nodes.

    Raises
    ------
    InputError
        that names the option.
    """
    common: E | None = None
    single: dict[int, E] = {}
    for text in texts:
        number, equals, word = text.rpartition("=")
        try:
            value = kind(word)
        except ValueError:
            raise InputError(f"{option} {text}", None,
                             f"{word!r} is not {', '.join(e.value for e in kind)}") from None
        if not equals:
            common = value
        elif not re.fullmatch(r"[0-9]+", number) or whole(number) >= nodes:
            raise InputError(f"{option} {text}", None, f"node {number} is not in 0..{nodes - 1}")
        else:
            single[whole(number)] = value
    return common, single


def parse_delays(texts: Sequence[str], nodes: int) -> dict[int, dict[Part, int]]:
    """Parses ``[NODE=]data|strobe,NS``; a later option for the same node and part overrides an earlier one.

    Returns
    -------
    per node that has a delay, the picoseconds of its parts, rounded up.

    Raises
    ------
    InputError
        that names the option.
    """
    delays: dict[int, dict[Part, int]] = {}
    for text in texts:
        number, equals, words = text.rpartition("=")
        part, _, nanoseconds = words.partition(",")
        if equals and (not re.fullmatch(r"[0-9]+", number) or whole(number) >= nodes):
            raise InputError(f"--delay {text}", None, f"node {number} is not in 0..{nodes - 1}")
        try:
            picoseconds, delayed = _picoseconds(nanoseconds), Part(part)
        except (ValueError, InvalidOperation):
            raise InputError(f"--delay {text}", None, "not [NODE=]data,NS or [NODE=]strobe,NS, with a time in "
                                                      "nanoseconds that is not negative") from None
        for node in [whole(number)] if equals else range(nodes):
            delays.setdefault(node, {})[delayed] = picoseconds
    return delays


#: Nanoseconds before the first change, if ``--start-at`` states none.
_LEAD = "1000"


def parse_start(text: str | None) -> int | None:
    """Parses ``first`` or ``first,NS``.

    Returns
    -------
    the picoseconds of board time at which the first change is to be, rounded up; None: at its own time.

    Raises
    ------
    InputError
        that names the option.
    """
    if text is None:
        return None
    word, comma, nanoseconds = text.partition(",")
    try:
        if word != "first":
            raise ValueError
        return _picoseconds(nanoseconds if comma else _LEAD)
    except (ValueError, InvalidOperation):
        raise InputError(f"--start-at {text}", None, "not first or first,NS, with a time in nanoseconds that is not "
                                                     "negative") from None


def _picoseconds(nanoseconds: str) -> int:
    """Raises ValueError or InvalidOperation."""
    value = Decimal(nanoseconds)
    if not 0 <= value < Decimal(LIMIT_PS) / 1000:
        raise ValueError
    return int((1000 * value).to_integral_value(ROUND_CEILING))
