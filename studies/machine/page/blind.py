"""Draws random parameters for the blind runs; the analyses do not import this module."""

from dataclasses import replace
from random import Random
from typing import Any

from hypermon.studies.machine.core.noise import Source
from hypermon.studies.machine.machines import asciq, ipsc860, sp2
from hypermon.studies.machine.machines.elan import Model

__all__ = ["drawn_asciq", "drawn_ipsc860", "drawn_qsnet", "drawn_sp2"]

#: Each parameter is drawn within this share of its own value.
_WITHIN = 0.3


def _drawn(random: Random, value: float) -> float:
    return value * random.uniform(1 - _WITHIN, 1 + _WITHIN)


def drawn_ipsc860(random: Random) -> tuple[ipsc860.Model, dict[str, Any]]:
    """A model, and what is to be found of it."""
    own = ipsc860.Model()
    model = replace(own, short=(_drawn(random, own.short[0]), _drawn(random, own.short[1])),
                    data=(_drawn(random, own.data[0]), _drawn(random, own.data[1])), probe=_drawn(random, own.probe),
                    hop=_drawn(random, own.hop), fifo=round(_drawn(random, own.fifo)))
    return model, {"planted_short_constant_us": model.short[0], "planted_short_byte_us": model.short[1],
                   "planted_short_hop_us": model.hop, "planted_long_constant_us": model.data[0] + 2 * model.probe,
                   "planted_long_byte_us": model.data[1], "planted_plateau_bytes": model.fifo}


def drawn_asciq(random: Random) -> tuple[asciq.Daemons, dict[int, float], list[dict[str, Any]]]:
    """Noise, a slow node, and the sources by node."""
    table = {key: tuple(Source(_drawn(random, source.period_s), _drawn(random, source.duration_ms))
                        for source in sources) for key, sources in asciq.TABLE.items()}
    slow = random.choice([node for node in range(32) if node not in asciq.TABLE])
    noise = asciq.Daemons(table)
    rows = [{"node": node, "period_s": source.period_s, "duration_ms": source.duration_ms}
            for node in (0, 1, 31, slow) for source in noise.sources(node)]
    return noise, {slow: 1 + _drawn(random, 0.25)}, rows


def drawn_sp2(random: Random) -> tuple[sp2.Aix, dict[str, Any]]:
    """What the operating system does, and the two periods to be found."""
    own = sp2.Aix()
    system = replace(own, dispatcher=(_drawn(random, own.dispatcher[0]), own.dispatcher[1]),
                     timer=(_drawn(random, own.timer[0]), own.timer[1]))
    return system, {"planted_dispatcher_us": system.dispatcher[0] * 1e6, "planted_timer_us": system.timer[0] * 1e6}


def drawn_qsnet(random: Random) -> tuple[Model, dict[str, Any]]:
    """A network, and what pins can show of it: of the stages in a row, a rate is that of the slowest."""
    own = Model()
    model = replace(own, block=round(_drawn(random, own.block)), inline=round(_drawn(random, own.inline)), **{
        name: _drawn(random, getattr(own, name))
        for name in ("match", "pci_start", "pci_read", "pci_write", "sdram", "link")})
    wire = model.payload_rate
    later = model.pci_start + model.block / model.pci_read - model.block / model.sdram
    return model, {"planted_block_bytes": model.block, "planted_inline_bytes": model.inline,
                   "planted_match_us": model.match, "planted_main_us": later,
                   "planted_main_elan": min(model.pci_read, model.sdram, wire),
                   "planted_elan_main": min(model.sdram, model.pci_write, wire),
                   "planted_elan_elan": min(model.sdram, wire)}
