"""``make pcie-guest``: an unmodified Linux records the verilated board, which is in a PCIe slot of its machine.

The guest runs this very ``hypermon`` over its kernel's VFIO, and the board's nodes play a stimulus. What has been
recorded is compared with ``hypermon sim`` on the same stimulus, byte for byte.
"""

import argparse
import os
import shlex
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
from hypermon.hdl.layout import Geometry, Sink
from hypermon.host.cli import cli
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.pcie.pcie_board import LINK_HZ, PcieBoard
from linux_guest import LIBRARIES, MEGABYTES, GuestError, Steps, run_in_guest
from newer_qemu import emulator

__all__ = ["main", "run"]

_MODULES = ("vfio_pci", "vfio_iommu_type1")


def _stimulus(path: Path, nodes: int, events: int) -> None:
    """So many nibbles, in bursts and alone."""
    rng = np.random.default_rng(1990)
    at = np.cumsum(rng.choice([450, 600, 3_000], events)) + 50_000
    rows = ["time_ns,node,port"]
    for ns, node, nibble in zip(at.tolist(), rng.integers(0, nodes, events).tolist(),
                                rng.integers(0, 16, events).tolist(), strict=True):
        rows += [f"{ns},{node},{nibble}", f"{ns + 200},{node},{nibble | 16}", f"{ns + 400},{node},{nibble}"]
    path.write_text("\n".join(rows) + "\n")


def _script(events: int) -> str:
    program = shlex.quote(str(Path(sys.executable).with_name("hypermon")))
    find = "for bdf in $(ls /sys/bus/pci/devices); do grep -q 0x1209 /sys/bus/pci/devices/$bdf/vendor && break; done"
    # Not to the terminal: a line of progress, a tenth of a second apart, is all of a slow console's time.
    record = (f"{program} record -b pcie:$bdf -o /mnt/run --events {events} >/mnt/said 2>&1; s=$?; "
              "cat /mnt/said; [ $s = 0 ]")
    return "\n".join((
        f"export PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 HOME=/mnt TMPDIR=/mnt LD_LIBRARY_PATH={LIBRARIES}",
        find, "echo \"guest: Linux $(uname -r), board at $bdf\"",
        f"{program} devices && {program} pcie bind $bdf && {program} devices && {{ {record}; }}"
        f" && {program} pcie unbind $bdf && {program} devices"))


def run(nodes: int, events: int, say: Steps) -> None:
    """The whole thing.

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
        say("the board")
        geometry = Geometry(nodes, sinks=tuple(Sink))
        board = PcieBoard(load([str(stimulus)], nodes=nodes, clock_hz=geometry.clock_hz), geometry, path)
        stop = threading.Event()
        slot = threading.Thread(target=board.serve, args=(stop,))
        slot.start()
        try:
            # A guest on a busy machine misses timer interrupts while it checks that they come.
            run_in_guest(_script(events), out, say, modules=_MODULES, emulator=qemu,
                         kernel_options="intel_iommu=on no_timer_check tsc=unstable", devices=(
                "-object", f"memory-backend-memfd,id=memory,size={MEGABYTES}M,share=on",
                "-machine", "memory-backend=memory,kernel-irqchip=split",
                "-device", "intel-iommu,intremap=on,caching-mode=on",
                "-device", f'{{"driver":"vfio-user-pci","socket":{{"type":"unix","path":"{path}"}}}}'))
        finally:
            stop.set()
            slot.join()
        counts = board.counts
        say(f"{counts.bytes:,} bytes in {counts.tlps:,} writes and {counts.clocks / LINK_HZ:.2f} s of the link, "
            f"{counts.interrupts:,} interrupts, {counts.flrs} function-level resets")
        if wrong := counts.malformed + counts.unmapped + counts.timeouts:
            raise GuestError(f"{wrong} requests of the board or its host were wrong")
        say("the same by hypermon sim")
        reference = Path(scratch) / "reference"
        _hypermon("sim", str(stimulus), "--nodes", str(nodes), "-o", str(reference))
        recorded, simulated = _events(out / "run"), _events(reference)
        if recorded != simulated:
            raise GuestError("the events that were recorded are not those that were simulated")
        say(f"{recorded.count(10) - 1} nibbles, equal byte for byte")


def _events(run: Path) -> bytes:
    csv = run.with_suffix(".csv")
    _hypermon("export", str(run), "--to", "csv", str(csv))
    return csv.read_bytes()


def _hypermon(*arguments: str) -> None:
    cli.main(args=list(arguments), standalone_mode=False)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make pcie-guest", description=__doc__)
    parser.add_argument("--nodes", type=int, default=16, help="of the board, at least 2 (default 16)")
    parser.add_argument("--events", type=int, default=100_000, help="nibbles to be recorded (default 100,000)")
    arguments = parser.parse_args()
    try:
        run(arguments.nodes, arguments.events, Steps())
    except GuestError as failure:
        sys.exit(f"make pcie-guest: {failure}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
