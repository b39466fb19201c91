"""Mean time between failures of the strobes' synchronizer, computed from a board's clock, not measured.

A strobe may change at any time. A flip-flop that samples at that moment may need long to settle. If the last stage
before the logic has not settled in time, two flip-flops may see different levels, and an event may be lost or made up.
Each of the two stages in between has one clock, minus the delay of the clocked path itself, to settle:

    MTBF = exp(resolution time / tau) / (window * clock * edges per second)

Neither Lattice nor Gowin publishes tau and window of these parts. The values used are therefore those that Actel
measured for its ProASIC Plus of 0.22 um, several generations older and slower than any FPGA here (application note
AC312, "Metastability Characterization Report for Actel Flash FPGAs": C1 = 1.56e-11 s, C2 = 9.148e9/s).
"""

from math import exp

from ..model.board import Board

__all__ = ["EDGES", "PATHS_NS", "TAU_S", "WINDOW_S", "decides_s", "mtbf_s", "said"]

#: C1 and 1 / C2 of the note.
WINDOW_S, TAU_S = 1.56e-11, 1 / 9.148e9
#: Strobe edges per second of all nodes together: a million events of two edges each.
EDGES = 2e6
#: By family: maximum sum of clock-to-output, routing and set-up between two stages in nanoseconds, assumed; more
#: than nextpnr finds for such paths.
PATHS_NS = {"ecp5": 3.0, "gowin": 3.0, "ice40": 6.0, "xilinx7": 2.5}
#: ... between the two flip-flops of an ECP5's DDR input cell, half a clock apart.
_CELL_NS = 1.0
_YEAR_S = 365.25 * 86400


def mtbf_s(clock_hz: float, edges: float, time_s: float, tau_s: float = TAU_S, window_s: float = WINDOW_S) -> float:
    """Mean number of seconds between two failures.

    Parameters
    ----------
    clock_hz, edges : samples and asynchronous edges per second.
    time_s : time that all stages together have to decide.
    tau_s, window_s : constants of the flip-flops.
    """
    # (The largest exponent that a float can represent; such times are out of reach anyway.)
    return exp(min(time_s / tau_s, 700)) / (window_s * clock_hz * edges)


def decides_s(board: Board, phases: int = 1) -> float:
    """Seconds that the stages of a board have to decide, together.

    The first flip-flop is in the I/O cell, the second one in the logic, and the third one is the first whose output
    is read by more than one flip-flop. With half clocks the second one is in the cell, too, half a clock later; with
    four samples per clock, it is in the cell half a clock later, and three more follow there, which are left out here.
    """
    period, path = 1e9 / board.capture_hz, PATHS_NS[board.family]
    first = period / 2 - _CELL_NS if phases > 1 else period - path
    return 1e-9 * (first + period - path)


def said(seconds: float) -> str:
    """A time as text, in years or days, with one digit; all times longer than the age of the Earth are shown alike."""
    years = seconds / _YEAR_S
    if years >= 4.5e9:
        return "> 4.5e9 years"
    number, unit = (years, "years") if years >= 1 else (seconds / 86400, "days")
    return f"{float(f'{number:.1g}'):,g} {unit}".replace("e+0", "e")
