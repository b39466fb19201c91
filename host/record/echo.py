"""Measures wires between boards by echo: how long the wave takes to a board and back."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypermon.hdl.layout import ECHO_LAG, ECHO_SUM_BITS, ECHOES, Sink, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.text.json_file import integer, listed, maybe, number, read_json, sealed, table, text

__all__ = ["SETS", "echo_file", "load_echoes", "measure_echo", "measure_wires", "wire_of"]

#: Sets of echoes that are measured; the first one, which may have begun before the follower had settled, is left out.
SETS = 8
#: Seconds without a set after which there is no echo: a set takes 5 ms at 100 MHz. Of a virtual board, in its own time.
_SILENCE_S, _VIRTUAL_S = 5.0, 0.1
#: Clocks by which the mean of echoes is unsure; and if the phases of both boards do not move against each other, so
#: that the mean is not finer than a clock.
_UNSURE, _UNSURE_FIXED = 0.25, 1.0
#: Clocks by which the phases must have moved for that.
_MOVED = 3
_FORMAT = 1
_SHAPE = table({
    "format": integer(_FORMAT, _FORMAT), "boards": listed(text(1 << 16), 2, 1 << 12),
    "wires": listed(maybe(table({
        "follows": integer(0, 1 << 12), "delay_ps": integer(-10**9, 10**9), "uncertainty_ps": integer(0, 10**9)}, {
        "echo_clocks": number(0, 1 << 16), "echoes": integer(1, 1 << 40)}, more=True)), 2, 1 << 12)})


def measure_echo(leader: Device, follower: Device, sets: int = SETS) -> tuple[list[int], int]:
    """Lets one board follow another, which returns its wave, and measures sets of echoes.

    Parameters
    ----------
    leader, follower : ``sync_out`` of each is wired to ``sync_in`` of the other. Nothing of their nodes is kept.

    Returns
    -------
    the sum of each set, in clocks of the leader; and by how many clocks the two phases moved during the measurement.

    Raises
    ------
    HypermonError
        if the leader cannot measure echoes, or there is none.
    """
    if "echo" not in leader.identity.extras:
        raise HypermonError(f"{leader.link.uri} cannot measure echoes: its gateware lacks the extra echo "
                            "(docs/several-boards.md)")
    for device in (follower, leader):
        device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED, follow=device is follower, stepped=True))
        device.write("NODE_MASK", 0)
    follower.start()
    follower.link.stream(1 << 12)
    leader.start()
    heard, heard_ps, seen = time.monotonic(), 0, 0
    sums: list[int] = []
    while len(sums) < sets + 1:
        for device in (leader, follower):
            device.link.stream(1 << 12)
        result = leader.read("SYNC_ECHO")
        number = result >> ECHO_SUM_BITS
        if number != seen:
            seen, heard, heard_ps = number, time.monotonic(), leader.link.board_ps or 0
            sums.append(result & (1 << ECHO_SUM_BITS) - 1)
        board_ps = leader.link.board_ps
        silent = (time.monotonic() - heard > _SILENCE_S if board_ps is None
                  else board_ps - heard_ps > _VIRTUAL_S * 1e12)
        if silent:
            raise HypermonError(f"{leader.link.uri} hears no echo from {follower.link.uri}: is sync_out of each wired "
                                "to sync_in of the other?")
    if (state := follower.read("SYNC")) != 1:
        raise HypermonError(f"{follower.link.uri} lost the wave while the echo was measured (SYNC is {state})")
    steps = follower.read("SYNC_STEPS")
    for device in (leader, follower):
        device.stop()
    return sums[1:], abs((steps >> 16) - (steps & 0xffff))


def wire_of(sums: Sequence[int], moved: int, follows: int, clock_hz: int) -> dict[str, Any]:
    """The delay of a wire, from the sums of sets and from how far the phases moved. The way back must take as long.

    The mean echo is twice the delay and :data:`ECHO_LAG` half clocks. A board that leads and one that follows have
    oscillators of their own, so their phases move against each other: the mean of many echoes is finer than a clock.
    If they hardly move, as on one reference clock, the delay is unsure by as much as half a clock.
    """
    means = [total / ECHOES for total in sums]
    mean, spread = sum(means) / len(means), max(means) - min(means)
    fixed = moved < _MOVED
    unsure = (_UNSURE_FIXED if fixed else max(_UNSURE, spread)) / 2 + (0.0 if fixed else _UNSURE / 2)
    clock_ps = 10**12 / clock_hz
    return {"follows": follows, "delay_ps": round((mean - ECHO_LAG / 2) / 2 * clock_ps),
            "uncertainty_ps": round(unsure * clock_ps), "echo_clocks": round(mean, 4), "echoes": ECHOES * len(sums)}


def echo_file(boards: Sequence[str], wires: Sequence[dict[str, Any] | None]) -> bytes:
    """The contents of a file with the measured wires, for ``hypermon record --echo``."""
    values = sealed({"format": _FORMAT, "boards": list(boards), "wires": list(wires)})
    return f"{json.dumps(values, indent=2)}\n".encode()


def load_echoes(path: Path, boards: Sequence[str], parents: Sequence[int | None]) -> list[dict[str, Any] | None]:
    """Reads the measured wires. Raises InputError if it is of other boards or wires."""
    try:
        said = read_json(path, _SHAPE)
    except FileNotFoundError:
        raise InputError(path, None, "there is no such file; hypermon echo writes it") from None
    if said["boards"] != list(boards):
        raise InputError(path, None, f"it was measured of {', '.join(said['boards'])}, not of {', '.join(boards)}")
    wires: list[dict[str, Any] | None] = said["wires"]
    found = [None if wire is None else wire["follows"] for wire in wires]
    if found != list(parents):
        raise InputError(path, None, f"it was measured with other wires: {json.dumps(found)}, not "
                                     f"{json.dumps(list(parents))}")
    return wires


def measure_wires(boards: Sequence[str], parents: Sequence[int | None],
                  open_pair: Callable[[str, str], tuple[Device, Device]], sets: int,
                  said: Callable[[int, dict[str, Any]], None]) -> list[dict[str, Any] | None]:
    """Measures the wire of every board that follows another, one after the other.

    Parameters
    ----------
    open_pair : opens a board and the one that follows it.
    said : called with the number of each board and its wire.
    """
    wires: list[dict[str, Any] | None] = [None] * len(boards)
    for own, parent in enumerate(parents):
        if parent is None:
            continue
        leader, follower = open_pair(boards[parent], boards[own])
        with leader, follower:
            wire = wire_of(*measure_echo(leader, follower, sets), parent, leader.identity.clock_hz)
        wires[own] = wire
        said(own, wire)
    return wires
