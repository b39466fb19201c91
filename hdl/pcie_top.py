"""The board with a PCIe link as plain ports, for the PCIe block of an FPGA."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer

from .layout import Geometry
from .stream.sdram_part import SdramPart
from .top import LinkedTop
from .transport.pcie.link import PcieLink
from .transport.pcie.ultrascale_plus import ULTRASCALE_PLUS_PORTS, UltrascalePlus

__all__ = ["PCIE_BLOCKS", "PcieTop"]

#: Blocks by name: their adapter, and the ports that are connected to them.
PCIE_BLOCKS = {"us": (UltrascalePlus, ULTRASCALE_PLUS_PORTS)}


class PcieTop(LinkedTop):
    """The board with a PCIe link, which has the clock of the block.

    Ports: in addition to those of :class:`~.top.LinkedTop`, those of the block by its own names, so that they are wired
    by name. The block's ``user_reset`` does not reset the board, which keeps what it holds until the host is back.

    Parameters
    ----------
    block : a name in PCIE_BLOCKS.
    geometry, ram, build, pad_stage, sdram : see :class:`~.top.LinkedTop`.

    Raises
    ------
    ValueError
        as :class:`~.top.LinkedTop` does, and for an unknown block.
    """

    def __init__(self, geometry: Geometry, block: str = "us", ram: str = "portable", build: int = 0,
                 pad_stage: bool = True, sdram: SdramPart | None = None):
        if block not in PCIE_BLOCKS:
            raise ValueError(f"block must be one of {', '.join(PCIE_BLOCKS)}, not {block!r}")
        super().__init__(geometry, ram, build, pad_stage, sdram)
        self.ram = ram
        self.adapter, named = PCIE_BLOCKS[block]
        self.clock = Signal(name="user_clk")
        self.wires = {name: Signal(member.shape, name=name) for name, member in named.items()}

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        return super().ports(self.clock, *self.wires.values())

    def elaborate(self, platform):
        m = Module()
        m.domains.link = link = ClockDomain(local=True)
        m.submodules.pcie = DomainRenamer("link")(pcie := PcieLink(self.ram))
        m.submodules.adapter = DomainRenamer("link")(adapter := self.adapter())
        m.submodules.link_reset = ResetSynchronizer(self.rst, domain="link")
        m.d.comb += link.clk.eq(self.clock)
        for name, wire in self.wires.items():
            port = getattr(adapter, name)
            m.d.comb += port.eq(wire) if adapter.signature.members[name].flow is wiring.In else wire.eq(port)
        wiring.connect(m, adapter.request, pcie.request)
        wiring.connect(m, pcie.completion, adapter.completion)
        wiring.connect(m, pcie.write, adapter.write)
        m.d.comb += [
            pcie.mps.eq(adapter.mps), pcie.permitted.eq(adapter.permitted), pcie.down.eq(adapter.down),
            pcie.stop.eq(adapter.stop), adapter.running.eq(pcie.running), pcie.msi_enabled.eq(adapter.msi_enabled),
            adapter.msi_request.eq(pcie.msi_request), pcie.msi_sent.eq(adapter.msi_sent)]
        self.board(m, pcie, "link", whole=True)
        return m
