"""Converts the options of a capture to settings of a board."""

from collections.abc import Sequence
from typing import Any

from hypermon.hdl.layout import EVENT_IDS, Front, Sink
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.trigger import NOTHING, parse_match, refuse_pretrigger
from hypermon.host.errors import HypermonError
from hypermon.host.text.numbers import whole

__all__ = ["edge_masks", "fronts_of", "guard_settings", "lowest_of", "mask_settings", "modes_of", "rate_settings",
           "refuse_edges", "trigger_settings"]

#: Values of ``--front-rate``, and the settings that they are.
_RATES = {"spi": "spi_hz", "uart": "uart_baud", "swo": "swo_baud"}
#: What a node of each kind has, in messages.
_WIRES = {Front.PORT: "a port", Front.TWO_WIRE: "a serial clock", Front.SELECTED: "a serial clock",
          Front.UART: "a UART", Front.SWO: "SWO"}


def _by_node(option: str, texts: Sequence[str], values: Sequence[str], nodes: int) -> list[str | None]:
    """Texts ``[NODE=]VALUE`` as a value for every node; one with NODE goes before one without."""
    common: str | None = None
    own: dict[int, str] = {}
    for text in texts:
        node, equals, value = text.rpartition("=")
        if value not in values:
            raise HypermonError(f"{option} {text}: expected [NODE=]{'|'.join(values)}")
        if not equals:
            common = value
        elif node.isascii() and node.isdigit() and whole(node) < nodes:
            own[whole(node)] = value
        else:
            raise HypermonError(f"{option} {text}: there are nodes 0 to {nodes - 1}")
    return [own.get(node, common) for node in range(nodes)]


def edge_masks(edges: Sequence[str], samples: Sequence[str], nodes: int) -> tuple[int | None, int | None, int | None]:
    """Values of EDGE_RISING, EDGE_FALLING and SAMPLE_AFTER; None for each setting that was not given."""
    if not edges and not samples:
        return None, None, None
    edge = [e or "rising" for e in _by_node("--edge", edges, ("rising", "falling", "both"), nodes)]
    sample = _by_node("--sample", samples, ("before", "after"), nodes)

    def mask(bits: Sequence[bool]) -> int:
        return sum(1 << node for node, bit in enumerate(bits) if bit)

    return (mask([e in ("rising", "both") for e in edge]), mask([e in ("falling", "both") for e in edge]),
            mask([(s or ("after" if e == "both" else "before")) == "after"
                  for e, s in zip(edge, sample, strict=True)]))


def refuse_edges(edges: Sequence[str], samples: Sequence[str], fronts: Sequence[Front]) -> None:
    """Refuses edges and sample points that a named node cannot have, because of its kind. Those that are for all nodes
    are for those that can have them.

    Parameters
    ----------
    fronts : how the nodes are wired, from node 0 on; the others have a port.
    """
    for option, texts in (("--edge", edges), ("--sample", samples)):
        for text in texts:
            number, _, value = text.rpartition("=")
            node = whole(number) if number.isascii() and number.isdigit() else len(fronts)
            if node >= len(fronts) or fronts[node] is Front.PORT:
                continue
            clocked = fronts[node] in (Front.TWO_WIRE, Front.SELECTED)
            if option == "--edge" and clocked and value != "both":
                continue
            has = "samples at rising or at falling edges" if clocked and option == "--edge" else (
                "samples at the edge of its clock" if clocked else "has no strobe")
            raise HypermonError(f"{option} {text}: node {node} has {_WIRES[fronts[node]]}, and {has}")


def trigger_settings(start: str | None, stop: str | None, pretrigger: int, sink: Sink) -> dict[str, Any]:
    """The settings of ``--start``, ``--stop`` and ``--pretrigger``."""
    settings: dict[str, Any] = {"pretrigger": pretrigger}
    for name, text in (("start", start), ("stop", stop)):
        if text is not None:
            settings[name] = parse_match(f"--{name}", text)
            if sink is Sink.CLASSIC:
                raise HypermonError(f"--{name} {text}: the classic board has no triggers; add --config extended")
    refuse_pretrigger(pretrigger, settings.get("start", NOTHING))
    return settings


def mask_settings(masks: Sequence[str], sink: Sink) -> dict[str, Any]:
    """The settings of ``--mask``."""
    names = {"nodes": "nodes_kept", "nibbles": "nibbles_kept"}
    kept: dict[str, Any] = {}
    for text in masks:
        what, _, mask = text.partition("=")
        if what == "nibbles" and sink is Sink.CLASSIC:
            raise HypermonError(f"--mask {text}: the classic configuration keeps all nibbles; add --config extended")
        try:
            if what == "events":
                kept["events_out"] = frozenset(range(EVENT_IDS)) - _ids(mask)
                continue
            kept[names[what]] = int(mask, 0)
            if kept[names[what]] < 0:
                raise ValueError
            if kept[names[what]] == 0:
                raise HypermonError(f"--mask {text}: nothing would be kept")
        except (KeyError, ValueError):
            raise HypermonError(f"--mask {text}: expected nodes=MASK or nibbles=MASK, a number such as 0xff, or "
                                "events=IDS, such as 1,3,16-31") from None
    return kept


def _ids(text: str) -> set[int]:
    """Event ids from ``1,3,16-31``; raises ValueError for anything else."""
    ids: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = int(first, 0), int(last if dash else first, 0)
        if not 0 <= begin <= end < EVENT_IDS:
            raise ValueError
        ids |= set(range(begin, end + 1))
    return ids


def guard_settings(glitch: int, rate_limit: str | None, sink: Sink) -> dict[str, Any]:
    """The settings of ``--glitch`` and ``--rate-limit``."""
    if sink is Sink.CLASSIC and (glitch or rate_limit):
        option = "--glitch" if glitch else "--rate-limit"
        raise HypermonError(f"{option}: the classic configuration accepts every strobe; add --config extended")
    guards: dict[str, Any] = {"glitch": glitch}
    if rate_limit is not None:
        items, slash, windows = rate_limit.partition("/")
        limit = (whole(items), whole(windows)) if items.isdecimal() and windows.isdecimal() and slash else (0, 0)
        if not (1 <= limit[0] <= 255 and 1 <= limit[1] <= 1 << 31 and limit[1] & (limit[1] - 1) == 0):
            raise HypermonError(f"--rate-limit {rate_limit}: expected ITEMS/WINDOWS, 1 to 255 items in a power of two "
                                "of windows, such as 100/65536")
        guards["rate_limit"] = limit
    return guards


def fronts_of(texts: Sequence[str], nodes: int, sink: Sink) -> tuple[Front, ...]:
    """How the nodes of a virtual board are wired; none if all have ports."""
    if texts and sink is Sink.CLASSIC:
        raise HypermonError(f"--front {texts[0]}: the classic board has ports of five wires; add --config extended")
    names = {front.name.lower(): front for front in Front}
    fronts = tuple(names[name or "port"] for name in _by_node("--front", texts, [*names], nodes))
    return fronts if set(fronts) != {Front.PORT} else ()


def rate_settings(texts: Sequence[str], sink: Sink) -> dict[str, int]:
    """The settings of ``--front-rate``."""
    rates: dict[str, int] = {}
    for text in texts:
        line, equals, rate = text.partition("=")
        if line not in _RATES or not equals or not (rate.isascii() and rate.isdigit()) or whole(rate) < 1:
            raise HypermonError(f"--front-rate {text}: expected {'|'.join(_RATES)}=RATE, in hertz or baud, such as "
                                "uart=115200")
        if sink is Sink.CLASSIC:
            raise HypermonError(f"--front-rate {text}: the classic configuration has no items of such nodes; add "
                                "--config extended")
        rates[_RATES[line]] = whole(rate)
    return rates


def modes_of(modes: Sequence[str], nodes: int, sink: Sink, fronts: Sequence[Front] = ()) -> ItemModes:
    """What the items of the nodes are; the classic board has nibbles only.

    Parameters
    ----------
    fronts : how the nodes are wired, from node 0 on; the others have a port.
    """
    names = [*(mode.name.lower() for mode in ItemMode), "itm"]
    own = _by_node("--mode", modes, names, nodes)
    longer = next((mode for mode in own if mode not in (None, "nibble")), None)
    if sink is Sink.CLASSIC:
        if longer is not None:
            raise HypermonError(f"--mode {longer}: the classic configuration has nibbles only; add --config extended")
        return ItemModes()
    chosen = []
    for node, mode in enumerate(own):
        front = fronts[node] if node < len(fronts) else Front.PORT
        if front is Front.PORT:
            usual, others = "nibble", {"byte", "line", "itm"}
        else:
            usual, others = ("itm", {"nibble", "line"}) if front is Front.SWO else ("byte", {"nibble", "itm"})
        if mode in others:
            kinds = ", ".join(name for name in names if name not in others)
            raise HypermonError(f"--mode {node}={mode}: node {node} has {_WIRES[front]}; its modes are {kinds}")
        name = mode or usual
        chosen.append(ItemMode.EVENT if name == "itm" else ItemMode[name.upper()])
    return ItemModes.of(chosen)


def lowest_of(orders: Sequence[str], nodes: int) -> int:
    """The nodes of ``--bit-order`` that send the lowest bit of a byte first, one bit each."""
    return sum(1 << node for node, order in enumerate(_by_node("--bit-order", orders, ("msb", "lsb"), nodes))
               if order == "lsb")
