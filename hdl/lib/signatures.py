"""Signatures that several stages share: time, skips of a simulation, levels of the ports."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from ..layout import Geometry, Sink

__all__ = ["board_clock", "port_levels", "resting", "skipping", "window_time"]


def window_time(geometry: Geometry) -> data.StructLayout:
    """Time as the merge sees it.

    end : the window ends in this clock.
    now : its number.
    wrap : bits 31..0 of the number wrap at its end.
    live : nodes that are captured.
    enable : capture is enabled.
    """
    return data.StructLayout({"end": 1, "now": 64, "wrap": 1, "live": geometry.nodes, "enable": 1})


def board_clock(geometry: Geometry) -> wiring.Signature:
    """Signature of the board's time, as seen from the time base.

    window : see :func:`window_time`; for the items that are offered to the gate. It is one clock late on a board whose
        items are one clock late.
    now : the window's number, for everything that need not know the exact clock: a copy, one clock late, so that its
        routes may be long.
    running : time runs; the first clock edge at which it is high is time 0.
    left : clocks to the end of the window, see :class:`~.time.timebase.Timebase`.
    """
    return wiring.Signature({"window": Out(window_time(geometry)), "now": Out(64), "running": Out(1), "left": Out(16)})


def skipping() -> wiring.Signature:
    """Signature of a skip of idle time, as seen from the simulation; 0 in hardware.

    advance : the number of windows whose ends are skipped at this edge.
    shift : clocks in addition to these whole windows, modulo 2**16.
    slip : all skipped clocks, modulo 256. The sweeps over the nodes advance by this number.
    """
    return wiring.Signature({"advance": Out(32), "shift": Out(16), "slip": Out(8)})


def resting() -> wiring.Signature:
    """Signature of the levels that tell a simulation when it may skip, as seen from the board.

    A skip leaves the stream unchanged if all of these hold:

    - nothing moves (``quiet``), and the host takes nothing during the skip;
    - no port has changed in the last 12 clocks, and none changes in the next 6;
    - at least 32 clocks are skipped;
    - fewer windows end than ``horizon``; in windows of one clock, fewer than ``horizon`` minus 8;
    - a skip with ``shift`` begins with at least two clocks ``left`` and ends with at least one.

    quiet : nothing moves.
    horizon : number of windows that may end before something acts on a timer.
    left : clocks to the end of the window.
    """
    return wiring.Signature({"quiet": Out(1), "horizon": Out(32), "left": Out(16)})


def port_levels(geometry: Geometry) -> wiring.Signature:
    """Signature of the levels of all nodes, as seen from the ports.

    strobe, data : one bit and one nibble (of ``geometry.port_bits``) per node.
    early : only with several samples per clock, see
        :class:`~.input.strobe_synchronizer.StrobeSynchronizer`.
    further, torn : only with the extended sink and links, one bit per node of the links, see
        :class:`~.regeneration.replay.Replay`.
    """
    nodes, linked = geometry.nodes, geometry.linked_nodes if Sink.EXTENDED in geometry.sinks else 0
    return wiring.Signature({
        "strobe": Out(nodes), "data": Out(geometry.port_bits * nodes),
        **({"early": Out(nodes * (geometry.phases - 1))} if geometry.halvings else {}),
        **({"further": Out(linked), "torn": Out(linked)} if linked else {}),
    })
