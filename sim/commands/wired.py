"""Settings of front ends, from what ``--port`` says of nodes with fewer wires, and from their stimulus."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import click
from hypermon.hdl.layout import Front, front_period
from hypermon.host.errors import HypermonError
from hypermon.host.link import Link

__all__ = ["wired_settings"]

_RATES = {Front.UART: "uart_baud", Front.SWO: "swo_baud"}


def wired_settings(link: Link, said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for the nodes to which ``--port`` gives fewer wires; none if there are no such nodes.

    The rate of a clock is no part of ``--port``: it is found in the stimulus, and stated on standard error.

    Parameters
    ----------
    link : to the virtual board that plays them.
    said : settings of other options, which go before what is found in the stimulus.

    Raises
    ------
    HypermonError
        for a rate that a board cannot receive, and for two rates of one kind: it has a single setting for all nodes of
        that kind.
    """
    from hypermon.sim.virtual.link import VirtualLink

    if not isinstance(link, VirtualLink) or not link.played.stimulus.wiring:
        return {}
    stimulus, clock_hz = link.played.stimulus, link.geometry.clock_hz
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
