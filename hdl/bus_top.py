"""The board inside a system on a chip, as plain ports: registers on Wishbone, the stream as AXI-Stream."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer

from .axi_stream import AxiStream
from .layout import BEAT_BYTES, Geometry
from .top import LinkedTop
from .wishbone import Wishbone

__all__ = ["BusTop"]


class BusTop(LinkedTop):
    """The board with the standard buses of systems on a chip.

    Ports: in addition to those of :class:`~.top.LinkedTop`, ``wb_clk``, of any rate and phase (it may be the board's);
    ``wb_*``, see :func:`~.wishbone.wishbone_signature`; ``axis_*``, see :func:`~.axi_stream.axi_stream_signature`, in
    the board's clock domain.

    Parameters
    ----------
    geometry, ram, build, pad_stage : see :class:`~.top.LinkedTop`.
    axi_bytes : width of the stream.

    Raises
    ------
    ValueError
        as :class:`~.top.LinkedTop` does, and for an unsupported width of the stream.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, pad_stage: bool = True,
                 axi_bytes: int = BEAT_BYTES):
        super().__init__(geometry, ram, build, pad_stage)
        self.axi_stream, self.wishbone = AxiStream(axi_bytes), Wishbone()
        self.wb_clk = Signal()
        self.wb = self._named("wb", self.wishbone.bus)
        self.axis = self._named("axis", self.axi_stream.o)

    @staticmethod
    def _named(prefix: str, interface) -> dict[str, Signal]:
        return {name: Signal.like(getattr(interface, name), name=f"{prefix}_{name}")
                for name in interface.signature.members}

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        return super().ports(self.wb_clk, *self.wb.values(), *self.axis.values())

    def elaborate(self, platform):
        m = Module()
        m.domains.wb = wb = ClockDomain(local=True)
        m.submodules.wb_reset = ResetSynchronizer(self.rst, domain="wb")
        m.submodules.wishbone = DomainRenamer("wb")(self.wishbone)
        m.submodules.axi_stream = self.axi_stream
        m.d.comb += wb.clk.eq(self.wb_clk)
        self.core(m)
        wiring.connect(m, self.wishbone.pbx, self.capture.bus)
        wiring.connect(m, self.capture.stream, self.axi_stream.i)
        for interface, named in ((self.wishbone.bus, self.wb), (self.axi_stream.o, self.axis)):
            for name, port in named.items():
                inner = getattr(interface, name)
                drives = interface.signature.members[name].flow is wiring.Out
                m.d.comb += port.eq(inner) if drives else inner.eq(port)
        return m
