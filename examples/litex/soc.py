"""A LiteX SoC with the board: registers on its bus, and a DMA writer that puts the stream into memory.

``python examples/litex/soc.py hypermon.v -o FOLDER`` writes soc.v, the addresses csr.h and memory's first contents into
the folder. There is no processor: the ports ``host_*`` are a Wishbone master, in the place of one (or of a PCIe or
Etherbone core), and soc.cpp is its program.
"""

import argparse
import os
from pathlib import Path

from hypermon_litex import Hypermon
from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.build.io import CRG
from litex.soc.cores.dma import WishboneDMAWriter
from litex.soc.integration.export import get_csr_header, get_mem_header
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import wishbone

HYPERMON, TRACE, TRACE_BYTES = 0x3000_0000, 0x4000_0000, 1 << 18
#: Wires of the Wishbone master.
HOST = {"cyc": 1, "stb": 1, "we": 1, "adr": 30, "sel": 4, "dat_w": 32, "dat_r": 32, "ack": 1, "err": 1}


def wires(count):
    """As many pins: a simulation has no names for them."""
    return Pins(" ".join("X" * count))


class Soc(SoCMini):
    """Memory, the board at ``nodes`` ports, and the way from the one to the other."""

    def __init__(self, platform, verilog, nodes):
        self.crg = CRG(platform.request("clk"), platform.request("rst"))
        super().__init__(platform, clk_freq=100_000_000, cpu_type=None, csr_data_width=32)

        self.hypermon = Hypermon(platform, verilog, nodes=nodes)
        self.hypermon.add_to(self, "hypermon", HYPERMON)
        self.comb += [self.hypermon.data.eq(platform.request("data")),
                      self.hypermon.strobe.eq(platform.request("strobe")),
                      platform.request("running").eq(self.hypermon.running)]

        # The first byte of a word is its lowest: "big" leaves them so. A writer ends at `last`; blocks go on.
        self.add_ram("trace", TRACE, TRACE_BYTES)
        self.dma = WishboneDMAWriter(wishbone.Interface(data_width=32, adr_width=30), endianness="big", with_csr=True)
        self.bus.add_master("dma", self.dma.bus)
        self.comb += self.hypermon.source.connect(self.dma.sink, omit={"last"})

        host, pins = wishbone.Interface(data_width=32, adr_width=30), platform.request("host")
        self.bus.add_master("host", host)
        for name in HOST:
            inner, outer = getattr(host, name), getattr(pins, name)
            self.comb += outer.eq(inner) if name in ("dat_r", "ack", "err") else inner.eq(outer)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verilog", type=Path, help="of the board, for as many nodes")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    platform = GenericPlatform("simulation", [
        ("clk", 0, wires(1)), ("rst", 0, wires(1)), ("running", 0, wires(1)), ("data", 0, wires(4 * args.nodes)),
        ("strobe", 0, wires(args.nodes)),
        ("host", 0, *(Subsignal(name, wires(width)) for name, width in HOST.items()))], name="soc")
    soc = Soc(platform, args.verilog.resolve(), args.nodes)
    args.output.mkdir(parents=True, exist_ok=True)
    os.chdir(args.output)  # memory's contents are files beside soc.v
    platform.get_verilog(soc, name="soc").write("soc.v")
    Path("csr.h").write_text(get_csr_header(soc.csr_regions, soc.constants, with_access_functions=False))
    Path("mem.h").write_text(get_mem_header(soc.mem_regions))


if __name__ == "__main__":
    main()
