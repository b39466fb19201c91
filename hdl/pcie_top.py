"""The board with a PCIe link as plain ports, for the PCIe block of an FPGA."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer

from .layout import Geometry
from .stream.sdram_part import SdramPart
from .top import LinkedTop
from .transport.pcie.link import PcieLink, connect
from .transport.pcie.series_7 import SERIES_7_PORTS, Series7
from .transport.pcie.ultrascale_plus import ULTRASCALE_PLUS_PORTS, UltrascalePlus

__all__ = ["PCIE_BLOCKS", "PcieTop"]

#: Blocks by name: their adapter, the ports that are connected to them, the port of their clock, and its usual rate.
PCIE_BLOCKS = {
    "us": (UltrascalePlus, ULTRASCALE_PLUS_PORTS, "user_clk", 250_000_000),
    "s7": (Series7, SERIES_7_PORTS, "user_clk_out", 62_500_000)}
#: Clocks of the blocks, and part of a second for which a register access waits for the board: no read takes longer than
#: a microsecond.
_SLOWEST, _FASTEST, _PATIENCE = 62_500_000, 250_000_000, 1_250_000


class PcieTop(LinkedTop):
    """The board with a PCIe link, which has the clock of the block.

    Ports: in addition to those of :class:`~.top.LinkedTop`, those of the block by its own names, so that they are wired
    by name. The block's reset does not reset the board, which keeps what it holds until the host is back. A
    function-level reset does.

    Parameters
    ----------
    block : a name in PCIE_BLOCKS.
    link_hz : clock of the block, 62.5 to 250 MHz; None: the usual one.
    geometry, ram, build, pad_stage, sdram : see :class:`~.top.LinkedTop`.

    Raises
    ------
    ValueError
        as :class:`~.top.LinkedTop` does, and for an unknown block or another clock.
    """

    def __init__(self, geometry: Geometry, block: str = "us", ram: str = "portable", build: int = 0,
                 pad_stage: bool = True, sdram: SdramPart | None = None, link_hz: int | None = None):
        if block not in PCIE_BLOCKS:
            raise ValueError(f"block must be one of {', '.join(PCIE_BLOCKS)}, not {block!r}")
        super().__init__(geometry, ram, build, pad_stage, sdram)
        self.ram = ram
        self.adapter, named, clock, usual = PCIE_BLOCKS[block]
        self.link_hz = usual if link_hz is None else link_hz
        if not _SLOWEST <= self.link_hz <= _FASTEST:
            raise ValueError(f"the block's clock must be {_SLOWEST} to {_FASTEST} Hz, not {self.link_hz}")
        self.clock = Signal(name=clock)
        self.wires = {name: Signal(member.shape, name=name) for name, member in named.items()}

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        return super().ports(self.clock, *self.wires.values())

    def elaborate(self, platform):
        m = Module()
        m.domains.link = link = ClockDomain(local=True)
        m.submodules.pcie = DomainRenamer("link")(pcie := PcieLink(self.ram, self.link_hz // _PATIENCE))
        m.submodules.adapter = DomainRenamer("link")(adapter := self.adapter())
        m.submodules.link_reset = ResetSynchronizer(self.rst, domain="link")
        m.d.comb += link.clk.eq(self.clock)
        for name, wire in self.wires.items():
            port = getattr(adapter, name)
            m.d.comb += port.eq(wire) if adapter.signature.members[name].flow is wiring.In else wire.eq(port)
        connect(m, adapter, pcie)
        self.reset = Signal()
        m.submodules.board_reset = FFSynchronizer(pcie.reset, self.reset, o_domain="sync")
        self.board(m, pcie, "link", whole=True)
        m.submodules.resetting = FFSynchronizer(ResetSignal("sync"), pcie.resetting, o_domain="link", init=1)
        return m
