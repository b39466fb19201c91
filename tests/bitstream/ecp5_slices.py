"""An ECP5's logic as Verilog: lookup tables, adders, distributed RAM and flip-flops."""

from ecp5_netlist import Chip
from netlist import BitstreamError
from trellis import Wire

__all__ = ["carry_out", "flip_flop", "lookup", "table", "wide"]

_PINS = "DCBA"
#: Which of a slice's pins an address bit of its memory is, highest first, and which of slice C's a data bit is.
_ADDRESS, _DATA = "ACBD", "CADB"


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


def _pins_of(made: Chip, at: Wire, number: int) -> list[str]:
    value, slice_ = made.logic(at), f"SLICE{'ABCD'[number // 2]}"
    return ["1'b1" if value(f"{slice_}.{pin}{number % 2}MUX") == "1" else made.net(at.beside(f"{pin}{number}_SLICE"))
            for pin in _PINS]


def table(made: Chip, wire: Wire) -> None:
    """The output of a lookup table, which may be part of an adder or of a distributed RAM."""
    number = int(wire.name[1])
    value, slice_ = made.logic(wire), f"SLICE{'ABCD'[number // 2]}"
    mode, init = value(f"{slice_}.MODE"), int(value(f"{slice_}.K{number % 2}.INIT"), 2)
    pins = _pins_of(made, wire, number)
    if mode == "LOGIC":
        made.assigned(wire, lookup(init, pins))
    elif mode == "CCU2":
        carried = "" if value(f"{slice_}.CCU2.INJECT1_{number % 2}") == "YES" else f" ^ {_carry(made, wire, number)}"
        made.assigned(wire, f"{lookup(init, pins)}{carried}")
    elif mode == "DPRAM":
        _memory(made, wire, number, init, pins)
    else:
        raise BitstreamError(f"the table {wire} has the mode {mode}")


def _carry(made: Chip, at: Wire, number: int) -> str:
    """The carry into a table of an adder."""
    if number % 2 == 0:
        return made.net(at.beside(f"FCI{'ABCD'[number // 2] if number else ''}_SLICE"), floating="1'b0")
    return _carried(made, at, number - 1)


def _carried(made: Chip, at: Wire, number: int) -> str:
    """The carry out of a table of an adder."""
    value, slice_ = made.logic(at), f"SLICE{'ABCD'[number // 2]}"
    if (mode := value(f"{slice_}.MODE")) != "CCU2":
        raise BitstreamError(f"a carry of row {at.y}, column {at.x} comes from {slice_}, whose mode is {mode}")
    pins, init = _pins_of(made, at, number), int(value(f"{slice_}.K{number % 2}.INIT"), 2)
    sum_, made_by = lookup(init, pins), lookup(init & 15, pins[2:])
    if value(f"{slice_}.CCU2.INJECT1_{number % 2}") == "YES":
        made_by = "1'b0"
    if sum_ == "1'b0":      # the beginning of a carry, which a pin gives
        return made_by
    return f"({sum_} ? {_carry(made, at, number)} : {made_by})"


def carry_out(made: Chip, wire: Wire) -> None:
    letter = wire.name[3] if wire.name[3] in "ABC" else "D"
    made.assigned(wire, _carried(made, wire, 2 * "ABCD".index(letter) + 1))


def _memory(made: Chip, wire: Wire, number: int, init: int, pins: list[str]) -> None:
    """Distributed RAM: slice C's pins write it, at the tile's second clock, enabled by its second reset wire."""
    writes = _pins_of(made, wire, 4), _pins_of(made, wire, 5)
    address = ", ".join(writes[0][_PINS.index(pin)] for pin in _ADDRESS)
    data = writes[1][_PINS.index(_DATA[number])]
    enable = {"1": "1'b1", "0": "1'b0"}.get(made.logic(wire)("SLICEA.WREMUX")) or _common(made, wire, "LSR1")
    read = ", ".join(pins[_PINS.index(pin)] for pin in _ADDRESS)
    made.declared.append(f"reg [15:0] memory_{wire};")
    made.lines.append(f"initial memory_{wire} = {init};\nalways @(posedge {_common(made, wire, 'CLK1')}) if ({enable}) "
                      f"memory_{wire}[{{{address}}}] <= {data};")
    made.assigned(wire, f"memory_{wire}[{{{read}}}]")


def _common(made: Chip, at: Wire, name: str) -> str:
    """A clock or a reset of a logic tile, inverted where the bits say so."""
    net = made.net(at.beside(name), floating="")
    if not net:
        raise BitstreamError(f"nothing drives {name} in row {at.y}, column {at.x}")
    return f"{'~' * (made.logic(at)(f'{name}.{name[:3]}MUX') == 'INV')}{net}"


def wide(made: Chip, wire: Wire) -> None:
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


def flip_flop(made: Chip, wire: Wire) -> None:
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


def _chosen(made: Chip, at: Wire, kind: str, half: int) -> str:
    """Which of a tile's two clocks or resets a slice takes, "" for none."""
    before = list(made.fabric.before(at.beside(f"MUX{kind}{half}")))
    if not before or made.driver(before[0]) is None:
        return ""
    return before[0].name


def _enable(made: Chip, at: Wire, letter: str, half: int) -> str:
    mux = made.logic(at)(f"SLICE{letter}.CEMUX")
    if mux in ("0", "1"):
        return f"1'b{mux}"
    return f"{'~' * (mux == 'INV')}{made.net(at.beside(f'CE{half}_SLICE'))}"
