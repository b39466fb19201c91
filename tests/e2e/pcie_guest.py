"""``make guest OF=pcie``: an unmodified Linux records the verilated board, which is in a PCIe slot of its machine.

The guest runs this very ``hypermon`` over its kernel's VFIO, and the board's nodes play a stimulus. It records four
times: all of it; the beginning, after the board was released and bound again; with a small ring and a program that
stands still until the nodes have written everything; and while the board disappears. What has been recorded is
compared with ``hypermon sim`` on the same stimulus, byte for byte; of the third recording, each nibble that is missing
must be in the loss table.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
import threading
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from hypermon.hdl.layout import Geometry, Sink
from hypermon.host.cli import cli
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.pcie.pcie_board import LINK_HZ, PcieBoard
from iommufd_kernel import kernel
from linux_guest import LIBRARIES, MEGABYTES, GuestError, Steps, run_in_guest
from newer_qemu import emulator

__all__ = ["main", "run"]

_GROUPS, _IOMMUFD = ("vfio_pci", "vfio_iommu_type1"), ("iommufd", "vfio_pci")
#: By how much a stamp may differ from the time of the item.
_WINDOW_PS = 1_600_000


def _stimulus(path: Path, nodes: int, events: int) -> None:
    """So many nibbles, in bursts and alone."""
    rng = np.random.default_rng(1990)
    at = np.cumsum(rng.choice([450, 600, 3_000], events)) + 50_000
    rows = ["time_ns,node,port"]
    for ns, node, nibble in zip(at.tolist(), rng.integers(0, nodes, events).tolist(),
                                rng.integers(0, 16, events).tolist(), strict=True):
        rows += [f"{ns},{node},{nibble}", f"{ns + 200},{node},{nibble | 16}", f"{ns + 400},{node},{nibble}"]
    path.write_text("\n".join(rows) + "\n")


#: Pages of the ring, log2, in the recording that is stalled; nibbles of a stimulus that do not fit ring and board.
_SMALL, _MANY = 2, 20_000
#: What the guest prints when the board is to disappear.
_KILL = "guest: the board is to disappear"

_SCRIPT = """
export PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 HOME=/mnt TMPDIR=/mnt LD_LIBRARY_PATH={libraries}
for bdf in $(ls /sys/bus/pci/devices); do grep -q 0x1209 /sys/bus/pci/devices/$bdf/vendor && break; done
echo "guest: Linux $(uname -r), board at $bdf"
# Not to the terminal: a line of progress, a tenth of a second apart, is all of a slow console's time.
ended() {{ cat /mnt/said; echo "guest: $1 exit status $2"; [ $2 = $3 ] || exit 1; }}
# Waits until a recording has data.
until_data() {{
  for try in $(seq 600); do
    [ "$(cat /mnt/$1/stream* 2>/dev/null | head -c 20000 | wc -c)" = 20000 ] && return; sleep 0.2
  done; cat /mnt/said; exit 1; }}
{program} devices && {program} pcie bind $bdf && {program} devices || exit 1
{program} record -b pcie:$bdf -o /mnt/first --events {events} >/mnt/said 2>&1; ended first $? 0
{program} pcie unbind $bdf && {program} pcie bind $bdf || exit 1
{program} record -b pcie:$bdf -o /mnt/again --events {some} >/mnt/said 2>&1; ended again $? 0
{python} -c 'from hypermon.host.link.pcie import PcieLink
PcieLink.__init__.__defaults__ = ({small},)
from hypermon.host.cli import main
main()' record -b pcie:$bdf -o /mnt/stalled >/mnt/said 2>&1 & pid=$!
until_data stalled; kill -STOP $pid
for try in $(seq 2000); do [ -e /mnt/played-3 ] && break; sleep 0.2; done
kill -CONT $pid; sleep 1; kill -INT $pid; wait $pid; ended stalled $? 0
{program} record -b pcie:$bdf -o /mnt/killed >/mnt/said 2>&1 & pid=$!
until_data killed; echo "guest: it has $(ls -l /proc/$pid/fd | grep -o '/dev/[iv].*' | tr '\\n' ' ')"
# A kernel waits a minute for the answer of a board to its reset; this one will not come.
echo > /sys/bus/pci/devices/$bdf/reset_method
echo "{kill}"; sleep 5; {program} devices | grep -A1 pcie:; kill -INT $pid; wait $pid; ended killed $? 3
"""


class _Watch:
    """Says what a guest says, and pulls the board out when it is told to. The server stays: QEMU 11.1 does not survive
    its end (an assertion in util/error.c)."""

    def __init__(self, say: Steps, board: PcieBoard):
        self._say, self._board = say, board

    def __call__(self, what: str) -> None:
        self._say(what)
        if _KILL in what:
            self._board.remove()


def run(nodes: int, events: int, say: Steps, iommufd: bool = False) -> None:
    """The whole thing.

    Parameters
    ----------
    iommufd : with a kernel that has it, and without the driver for groups.

    Raises
    ------
    GuestError
        if anything is not as it should be.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out, path = Path(scratch) / "out", Path(scratch) / "slot"
        out.mkdir()
        stimulus = out / "stimulus.csv"
        _stimulus(stimulus, nodes, events)
        qemu = emulator(say)
        root, built = kernel(say) if iommufd else (None, [])
        say("the board")
        geometry = Geometry(nodes, sinks=tuple(Sink))
        board = PcieBoard(load([str(stimulus)], nodes=nodes, clock_hz=geometry.clock_hz), geometry, path)
        stop = threading.Event()
        slot = threading.Thread(target=board.serve, args=(stop,))
        plays = threading.Thread(target=_says_played, args=(board, out, stop))
        slot.start()
        plays.start()
        script = _SCRIPT.format(
            libraries=LIBRARIES, program=shlex.quote(str(Path(sys.executable).with_name("hypermon"))),
            python=shlex.quote(sys.executable), events=events, some=events // 5, small=_SMALL, kill=_KILL)
        try:
            # A guest on a busy machine misses timer interrupts while it checks that they come.
            run_in_guest(script, out, _Watch(say, board), modules=_IOMMUFD if iommufd else _GROUPS, built=built,
                         kernel=root, emulator=qemu, kernel_options="intel_iommu=on no_timer_check tsc=unstable",
                         devices=(
                "-object", f"memory-backend-memfd,id=memory,size={MEGABYTES}M,share=on",
                "-machine", "memory-backend=memory,kernel-irqchip=split",
                "-device", "intel-iommu,intremap=on,caching-mode=on",
                "-device", f'{{"driver":"vfio-user-pci","socket":{{"type":"unix","path":"{path}"}}}}'))
        finally:
            stop.set()
            slot.join()
            plays.join()
        counts = board.counts
        say(f"{counts.bytes:,} bytes in {counts.tlps:,} writes and {counts.clocks / LINK_HZ:.2f} s of the link, "
            f"{counts.interrupts:,} interrupts, {counts.flrs} function-level resets")
        if wrong := counts.malformed + counts.unmapped + counts.timeouts:
            raise GuestError(f"{wrong} requests of the board or its host were wrong")
        say("the same by hypermon sim")
        reference = Path(scratch) / "reference"
        _hypermon("sim", str(stimulus), "--nodes", str(nodes), "-o", str(reference))
        _compare(out, _events(reference), say)


def _says_played(board: PcieBoard, out: Path, stop: threading.Event) -> None:
    """Makes a file for the guest when the board's n-th start has played all of the stimulus: ``played-n``."""
    starts = before = 0
    while not stop.wait(0.05):
        edge = board.edge
        starts += edge < before or (edge > 0 and not starts)
        before = edge
        if starts and board.played:
            (out / f"played-{starts}").touch()


def _compare(out: Path, simulated: list[str], say: Steps) -> None:
    """What the guest has recorded, with what was simulated. Raises GuestError."""
    first, again, killed = (_events(out / name) for name in ("first", "again", "killed"))
    if first != simulated:
        raise GuestError("the events that were recorded are not those that were simulated")
    say(f"first: {len(first):,} nibbles, equal byte for byte")
    for name, recorded in (("again", again), ("killed", killed)):
        if not recorded or not _begins(recorded, simulated):
            raise GuestError(f"{name}: the events that were recorded are not the first ones that were simulated: "
                             + _difference(recorded, simulated[:len(recorded)]))
        say(f"{name}: the first {len(recorded):,} nibbles, equal byte for byte")
    ended = json.loads((out / "killed" / "recording.json").read_text())["end"]
    say(f"killed: {ended}")
    if "is gone" not in json.dumps(ended):
        raise GuestError("the recording whose board disappeared does not say how it ended")
    _placed(out / "stalled", simulated, say)


def _begins(recorded: list[str], simulated: list[str]) -> bool:
    """Whether these are the first ones. In the window in which the capture ended, some of the nodes may be missing."""
    times = [int(row.split(",")[0]) for row in simulated]
    last = int(recorded[-1].split(",")[0])
    before, after = bisect_left(times, last), bisect_right(times, last)
    return recorded[:before] == simulated[:before] and not Counter(recorded[before:]) - Counter(simulated[before:after])


def _difference(recorded: list[str], simulated: list[str]) -> str:
    """How many rows only one of them has, and the first of these."""
    ours, theirs = Counter(recorded) - Counter(simulated), Counter(simulated) - Counter(recorded)
    if not ours and not theirs:
        return f"the same {len(recorded):,} rows in another order"
    return "; ".join(f"{sum(rows.values()):,} of {len(all_rows):,} only {where}, first {min(rows, key=all_rows.index)}"
                     for rows, all_rows, where in ((ours, recorded, "recorded"), (theirs, simulated, "simulated"))
                     if rows)


def _placed(run: Path, simulated: list[str], say: Steps) -> None:
    """Each nibble that is missing lies in a row of its node in the loss table, and none that is there is in doubt."""
    there = Counter(_events(run))
    missing = Counter(simulated) - there
    if strange := there - Counter(simulated):
        raise GuestError(f"stalled: {sum(strange.values())} nibbles were recorded that were not simulated")
    rows = pq.read_table(run / "loss.parquet").to_pylist()
    at: dict[int, list[int]] = defaultdict(list)
    for row, times in missing.items():
        time_ps, node, _ = map(int, row.split(","))
        at[node] += [time_ps] * times
    lost = sum(row["lost"] for row in rows)
    if lost != sum(missing.values()) or (not lost and len(simulated) >= _MANY):
        raise GuestError(f"stalled: {sum(missing.values())} nibbles are missing, and {lost} are lost by the loss table")
    for row in rows:
        placed = sum(row["from_ps"] - _WINDOW_PS <= time <= row["to_ps"] + _WINDOW_PS for time in at[row["node"]])
        if placed < row["lost"]:
            raise GuestError(f"stalled: {placed} nibbles are missing where the loss table has {row}")
    say(f"stalled: {sum(there.values()):,} nibbles, {lost:,} lost and placed in {len(rows)} rows")


def _events(run: Path) -> list[str]:
    """Rows of the export, without its header."""
    csv = run.with_suffix(".csv")
    if not csv.exists():
        _hypermon("export", str(run), "--to", "csv", str(csv))
    return csv.read_text().splitlines()[1:]


def _hypermon(*arguments: str) -> None:
    cli.main(args=list(arguments), standalone_mode=False)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make guest OF=pcie", description=__doc__)
    parser.add_argument("--nodes", type=int, default=16, help="of the board, at least 2 (default 16)")
    parser.add_argument("--events", type=int, default=100_000, help="nibbles to be recorded (default 100,000)")
    parser.add_argument("--iommufd", action="store_true",
                        help="by the function's own file and iommufd, in a kernel whose VFIO is built with it (280 MB)")
    arguments = parser.parse_args()
    try:
        run(arguments.nodes, arguments.events, Steps(), arguments.iommufd)
    except GuestError as failure:
        sys.exit(f"make guest OF=pcie: {failure}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
