"""The netlist of an ECP5's bits: from an output's wire back to the cell that drives it, and to that cell's inputs."""

import re
from collections.abc import Callable
from typing import NamedTuple

from netlist import BitstreamError, Clocks
from trellis import Fabric, Tile, Wire

__all__ = ["PLLS", "Chip", "Pad", "Writers"]

#: Tiles of PLLs: kinds of the two, of the second as :meth:`~.trellis.Fabric.tile` takes them, and where the second and
#: the cell are, seen from the first.
PLLS = {"PLL0_UL": ("PLL1_UL", (0, 1), (1, 0)), "PLL0_LL": ("BANKREF8", (1, 0), (0, -1)),
         "PLL0_LR": ("PLL1_LR BANKREF4", (-1, 0), (0, -1)), "PLL0_UR": ("PLL1_UR", (0, 1), (-1, 0))}
#: Outputs of cells, without those that only tests of the chip use.
_OUTPUT = re.compile(r"J\w+_(?!CIBTEST)[A-Z]+[0-9]*")


class Pad(NamedTuple):
    """An I/O cell: its pin, its wires' place, its letter, and the tiles of its pad and of its flip-flops."""

    pin: str
    place: Wire
    letter: str
    pad: Tile
    logic: Tile


class Chip:
    """A netlist under construction: the wires whose drivers are still missing, and the Verilog of all others.

    Parameters
    ----------
    writers : what writes the driver of a wire, by a pattern of the wire's name.

    Members
    -------
    declared, lines : Verilog of the wires, and of the cells. kinds : of cells that have models. inputs : pins that
        something takes. unread : wires of cells that must not be read.
    """

    def __init__(self, fabric: Fabric, clocks: Clocks, pads: list[Pad], writers: "Writers"):
        self.fabric, self.clocks, self._writers = fabric, clocks, writers
        self.declared: list[str] = []
        self.lines: list[str] = []
        self.kinds: set[str] = set()
        self.inputs: set[str] = set()
        self.unread: set[str] = set()
        self.other_hz = clocks.link_hz
        self.pads = {(pad.place.x, pad.place.y, pad.letter): pad for pad in pads}
        self.plls = {}
        for place, tiles in fabric.tiles.items():
            for tile in tiles:
                if tile.kind in PLLS and fabric.value([tile], "MODE") == "EHXPLLL":
                    second, (x, y), (right, down) = PLLS[tile.kind]
                    self.plls[place[0] + right, place[1] + down] = [
                        tile, fabric.tile(place[0] + x, place[1] + y, second)]
        self._todo: list[Wire] = []
        self._known: dict[Wire, Wire | None] = {}
        self._written: set[str] = set()

    def driver(self, wire: Wire, passed: frozenset[Wire] = frozenset()) -> Wire | None:
        """The output of a cell that a wire comes from; None if nothing drives it.

        Raises
        ------
        BitstreamError
            for a wire that several drive, and for one that comes from a cell that has no model.
        """
        if wire in self._known:
            return self._known[wire]
        if any(re.fullmatch(pattern, wire.name) for pattern in self._writers):
            found = {wire}
        else:
            found = {self.driver(of, passed | {wire}) for of in self.fabric.before(wire) if of not in passed} - {None}
            if not passed and not found and (cells := sorted(map(str, self._cells(wire)))):
                raise BitstreamError(f"the wire {wire} comes from {' or '.join(cells)}, of which there is no model")
        if len(found) > 1:
            raise BitstreamError(f"the wire {wire} is driven by {' and '.join(sorted(map(str, found)))}")
        self._known[wire] = found.pop() if found else None
        return self._known[wire]

    def _cells(self, wire: Wire) -> set[Wire]:
        """Outputs of cells at the ends of all ways back from a wire. Cells of several kinds may share a wire; the
        settings choose."""
        ends, seen, todo = set(), {wire}, [wire]
        while todo:
            at = todo.pop()
            before = set(self.fabric.before(at)) - seen
            if not before and at != wire and _OUTPUT.fullmatch(at.name):
                ends.add(at)
            seen |= before
            todo += before
        return ends

    def net(self, wire: Wire, floating: str = "1'b1") -> str:
        """What is at a wire, as Verilog: the output of a cell, which is then written too, a constant, or ``floating``.
        """
        if tied := self._tied(wire):
            return tied
        driver = self.driver(wire)
        if driver is None:
            return floating
        if driver.name.startswith("JPADDI"):
            pad = self.pads.get((driver.x, driver.y, driver.name[6]))
            if pad is None:
                raise BitstreamError(f"{driver} is read, and is no pin of the package")
            self.inputs.add(f"pin_{pad.pin}")
            return f"pin_{pad.pin}"
        self._todo.append(driver)
        return str(driver)

    def _tied(self, wire: Wire) -> str:
        """The constant that the wires of a block's border are tied to, "" for others.

        Those of clocks and resets are high where the database calls them 0, see nextpnr's ``tie_cib_signal``.
        """
        while not re.fullmatch(r"J([A-D]|CE|LSR|CLK)[0-7]", wire.name):
            before = list(self.fabric.before(wire))
            if len(before) != 1:
                return ""
            wire = before[0]
        for tile in self.fabric.tiles.get(wire[:2], ()):
            value = tile.values.get(f"CIB.{wire.name}MUX")
            if value in ("0", "1"):
                return "1'b1" if wire.name.startswith(("JLSR", "JCLK")) else f"1'b{value}"
        return ""

    def write(self) -> None:
        """Writes the drivers of all wires that were requested, and of their inputs."""
        while self._todo:
            wire = self._todo.pop()
            if str(wire) not in self._written:
                self._written.add(str(wire))
                write = next(write for name, write in self._writers.items() if re.fullmatch(name, wire.name))
                write(self, wire)

    def assigned(self, wire: Wire, value: str) -> None:
        """A wire with its driver."""
        self.declared.append(f"wire {wire};")
        self.lines.append(f"assign {wire} = {value};")

    def clocked(self, wire: Wire, preset: bool, edges: str, process: str) -> None:
        """A wire that a flip-flop drives, and what it is at first."""
        self.declared.append(f"reg {wire};")
        self.lines.append(f"initial {wire} = {preset:d};\nalways @({edges}) {process}")

    def together(self, wires: list[Wire]) -> None:
        """These are outputs of one cell."""
        self._written |= set(map(str, wires))
        self.declared += (f"wire {wire};" for wire in wires)

    def logic(self, wire: Wire) -> Callable[[str], str]:
        """Settings of the logic tile that a wire is in."""
        tile = self.fabric.tile(wire.x, wire.y, "PLC2")
        return lambda name: self.fabric.value([tile], name)


Writers = dict[str, Callable[[Chip, Wire], None]]
