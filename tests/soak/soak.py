"""An hour of board time in every mode, with all that goes wrong: `make soak`, `make soak ARGS="--minutes 60 --seed 1"`.

A verilated board of 32 nodes plays traffic of which every item is known: see plan.py. The unmodified recorder records
it: from the virtual board, with stalls of the host; or by the driver of the serial port, over a line that loses and
damages bytes and is pulled out now and then (line.py). Then the books are closed (books.py): offered = accepted + lost,
accepted = delivered + lost on the link, and each delivered item is one that was offered, at its time.

Board time is that of each leg. The virtual board lets idle time pass at once; the table says how much it has computed.
Exit code 1: an account does not close.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

for _folder in (Path(__file__).parents[2], Path(__file__).parent):
    sys.path.insert(0, str(_folder))

import numpy as np  # noqa: E402
from books import Books, closed  # noqa: E402
from hypermon.host.decode.ledger import Ledger  # noqa: E402
from hypermon.host.device.device import Device  # noqa: E402
from hypermon.host.errors import HypermonError  # noqa: E402
from hypermon.host.link import open_link  # noqa: E402
from hypermon.host.record.recorder import Interrupt, record  # noqa: E402
from hypermon.host.run import open_run  # noqa: E402
from hypermon.sim.virtual.build import Shell  # noqa: E402
from hypermon.sim.virtual.link import VirtualLink  # noqa: E402
from line import Line  # noqa: E402
from plan import LEGS, Leg, Plan, planned  # noqa: E402

__all__ = ["Outcome", "main", "soak"]

NODES = 32
#: What a leg has of each, unless somebody says otherwise.
_MINUTES, _EPISODES, _PULLS = 60.0, 100, 12
#: Seconds that the line waits for a reply.
_TIMEOUT_S = 1.0


@dataclass
class Outcome:
    """A leg that has been played: its plan, the recorder's accounts, its books; reconnects, and pieces of stream and
    requests that the line spoilt; seconds of board time, clocks that were computed, and seconds that it took."""

    plan: Plan
    ledger: Ledger
    books: Books
    reconnects: int
    faults: int
    board_s: float
    clocks: int
    wall_s: float


def soak(leg: Leg, seconds: float, episodes: int, seed: int, folder: Path, pulls: int = _PULLS, nodes: int = NODES,
         shell: Shell | None = None) -> Outcome:
    """Plays and records a leg, and closes its books. ``shell``: the gateware in another form.

    Raises
    ------
    HypermonError
        if the board cannot be built, or the recording ended early.
    """
    began = time.monotonic()
    plan = planned(leg, nodes, seconds, episodes, seed)
    board = VirtualLink(plan.stimulus, plan.geometry, stalls=plan.stalls, drain_rate=leg.drain_rate, shell=shell)
    reconnects = faults = 0
    path = folder / "run"
    if leg.line:
        interrupt = Interrupt()
        line = Line(folder / "port", board, _pulled(plan, pulls, seed), seed, lambda: setattr(interrupt, "hit", True))
        try:
            with Device(open_link(f"uart:{line.path}?timeout={_TIMEOUT_S}")) as device:
                ledger = record(device, path, plan.settings, interrupt=interrupt)
                reconnects = len(device.link.outages)
        finally:
            clocks, board_s = board.cycles, board.board_ps / 1e12
            line.close()
        faults = line.to_host.faults + line.to_board.faults
    else:
        with Device(board) as device:
            ledger = record(device, path, plan.settings)
            clocks, board_s = board.cycles, board.board_ps / 1e12
    books = closed(plan, open_run(path), ledger)
    if leg.line:
        books.agree("reconnects, and times that the plug was out", reconnects, line.pulled)
    return Outcome(plan, ledger, books, reconnects, faults, board_s, clocks, time.monotonic() - began)


def _pulled(plan: Plan, count: int, seed: int) -> list[tuple[int, int]]:
    """So many times in which the plug is out: each begins in an episode, where much is under way."""
    rng = np.random.default_rng([seed, 9])
    rows = np.sort(rng.integers(0, len(plan.stimulus), count))
    begins = plan.stimulus.time_ps[rows].tolist()
    lengths = (10 ** rng.uniform(7, 11, count)).astype(int).tolist()        # 10 us to 100 ms
    spans = []
    for begin, length in zip(begins, lengths, strict=True):
        if not spans or begin > spans[-1][1]:
            spans.append((begin, begin + length))
    return spans


def _table(outcomes: list[Outcome]) -> str:
    """The figures of all legs, a column each, and their sums."""
    rows = [{"board time, s": round(one.board_s), "clocks computed, k": one.clocks // 1000,
             "episodes": one.plan.episodes, "stalls": len(one.plan.stalls), "reconnects": one.reconnects,
             "faults": one.faults, **one.books.figures, "wall time, s": round(one.wall_s)} for one in outcomes]
    names = list(dict.fromkeys(name for row in rows for name in row))
    heads = (*(f"leg {k + 1}" for k in range(len(rows))), "all")
    lines = [f"{'':>19}" + "".join(f"{head:>11}" for head in heads)]
    for name in names:
        values = [row.get(name, 0) for row in rows]
        lines.append(f"{name:>19}" + "".join(f"{value:>11,}" for value in (*values, sum(values))))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Plays the legs, one after the other."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=...", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="board time of a leg (%(default)s)")
    parser.add_argument("--episodes", type=int, default=_EPISODES, help="of traffic in a leg (%(default)s)")
    parser.add_argument("--pulls", type=int, default=_PULLS, help="times that a line is pulled out (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="legs that have this in their names")
    args = parser.parse_args(argv)
    outcomes = []
    for leg in (leg for leg in LEGS if args.only in leg.name):
        print(f"{leg.name}: ", end="", flush=True)
        try:
            with tempfile.TemporaryDirectory() as folder:
                one = soak(leg, 60 * args.minutes, args.episodes, args.seed, Path(folder), args.pulls)
        except HypermonError as error:
            sys.exit(f"soak: {leg.name}: {error}")
        outcomes.append(one)
        found, wrong = one.books.figures, len(one.books.wrong)
        print(f"{found.get('delivered', 0):,} of {found.get('offered', 0):,} items, {one.clocks / 1e6:.1f} M clocks, "
              f"{one.wall_s:.0f} s; {f'{wrong} accounts do not close' if wrong else 'all accounts close'}", flush=True)
        for line in one.books.wrong:
            print(f"  {line}", flush=True)
    print(_table(outcomes))
    return int(any(one.books.wrong for one in outcomes) or not outcomes)


if __name__ == "__main__":
    sys.exit(main())
