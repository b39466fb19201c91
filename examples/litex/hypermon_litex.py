"""The board as a LiteX module: its registers on the bus of the SoC, its blocks as a LiteX stream. Copy this file.

It needs the board's Verilog with standard buses, made once for all (or taken from a release):

    make verilog OUT=hypermon.v ARGS="--link bus --axi-bytes 4 --nodes 4"
"""

from litex.gen import LiteXModule, Open
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import stream, wishbone
from migen import ClockSignal, Instance, ResetSignal, Signal

#: Bytes of the registers' addresses.
SIZE = 0x2000


class Hypermon(LiteXModule):
    """The capture core, in the domain ``sys``.

    Parameters
    ----------
    platform : gets the Verilog as a source.
    verilog : path of the file that ``make verilog`` has written. ``--clock`` is the frequency of ``sys``.
    nodes, port_bits, axi_bytes, extended : as ``--nodes``, ``--port-bits``, ``--axi-bytes`` and ``--config`` have it.

    Attributes
    ----------
    data, strobe : the nodes' ports, asynchronous: node i's data are bits port_bits * i and up of ``data``.
    bus : Wishbone, for the registers; see :meth:`add_to`.
    source : the stream, with ``last`` at the end of each block.
    running : high while the board's time runs.
    sync_in, sync_out : with ``extended``, the wave of several boards.
    """

    def __init__(self, platform, verilog, nodes=16, port_bits=4, axi_bytes=4, extended=False):
        self.data = Signal(port_bits * nodes)
        self.strobe = Signal(nodes)
        self.running = Signal()
        self.bus = bus = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
        self.source = source = stream.Endpoint([("data", 8 * axi_bytes)])
        ports = {
            "i_clk": ClockSignal("sys"), "i_rst": ResetSignal("sys"), "i_data": self.data, "i_strobe": self.strobe,
            "o_running": self.running,
            "i_wb_clk": ClockSignal("sys"), "i_wb_cyc": bus.cyc, "i_wb_stb": bus.stb, "i_wb_we": bus.we,
            "i_wb_adr": bus.adr[:11], "i_wb_sel": bus.sel, "i_wb_dat_w": bus.dat_w, "o_wb_dat_r": bus.dat_r,
            "o_wb_ack": bus.ack, "o_wb_err": bus.err,
            "o_axis_tvalid": source.valid, "i_axis_tready": source.ready, "o_axis_tlast": source.last,
            "o_axis_tdata": source.data, "o_axis_tkeep": Open(axi_bytes)}
        if extended:
            self.sync_in, self.sync_out = Signal(), Signal()
            ports |= {"i_sync_in": self.sync_in, "o_sync_out": self.sync_out}
        self.specials += Instance("hypermon", **ports)
        platform.add_source(str(verilog), "verilog")

    def add_to(self, soc, name, origin):
        """Maps the registers of docs/registers.md to ``origin`` and the 8 KiB from there, on the SoC's bus."""
        soc.bus.add_slave(name, self.bus, SoCRegion(origin=origin, size=SIZE, cached=False))
