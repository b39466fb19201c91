"""Bitstreams of Lattice's ECP5, back to Verilog: by Project Trellis' ``ecpunpack`` and database, see :mod:`trellis`.

Lookup tables, adders, flip-flops, small memories and input registers are written as plain Verilog, block RAMs as cells
with models, and the clocks of PLLs from their ratios. Only what leads to an output pin is written.
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from netlist import BitstreamError, Clocks, Family, with_models
from trellis import Fabric, Tile, Wire

__all__ = ["chip", "lookup", "package_of"]

_CELLS = Path(__file__).parents[1] / "hdl" / "cells"
_MODELS = Family("ecp5", (), "ecp5/cells_sim.v", (_CELLS / "dp16kd.v", _CELLS / "pdpw16kd.v"))
#: Packages as Project Trellis calls them, by their maker's two letters.
_PACKAGES = {"BG": "CABGA", "MG": "CSFBGA"}
_PINS = "DCBA"
#: Which of a slice's pins an address bit of its memory is, highest first, and which of slice C's a data bit is.
_ADDRESS, _DATA = "ACBD", "CADB"
#: Tiles of block RAMs, by number: that with the cell, and those to the right of it, by the beginning of their kind.
_EBR = (("MIB_EBR0 EBR_CMUX_UR EBR_CMUX_LR", "MIB_EBR1"), ("MIB_EBR2", "MIB_EBR3", "MIB_EBR4"),
        ("MIB_EBR4", "MIB_EBR5", "MIB_EBR6"), ("MIB_EBR6", "MIB_EBR7", "MIB_EBR8 EBR_SPINE EBR_CMUX"))
_WIDE = 18
#: Tiles of PLLs: kinds of the two, and where the cell is, seen from the first.
_PLLS = {"PLL0_UL": ("PLL1_UL", (1, 0)), "PLL0_LL": ("BANKREF8", (0, -1)), "PLL0_LR": ("PLL1_LR", (0, -1)),
         "PLL0_UR": ("PLL1_UR", (-1, 0))}
_OUTPUTS = ("CLKOP", "CLKOS", "CLKOS2", "CLKOS3")


class Pad(NamedTuple):
    """An I/O cell: its pin, its wires' place, its letter, and the tiles of its pad and of its flip-flops."""

    pin: str
    place: Wire
    letter: str
    pad: Tile
    logic: Tile


class _Chip:
    """A netlist under construction: the wires whose drivers are still missing, and the Verilog of all others.

    Members
    -------
    declared, lines : Verilog of the wires, and of the cells. kinds : of cells that have models. inputs : pins that
        something takes.
    """

    def __init__(self, fabric: Fabric, clocks: Clocks, pads: list[Pad]):
        self.fabric, self.clocks = fabric, clocks
        self.declared: list[str] = []
        self.lines: list[str] = []
        self.kinds: set[str] = set()
        self.inputs: set[str] = set()
        self.other_hz = clocks.link_hz
        self.pads = {(pad.place.x, pad.place.y, pad.letter): pad for pad in pads}
        self.plls = {}
        for place, tiles in fabric.tiles.items():
            for tile in tiles:
                if tile.kind in _PLLS and fabric.value([tile], "MODE") == "EHXPLLL":
                    second, (right, down) = _PLLS[tile.kind]
                    x = place[0] + (1 if tile.kind in ("PLL0_LL", "PLL0_UL") else -1)
                    self.plls[place[0] + right, place[1] + down] = [tile, fabric.tile(x, place[1], second)]
        self._todo: list[Wire] = []
        self._known: dict[Wire, Wire | None] = {}
        self._written: set[str] = set()

    def driver(self, wire: Wire, passed: frozenset[Wire] = frozenset()) -> Wire | None:
        """The output of a cell that a wire comes from; None if nothing drives it.

        Raises
        ------
        BitstreamError
            for a wire that several drive.
        """
        if wire in self._known:
            return self._known[wire]
        if any(re.fullmatch(pattern, wire.name) for pattern in _WRITERS):
            found = {wire}
        else:
            found = {self.driver(of, passed | {wire}) for of in self.fabric.before(wire) if of not in passed} - {None}
        if len(found) > 1:
            raise BitstreamError(f"the wire {wire} is driven by {' and '.join(sorted(map(str, found)))}")
        self._known[wire] = found.pop() if found else None
        return self._known[wire]

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
                next(writer for pattern, writer in _WRITERS.items() if re.fullmatch(pattern, wire.name))(self, wire)

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


def lookup(table: int, pins: list[str]) -> str:
    """A lookup table as a Verilog expression; ``pins`` : the highest address bit first."""
    if not pins:
        return f"1'b{table}"
    half = 1 << (len(pins) - 1)
    low, high = table & (1 << half) - 1, table >> half
    if low == high or pins[0] == "1'b0":
        return lookup(low, pins[1:])
    if pins[0] == "1'b1":
        return lookup(high, pins[1:])
    one, other = lookup(high, pins[1:]), lookup(low, pins[1:])
    if low == high ^ (1 << half) - 1:
        return pins[0] if one == "1'b1" else f"~{pins[0]}" if one == "1'b0" else f"({pins[0]} ^ {other})"
    return f"({pins[0]} ? {one} : {other})"


def _table_pins(made: _Chip, at: Wire, number: int) -> list[str]:
    value, slice_ = made.logic(at), f"SLICE{'ABCD'[number // 2]}"
    return ["1'b1" if value(f"{slice_}.{pin}{number % 2}MUX") == "1" else made.net(at.beside(f"{pin}{number}_SLICE"))
            for pin in _PINS]


def _table(made: _Chip, wire: Wire) -> None:
    """The output of a lookup table, which may be part of an adder or of a distributed RAM."""
    number = int(wire.name[1])
    value, slice_ = made.logic(wire), f"SLICE{'ABCD'[number // 2]}"
    mode, init = value(f"{slice_}.MODE"), int(value(f"{slice_}.K{number % 2}.INIT"), 2)
    pins = _table_pins(made, wire, number)
    if mode == "LOGIC":
        made.assigned(wire, lookup(init, pins))
    elif mode == "CCU2":
        carried = "" if value(f"{slice_}.CCU2.INJECT1_{number % 2}") == "YES" else f" ^ {_carry(made, wire, number)}"
        made.assigned(wire, f"{lookup(init, pins)}{carried}")
    elif mode == "DPRAM":
        _memory(made, wire, number, init, pins)
    else:
        raise BitstreamError(f"the table {wire} has the mode {mode}")


def _carry(made: _Chip, at: Wire, number: int) -> str:
    """The carry into a table of an adder."""
    if number % 2 == 0:
        return made.net(at.beside(f"FCI{'ABCD'[number // 2] if number else ''}_SLICE"), floating="1'b0")
    return _carried(made, at, number - 1)


def _carried(made: _Chip, at: Wire, number: int) -> str:
    """The carry out of a table of an adder."""
    value, slice_ = made.logic(at), f"SLICE{'ABCD'[number // 2]}"
    if (mode := value(f"{slice_}.MODE")) != "CCU2":
        raise BitstreamError(f"a carry of row {at.y}, column {at.x} comes from {slice_}, whose mode is {mode}")
    pins, init = _table_pins(made, at, number), int(value(f"{slice_}.K{number % 2}.INIT"), 2)
    sum_, made_by = lookup(init, pins), lookup(init & 15, pins[2:])
    if value(f"{slice_}.CCU2.INJECT1_{number % 2}") == "YES":
        made_by = "1'b0"
    if sum_ == "1'b0":      # the beginning of a carry, which a pin gives
        return made_by
    return f"({sum_} ? {_carry(made, at, number)} : {made_by})"


def _carry_out(made: _Chip, wire: Wire) -> None:
    letter = wire.name[3] if wire.name[3] in "ABC" else "D"
    made.assigned(wire, _carried(made, wire, 2 * "ABCD".index(letter) + 1))


def _memory(made: _Chip, wire: Wire, number: int, init: int, pins: list[str]) -> None:
    """Distributed RAM: slice C's pins write it, at the tile's second clock, enabled by its second reset wire."""
    writes = _table_pins(made, wire, 4), _table_pins(made, wire, 5)
    address = ", ".join(writes[0][_PINS.index(pin)] for pin in _ADDRESS)
    data = writes[1][_PINS.index(_DATA[number])]
    enable = {"1": "1'b1", "0": "1'b0"}.get(made.logic(wire)("SLICEA.WREMUX")) or _common(made, wire, "LSR1")
    read = ", ".join(pins[_PINS.index(pin)] for pin in _ADDRESS)
    made.declared.append(f"reg [15:0] memory_{wire};")
    made.lines.append(f"initial memory_{wire} = {init};\nalways @(posedge {_common(made, wire, 'CLK1')}) if ({enable}) "
                      f"memory_{wire}[{{{address}}}] <= {data};")
    made.assigned(wire, f"memory_{wire}[{{{read}}}]")


def _common(made: _Chip, at: Wire, name: str) -> str:
    """A clock or a reset of a logic tile, inverted where the bits say so."""
    net = made.net(at.beside(name), floating="")
    if not net:
        raise BitstreamError(f"nothing drives {name} in row {at.y}, column {at.x}")
    return f"{'~' * (made.logic(at)(f'{name}.{name[:3]}MUX') == 'INV')}{net}"


def _wide(made: _Chip, wire: Wire) -> None:
    """A multiplexer that makes a table of five inputs or more from two smaller ones."""
    at = "ABCD".index(wire.name[2])
    if wire.name.startswith("F5"):
        names, select = (f"F{2 * at + 1}_SLICE", f"F{2 * at}_SLICE"), 2 * at
    else:
        names, select = (f"FXB{wire.name[2]}_SLICE", f"FXA{wire.name[2]}_SLICE"), 2 * at + 1
    one, other = (made.net(wire.beside(name)) for name in names)
    chosen = ("1'b1" if made.logic(wire)(f"SLICE{wire.name[2]}.M{select % 2}MUX") == "1" else
              made.net(wire.beside(f"M{select}_SLICE")))
    made.assigned(wire, f"{chosen} ? {one} : {other}")


def _flip_flop(made: _Chip, wire: Wire) -> None:
    number = int(wire.name[1])
    half, letter = number // 2, "ABCD"[number // 2]
    value = made.logic(wire)
    register = f"SLICE{letter}.REG{number % 2}"
    preset = value(f"{register}.REGSET") == "SET"
    loaded = "1'b1" if value(f"SLICE{letter}.M{number % 2}MUX") == "1" else None
    data = (made.net(wire.beside(f"DI{number}_SLICE")) if value(f"{register}.SD") == "1" else
            loaded or made.net(wire.beside(f"M{number}_SLICE")))
    clock = _chosen(made, wire, "CLK", half)
    if not clock:
        raise BitstreamError(f"the flip-flop {wire} has no clock")
    reset, enable = _chosen(made, wire, "LSR", half), _enable(made, wire, letter, half)
    after = f"if ({enable}) {wire} <= {data};" if enable != "1'b1" else f"{wire} <= {data};"
    edges = f"posedge {_common(made, wire, clock)}"
    if reset:
        level = _common(made, wire, reset)
        to = f"1'b{preset:d}"
        if value(f"{register}.LSRMODE") == "PRLD":
            to = loaded or made.net(wire.beside(f"M{number}_SLICE"))
        if value(f"{reset}.SRMODE") == "ASYNC":
            edges += f", posedge {level}"
        after = f"if ({level}) {wire} <= {to}; else {after}"
    made.clocked(wire, preset, edges, after)


def _chosen(made: _Chip, at: Wire, kind: str, half: int) -> str:
    """Which of a tile's two clocks or resets a slice takes, "" for none."""
    before = list(made.fabric.before(at.beside(f"MUX{kind}{half}")))
    if not before or made.driver(before[0]) is None:
        return ""
    return before[0].name


def _enable(made: _Chip, at: Wire, letter: str, half: int) -> str:
    mux = made.logic(at)(f"SLICE{letter}.CEMUX")
    if mux in ("0", "1"):
        return f"1'b{mux}"
    return f"{'~' * (mux == 'INV')}{made.net(at.beside(f'CE{half}_SLICE'))}"


def _input_register(made: _Chip, wire: Wire) -> None:
    """The flip-flop of an I/O cell, from the pad.

    Raises
    ------
    BitstreamError
        if it is something else than a flip-flop: a latch, or one of two edges.
    """
    letter, kind = wire.name[5], wire.name.partition("_")[2]
    pad = made.pads[wire.x, wire.y, letter]
    cell = f"IOLOGIC{letter}"

    def value(name: str) -> str:
        return made.fabric.value([pad.logic], f"{cell}.{name}")

    if value("MODE") != "IREG_OREG" or value("FF.INREGMODE") != "FF" or value("CLKIMUX") == "0":
        raise BitstreamError(f"the input register of pin {pad.pin} has the mode {value('MODE')}, "
                             f"{value('FF.INREGMODE')}, and its clock is {value('CLKIMUX')}")

    def pin(name: str) -> str:
        inverted = value(f"{name}MUX" if name != "CLK" else "CLKIMUX") == "INV"
        return f"{'~' * inverted}{made.net(wire.beside(f'J{name}{letter}_{kind}'))}"

    data = made.net(wire.beside(f"DI{letter}_{kind}"))
    enable = "1'b1" if value("CEIMUX") == "1" else pin("CE")
    reset = "1'b0" if value("LSRIMUX") == "0" else pin("LSR")
    preset, edges = value("FF.REGSET") == "SET", f"posedge {pin('CLK')}"
    if reset != "1'b0" and value("SRMODE") == "ASYNC":
        edges += f", posedge {reset}"
    made.clocked(wire, preset, edges,
                 f"if ({reset}) {wire} <= {preset:d}; else if ({enable}) {wire} <= {data};")


def _block_ram(made: _Chip, wire: Wire) -> None:
    """The block RAM whose output that is, with all its pins."""
    kinds = [tile.kind for tile in made.fabric.tiles[wire[:2]]]
    number = next(n for n, (first, *_) in enumerate(_EBR)
                  if any(kind.startswith(tuple(first.split())) for kind in kinds))
    tiles = [made.fabric.tile(wire.x + n, wire.y, kind) for n, kind in enumerate(_EBR[number])]

    def value(name: str) -> str:
        return made.fabric.value(tiles, f"EBR{number}.{name}")

    def pin(name: str) -> str:
        return f"{'~' * (value(f'{name}MUX') == 'INV')}{made.net(wire.beside(f'J{name}_EBR'))}"

    whole = value("MODE") == "PDPW16KD"
    outputs = {f"DO{side}{n}": wire.beside(f"JDO{side}{n}_EBR") for side in "AB" for n in range(_WIDE)}
    made.together(list(outputs.values()))
    pins = {name: str(to) for name, to in outputs.items()}
    pins |= {f"DI{side}{n}": made.net(wire.beside(f"JDI{side}{n}_EBR")) for side in "AB" for n in range(_WIDE)}
    pins |= {f"AD{side}{n}": pin(f"AD{side}{n}") for side in "AB" for n in range(14)}
    pins |= {f"{name}{side}": pin(f"{name}{side}") for side in "AB" for name in ("CE", "OCE", "CLK", "RST")}
    for side in "AB":
        decoded = value(f"CSDECODE_{side}")[::-1]
        pins |= {f"CS{side}{n}": f"{'~' * (decoded[n] == '1')}{made.net(wire.beside(f'JCS{side}{n}_EBR'))}"
                 for n in range(3)}
    if value("RESETMODE") != "SYNC":
        raise BitstreamError(f"the block RAM of {wire} has an asynchronous reset")
    made.lines.append(_whole_words(wire, value, pins) if whole else _two_ports(
        wire, value, pins | {f"WE{side}": pin(f"WE{side}") for side in "AB"}))
    made.kinds.add("PDPW16KD" if whole else "DP16KD")


def _two_ports(wire: Wire, value: Callable[[str], str], pins: dict[str, str]) -> str:
    modes = {f"REGMODE_{side}": value(f"REGMODE_{side}") for side in "AB"}
    if {value(f"DP16KD.WRITEMODE_{side}") for side in "AB"} != {"NORMAL"}:
        raise BitstreamError(f"the block RAM of {wire} reads while it writes")
    given = [f".{name}(\"{mode}\")" for name, mode in modes.items()]
    given += (f".DATA_WIDTH_{side}({value(f'DP16KD.DATA_WIDTH_{side}')})" for side in "AB")
    return f"DP16KD #({', '.join(given)}) ram_{wire} ({_wired(pins)});"


def _whole_words(wire: Wire, value: Callable[[str], str], pins: dict[str, str]) -> str:
    """As words of 36 bits: one port writes, the other one reads."""
    width, registers = value("PDPW16KD.DATA_WIDTH_R"), [value(f"REGMODE_{side}") for side in "AB"]
    if width != "36" or registers[0] != registers[1] or pins["RSTA"] != pins["RSTB"]:
        raise BitstreamError(f"the block RAM of {wire} reads words of {width} bits, registers {', '.join(registers)}, "
                             f"resets {pins['RSTA']} and {pins['RSTB']}")
    made = {f"DI{n}": pins[f"DI{'AB'[n // _WIDE]}{n % _WIDE}"] for n in range(2 * _WIDE)}
    made |= {f"DO{n}": pins[f"DO{'BA'[n // _WIDE]}{n % _WIDE}"] for n in range(2 * _WIDE)}
    made |= {f"BE{n}": pins[f"ADA{n}"] for n in range(4)} | {f"ADW{n}": pins[f"ADA{n + 5}"] for n in range(9)}
    made |= {f"ADR{n}": pins[f"ADB{n}"] for n in range(14)}
    made |= {f"CSW{n}": pins[f"CSA{n}"] for n in range(3)} | {f"CSR{n}": pins[f"CSB{n}"] for n in range(3)}
    made |= {"CEW": pins["CEA"], "CLKW": pins["CLKA"], "CER": pins["CEB"], "OCER": pins["OCEB"], "CLKR": pins["CLKB"],
             "RST": pins["RSTB"]}
    return f"PDPW16KD #(.REGMODE(\"{registers[0]}\")) ram_{wire} ({_wired(made)});"


def _wired(pins: dict[str, str]) -> str:
    return ", ".join(f".{pin}({net})" for pin, net in pins.items())


def _gate(made: _Chip, wire: Wire) -> None:
    """A clock gate, from which a clock reaches the whole chip."""
    name = wire.name.removeprefix("G_CLKO_")
    clock = made.net(wire.beside(f"G_CLKI_{name}"), floating="")
    if not clock:
        raise BitstreamError(f"the clock {name} comes from nowhere")
    made.assigned(wire, f"{clock} & {made.net(wire.beside(f'G_JCE_{name}'))}")


def _pll_output(made: _Chip, wire: Wire) -> None:
    """A PLL's clock, which passes while its reference, held high, does; or its lock, which is the reference."""
    reference = made.net(wire.beside("CLKI_PLL"), floating="1'b0")
    if wire.name.endswith("LOCK_PLL"):
        made.assigned(wire, reference)
        return
    rate = _rate(made, wire) / made.clocks.oscillator_hz
    source, hz = made.clocks.input_of("ecp5", rate.numerator, rate.denominator)
    made.other_hz = hz if source == "link_clk" else made.other_hz
    made.assigned(wire, f"{source} & {reference}")


def _rate(made: _Chip, wire: Wire) -> Fraction:
    """Hz of a wire that comes from the oscillator's pin, or from a PLL whose reference may be another PLL.

    Raises
    ------
    BitstreamError
        for another source, an output that is not enabled, whose first edge is not that of the others, or whose PLL has
        no output of its own fed back.
    """
    driver = made.driver(wire)
    if driver is not None and driver.name.startswith("G_CLKO_"):
        return _rate(made, driver.beside(driver.name.replace("CLKO", "CLKI")))
    if driver is not None and driver.name.startswith("JPADDI"):
        return Fraction(made.clocks.oscillator_hz)
    if driver is None or (driver.x, driver.y) not in made.plls:
        raise BitstreamError(f"the clock {wire} comes from {driver or 'nowhere'}")
    tiles = made.plls[driver.x, driver.y]

    def count(name: str) -> int:
        return int(made.fabric.value(tiles, name), 2) + 1

    back, output = made.driver(driver.beside("CLKFB_PLL")), driver.name[1:].removesuffix("_PLL")
    while back is not None and back.name.startswith("G_CLKO_"):
        back = made.driver(back.beside(back.name.replace("CLKO", "CLKI")))
    if back is None or back[:2] != driver[:2] or made.fabric.value(tiles, f"{output}_ENABLE") != "ENABLED":
        raise BitstreamError(f"the PLL's {output} is not enabled, or it has {back} fed back")
    for name in {output, back.name[1:].removesuffix("_PLL")}:
        if count(f"{name}_CPHASE") != count(f"{name}_DIV"):
            raise BitstreamError(f"the PLL's {name} is divided by {count(f'{name}_DIV')}, and its first edge is at "
                                 f"{count(f'{name}_CPHASE')}")
    vco = _rate(made, driver.beside("CLKI_PLL")) * count("CLKFB_DIV") * count(
        f"{back.name[1:].removesuffix('_PLL')}_DIV") / count("CLKI_DIV")
    return vco / count(f"{output}_DIV")


#: What writes the driver of a wire, by the name of the wire.
_WRITERS: dict[str, Callable[[_Chip, Wire], None]] = {
    r"F\d_SLICE": _table, r"Q\d_SLICE": _flip_flop, r"(F5|FX)[A-D]_SLICE": _wide, r"FCO[ABC]?_SLICE": _carry_out,
    r"JDO[AB]\d+_EBR": _block_ram, r"JINFF[A-D]_S?IOLOGIC": _input_register, r"G_CLKO_\wDCC\w+": _gate,
    rf"J({'|'.join(_OUTPUTS)}|LOCK|INTLOCK)_PLL": _pll_output, r"JPADDI[A-D]_PIO": lambda made, wire: None}


def _pads(fabric: Fabric, package: str) -> Iterator[Pad]:
    """I/O cells of the package's pins, see nextpnr's ``get_pio_tile`` and ``get_pic_tile``."""
    for pin, at in fabric.pads[package].items():
        x, y, letter = int(at["col"]), int(at["row"]), str(at["pio"])
        if y == 0:
            right = letter == "B"
            tiles = fabric.tile(x + right, 0, f"PIOT{right:d}"), fabric.tile(x + right, 1, f"PICT{right:d}")
        elif x == 0 or x == max(place[0] for place in fabric.tiles):
            side = "L" if x == 0 else "R"
            tiles = (fabric.tile(x, y + 1, f"PIC{side}1"),
                     fabric.tile(x, y, f"PIC{side}0") if letter in "AB" else
                     fabric.tile(x, y + 2, f"PIC{side}2 MIB_CIB_LR"))
        else:
            kinds = "PICB1 EFB1_PICB1 EFB3_PICB1" if letter == "B" else "PICB0 EFB0_PICB0 EFB2_PICB0 SPICB0"
            tile = fabric.tile(x + (letter == "B"), y, kinds)
            tiles = tile, tile
        yield Pad(pin, Wire(x, y, ""), letter, *tiles)


def package_of(name: str) -> str:
    """What Project Trellis calls a package of that name, as its maker has it: BG381."""
    return _PACKAGES.get(name[:2], name[:2]) + name[2:]


def chip(text: str, package: str, clocks: Clocks) -> tuple[str, int]:
    """Module ``chip`` of ``ecpunpack``'s text, with its cells, and the rate of ``link_clk`` in Hz.

    Raises
    ------
    BitstreamError
        for a cell or a mode that there is no model of, or a PLL that makes another clock than the board's.
    """
    fabric = Fabric(text)
    if package not in fabric.pads:
        raise BitstreamError(f"the {fabric.device} comes in {', '.join(fabric.pads)}, not in {package}")
    pads = list(_pads(fabric, package))
    made, outputs = _Chip(fabric, clocks, pads), {}
    for pad in pads:
        kind = fabric.value([pad.pad], f"PIO{pad.letter}.BASE_TYPE")
        if kind.startswith(("OUTPUT", "BIDIR")):
            muxes = [fabric.value([tile], f"PIO{pad.letter}.DATAMUX_{name}") for tile in (pad.logic, pad.pad)
                     for name in ("ODDR", "OREG", "MDDR")]
            if "IOLDO" in muxes:
                raise BitstreamError(f"the output {pad.pin} has a register in its I/O cell")
            outputs[f"pin_{pad.pin}"] = made.net(pad.place.beside(f"PADDO{pad.letter}_PIO"))
    made.write()
    header = ", ".join(["input clk", "input link_clk", *(f"input {pin}" for pin in sorted(made.inputs)),
                        *(f"output {pin}" for pin in sorted(outputs))])
    lines = [*made.declared, *made.lines, *(f"assign {pin} = {of};" for pin, of in outputs.items())]
    whole = "\n".join((f"module chip ({header});", *lines, "endmodule\n"))
    return with_models(_MODELS, whole, made.kinds), made.other_hz
