"""The paper's printed figures, each with its class, and the parameters that were fitted to some of these figures.

Classes: **F** fitted, a parameter was set with it; **P** predicted, comes out of the model and set nothing; **C**
arithmetic, follows from other printed figures; **N** not reproduced. **R**, a round trip, is planted in the model and
recovered from the recording; it is not a figure of the paper's.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.printed_values import NODES, TABLE_2, TITLES

__all__ = ["ARITHMETIC", "CLASSES", "NOT_REPRODUCED", "PARAMETERS", "TOLERANCE", "Parameter", "claims", "name"]

#: Accepted deviations. They were written down before the first run of all programs at full length, and are not changed
#: afterwards. Percent of the effect, what recording adds to a time, on two nodes and on more; percent of bytes; points
#: of merging; percent of frames and rates that are recovered.
TOLERANCE = {"effect, 2 nodes": 5.0, "effect": 10.0, "bytes": 3.0, "merging": 2.0, "round trip": 0.5, "groups": 5.0}

CLASSES = {
    "R": ("round trip: planted in the model, recovered from the recording", "the monitor and the analysis"),
    "F": ("fitted: a parameter was set with it", "nothing"),
    "P": ("predicted: no parameter was set with it", "the model"),
    "C": ("arithmetic: follows from other printed figures", "that the paper is consistent"),
    "N": ("not reproduced", "-"),
}


class Parameter(NamedTuple):
    """What was set: the number of values, and the printed figures (by name) with which they were set."""

    what: str
    values: int
    figures: tuple[str, ...]


def name(program: str, nodes: int, column: str) -> str:
    """The name of a figure of Table 2."""
    return f"{TITLES[program]} {nodes}, {column}"


def _names(column: str, text: str) -> tuple[str, ...]:
    """Figures of one column: ``life 1 2, place 8``."""
    found = []
    for part in text.split(", "):
        program, *nodes = part.split()
        found += [name(program, int(count), column) for count in nodes]
    return tuple(found)


PARAMETERS = (
    Parameter("work: a constant for each program and number of nodes", 16,
              _names("raw", "simplex 1 2 4 8, life 1 2 4 8, matmul 1 2 4 8, place 1 2 4 8")),
    Parameter("pivots of *Simplex*: on 1 and 2, on 4, on 8 nodes", 3, _names("hard bytes", "simplex 2 4 8")),
    Parameter("system calls per pivot of *Simplex*", 1, _names("soft bytes", "simplex 1")),
    Parameter("interval at which *Simplex* polls", 1, _names("soft bytes", "simplex 2")),
    Parameter("generations of *Life*", 1, _names("soft bytes", "life 2")),
    Parameter("rounds and offers (proposed moves) of *Place*, and the rule that a node's events do not depend on the "
              "cube's size", 3,
              _names("soft bytes", "place 2 4 8")),
    Parameter("a system call in every second round of *Place*", 1, _names("soft bytes", "place 1")),
    Parameter("messages of *MatMul*: three that carry its second factor, four that return its product", 2,
              _names("soft bytes", "matmul 8")),
    Parameter("time slice of the operating system: its interval, and the bytes of its event", 2,
              _names("soft bytes", "life 1, matmul 1 2 4")),
    Parameter("one additional byte per event at the port, compared with memory", 1,
              _names("hard bytes", "simplex 1, life 1, place 1, matmul 1 2 4 8")),
    Parameter("mean size of the other events (the set of these events is an assumption)", 1,
              _names("hard bytes", "life 2, place 2 4")),
    Parameter("cycles of a nibble", 1, ("113,000 frames/s from one node (5.1)",)),
    Parameter("cycles of an iteration of the delay loop, and of an event at the port", 2,
              _names("hard", "simplex 1, life 1, matmul 1, place 1")),
    Parameter("cycles of a byte recorded by software", 1,
              _names("soft", "simplex 1, life 1 2, matmul 1 2, place 2 4")),
    Parameter("cycles of an event of the bandwidth test, recorded by software", 1, ("3.9 s per million events (5.1)",)),
    Parameter("rate at which the host reads", 1, ("5 MB/s across the bus (5.1)",)),
    Parameter("the host's pauses: their share of the time, and the length of each", 2,
              ("the runs of Table 2 that are overrun",)),
)

#: Printed figures that follow from others: what, the printed value, what follows, and the rounding allowed.
ARITHMETIC = (
    ("1.8 MB/s from one node (5.1)", 1.8, 113_000 * 16 / 1e6, 0.05),
    ("3.2 MB/s from two (5.1)", 3.2, 202_000 * 16 / 1e6, 0.05),
    ("88.5 s per million events of four bytes, by hardware (5.1), eight nibbles each", 88.5, 8e6 / 113_000, 0.05),
    ("22.7 times less than by software (5.1)", 22.7, 88.5 / 3.9, 0.05),
    ("45 KB/s by hardware (5.1)", 45, 4e6 / 88.5 / 1000, 0.5),
    ("1.02 MB/s by software (5.1)", 1.02, 4 / 3.9, 0.006),
    ("10 MB/s at most, of events: 8 bytes in 8 cycles of 20 MHz (5.1)", 10, 8 * 20 / 8, 0.5),
    ("80 % of a separate record is its time (3.2.1)", 80, 100 * 32 / 40, 0.5),
    ("3 % of a frame with one nibble are data (3.2.1)", 3, 100 * 4 / 128, 0.5),
    ("frames are shorter from 4 nodes on (3.2.1)", 4, -(-128 // 40), 0.5),
    ("2.5 MB/s of Place 8, from its software bytes (5.2.1)", 2.5, 16 * 2.25 * 7_977_226 / 102.221 / 1e6, 0.05),
)

#: Printed figures that are not reproduced, and why not. What was tried is further down on the page.
NOT_REPRODUCED = (
    ("202,000 frames/s from two nodes (5.1)", "independent nodes share fewer frames"),
    ("Place 4, mean of Figure 14: 82 KB/s", "Table 2 gives 57"),
    ("Place 8, mean of Figure 14: 276 KB/s", "Table 2 gives 193"),
    ("Place 16, mean of Figure 14: 629 KB/s", "its raw time is not printed"),
    ("the curves of Figures 8 to 14", "the paper's text does not contain their values; only shapes are compared"),
)

_MORE_PREDICTED = ("overrun from more than two nodes without a delay (5.1)", "no overrun from two (5.1)",
                   "Place 16, bursts of 20 ms: 2 to 3 MB/s (6)")


def _table_2() -> Iterator[str]:
    for program in PROGRAMS:
        for nodes in NODES:
            for column in ("raw", "soft", "hard", "soft bytes", "hard bytes"):
                if column != "hard bytes" or TABLE_2[program, nodes].hard_bytes:
                    yield name(program, nodes, column)


def claims() -> dict[str, str]:
    """The class of every printed figure, by its name. What is in Table 2 and was not used is predicted."""
    fitted = dict.fromkeys((figure for parameter in PARAMETERS for figure in parameter.figures), "F")
    rates = {name(program, nodes, f"{how} rate"): "C" for program in PROGRAMS for nodes in NODES
             for how in ("soft", "hard") if how == "soft" or TABLE_2[program, nodes].hard_bytes}
    return {**dict.fromkeys(_table_2(), "P"), **dict.fromkeys(_MORE_PREDICTED, "P"), **fitted, **rates,
            **dict.fromkeys((what for what, *_ in ARITHMETIC), "C"),
            **dict.fromkeys((what for what, _ in NOT_REPRODUCED), "N")}
