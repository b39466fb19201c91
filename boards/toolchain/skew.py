"""Skew of the five wires of a port inside the FPGA, from pin to first flip-flop, as routed.

If that flip-flop is in the I/O cell, nothing is routed, or the same short wire everywhere. Elsewhere place and route
decide, and no constraint holds them. :class:`hypermon.hdl.input.strobe_synchronizer.StrobeSynchronizer` states the
tolerance: of ports whose data and strobe change in one write, up to a clock of skew has settled at the sample point.
Half of that is the board's, the other half is for the cable and the node.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["skews_ps", "tolerated_ps"]

#: A routed connection of an SDF file: driver, receiver, and the longest delay of a rising edge.
_ROUTED = re.compile(r"\(INTERCONNECT (\S+) (\S+) \([^:)]*:[^:)]*:([^:)]+)\)")
#: Of an iCE40's I/O cell: its input comes from a flip-flop in it.
_ICE40_REGISTERED = "00"
#: Of a Gowin's I/O cell as nextpnr writes it: the same.
_GOWIN_REGISTERED = "IOLOGIC_IOB"


def tolerated_ps(capture_hz: int) -> int:
    """Maximum skew of a port's wires inside the board, in picoseconds: half a clock."""
    return 10**12 // (2 * capture_hz)


def skews_ps(netlist: Path, sdf: Path, top: str, nodes: Sequence[int]) -> list[int]:
    """Skew of the wires of each of these nodes, in picoseconds.

    ``netlist`` : Yosys' JSON, or nextpnr's, whose top is "top". ``sdf`` : the file that nextpnr writes with ``--sdf``;
    it need not exist if all of those flip-flops are in I/O cells. The ports have the names of
    :func:`hypermon.boards.toolchain.top.resources`.

    Raises
    ------
    ValueError
        for a wire whose path was not found.
    """
    modules = json.loads(netlist.read_text())["modules"]
    module = modules[top if top in modules else "top"]
    ports = module["ports"]
    cells = {bit: (name, cell) for name, cell in module["cells"].items()
             for bits in cell["connections"].values() for bit in bits if isinstance(bit, int)}
    # Of a differential pair the positive one carries the name of the wire.
    pins = {node: [ports.get(f"node_{node}__{part}__io") or ports.get(f"node_{node}__{part}__p") or {"bits": [-1]}
                   for part in ("strobe", "data")] for node in nodes}
    pads = {node: [cells.get(bit) for part in parts for bit in part["bits"]] for node, parts in pins.items()}
    wanted = {pad[0] for port in pads.values() for pad in port if pad and not _registered(pad[1])}
    ways: dict[str, list[float]] = {}
    for source, delay in _routed(sdf) if wanted and sdf.exists() else ():
        if source in wanted:
            ways.setdefault(source, []).append(delay)
    skews = []
    for node, port in pads.items():
        delays: list[float] = []
        for pad in port:
            if pad is None or not (_registered(pad[1]) or pad[0] in ways):
                raise ValueError(f"no way from a pin of node {node} to a flip-flop: none is in its I/O cell by "
                                 f"{netlist.name}, and {sdf.name} does not tell of one")
            delays += [0.0] if _registered(pad[1]) else ways[pad[0]]
        skews.append(round(max(delays) - min(delays)))
    return skews


def _registered(cell: dict[str, Any]) -> bool:
    if cell["type"] == "SB_IO":
        return str(cell["parameters"]["PIN_TYPE"]).endswith(_ICE40_REGISTERED)
    return cell["type"] == "IBUF" and int(str(cell["parameters"].get(_GOWIN_REGISTERED, "0")), 2) == 1


def _routed(sdf: Path) -> Iterator[tuple[str, float]]:
    """Driving cell and delay of each connection."""
    with sdf.open() as lines:
        for line in lines:
            if found := _ROUTED.search(line):
                yield found[1].replace("\\", "").rpartition("/")[0], float(found[3])
