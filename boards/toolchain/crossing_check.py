"""Searches a mapped netlist for paths from one clock to another that are not among the declared ones.

Place and route checks no timing between clocks, so no other step finds an unintended path.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Crossing", "clock_names", "crossings", "late", "undeclared"]

#: Combinational cells.
_COMBINATIONAL = {
    "LUT4", "PFUMX", "L6MUX21", "CCU2C", "MULT18X18D", "DELAYG",
    "LUT1", "LUT2", "LUT3", "MUX2_LUT5", "MUX2_LUT6", "MUX2_LUT7", "MUX2_LUT8", "ALU", "SB_LUT4", "SB_CARRY"}
#: Clocks of cells with state: the pins sampled by each clock, and those driven by it. ``None``: all the others.
_CLOCKED: dict[str, tuple[tuple[str, tuple[str, ...] | None, tuple[str, ...]], ...]] = {
    "TRELLIS_FF": (("CLK", None, ("Q",)),), "ODDRX1F": (("SCLK", None, ("Q",)),),
    "IDDRX1F": (("SCLK", None, ("Q",)),),
    # Its samples pass from the edge clock to the clock inside; its reset ends while the edge clock is stopped.
    "IDDRX2F": (("ECLK", ("D",), ()), ("SCLK", (), ("Q",))),
    "DP16KD": (("CLKA", ("DIA", "ADA", "CEA", "WEA", "OCEA", "RSTA", "CSA"), ("DOA",)),
               ("CLKB", ("DIB", "ADB", "CEB", "WEB", "OCEB", "RSTB", "CSB"), ("DOB",))),
    "PDPW16KD": (("CLKW", ("DI", "ADW", "BE", "CEW", "CSW"), ()), ("CLKR", ("ADR", "CER", "OCER", "CSR"), ("DO",))),
    "TRELLIS_DPR16X4": (("WCK", ("DI", "WAD", "WRE"), ()),),
    # Gowin's: flip-flops of all kinds, block RAMs, distributed memory.
    **{f"DFF{kind}": (("CLK", None, ("Q",)),) for kind in ("", "E", "R", "RE", "S", "SE", "P", "PE", "C", "CE")},
    **dict.fromkeys(("SDPB", "SDPX9B"), (("CLKA", ("DI", "ADA", "CEA", "RESETA", "BLKSELA"), ()),
                                         ("CLKB", ("ADB", "CEB", "OCE", "RESETB", "BLKSELB"), ("DO",)))),
    "RAM16SDP4": (("CLK", ("DI", "WAD", "WRE"), ()),),
    #: Lattice's iCE40: flip-flops of all kinds, and block RAMs; those with N are read at the falling edge.
    **{f"SB_DFF{kind}": (("C", None, ("Q",)),) for kind in ("", "E", "SR", "R", "SS", "S", "ESR", "ER", "ESS", "ES")},
    **{f"SB_RAM40_4K{kind}": (("WCLK", ("WADDR", "WDATA", "MASK", "WE", "WCLKE"), ()),
                              (f"RCLK{kind[:1]}", ("RADDR", "RE", "RCLKE"), ("RDATA",))) for kind in ("", "NR")},
}
#: Memories with asynchronous read, whose output belongs to the clock that writes: pins of both.
_LOOKED_UP = {"TRELLIS_DPR16X4": ("RAD", "WCK"), "RAM16SDP4": ("RAD", "CLK")}
_IGNORED = {"$scopeinfo", "TRELLIS_IO", "EHXPLLL", "DCCA", "CLKDIVF", "ECLKSYNCB", "OSCG", "VHI", "VLO", "GSR", "SGSR",
            "IBUF", "OBUF", "TBUF", "IOBUF", "rPLL", "VCC", "GND", "SB_IO", "SB_GB_IO", "SB_PLL40_CORE", "SB_PLL40_PAD"}


@dataclass(frozen=True)
class Crossing:
    """A path between clocks: names of both clocks' nets, and of the net that the receiving cell drives."""

    source: str
    target: str
    into: str


class _Netlist:
    def __init__(self, module: dict[str, Any], preferred: tuple[str, ...]):
        self.cells = module["cells"]
        self.names: dict[int, str] = {}
        for name, net in module["netnames"].items():
            for bit in net["bits"]:
                if isinstance(bit, int):
                    self.names[bit] = min(name, self.names.get(bit, name), key=lambda one: (
                        not one.startswith(preferred), one.startswith("$"), len(one)))
        self.driver: dict[int, tuple[dict[str, Any], str]] = {}
        for cell in self.cells.values():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    self.driver |= {bit: (cell, port) for bit in bits if isinstance(bit, int)}
        self._reached: dict[int, frozenset[int]] = {}

    def clocks(self, bit: int | str) -> frozenset[int]:
        """The clocks of everything that can change a net combinationally."""
        todo, under_way = [bit], set()
        while todo:
            now = todo[-1]
            if not isinstance(now, int) or now in self._reached:
                todo.pop()
                continue
            inputs, own = self._behind(now)
            inputs = [i for i in inputs if isinstance(i, int)]
            missing = [i for i in inputs if i not in self._reached]
            if under_way.intersection(missing):
                raise ValueError(f"a loop of gates through {self.names[now]}")
            if missing:
                under_way.add(now)
                todo += missing
                continue
            self._reached[now] = own.union(*(self._reached[i] for i in inputs))
            under_way.discard(now)
            todo.pop()
        return self._reached[bit] if isinstance(bit, int) else frozenset()

    def releases_reset(self, cell: dict[str, Any]) -> bool:
        """Whether it belongs to a row of flip-flops that synchronizes the release of an asynchronous reset."""
        if cell.get("parameters", {}).get("SRMODE") != "ASYNC":
            return False
        data = cell["connections"]["DI"][0]
        before = self.driver.get(data, ({}, ""))[0].get("connections", {})
        return not isinstance(data, int) or before.get("LSR") == cell["connections"]["LSR"]

    def _behind(self, bit: int) -> tuple[list[int | str], frozenset[int]]:
        """Inputs that reach a net combinationally, and the clock of its driver."""
        if bit not in self.driver:
            return [], frozenset()
        cell, port = self.driver[bit]
        kind, pins = cell["type"], cell["connections"]
        if kind in _COMBINATIONAL:
            ways = cell["port_directions"]
            return [bit for name, bits in pins.items() if ways[name] == "input" for bit in bits], frozenset()
        if kind in _LOOKED_UP:
            address, clock = _LOOKED_UP[kind]
            return pins[address], frozenset(pins[clock])
        for clock, _, gives in _CLOCKED.get(kind, ()):
            if port.rstrip("0123456789") in gives:
                return [], frozenset(b for b in pins[clock] if isinstance(b, int))
        return [], frozenset()


def _keeps(cell: dict[str, Any]) -> bool:
    """Whether it is a multiplier with registers of its own. Yosys makes none from this project's sources."""
    return cell["type"] == "MULT18X18D" and any(
        name.startswith("REG_") and name.endswith("_CLK") and value != "NONE"
        for name, value in cell.get("parameters", {}).items())


def crossings(netlist: Path, top: str, preferred: tuple[str, ...] = ()) -> list[Crossing]:
    """All paths between clocks in Yosys' JSON of a mapped design, except those into the row of a reset.

    Parameters
    ----------
    preferred : beginnings of names. Of the names of a net the shortest is taken, but first of all one of these: which
        other names Yosys gives to a net changes with the rest of the design.

    Raises
    ------
    ValueError
        for an unknown cell, or a combinational loop.
    """
    nets = _Netlist(json.loads(netlist.read_text())["modules"][top], preferred)
    found = set()
    for cell in nets.cells.values():
        kind, pins = cell["type"], cell["connections"]
        if _keeps(cell) or kind not in _COMBINATIONAL | _IGNORED | set(_CLOCKED):
            raise ValueError(f"{netlist}: a cell of kind {kind}, whose clock is not known here")
        for clock, takes, gives in _CLOCKED.get(kind, ()):
            own = frozenset(b for b in pins[clock] if isinstance(b, int))
            for port, bits in pins.items():
                stem = port.rstrip("0123456789")
                if cell["port_directions"][port] != "input" or port == clock:
                    continue
                if (takes is not None and stem not in takes) or (port == "LSR" and nets.releases_reset(cell)):
                    continue
                for source in frozenset().union(*(nets.clocks(bit) for bit in bits)) - own:
                    into = next((b for name, out in pins.items() if name.rstrip("0123456789") in (gives or ("DO",))
                                 for b in out), bits[0])
                    found |= {Crossing(nets.names[source], nets.names[target], nets.names.get(into, "?"))
                              for target in own}
    return sorted(found, key=lambda c: (c.source, c.target, c.into))


def clock_names(netlist: Path, top: str, clocks: dict[str, int], given: Collection[str] = ()) -> dict[str, str]:
    """Maps every name of a PLL's clock net to the name in ``clocks`` that has its frequency, in Hz.

    Yosys and nextpnr show only one of the names of a net, which may be one deep in the link. ``given`` : domains whose
    clocks are not a PLL's: a net that is such a clock in some part of the design is named after it.
    """
    module = json.loads(netlist.read_text())["modules"][top]
    megahertz = {f"{hz / 1e6:g}": name for name, hz in clocks.items()}
    made = {}
    for cell in module["cells"].values():
        if cell["type"] in ("EHXPLLL", "CLKDIVF", "rPLL", "SB_PLL40_CORE", "SB_PLL40_PAD"):
            for pin, bits in cell["connections"].items():
                if (said := cell["attributes"].get(f"FREQUENCY_PIN_{pin}")) in megahertz and pin != "CLKI":
                    made |= dict.fromkeys(bits, megahertz[said])
    names = module["netnames"]
    made |= {bit: domain for net, of in names.items() if (domain := _domain(net)) in given
             for bit in of["bits"] if bit not in made}
    return {net: made[bit] for net, of in names.items() for bit in of["bits"] if bit in made}


def _domain(net: str) -> str:
    """The domain of a clock, by the name of its net; empty for another net."""
    last = net.rpartition(".")[2]
    return last.removesuffix("_clk") if last.endswith("_clk") else ""


def undeclared(found: Iterable[Crossing], declared: tuple[str, ...]) -> list[Crossing]:
    """Those whose receiving net's name begins with none of ``declared``."""
    return [crossing for crossing in found if not crossing.into.startswith(declared)]


def late(report: dict[str, Any], clocks: dict[str, str], hz: int) -> str:
    """The slowest path between two of these clocks in nextpnr's report, if it exceeds a period of ``hz``.

    Edges of in-phase clocks of one PLL are at least a period of the fastest apart. ``clocks`` : names of
    nets, and the clocks they belong to. Empty: no such path.
    """
    slowest, which = 0.0, ""
    for path in report.get("critical_paths", ()):
        ends = [clocks.get(path[end].partition(" ")[2].removeprefix("$glbnet$"), "") for end in ("from", "to")]
        if all(ends) and ends[0] != ends[1]:
            ns = sum(step["delay"] for step in path["path"])
            if ns > slowest:
                slowest, which = ns, f"{ends[0]} to {ends[1]} {ns:.1f} ns of {1e9 / hz:.1f}"
    return which if slowest > 1e9 / hz else ""
