"""The command ``hypermon emulate``: plays a workload as nodes, for users without nodes."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from hypermon.hdl.layout import NODES_MAX, PORT_BITS, Geometry, Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.export.sinks import refuse_output, sink
from hypermon.host.record.recorder import record
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.text.numbers import counted

__all__ = ["emulate"]


@click.command()
@click.argument("workload", metavar="WORKLOAD")
@click.option("-o", "--output", "run", metavar="RUN", type=click.Path(path_type=Path),
              help="Play on the virtual board, each node a thread of this program; RUN is the recording.")
@click.option("--config", type=click.Choice([sink.name.lower() for sink in Sink]), default="classic", show_default=True,
              help="Which virtual board. The extended one captures words and events as items.")
@click.option("--port-bits", type=click.Choice(["4", "8"]), metavar="BITS",
              help="Data bits of the nodes' ports. Default: those of the run; 4 for a table. Ports of 8 bits need "
                   "--config extended.")
@click.option("--gpio", metavar="CHIP", help="Play on pins of this machine: /dev/gpiochip0, for instance (Linux).")
@click.option("--lines", "wires", multiple=True, metavar="[NODE=]D0,D1,D2,D3,STROBE",
              help="The chip's lines that are a node's port, D0 to D7 with 8 bits. Give it once per node to play. "
                   "NODE= is optional if the workload has only one node.")
@click.option("--uf2", metavar="FILE", type=click.Path(path_type=Path),
              help="Write firmware that plays one node on a Raspberry Pi Pico, with exact timing. If FILE "
                   "ends in .elf, write the program for debuggers instead.")
@click.option("--node", type=click.IntRange(0, NODES_MAX - 1), metavar="N", help="The node that the Pico plays.")
@click.option("--pin", type=click.IntRange(0, 25), default=2, show_default=True, metavar="GP",
              help="The first of the Pico's pins, which are data 0 to 3 (or 0 to 7) and the strobe.")
@click.option("--edges", type=click.IntRange(1, 2), default=1, show_default=True, metavar="1|2",
              help="1: two writes per nibble. 2: one write that toggles the strobe, for --edge both.")
@click.option("--pio", is_flag=True, help="Let the Pico's PIO write instead of its processor; events only.")
@click.option("--clock", type=click.IntRange(5_000_000, 400_000_000), default=100_000_000, show_default=True,
              metavar="HZ", help="Clock of the board that reads the Pico; levels last long enough for it.")
def emulate(workload: str, run: Path | None, config: str, port_bits: str | None, gpio: str | None,
            wires: tuple[str, ...], uf2: Path | None, node: int | None, pin: int, edges: int, pio: bool,
            clock: int) -> None:
    """Play WORKLOAD as nodes would, in real time.

    WORKLOAD is a recorded run, or a table as `hypermon export` prints it: `time_ps,node,nibble` or
    `time_ps,node,event,payload_hex`. It is played on the virtual board (-o), on pins of this machine
    (--gpio), so that a single-board computer drives a capture board, or on a Pico's pins (--uf2).
    """
    from hypermon.sim.emulate.workload import load_workload

    if sum(where is not None for where in (run, gpio, uf2)) != 1:
        raise HypermonError("give exactly one of -o RUN, --gpio CHIP and --uf2 FILE")
    if run is not None:
        refuse_existing(run)
    if uf2 is not None:
        refuse_output(uf2)
    said = load_workload(workload, int(port_bits) if port_bits else None)
    if not said.items:
        raise HypermonError(f"{workload}: it is empty")
    if run is not None:
        _to_board(said, run, Sink[config.upper()])
    elif gpio is not None:
        _to_pins(said, gpio, wires)
    elif uf2 is not None:
        _to_pico(said, uf2, node, pin, edges, pio, clock)


def _to_board(workload: Any, run: Path, sink: Sink) -> None:
    from hypermon.sim.emulate import player as playing
    from hypermon.sim.virtual.open import open_stimulus

    nodes = workload.nodes
    if nodes[-1] >= NODES_MAX:
        raise HypermonError(f"{workload.name}: it has a node {nodes[-1]}; a board has at most {NODES_MAX} nodes")
    if workload.port_bits != PORT_BITS and sink is Sink.CLASSIC:
        raise HypermonError(f"{workload.name}: ports of {workload.port_bits} bits need --config extended")
    count = max(16, nodes[-1] + 1)
    geometry = Geometry(count) if sink is Sink.CLASSIC else Geometry.extended(count, port_bits=workload.port_bits)
    ports = {node: playing.VirtualPort(workload.port_bits) for node in nodes}
    begin = playing.emulate(workload, ports)
    played = playing.stimulus_of(ports, begin, geometry.nodes)
    link = open_stimulus(played, geometry, name=workload.name)
    settings = Settings(window=Window.NS800) if sink is Sink.CLASSIC else Settings(
        window=Window.CLOCK, sink=sink, modes=_modes(workload, geometry.nodes))
    with Device(link) as device:
        ledger = record(device, run, settings, aside=True)
    torn = sum(port.torn for port in ports.values())
    click.echo(f"{run}: {counted(ledger.events, 'item')}, {ledger.lost:,} lost; {torn:,} items torn by the scheduler "
               f"and written again. Next: hypermon stats {run}")


def _modes(workload: Any, nodes: int) -> ItemModes:
    """What the items of each node are.

    Raises
    ------
    HypermonError
        if a node has items of different kinds.
    """
    modes = [ItemMode.NIBBLE] * nodes
    for node in workload.nodes:
        kinds = {item.kind for item in workload.of(node)}
        if len(kinds) > 1:
            names = " and ".join(sorted(f"{kind.name.lower()}s" for kind in kinds))
            raise HypermonError(f"{workload.name}: node {node} has {names}; the extended board takes items of one kind "
                                "from a node")
        modes[node] = ItemMode[kinds.pop().name]
    return ItemModes.of(modes)


def _to_pins(workload: Any, chip: str, wires: Sequence[str]) -> None:
    from hypermon.sim.emulate import player
    from hypermon.sim.pins import GpioPort

    lines = dict(_wires(text, workload) for text in wires)
    if not lines:
        raise HypermonError("--gpio needs --lines, the lines of a node's port: --lines "
                            f"{workload.nodes[0]}=17,18,27,22,23 for instance")
    for node in lines:
        workload.of(node)
    ports: dict[int, Any] = {}
    try:
        for node, numbers in lines.items():
            ports[node] = GpioPort(chip, numbers)
        player.emulate(workload, ports)
    except OSError as error:
        raise HypermonError(f"{chip}: {os.strerror(error.errno or 0)}") from None
    finally:
        for port in ports.values():
            port.close()
    count = sum(item.node in lines for item in workload.items)
    click.echo(f"{chip}: {counted(count, 'item')} of {counted(len(lines), 'node')} written")


def _wires(text: str, workload: Any) -> tuple[int, list[int]]:
    number, equals, listed = text.rpartition("=")
    try:
        node = int(number) if equals else workload.nodes[0]
        lines = [int(line) for line in listed.split(",")]
        if len(lines) != workload.port_bits + 1 or (not equals and len(workload.nodes) > 1):
            raise ValueError
    except ValueError:
        data = ",".join(f"D{bit}" for bit in range(workload.port_bits))
        raise HypermonError(f"--lines {text}: expected NODE={data},STROBE, numbers of lines") from None
    return node, lines


def _to_pico(workload: Any, path: Path, node: int | None, pin: int, edges: int, pio: bool, clock: int) -> None:
    from hypermon.sim.emulate import firmware

    if node is None:
        if len(workload.nodes) > 1:
            raise HypermonError(f"{workload.name}: choose the node that the Pico plays with --node N; "
                                f"there are {', '.join(map(str, workload.nodes))}")
        node = workload.nodes[0]
    items = workload.of(node)
    made = firmware.build_player(items, edges=edges, pio=pio, pin=pin, bits=workload.port_bits, clock_hz=clock)
    try:
        with sink(str(path)) as out:
            out.write(made if path.suffix == ".elf" else firmware.uf2(made))
    except OSError as error:
        raise HypermonError(f"{path}: {error.strerror}") from None
    click.echo(f"{path}: node {node}, {counted(len(items), 'item')} in {items[-1].time_ps / 1e12:.3f} s, data on "
               f"GP{pin} to GP{pin + workload.port_bits - 1}, strobe on GP{pin + workload.port_bits}")
