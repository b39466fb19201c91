"""What ``--port`` says of nodes without ports: lines of regeneration boards, and settings of front ends."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import click
from hypermon.hdl.layout import LINK_NODES, Front, front_period
from hypermon.host.errors import HypermonError
from hypermon.host.text.numbers import whole

__all__ = ["lines_of", "wired_settings"]

_LINE = re.compile(r"([0-9]+)-([0-9]+)=\s*line\s*")
_RATES = {Front.UART: "uart_baud", Front.SWO: "swo_baud"}


def lines_of(ports: Sequence[str], nodes: int) -> tuple[int, tuple[str, ...]]:
    """The number of regeneration boards that ``FIRST-LAST=line`` asks for, and the other texts of ``--port``.

    Raises
    ------
    HypermonError
        unless these nodes are whole groups of eight, from node 0 on without gaps, each named once.
    """
    groups: set[int] = set()
    others = []
    for text in ports:
        if not text.rstrip().endswith("=line"):
            others.append(text)
            continue
        found = _LINE.fullmatch(text)
        first, last = (whole(number) for number in found.groups()) if found else (1, 0)
        named = set(range(first // LINK_NODES, (last + 1) // LINK_NODES))
        if first % LINK_NODES or (last + 1) % LINK_NODES or not named or last >= nodes:
            able = ", ".join(f"{8 * k}-{8 * k + 7}=line" for k in range(nodes // LINK_NODES))
            raise HypermonError(f"--port {text}: a line has eight nodes: {able}" if able else
                                f"--port {text}: a line has eight nodes; the board has {nodes}")
        if named & groups:
            raise HypermonError(f"--port {text}: some of these nodes are on a line already")
        groups |= named
    if groups != set(range(len(groups))):
        raise HypermonError(f"--port {LINK_NODES * max(groups)}-{LINK_NODES * max(groups) + 7}=line: lines come first: "
                            f"nodes {LINK_NODES * min(set(range(LINK_NODES)) - groups)} and up are not on one")
    return len(groups), tuple(others)


def wired_settings(stimulus: Any, clock_hz: int, said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for the nodes to which ``--port`` gives fewer wires; none if there are no such nodes.

    It needs no board, so that a wrong setting is reported before a board is built, which takes half a minute.

    The rate of a clock is no part of ``--port``: it is found in the stimulus, and stated on standard error.

    Parameters
    ----------
    stimulus : the :class:`~hypermon.sim.stimulus.stimulus.Stimulus` that is to be played.
    clock_hz : of the board that is to play it.
    said : settings of other options, which go before what is found in the stimulus.

    Raises
    ------
    HypermonError
        for a rate that a board cannot receive, and for two rates of one kind: it has a single setting for all nodes of
        that kind.
    """
    if not stimulus.wiring:
        return {}
    found: dict[str, Any] = {"lowest": sum(1 << node for node, own in stimulus.wiring.items() if own.lowest)
                             | int(said.get("lowest", 0))}
    for _, own in sorted(stimulus.wiring.items()):
        if own.rate is None:
            continue
        name = _RATES[own.front]
        try:
            front_period(clock_hz, own.rate)
        except ValueError as error:
            raise HypermonError(f"--port {own.text}: {error}") from None
        other = found.get(name, said.get(name, own.rate))
        if other != own.rate:
            raise HypermonError(f"--port {own.text}: another node with {own.front.name} has {other} baud; a board has "
                                "one rate for all of them")
        found[name] = own.rate
    serial = [node for node, own in stimulus.wiring.items() if own.rate is None]
    if serial and said.get("spi_hz") is None:
        found |= _span(stimulus, serial, clock_hz)
    return found


def _span(stimulus: Any, nodes: list[int], clock_hz: int) -> dict[str, Any]:
    """The rate of the clocks of these nodes, as far as they send bytes."""
    from hypermon.sim.stimulus.serial_span import spans_of

    spans = spans_of(stimulus, nodes, clock_hz)
    if spans is None:
        return {}
    rate = Fraction(10 * clock_hz, spans.chosen)
    most = min(rate, Fraction(clock_hz, 2))
    names = "node " + ", ".join(map(str, sorted(nodes)))
    click.echo(f"hypermon: {names}: --front-rate spi={round(most)}, from the stimulus: a byte lasts {spans.least} "
               f"clocks at most, and the next one is complete after {spans.most} or more", err=True)
    if not spans.fits:
        click.echo(f"hypermon: {names}: no setting fits the slowest and the fastest of these bytes; those that it does "
                   "not fit are rejected and counted", err=True)
    return {"spi_hz": most}
