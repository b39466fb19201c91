"""The commands that read a board's identity and state: ``devices``, ``info``, ``selftest``; and ``pcie``."""

import json
import sys
from pathlib import Path

import click
from hypermon.boards.model.mixture import stated
from hypermon.hdl.layout import BEAT_BYTES, Front, Sink
from hypermon.host import link
from hypermon.host.cli.options import BOARD, open_device, virtual_geometry
from hypermon.host.device.device import Device
from hypermon.host.diagnose import selftest as tests
from hypermon.host.errors import HypermonError
from hypermon.host.flash.bitstreams import clock_known
from hypermon.host.link import pcie_functions
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.printable import printable
from rich.markup import escape
from rich.table import Table

__all__ = ["devices", "info", "pcie", "selftest"]

#: Units of a board's values, where they are printed for people.
_UNITS = {"latency": "clocks", "clock_hz": "Hz", "node_depth": "port writes", "vector_depth": "strobe vectors",
          "frame_depth": "frames", "store_depth": f"beats of {BEAT_BYTES} bytes",
          "external_depth": f"beats of {BEAT_BYTES} bytes"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def devices(as_json: bool) -> None:
    """List the boards that are connected, and what to do if one cannot be opened."""
    found = link.find_boards()
    if as_json:
        click.echo(json.dumps([board._asdict() for board in found], indent=2))
        return
    width = max(len(printable(board.uri)) for board in found)
    for board in found:
        click.echo(f"{printable(board.uri):{width}}  {printable(board.what)}")
        if board.problem is not None:
            click.echo(f"{'':{width}}  cannot be opened: {printable(board.problem)}")


@click.command()
@BOARD
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def info(board: str, as_json: bool) -> None:
    """Describe a board, and its clock's source if this machine has the bitstream."""
    with open_device(board) as device:
        values = {"board": board, **device.identity.as_dict()}
        if fronts := device.geometry.fronts:
            # The registers end with the last node that has no port.
            values["ports"] = stated((*fronts, *[Front.PORT] * (device.identity.nodes - len(fronts))))
    values |= clock_known(values["build"], Path(".build/boards"))
    if values.get("bitstreams") == [] and board.partition(":")[0] != "sim":
        click.echo(f"hypermon: {board} has build {values['build']}, and no bitstream that is known here has: it is "
                   "older or newer than those; to load one of them: hypermon flash BOARD", err=True)
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    table = Table.grid(padding=(0, 2))
    # Of each node in JSON, and here the same in short.
    for name, value in values.items():
        if name == "fronts":
            continue
        text = ", ".join(value) or "none" if isinstance(value, list) else f"{value:,}" if name in _UNITS else str(value)
        table.add_row(f"[bold]{name}", cell(f"{text} {_UNITS[name]}" if name in _UNITS else text))
    make_console().print(table)


@click.command()
@BOARD
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per check.")
def selftest(board: str, as_json: bool) -> int:
    """Let a board test itself, with no node attached.

    The board's node emulator drives every port downstream of the pads. Its tests are: every value;
    all nodes at once; more nibbles than the FIFOs hold; and, while the host does not read, nibbles
    until the store is full. The counts of received, refused and reported nibbles must agree. Exit
    status 1 if a check fails.
    """
    from hypermon.sim.virtual.open import open_virtual

    console, failed, geometry = make_console(), 0, virtual_geometry(Sink.EXTENDED)
    virtual = board.partition(":")[0] == "sim"
    with (Device(open_virtual([], geometry, uri=board, drain_rate=tests.VIRTUAL_LINK)) if virtual
          else open_device(board)) as device:
        for verdict in tests.selftest(device):
            failed += verdict.passed is False
            if as_json:
                click.echo(json.dumps(verdict._asdict()))
            else:
                mark = {True: "[green]passed[/]", False: "[red]FAILED[/]", None: "  -   "}[verdict.passed]
                console.print(f"{mark}  {verdict.name:<28} {escape(verdict.seen)}", highlight=False, soft_wrap=True)
    if failed and not as_json:
        click.echo(f"hypermon: {board} failed {failed} checks", err=True)
    return 1 if failed else 0


@click.group(no_args_is_help=False)
def pcie() -> None:
    """Bind boards in PCIe slots to the driver through which they are recorded, or unbind them."""
    if not sys.platform.startswith("linux"):
        raise HypermonError("a board in a PCIe slot needs Linux")


@pcie.command()
@click.argument("bdf", default="")
def bind(bdf: str) -> None:
    """Bind a board to the kernel's driver vfio-pci, as root.

    BDF is the board's address, such as 0000:01:00.0; it may be left out if there is only one board.
    """
    function = pcie_functions.one_function(bdf)
    pcie_functions.bind(function)
    click.echo(f"pcie:{function.bdf} is ready: IOMMU group {function.group}")


@pcie.command()
@click.argument("bdf", default="")
def unbind(bdf: str) -> None:
    """Unbind a board from vfio-pci, as root.

    The kernel then binds it to another driver if it has one for the board. BDF is as for `hypermon pcie bind`.
    """
    function = pcie_functions.one_function(bdf)
    pcie_functions.unbind(function)
    click.echo(f"pcie:{function.bdf} is released")
