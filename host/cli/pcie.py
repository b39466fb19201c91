"""The commands ``hypermon pcie``: which driver has a board in a PCIe slot."""

import sys

import click
from hypermon.host.errors import HypermonError
from hypermon.host.link import pcie_functions

__all__ = ["pcie"]


@click.group()
def pcie() -> None:
    """Give boards in PCIe slots to the driver through which they are recorded, and back."""
    if not sys.platform.startswith("linux"):
        raise HypermonError("a board in a PCIe slot needs Linux")


@pcie.command()
@click.argument("bdf", default="")
def bind(bdf: str) -> None:
    """Give a board to the kernel's driver vfio-pci, as root.

    BDF is the board's address, such as 0000:01:00.0; it may be left out if there is only one board.
    """
    function = pcie_functions.one_function(bdf)
    pcie_functions.bind(function)
    click.echo(f"pcie:{function.bdf} is ready: IOMMU group {function.group}")


@pcie.command()
@click.argument("bdf", default="")
def unbind(bdf: str) -> None:
    """Take a board from vfio-pci, as root.

    Another driver has it afterwards, if the kernel knows one. BDF is as for `hypermon pcie bind`.
    """
    function = pcie_functions.one_function(bdf)
    pcie_functions.unbind(function)
    click.echo(f"pcie:{function.bdf} is released")
