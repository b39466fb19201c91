"""Bitstreams of Lattice's ECP5, back to Verilog: by Project Trellis' ``ecpunpack`` and database, see :mod:`trellis`.

Lookup tables, adders, flip-flops, small memories and input registers are written as plain Verilog, block RAMs and
multipliers as cells with models, and the clocks of PLLs from their ratios. Only what leads to an output pin is written.
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from ecp5_netlist import Chip, Pad, Writers
from ecp5_slices import carry_out, flip_flop, table, wide
from netlist import BitstreamError, Clocks, Family, with_models
from trellis import Fabric, Wire

__all__ = ["WRITERS", "chip", "package_of", "pads_of"]

_CELLS = Path(__file__).parents[1] / "hdl" / "cells"
_MODELS = Family("ecp5", (), "ecp5/cells_sim.v", (_CELLS / "dp16kd.v", _CELLS / "pdpw16kd.v", _CELLS / "mult18.v"))
#: Packages as Project Trellis calls them, by their maker's two letters.
_PACKAGES = {"BG": "CABGA", "MG": "CSFBGA"}
#: Tiles of block RAMs, by number: that with the cell, and those to the right of it, by the beginning of their kind.
_EBR = (("MIB_EBR0 EBR_CMUX_UR EBR_CMUX_LR", "MIB_EBR1"), ("MIB_EBR2", "MIB_EBR3", "MIB_EBR4"),
        ("MIB_EBR4", "MIB_EBR5", "MIB_EBR6"), ("MIB_EBR6", "MIB_EBR7", "MIB_EBR8 EBR_SPINE EBR_CMUX"))
_WIDE = 18
#: Numbers of the multipliers of a block of nine tiles.
_MULTIPLIERS = (0, 1, 4, 5)
#: A pin that is always low.
_LOW = {"1'b0", "~1'b1"}
_OUTPUTS = ("CLKOP", "CLKOS", "CLKOS2", "CLKOS3")


def _input_register(made: Chip, wire: Wire) -> None:
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


def _block_ram(made: Chip, wire: Wire) -> None:
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
    if not whole:
        # A port that writes and does not keep its output then has no model: nothing may read that output.
        made.unread |= {str(to) for name, to in outputs.items()
                        if value(f"DP16KD.WRITEMODE_{name[2]}") != "NORMAL" and pin(f"WE{name[2]}") not in _LOW}
    made.together(list(outputs.values()))
    pins = {name: "" if str(to) in made.unread else str(to) for name, to in outputs.items()}
    pins |= {f"DI{side}{n}": made.net(wire.beside(f"JDI{side}{n}_EBR")) for side in "AB" for n in range(_WIDE)}
    pins |= {f"AD{side}{n}": pin(f"AD{side}{n}") for side in "AB" for n in range(14)}
    pins |= {f"{name}{side}": pin(f"{name}{side}") for side in "AB" for name in ("CE", "OCE", "CLK", "RST")}
    for side in "AB":
        decoded = value(f"CSDECODE_{side}")[::-1]
        pins |= {f"CS{side}{n}": f"{'~' * (decoded[n] == '1')}{made.net(wire.beside(f'JCS{side}{n}_EBR'))}"
                 for n in range(3)}
    if value("RESETMODE") != "SYNC" and not {pins["RSTA"], pins["RSTB"]} <= _LOW:
        raise BitstreamError(f"the block RAM of {wire} has an asynchronous reset")
    made.lines.append(_whole_words(wire, value, pins) if whole else _two_ports(
        wire, value, pins | {f"WE{side}": pin(f"WE{side}") for side in "AB"}))
    words = made.fabric.contents.get(int(value("WID")[::-1], 2), [])
    rows = {n: low | high << 9 for n, (low, high) in enumerate(zip(words[::2], words[1::2], strict=True))}
    if any(rows.values()):
        made.lines.append("initial begin " + " ".join(
            f"ram_{wire}.mem[{n}] = 18'h{row:x};" for n, row in rows.items()) + " end")
    made.kinds.add("PDPW16KD" if whole else "DP16KD")


def _two_ports(wire: Wire, value: Callable[[str], str], pins: dict[str, str]) -> str:
    modes = {f"REGMODE_{side}": value(f"REGMODE_{side}") for side in "AB"}
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


def _multiplier(made: Chip, wire: Wire) -> None:
    """The multiplier whose output that is, with all its pins.

    Raises
    ------
    BitstreamError
        if it has a register.
    """
    # Nine tiles are a block. The number of the tile in which a multiplier's wires are is that of the multiplier.
    kinds = [tile.kind for tile in made.fabric.tiles[wire[:2]]]
    number = next(n for n in _MULTIPLIERS if f"MIB_DSP{n}" in kinds)
    tiles = [tile for n in range(9) for tile in made.fabric.tiles.get((wire.x + n - number, wire.y), [])
             if tile.kind in (f"MIB_DSP{n}", f"MIB2_DSP{n}")]

    def value(name: str) -> str:
        return made.fabric.value(tiles, f"MULT18_{number}.{name}")

    def pin(name: str) -> str:
        return made.net(wire.beside(f"J{name}_MULT18"))

    if value("MODE") != "MULT18X18D":
        raise BitstreamError(f"the multiplier of {wire} has the mode {value('MODE')}")
    for register in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT"):
        if (clock := value(f"REG_{register}_CLK")) != "NONE":
            raise BitstreamError(f"the multiplier of {wire} has a register {register}, whose clock is {clock}")
    outputs = [wire.beside(f"JP{n}_MULT18") for n in range(2 * _WIDE)]
    made.together(outputs)
    pins = {side: "{" + ", ".join(pin(f"{side}{n}") for n in reversed(range(_WIDE))) + "}" for side in "AB"}
    pins |= {name: pin(name) for name in ("SIGNEDA", "SIGNEDB", "SOURCEA", "SOURCEB")}
    pins["P"] = "{" + ", ".join(map(str, reversed(outputs))) + "}"
    made.lines.append(f"MULT18 mult_{wire} ({_wired(pins)});")
    made.kinds.add("MULT18")


def _gate(made: Chip, wire: Wire) -> None:
    """A clock gate, from which a clock reaches the whole chip."""
    name = wire.name.removeprefix("G_CLKO_")
    clock = made.net(wire.beside(f"G_CLKI_{name}"), floating="")
    if not clock:
        raise BitstreamError(f"the clock {name} comes from nowhere")
    made.assigned(wire, f"{clock} & {made.net(wire.beside(f'G_JCE_{name}'))}")


def _pll_output(made: Chip, wire: Wire) -> None:
    """A PLL's clock, which passes while its reference, held high, does; or its lock, which is the reference."""
    reference = made.net(wire.beside("CLKI_PLL"), floating="1'b0")
    if wire.name.endswith("LOCK_PLL"):
        made.assigned(wire, reference)
        return
    rate = _rate(made, wire) / made.clocks.oscillator_hz
    source, hz = made.clocks.input_of("ecp5", rate.numerator, rate.denominator)
    made.other_hz = hz if source == "link_clk" else made.other_hz
    made.assigned(wire, f"{source} & {reference}")


def _rate(made: Chip, wire: Wire) -> Fraction:
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
WRITERS: Writers = {
    r"F\d_SLICE": table, r"Q\d_SLICE": flip_flop, r"(F5|FX)[A-D]_SLICE": wide, r"FCO[ABC]?_SLICE": carry_out,
    r"JDO[AB]\d+_EBR": _block_ram, r"JP\d+_MULT18": _multiplier,
    r"JINFF[A-D]_S?IOLOGIC": _input_register, r"G_CLKO_\wDCC\w+": _gate,
    rf"J({'|'.join(_OUTPUTS)}|LOCK|INTLOCK)_PLL": _pll_output, r"JPADDI[A-D]_PIO": lambda made, wire: None}


def pads_of(fabric: Fabric, package: str) -> Iterator[Pad]:
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


def _outputs(made: Chip, driven: dict[str, tuple[Pad, str, str]]) -> dict[str, str]:
    """Ports of pads that put something out: ``pin_``, or ``out_`` and ``oe_`` of those that something reads, too.

    The wires tell which: ecpunpack takes some of them for half of a differential output.
    """
    outputs = {}
    for pad, out, high in driven.values():
        if f"pin_{pad.pin}" not in made.inputs:
            outputs[f"pin_{pad.pin}"] = out
            continue
        if "IOLTO" in [made.fabric.value([tile], f"PIO{pad.letter}.TRIMUX_TSREG") for tile in (pad.logic, pad.pad)]:
            raise BitstreamError(f"the output {pad.pin} has a register for its high impedance in its I/O cell")
        outputs |= {f"out_{pad.pin}": out, f"oe_{pad.pin}": f"~{high}"}
    return outputs


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
    pads = list(pads_of(fabric, package))
    made, driven = Chip(fabric, clocks, pads, WRITERS), {}
    for pad in pads:
        kind = fabric.value([pad.pad], f"PIO{pad.letter}.BASE_TYPE")
        if kind.startswith(("OUTPUT", "BIDIR")):
            muxes = [fabric.value([tile], f"PIO{pad.letter}.DATAMUX_{name}") for tile in (pad.logic, pad.pad)
                     for name in ("ODDR", "OREG", "MDDR")]
            if "IOLDO" in muxes:
                raise BitstreamError(f"the output {pad.pin} has a register in its I/O cell")
            driven[pad.pin] = pad, *(made.net(pad.place.beside(f"PADD{way}{pad.letter}_PIO")) for way in "OT")
    made.write()
    outputs = _outputs(made, driven)
    second = ["input usb_clk"] if clocks.usb_hz else []
    used = "\n".join([*made.lines, *outputs.values()])
    if read := sorted(wire for wire in made.unread if re.search(rf"\b{wire}\b", used)):
        raise BitstreamError(f"the block RAM of {read[0]} reads while it writes")
    header = ", ".join(["input clk", "input link_clk", *second, *(f"input {pin}" for pin in sorted(made.inputs)),
                        *(f"output {pin}" for pin in sorted(outputs))])
    lines = [*made.declared, *made.lines, *(f"assign {pin} = {of};" for pin, of in outputs.items())]
    whole = "\n".join((f"module chip ({header});", *lines, "endmodule\n"))
    return with_models(_MODELS, whole, made.kinds), made.other_hz
