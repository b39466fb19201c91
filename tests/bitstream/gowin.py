"""Bitstreams of Gowin's GW1N and GW2A, back to Verilog: by apycula, the open tools' description of these parts.

Its ``gowin_unpack`` gives cells and wires, but block RAMs without their mode, and input registers not at all; both are
decoded here. A block RAM's mode is the one whose fuses, as apycula's own tables have them, are exactly those that are
set. An input register is there where something takes an I/O cell's registered output: no other fuse tells of it.
Contents of block RAMs are not decoded: a board's are empty.
"""

import importlib.resources
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from apycula import attrids, chipdb, codegen, gowin_pack
from apycula import gowin_unpack as unpack
from apycula.bslib import read_bitstream
from netlist import BitstreamError, Clocks, Family, with_models

__all__ = ["Netlist", "Tiles", "chip", "tiles_of"]

_MODELS = Family("gowin", (), "gowin/cells_sim.v", (Path(__file__).with_name("gowin.v"),))
#: Outputs of the cells that unpacking gives; of those that have others than Q.
_OUTPUTS = {"LUT4": ("F",), "MUX2": ("O",), "ALU_LUT": ("SUM", "COUT"), "RAM16SDP4": ("DO",), "IBUF": ("O",),
            "IOBUF": ("O",), "SDP18": ("DO",), "SDP36": ("DO",), "rPLL": ("CLKOUT", "CLKOUTD", "LOCK")}
_DIVIDERS = ("IDIV", "FDIV", "ODIV", "SDIV")
_CONSTANTS = {"VCC": "1'b1", "VSS": "1'b0"}
_FLOATING = "floating"
#: Kind, parameters and pins.
Cell = tuple[str, dict[str, Any], dict[str, Any]]
#: Tiles of a block RAM, side by side.
_BSRAM_TILES = 3
#: Tiles of PLLs, which may have no fuse set.
_PLL_ROWS = {"GW1N-9C": (9,), "GW2A-18C": (9, 45)}
#: Models of block RAMs by mode, see :func:`_block_ram`: name, and bits of a word.
_BLOCK_RAMS = {f"{n} and {n} bits, not registered, reset at the clock": (f"SDP{n}", n) for n in (18, 36)}
#: Pins of them, alone and in rows.
_ALONE = ("CLKA", "CEA", "WREA", "CLKB", "CEB", "WREB", "RESETB")
_ROWS = {"ADA": 14, "ADB": 14, "BLKSEL": 3}


class Tiles:
    """A bitstream's fuses, tile by tile, and the part that they are for.

    Parameters
    ----------
    device : as apycula calls it.
    part : as its maker calls it, with package and speed.
    bitmap : rows of fuses.

    Raises
    ------
    BitstreamError
        for a part that apycula does not know.
    """

    def __init__(self, device: str, part: str, bitmap: list[list[int]]):
        self.device = device
        with importlib.resources.as_file(importlib.resources.files("apycula") / f"{device}.msgpack.xz") as path:
            self.db = chipdb.load_chipdb(path)
        _complete(self.db)
        if part not in self.db.packages:
            raise BitstreamError(f"apycula's {device} has no part {part}")
        package, named, _ = self.db.packages[part]
        self.pins = self.db.pinout[named][package]
        self.bitmap = bitmap
        self.tiles = chipdb.tile_bitmap(self.db, bitmap)
        every = chipdb.tile_bitmap(self.db, bitmap, empty=True)
        self.tiles |= {at: every[at] for at in every if at[0] in _PLL_ROWS[device] and self.plls(at)}

    def plls(self, at: tuple[int, int]) -> list[str]:
        """Which cells of a tile are a PLL, or a part of one."""
        return [name for name in self.db[at].bels if name.startswith("RPLL")]


def _complete(db: Any) -> None:
    """Adds to each switch the fuses that ``gowin_pack`` sets with its own: of every group that its input is not in.

    ``gowin_unpack`` does not know them. It would leave out every switch that has such fuses in common with another one.
    """
    for cell in db.tiles.values():
        for to, groups in cell.alonenode.items():
            for of, fuses in cell.pips.get(to, {}).items():
                fuses.update(*(more for sources, more in groups if of not in sources))


def tiles_of(bits: Path, part: str, device: str) -> Tiles:
    """Those of a bitstream for that part, whose device apycula calls so."""
    return Tiles(device, part, read_bitstream(str(bits))[0])


class Netlist:
    """Cells of a bitstream and the wires between them, followed through all switches.

    Parameters
    ----------
    cells : by name, of each its kind, its parameters, and the wires at its pins, highest first where there are several.
    aliases : other names of wires, to the one that counts.
    switched : wires, and what each is switched to.
    """

    def __init__(self, cells: dict[str, Cell], aliases: dict[str, str], switched: Iterable[tuple[str, str]]):
        self.cells, self.aliases = cells, aliases
        self.switches: dict[str, set[str]] = {}
        for to, of in switched:
            self.switches.setdefault(self.root(to), set()).add(self.root(of))
        self.driver = {self.root(net): name for name in self.cells for net in self.outputs(name)}

    @classmethod
    def of(cls, tiles: Tiles) -> "Netlist":
        """That of a bitstream."""
        made = _module(tiles)
        cells = {name: _known(tiles, cell.typ, dict(cell.params), dict(cell.portmap))
                 for name, cell in made.primitives.items()}
        return cls(cells | _input_registers(tiles), made.wire_aliases, made.assigns)

    def root(self, net: str) -> str:
        """The name of a wire among all that it has."""
        while net in self.aliases:
            net = self.aliases[net]
        return net

    def source(self, net: str, passed: frozenset[str] = frozenset()) -> str:
        """What a wire is switched to in the end: one that a cell drives, or a constant.

        A wire that nothing drives is high, as the output of a lookup table is whose fuses are as they were made.

        Raises
        ------
        BitstreamError
            for a wire that several drive.
        """
        net = self.root(net)
        if net in self.driver:
            return net
        if net in _CONSTANTS:
            return _CONSTANTS[net]
        found = {self.source(of, passed | {net}) for of in self.switches.get(net, ()) if of not in passed}
        if len(found) > 1:
            found -= {_FLOATING}
        if len(found) > 1:
            raise BitstreamError(f"the wire {net} is driven by {' and '.join(sorted(found))}")
        return found.pop() if found else _FLOATING

    def outputs(self, name: str) -> list[str]:
        """Wires that a cell drives."""
        kind, _, pins = self.cells[name]
        return [net for pin in _OUTPUTS.get(kind, ("Q",)) for net in _nets(pins.get(pin, []))]

    def inputs(self, name: str) -> list[str]:
        """Wires that a cell takes."""
        kind, _, pins = self.cells[name]
        return [net for pin, of in pins.items() if pin not in _OUTPUTS.get(kind, ("Q",)) for net in _nets(of)]

    def before(self, wires: Iterable[str]) -> set[str]:
        """The cells that lead to these wires."""
        used: set[str] = set()
        todo = list(wires)
        while todo:
            if (name := self.driver.get(todo.pop())) and name not in used:
                used.add(name)
                todo += map(self.source, self.inputs(name))
        return used

    @staticmethod
    def level(source: str) -> str:
        """A source as Verilog."""
        return "1'b1" if source == _FLOATING else source

    def wired(self, name: str) -> dict[str, list[str]]:
        """A cell's pins and what is at them, as Verilog."""
        kind, _, pins = self.cells[name]
        return {pin: [self.root(net) if pin in _OUTPUTS.get(kind, ("Q",)) else self.level(self.source(net))
                      for net in _nets(of)] for pin, of in pins.items()}


def _known(tiles: Tiles, kind: str, params: dict[str, Any], pins: dict[str, Any]) -> Cell:
    """A cell of the unpacker's as its model has it."""
    if kind == "RAM16SDP4":
        return kind, params, pins | {"DO": pins["DO"][-4:]}
    if kind == "BSRAM":
        row, col = (int(n) - 1 for n in re.match(r"R(\d+)C(\d+)_", pins["CLKA"]).groups())
        mode = _block_ram(tiles, row, col)
        if mode not in _BLOCK_RAMS:
            raise BitstreamError(f"the block RAM in row {row + 1}, column {col + 1} has {mode or 'a strange mode'}; "
                                 f"there are models for {' or '.join(_BLOCK_RAMS)}")
        name, wide = _BLOCK_RAMS[mode]
        # Words of one half come out at the second port, whole ones at both.
        rows = {pin: [pins[f"{pin}{n}"] for n in range(count - 1, -1, -1)] for pin, count in _ROWS.items()}
        rows |= {"DI": [pins[f"DI{n}"] for n in range(wide - 1, -1, -1)],
                 "DO": [pins[f"DO{n}"] for n in range(35, 35 - wide, -1)]}
        return name, {}, rows | {pin: pins[pin] for pin in _ALONE}
    return kind, params, pins


def _nets(pin: str | list[str]) -> list[str]:
    return pin if isinstance(pin, list) else [pin]


def _module(tiles: Tiles) -> codegen.Module:
    """What ``gowin_unpack`` makes of them; its own command leaves out names of block RAMs' wires."""
    db, made, cst = tiles.db, codegen.Module(), codegen.Constraints()
    unpack._device, unpack._pinout = tiles.device, tiles.pins
    unpack._pll_cells.clear()
    unpack._bsram_cells.clear()
    for _, wires in db.nodes.values():
        root, *others = (f"R{row + 1}C{col + 1}_{wire}" for row, col, wire in sorted(wires, key=lambda w: len(w[2])))
        made.wire_aliases |= dict.fromkeys(others, root)
    for row, col, i in itertools.product(range(db.rows), range(db.cols), (1, 2)):
        for at, way, to in (((row, col + 1), "N", "SN"), ((row + 2, col + 1), "S", "SN"),
                            ((row + 1, col), "W", "EW"), ((row + 1, col + 2), "E", "EW")):
            made.wire_aliases[chipdb.wire2global(*at, db, f"{way}1{i}1")] = f"R{row + 1}C{col + 1}_{to}{i}0"
    made.wire_aliases |= _long_wires(db)
    named = {wire for _, wires in db.nodes.values() for wire in wires}
    banks = [at for at in db.bank_tiles.values() if at in tiles.tiles]
    for row, col in [*banks, *(at for at in tiles.tiles if at not in db.bank_tiles.values())]:
        bels, pips, clock_pips = unpack.parse_tile_(db, row, col, tiles.tiles[row, col], tiles.tiles,
                                                    noiostd=(row, col) in banks)
        for to in ("GT00", "GT10"):
            if to in clock_pips:
                # Four spines have the same fuses there, and one of them passes by.
                fuses = db[row, col].clock_pips[to]
                alike = [of for of in fuses if fuses[of] == fuses[clock_pips[to]]]
                clock_pips[to] = next(of for of in alike if (row, col, of) in named)
        for number in [int(bel[3:]) for bel in bels if re.fullmatch(r"ALU\d", bel)]:
            made.primitives[f"R{row + 1}C{col + 1}_ALU_LUT{number}"] = _alu(row + 1, col + 1, number, bels)
        unpack.ram16_remove_bels(bels)
        unpack.tile2verilog(row, col, bels, pips, clock_pips, made, cst, db)
    return made


def _long_wires(db: Any) -> dict[str, str]:
    """Names of the wires that lead a signal down a column and from there to the cells beside it."""
    made = {}
    for (_, col, index), segment in db.segments.items():
        root = f"R{segment['top_row'] + 1}C{col + 1}_{segment['top_wire']}"
        made[f"R{segment['bottom_row'] + 1}C{col + 1}_{segment['bottom_wire']}"] = root
        for row in range(segment["min_y"], segment["max_y"] + 1):
            made[f"R{row + 1}C{col + 1}_{'LT01' if index < 4 else 'LT04'}"] = root
            made |= {f"R{row + 1}C{x + 1}_LB{index}1": f"R{row + 1}C{col + 1}_LBO{index // 4}"
                     for x in range(segment["min_x"], segment["max_x"] + 1)}
    return made


def _alu(row: int, col: int, number: int, bels: dict[str, set]) -> codegen.Primitive:
    """A lookup table that is part of an adder, taken out of a tile's cells.

    ``gowin_unpack`` knows the modes that Gowin's tools make; nextpnr sets the table's bits as it likes.
    """
    del bels[f"ALU{number}"]
    made = codegen.Primitive("ALU_LUT", f"R{row}C{col}_ALU_LUT{number}")
    made.params = {"INIT": f"16'h{0xffff - sum(1 << bit for bit in bels.pop(f'LUT{number}')):04x}"}
    made.portmap = {pin: f"R{row}C{col}_{pin}{number}" for pin in "ABCD"} | {
        "CIN": f"R{row}C{col}_CIN{number}", "SUM": f"R{row}C{col}_F{number}",
        "COUT": f"R{row}C{col}_CIN{number + 1}" if number < 5 else f"R{row}C{col + 1}_CIN0"}
    return made


def _input_registers(tiles: Tiles) -> dict[str, Cell]:
    """A flip-flop for every I/O cell, from the pad to its registered output: those that nothing takes are left out."""
    made = {}
    for row, col in tiles.tiles:
        bels = tiles.db[row, col].bels
        for side in "AB":
            if f"IOLOGIC{side}" in bels and f"IOB{side}" in bels:
                logic, at = bels[f"IOLOGIC{side}"].portmap, f"R{row + 1}C{col + 1}_"
                made[f"{at}IREG{side}"] = ("IREG", {}, {
                    "D": at + bels[f"IOB{side}"].portmap["O"], "CLK": at + logic["CLK"], "Q": at + logic["Q4"]})
    return made


def _block_ram(tiles: Tiles, row: int, col: int) -> str:
    """The mode of a block RAM: the only one of all that makes just its fuses; "" if there is none."""
    kinds = [tiles.db[row, col + n].ttyp for n in range(_BSRAM_TILES)]
    tables = [tiles.db.shortval[kind] for kind in kinds]
    used = {(n, *bit) for n, table in enumerate(tables) for name, fuses in table.items()
            if name.startswith("BSRAM_") and name != "BSRAM_INIT" for bits in fuses.values() for bit in bits
            if (tile := tiles.tiles.get((row, col + n))) and tile[bit[0]][bit[1]]}
    found = [mode for mode, attributes in _modes() if used == {
        (n, *bit) for n, kind in enumerate(kinds) if "BSRAM_SDP" in tables[n]
        for bit in gowin_pack.get_shortval_fuses(tiles.db, kind, _fuses_of(tiles.db, attributes), "BSRAM_SDP")}]
    return found[0] if found else ""


def _modes() -> Iterator[tuple[str, dict[str, str]]]:
    """Modes by text, and attributes as ``gowin_pack`` sets them for simple dual ports.

    A true dual port has the same fuses: both are two ports, and what tells them apart is whether the second one's
    WREB is low. Words of 36 bits need both halves.
    """
    widths = {1: "1", 2: "2", 4: "4", 9: "9", 18: "16", 36: "X36"}
    for one, other, registered, at_once in itertools.product(widths, widths, (False, True), (False, True)):
        attributes = {"MODE": "ENABLE", "GSR": "DISABLE"}
        attributes |= {f"CS{port}_{bit}": "SET" for port in "AB" for bit in range(3)}
        for port, wide in (("A", one), ("B", other)):
            attributes[f"DBLW{port}" if wide == 36 else f"SDP{port}_DATA_WIDTH"] = widths[wide]
            attributes |= {f"SDP{port}_BE{half}B": "ENABLE" if one == 36 else "DISABLE" for half in "HL"}
            attributes |= {f"SDP{port}_REGMODE": "OUTREG"} if registered else {}
        attributes |= {"OUTREG_ASYNC": "RESET"} if at_once else {}
        yield (f"{one} and {other} bits, {'' if registered else 'not '}registered, reset "
               f"{'at once' if at_once else 'at the clock'}", attributes)


def _fuses_of(db: Any, attributes: dict[str, str]) -> set[int]:
    made: set[int] = set()
    for attribute, value in attributes.items():
        gowin_pack.add_attr_val(db, "BSRAM", made, attrids.bsram_attrids[attribute], attrids.bsram_attrvals[value])
    return made


def _ratios(tiles: Tiles) -> dict[str, int]:
    """The dividers of the only PLL in use: of each the value that makes just its fuses.

    Raises
    ------
    BitstreamError
        for no PLL, or several, or a divider of which that cannot be said.
    """
    named = {number: name for name, number in attrids.pll_attrids.items()}
    makes: dict[Any, dict[tuple[str, int], set]] = {}
    for at in filter(tiles.plls, tiles.tiles):
        group = makes.setdefault((at[0], at[1] < tiles.db.cols // 2), {})
        for codes, bits in tiles.db.shortval[tiles.db[at].ttyp].get("PLL", {}).items():
            for name, value in (tiles.db.rev_logicinfo("PLL")[abs(code)] for code in codes if code):
                if named[name] in _DIVIDERS:
                    group.setdefault((named[name], value), set()).update((at, *bit) for bit in bits)
    ratios: list[dict[str, int]] = []
    for group in makes.values():
        used = {divider: {bit for (name, _), bits in group.items() if name == divider for bit in bits
                          if tiles.tiles[bit[0]][bit[1]][bit[2]]} for divider in _DIVIDERS}
        if any(used.values()):
            ratios.append({name: value for (name, value), bits in group.items() if bits == used[name]})
    if len(ratios) != 1 or ratios[0].keys() != set(_DIVIDERS):
        raise BitstreamError(f"the dividers of the PLL in these bits cannot be read: {ratios}")
    return ratios[0]


def chip(tiles: Tiles, clocks: Clocks) -> tuple[str, int]:
    """Module ``chip`` of what leads to the outputs, with its cells, and the rate of ``link_clk`` in Hz.

    Raises
    ------
    BitstreamError
        for a cell in a mode that is not known here, or a PLL that makes other clocks than the board's.
    """
    net, pins = Netlist.of(tiles), _pins(tiles)
    outputs = {f"pin_{pins[name]}": net.source(at["I"]) for name, (kind, _, at) in net.cells.items()
               if kind == "IOBUF" and name in pins and net.source(at["OEN"]) == "1'b0"}
    used = net.before(outputs.values())
    lines, inputs, kinds, rates = [], [], set(), []
    for name in sorted(used):
        kind, params, at = net.cells[name]
        if kind == "IBUF":
            inputs.append(f"pin_{pins[name]}")
            lines.append(f"assign {net.root(at['O'])} = pin_{pins[name]};")
        elif kind == "rPLL":
            text, rate = _pll(net, at, _ratios(tiles), clocks, used)
            rates.append(rate)
            lines.append(text)
        else:
            if kind == "SDP18" and net.source(at["WREB"]) != "1'b0":
                raise BitstreamError(f"the block RAM {name} is written from both sides")
            if kind == "MUX2" and net.source(at["S0"]) == _FLOATING:
                raise BitstreamError(f"nothing selects the input of the multiplexer {name}: a switch was not decoded")
            kinds.add(kind)
            given = ", ".join(f".{key}({value})" for key, value in params.items())
            wired = ", ".join(f".{pin}({{{', '.join(of)}}})" for pin, of in net.wired(name).items())
            lines.append(f"{kind} #({given}) {name} ({wired});" if given else f"{kind} {name} ({wired});")
    if len(rates) != 1:
        raise BitstreamError(f"{len(rates)} PLLs in these bits instead of one")
    lines += (f"assign {pin} = {net.level(of)};" for pin, of in outputs.items())
    wires = sorted({net.root(wire) for name in used for wire in net.outputs(name)})
    header = ", ".join(["input clk", "input link_clk", *(f"input {pin}" for pin in sorted(inputs)),
                        *(f"output {pin}" for pin in sorted(outputs))])
    text = "\n".join((f"module chip ({header});", *(f"wire {wire};" for wire in wires), *lines, "endmodule\n"))
    return with_models(_MODELS, text, kinds), rates[0]


def _pll(net: "Netlist", at: dict[str, str], ratios: dict[str, int], clocks: Clocks, used: set[str]) -> tuple[str, int]:
    """The PLL's model: its clocks are there while its reference, held high, is at it, and nothing stops it."""
    runs = f"{net.level(net.source(at['CLKIN']))} & ~{net.level(net.source(at['RESET']))}"
    lines, other_hz = [f"assign {net.root(at['LOCK'])} = {runs};"], clocks.link_hz
    taken = {net.source(pin) for name in used for pin in net.inputs(name)}
    for pin, divider in (("CLKOUT", 1), ("CLKOUTD", ratios["SDIV"])):
        if (wire := net.root(at[pin])) in taken:
            source, hz = clocks.input_of("gowin", ratios["FDIV"], ratios["IDIV"] * divider)
            other_hz = hz if source == "link_clk" else other_hz
            lines.append(f"assign {wire} = {source} & {runs};")
        else:
            lines.append(f"assign {wire} = 0;")
    return "\n".join(lines), other_hz


def _pins(tiles: Tiles) -> dict[str, str]:
    """Names of I/O cells, as unpacking gives them, to the pins of the package."""
    made = {}
    for pin, (place, _) in tiles.pins.items():
        row, col, side = unpack.tbrl2rc(tiles.db, place)
        made |= {f"R{row + 1}C{col + 1}_{kind}_{side}": pin for kind in ("IBUF", "OBUF", "IOBUF", "TBUF")}
    return made
