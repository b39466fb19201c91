"""``make guest``: an unmodified Linux records the verilated board, which is at the USB port of its machine.

The guest runs this very ``hypermon`` over its kernel's xhci and usbfs, and the board's nodes play a stimulus.
What has been recorded is compared with ``hypermon sim`` on the same stimulus, byte for byte.
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
from hypermon.sim.serve.usbredir import serve
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.usb_board import USB_HZ, UsbBoard
from linux_guest import LIBRARIES, GuestError, Steps, run_in_guest

__all__ = ["main", "run"]


def _stimulus(path: Path, nodes: int, events: int) -> None:
    """So many nibbles, in bursts and alone."""
    rng = np.random.default_rng(1990)
    at = np.cumsum(rng.choice([900, 5_000, 40_000], events)) + 50_000
    rows = ["time_ns,node,port"]
    for ns, node, nibble in zip(at.tolist(), rng.integers(0, nodes, events).tolist(),
                                rng.integers(0, 16, events).tolist(), strict=True):
        rows += [f"{ns},{node},{nibble}", f"{ns + 200},{node},{nibble | 16}", f"{ns + 400},{node},{nibble}"]
    path.write_text("\n".join(rows) + "\n")


def _script(events: int) -> str:
    program = shlex.quote(str(Path(sys.executable).with_name("hypermon")))
    return "\n".join((
        f"export PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 HOME=/mnt TMPDIR=/mnt LD_LIBRARY_PATH={LIBRARIES}",
        "for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do",
        "  grep -qs 1209 /sys/bus/usb/devices/*/idVendor && break; sleep 1; done",
        "echo \"guest: Linux $(uname -r), USB at $(cat /sys/bus/usb/devices/*-*/speed 2>/dev/null) Mbit/s\"",
        f"{program} devices && {program} record -b usb: -o /mnt/run --events {events}"))


def run(nodes: int, events: int, say: Steps) -> None:
    """The whole thing.

    Raises
    ------
    GuestError
        if anything is not as it should be.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out, port = Path(scratch) / "out", str(Path(scratch) / "cable")
        out.mkdir()
        stimulus = out / "stimulus.csv"
        _stimulus(stimulus, nodes, events)
        say("the board")
        geometry = Geometry(nodes, sinks=tuple(Sink))
        board = UsbBoard(load([str(stimulus)], nodes=nodes, clock_hz=geometry.clock_hz), geometry)
        stop = threading.Event()
        cable = threading.Thread(target=serve, args=(board, port, stop))
        cable.start()
        try:
            run_in_guest(_script(events), out, say, modules=("xhci_pci",), devices=(
                "-device", "qemu-xhci,id=xhci", "-chardev", f"socket,id=cable,path={port}",
                "-device", "usb-redir,chardev=cable,bus=xhci.0"))
        finally:
            stop.set()
            cable.join()
        counts = board.counts
        say(f"{counts.bytes:,} bytes in {counts.clocks / USB_HZ:.2f} s of the bus, {counts.repeated} packets repeated")
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
    parser = argparse.ArgumentParser(prog="make guest", description=__doc__)
    parser.add_argument("--nodes", type=int, default=16, help="of the board, at least 2 (default 16)")
    parser.add_argument("--events", type=int, default=2000, help="nibbles to be recorded (default 2000)")
    arguments = parser.parse_args()
    try:
        run(arguments.nodes, arguments.events, Steps())
    except GuestError as failure:
        sys.exit(f"make guest: {failure}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
