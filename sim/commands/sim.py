"""The command ``hypermon sim``: plays a stimulus on the virtual board, and records its output."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import click
from click.core import ParameterSource
from hypermon.hdl.layout import BEAT_BYTES, NODES_MAX, Geometry, Sink
from hypermon.host.cli.options import settings_options, virtual_geometry, warn_of_the_bus, window_of
from hypermon.host.cli.record import record_with_progress
from hypermon.host.cli.settings import (
    fronts_of,
    guard_settings,
    lowest_of,
    mask_settings,
    modes_of,
    rate_settings,
    refuse_edges,
    trigger_settings,
)
from hypermon.host.device.device import Device, Settings
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.record.drain import refuse_drain
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.text.numbers import finite
from hypermon.sim.commands.wired import lines_of, wired_settings
from hypermon.sim.virtual.open import load_stimulus, open_stimulus

__all__ = ["sim"]

#: A ``--port`` of a node with fewer wires than a port.
_FEWER = re.compile(r",\s*(?:uart|swo|serial)\s*(?:,|$)")


@click.command()
@click.argument("stimulus", nargs=-1, required=True, metavar="STIMULUS...")
@click.option("-o", "--output", "run", required=True, metavar="RUN", type=click.Path(path_type=Path),
              help="Directory of the recorded run; must not exist.")
@click.option("--nodes", type=click.IntRange(1, NODES_MAX), default=16, show_default=True, metavar="N",
              help=f"Nodes of the board, 1 to {NODES_MAX}.")
@settings_options
@click.option("--clock", type=int, default=100_000_000, show_default=True, metavar="HZ",
              help="Clock of the board, a multiple of 5 MHz.")
@click.option("--drain-rate", type=click.FloatRange(1), callback=finite, metavar="BYTES/S",
              help="Rate at which the host reads the stream. Default: faster than the board can write.")
@click.option("--stall", "stalls", multiple=True, metavar="AT_MS,FOR_MS",
              help="At AT_MS the host stops reading for FOR_MS. Repeatable.")
@click.option("--store-kib", type=click.IntRange(0, 512), metavar="KIB",
              help="Block RAM that buffers blocks for the host. Default: none in the classic configuration, 48 in "
                   "the extended one.")
@click.option("--memory-mib", type=click.IntRange(0, 4096), default=0, metavar="MIB",
              help="SDRAM that buffers blocks for the host, a power of two.")
@click.option("--port", "ports", multiple=True, metavar="[FILE#]NODE=D0,D1,D2,D3,STROBE[,EDGE][,POINT]",
              help="The channels of a file that are a node's port. Repeatable. "
                   "With --port-bits 8, D0 to D7. A node with fewer wires: NODE=LINE,uart,BAUD, NODE=LINE,swo,BAUD or "
                   "NODE=CLOCK,DATA[,SELECT],serial[,rising|falling][,msb|lsb]. Nodes on lines of regeneration boards: "
                   "0-7=line, 0-15=line, 0-23=line or 0-31=line.")
@click.option("--delay", "delays", multiple=True, metavar="[NODE=]data|strobe,NS",
              help="The data, or the strobes, change NS nanoseconds later than in STIMULUS: for recorded signals in "
                   "which both change at the same time. NODE= sets one node. Repeatable.")
@click.option("--start-at", metavar="first[,NS]",
              help="Move all times of STIMULUS, so that its first change is NS (1000) nanoseconds after time 0: for a "
                   "stimulus that begins with a long silence.")
@click.option("--half-clock", is_flag=True,
              help="A board that samples strobes twice per clock: with --window 1, stamps count half clocks. Needs "
                   "--config extended.")
@click.option("--quarter-clock", is_flag=True,
              help="As --half-clock, but four times per clock: stamps count quarter clocks.")
@click.option("--port-bits", type=click.Choice(["4", "8"]), default="4", show_default=True, metavar="4|8",
              help="Data bits of a port. With 8, each write carries a byte. Needs --config extended.")
@click.option("--front", "fronts", multiple=True, metavar="[NODE=]FRONT",
              help="How nodes are wired: port (default), two_wire (SPI clock and data), selected (also a chip select), "
                   "uart, swo. NODE= sets one node. In a CSV file bit 4 of the port is the clock or the one wire, bit "
                   "0 the data, bit 1 the chip select. Needs --config extended.")
@click.option("--seed", type=int, metavar="N",
              help="Seed of random delays: an input that changes at the sampling edge may be seen one clock later.")
@click.option("--dictionary", metavar="FILE", type=click.Path(path_type=Path),
              help="Event dictionary: a copy is kept in RUN.")
@click.option("--no-skip", is_flag=True, help="Simulate every clock, even when nothing happens (same result).")
def sim(stimulus: tuple[str, ...], run: Path, nodes: int, config: str, window: str | None, drain: str,
        flush_ms: float, edges: tuple[str, ...], samples: tuple[str, ...], modes: tuple[str, ...],
        rates: tuple[str, ...], orders: tuple[str, ...],
        glitch: int, rate_limit: str | None, masks: tuple[str, ...], start: str | None,
        stop: str | None, pretrigger: int, item_timeout_ms: float, clock: int, drain_rate: float | None,
        stalls: tuple[str, ...], store_kib: int | None, memory_mib: int, ports: tuple[str, ...],
        delays: tuple[str, ...], start_at: str | None, half_clock: bool, quarter_clock: bool, port_bits: str,
        fronts: tuple[str, ...], seed: int | None, dictionary: Path | None, no_skip: bool) -> None:
    """Play STIMULUS on the virtual board and record the output.

    The virtual board is the gateware itself, simulated. A stimulus is a CSV file with the columns
    `time_ns,node,port`, a sigrok session (.sr), a value change dump (.vcd), a CSV export of Saleae Logic, or a recorded
    run; `-` is standard input. Several are merged.
    In a CSV file `port` is the new value of the port: bit 4 is the strobe, bits 3 to 0 are the nibble. With
    --port-bits 8, bit 8 is the strobe and bits 7 to 0 are the byte.
    """
    links, ports = lines_of(ports, nodes)
    fewer = any(_FEWER.search(text) for text in ports)
    unsaid = click.get_current_context().get_parameter_source("config") is ParameterSource.DEFAULT
    sink = Sink.EXTENDED if fewer and unsaid else Sink[config.upper()]
    kept = (mask_settings(masks, sink) | trigger_settings(start, stop, pretrigger, sink)
            | guard_settings(glitch, rate_limit, sink) | rate_settings(rates, sink))
    refuse_drain(drain, sink)
    for option, asked in (("--half-clock", half_clock), ("--quarter-clock", quarter_clock),
                          ("--port-bits 8", port_bits == "8")):
        if asked and sink is Sink.CLASSIC:
            raise HypermonError(f"{option}: the classic board does not have it; add --config extended")
    if half_clock and quarter_clock:
        raise HypermonError("--half-clock and --quarter-clock: a board samples either twice or four times per clock")
    try:
        geometry = virtual_geometry(sink, nodes, clock, 4 if quarter_clock else 2 if half_clock else 1, int(port_bits))
    except ValueError as error:
        raise HypermonError(f"--clock {clock}: {error}") from None
    try:
        geometry = replace(geometry, links=links)
    except ValueError as error:
        raise HypermonError(f"--port 0-{8 * links - 1}=line: {error}") from None
    try:
        geometry = replace(geometry, fronts=fronts_of(fronts, nodes, sink))
    except ValueError:
        raise HypermonError("--front: only nodes with ports of 4 bits that are not on a line can have one"
                            ) from None
    if not fewer:
        modes_of(modes, nodes, sink, geometry.fronts)
    refuse_edges(edges, samples, geometry.fronts)
    lowest = lowest_of(orders, nodes)
    geometry = _with_buffers(geometry, store_kib, memory_mib)
    pauses = tuple(_stall(text) for text in stalls)
    refuse_existing(run)
    if dictionary is not None:
        load_dictionary(dictionary)
    rate = None if drain_rate is None else int(drain_rate)
    if drain_rate is not None and drain == "registers":
        warn_of_the_bus(drain_rate, geometry)
    loaded, geometry = load_stimulus(stimulus, geometry, ports=ports, edges=edges, samples=samples, delays=delays,
                                     start_at=start_at)
    refuse_edges(edges, samples, geometry.fronts)
    kept |= {"lowest": lowest, **wired_settings(loaded, clock, kept)}
    settings = Settings(window=window_of(window, sink), flush_ms=flush_ms, sink=sink,
                        modes=modes_of(modes, nodes, sink, geometry.fronts), item_timeout_ms=item_timeout_ms, **kept)
    link = open_stimulus(loaded, geometry, name=",".join(stimulus), drain_rate=rate, stalls=pauses, seed=seed,
                         skip=not no_skip)
    end_ps = None if link.played is None else link.played.end_ps
    with Device(link) as device:
        record_with_progress(device, run, settings, drain, aside=True,
                             total_s=None if end_ps is None else end_ps / 1e12, dictionary=dictionary)


def _with_buffers(geometry: Geometry, store_kib: int | None, memory_mib: int) -> Geometry:
    """With these buffers before the link, instead of its own."""
    if store_kib is not None:
        try:
            geometry = replace(geometry, store_depth=store_kib * 1024 // BEAT_BYTES)
        except ValueError:
            raise HypermonError(f"--store-kib {store_kib}: it must be 0, 1, 2, 4, 8 or a multiple of 16 up to 512"
                                ) from None
    try:
        return replace(geometry, external_depth=memory_mib * 1024 * 1024 // BEAT_BYTES)
    except ValueError:
        below = 1 << memory_mib.bit_length() - 1
        raise HypermonError(f"--memory-mib {memory_mib}: it must be 0 or a power of two, such as {below} or "
                            f"{2 * below}") from None


def _stall(text: str) -> tuple[Decimal, Decimal]:
    try:
        at, length = (Decimal(part) for part in text.split(","))
        if not (0 <= at < Decimal("inf") and 0 <= length < Decimal("inf")):
            raise ValueError
    except (ValueError, ArithmeticError):
        raise HypermonError(f"--stall {text}: expected AT_MS,FOR_MS, two times in milliseconds") from None
    return at, length
