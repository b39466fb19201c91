"""Groups of signals for a wave viewer: host bus, stream, and the port of each node."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vcd.gtkw import GTKWSave

__all__ = ["GROUPS_VARIABLE", "save_groups"]

#: Environment variable with the file to write; the runner sets it when it records waves.
GROUPS_VARIABLE = "HYPERMON_WAVE_GROUPS"
_TIME = ("clk", "rst", "running")
_BUS = ("pbx_req", "pbx_ack", "pbx_write", "pbx_addr", "pbx_wdata", "pbx_rdata")
_STREAM = ("stream_valid", "stream_ready", "stream_last", "stream_data")


def save_groups(dut: Any, prefix: str, nodes: int, bits: int) -> None:
    """Writes a save file of GTKWave and Surfer if :data:`GROUPS_VARIABLE` names one, else nothing.

    Parameters
    ----------
    dut, prefix : the top module, and the text before the names of the board's ports.
    nodes, bits : ports, and data bits of a port; without ports at the top they are left out.
    """
    path = os.environ.get(GROUPS_VARIABLE)
    if not path:
        return
    with Path(path).open("w") as file:
        save = GTKWSave(file)
        save.dumpfile("waves.fst", abspath=False)
        for name, signals in (("board", _TIME), ("host bus", _BUS), ("stream", _STREAM)):
            with save.group(name):
                for signal in _present(dut, prefix, signals):
                    save.trace(signal)
        strobe, data = ("".join(_present(dut, prefix, (name,))) for name in ("strobe", "data"))
        for node in range(nodes) if strobe and data else ():
            with save.group(f"node {node}"):
                _bits(save, strobe, f"strobe {node}", nodes, [node])
                _bits(save, data, f"data {node}", bits * nodes, range(bits * (node + 1) - 1, bits * node - 1, -1))


def _bits(save: GTKWSave, vector: str, alias: str, width: int, bits: Iterable[int]) -> None:
    """Some bits of a vector; the file counts them from the highest."""
    if width == 1:
        save.trace(vector, alias=alias)
        return
    indices = " ".join(f"({width - 1 - bit})" for bit in bits)
    for index in indices.split():
        save._p(f"{index}{vector}")


def _present(dut: Any, prefix: str, names: Iterable[str]) -> list[str]:
    """Full names of those signals that the design has, in the form of the dump."""
    found = []
    for name in names:
        handle = getattr(dut, name if name in ("clk", "rst") else prefix + name, None)
        if handle is not None:
            width = len(handle)
            found.append(f"{dut._name}.{handle._name}" + (f"[{width - 1}:0]" if width > 1 else ""))
    return found
