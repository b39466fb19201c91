"""A board with a PCIe link, and beside it the plain board, whose stream judges what arrives in the host's memory.

Both have the same ports, the same bus and the same clock. The plain board's stream moves in the clocks in which that of
the other board may, so it is the same stream, losses included, unless the link has changed something.
"""

from amaranth.back import verilog
from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable, Module, Signal
from hypermon.hdl.layout import ADDRESS_BITS, Geometry
from hypermon.hdl.pcie_top import PcieTop
from hypermon.hdl.top import PlainTop

__all__ = ["twins_verilog"]


class _Linked(PcieTop):
    """The board with the link; it shows the board's bus, and when the link takes a beat of the stream."""

    def __init__(self, geometry: Geometry):
        super().__init__(geometry)
        self.req, self.write, self.addr, self.wdata = Signal(), Signal(), Signal(ADDRESS_BITS), Signal(32)
        self.ready = Signal()

    def board(self, m, link, domain, marked=True, whole=False):
        super().board(m, link, domain, marked, whole)
        crossing = m.submodules.crossing
        m.d.comb += [
            *(getattr(self, name).eq(getattr(crossing.bus, name)) for name in ("req", "write", "addr", "wdata")),
            self.ready.eq(crossing.stream.ready)]


class _Twins(Elaboratable):
    """Ports: those of the board with the link; and ``plain_valid``, ``plain_ready``, ``plain_data``: beats that the
    plain board delivers."""

    def __init__(self, geometry: Geometry):
        self.linked, self.plain = _Linked(geometry), PlainTop(geometry)
        self.valid, self.ready = Signal(name="plain_valid"), Signal(name="plain_ready")
        self.data = Signal(128, name="plain_data")

    def ports(self):
        return [*self.linked.ports(), self.valid, self.ready, self.data]

    def elaborate(self, platform):
        m = Module()
        m.submodules.linked = linked = self.linked
        # Both call their clock domain sync; that of the plain board is not local.
        m.submodules.plain = DomainRenamer({"sync": "plain"})(plain := self.plain)
        # A reset reaches the plain board a clock earlier. Scanners that never stop must be at the same position.
        m.domains.early = early = ClockDomain(reset_less=True, local=True)
        reset = Signal(init=1)
        m.d.early += reset.eq(linked.rst)
        m.d.comb += [
            early.clk.eq(linked.clk), plain.rst.eq(reset),
            *(getattr(plain, name).eq(getattr(linked, name)) for name in ("clk", "data", "strobe")),
            *(getattr(plain, f"pbx_{name}").eq(getattr(linked, name)) for name in ("req", "write", "addr", "wdata")),
            plain.stream_ready.eq(linked.ready),
            self.valid.eq(plain.stream_valid), self.ready.eq(linked.ready), self.data.eq(plain.stream_data)]
        return m


def twins_verilog(geometry: Geometry) -> str:
    """Verilog of module ``hypermon``: both boards."""
    twins = _Twins(geometry)
    return verilog.convert(twins, name="hypermon", ports=twins.ports(), emit_src=False, strip_internal_attrs=True)
