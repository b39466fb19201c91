"""The top of a ULX3S with nodes of every kind, as it goes to the tools, simulated: a byte of each kind goes in at the
pins of its node, and out at the serial port, to the host's own commands."""

import csv
import hashlib
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("amaranth_boards")

from amaranth.build import Attrs, Pins, Resource
from amaranth.hdl import Const, Elaboratable, Module, Signal
from amaranth.lib import io
from hypermon.boards.registry import find
from hypermon.boards.toolchain import top as tops
from hypermon.boards.toolchain.families import FAMILIES
from hypermon.hdl.layout import FRONT_WIRES, Front
from hypermon.hdl.verilog import build_hash
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.build import Shell
from hypermon.sim.virtual.uart_board import HARNESS

from tests.bitstream.served import Served, command, recorded, told
from tests.hdl.harness.senders import Wires, spi, uart
from tests.sim import gates

PORTS = "0=port,1=uart,2=serial,3=selected,4=swo,5=port"
BOARD = find("ulx3s-25f").mixed(PORTS)
#: Rates of the nodes.
RATES = {"uart": 1_000_000, "swo": 2_000_000, "spi": 4_000_000}
#: What each node sends, and when: picoseconds.
SENT = {0: (0xa, 50_000_000), 1: (0x5a, 60_000_000), 2: (0xc3, 90_000_000), 3: (0x17, 110_000_000),
        4: (0xe8, 130_000_000), 5: (0x6, 150_000_000)}
#: The I/O cells of the top. A register in an I/O cell is one flip-flop.
CELLS = """
module IB(input I, output O); assign O = I; endmodule
module OBZ(input I, input T, output O); assign O = T ? 1'bz : I; endmodule
module IFS1P3DX(input D, SP, SCLK, CD, output reg Q);
initial Q = 0;
always @(posedge SCLK) if (SP) Q <= D;
endmodule
"""


class GivenClocks(Elaboratable):
    """In place of the PLL: clocks that come from pins."""

    own_pin = True

    def __init__(self, input_hz, wanted):
        self.i, self.locked = Signal(), Const(1)
        self._made = {name: Signal(name=name) for name in wanted}
        vars(self).update(self._made)

    def elaborate(self, platform):
        m = Module()
        for name, signal in self._made.items():
            m.submodules[name] = pad = io.Buffer("i", platform.request(f"{name}_clk", 0, dir="-"))
            m.d.comb += signal.eq(pad.i)
        return m


def verilog():
    """Module ``hypermon``, whose ports are those of the virtual board with a UART, around the board's top."""
    geometry = BOARD.geometry()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        patch.setitem(FAMILIES, "ecp5", replace(FAMILIES["ecp5"], pll=GivenClocks))
        top = tops.BoardTop(BOARD, geometry, build_hash(geometry))
        platform = tops.platform_of(BOARD, geometry.nodes)
        free = [pin for pin in (*BOARD.pins, *BOARD.spare)
                if pin not in [taken for node in range(BOARD.nodes) for taken in BOARD.node(node)]]
        platform.add_resources([Resource(f"{name}_clk", 0, Pins(pin.name, dir="i"), Attrs(**BOARD.attributes))
                                for name, pin in zip(("capture", "link"), free, strict=False)])
        files = platform.prepare(top, "top", debug_verilog=True).files
    text = files["top.debug.v"]
    text = text if isinstance(text, str) else text.decode()
    wires = {"capture_clk_0__io": "clk", "link_clk_0__io": "link_clk", "uart_0__rx__io": "rx", "uart_0__tx__io": "tx",
             "led_0__io": "lamp"}
    for node, front in enumerate(BOARD.ports):
        wires[f"node_{node}__strobe__io"] = f"strobe[{node}]"
        if FRONT_WIRES[front] > 1:
            wires[f"node_{node}__data__io"] = f"data[{4 * node + FRONT_WIRES[front] - 2}:{4 * node}]"
    ports = re.search(r"^module top\((.*?)\);", text, re.MULTILINE | re.DOTALL)[1]
    there = {name.strip().lstrip("\\").strip() for name in ports.split(",")}
    assert {name for name in there if name.startswith("node_")} == {name for name in wires if name.startswith("node_")}
    assert wires.keys() <= there
    nodes = BOARD.nodes
    connected = ", ".join(f".{name}({net})" for name, net in wires.items())
    return gates.with_models(gates.FAMILIES["ecp5"], text, {"DP16KD", "PDPW16KD", "DCCA"}) + CELLS + (
        f"module hypermon(input clk, link_clk, rst, rx, output tx, running, input [{4 * nodes - 1}:0] data, "
        f"input [{nodes - 1}:0] strobe);\nwire lamp;\nassign running = lamp;\ntop board({connected});\nendmodule\n")


def stimulus():
    """What the nodes send, as levels of ports of five wires; and the first edge of each one's byte."""
    rows, initial, first = [], [], {node: begin for node, (_, begin) in SENT.items()}
    for node, (value, begin) in SENT.items():
        front = BOARD.ports[node]
        if front is Front.PORT:
            initial.append(0)
            rows += [(begin - 1_000_000, node, value), (begin, node, value | 16), (begin + 1_000_000, node, value)]
            continue
        wires = Wires({Front.UART: (1, 0, 0), Front.SWO: (1, 0, 0), Front.SELECTED: (0, 0, 1)}.get(front, (0, 0, 0)))
        if front in (Front.UART, Front.SWO):
            uart(wires, begin, 10**12 // RATES[front.name.lower()], [value])
        else:
            (first[node],), _ = spi(wires, begin, 10**12 // RATES["spi"], [value], select=front is Front.SELECTED)
        initial.append(wires.initial[0] << 4 | wires.initial[1] | wires.initial[2] << 1)
        rows += [(int(time), node, port) for time, port in wires.ports()]
    time, node, port = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return Stimulus(time.astype(np.int64), node.astype(np.int16), port.astype(np.uint8), initial), first


@pytest.fixture(scope="module")
def shell():
    text = verilog()
    link = BOARD.link()
    return Shell("mixture", HARNESS, lambda geometry: text, (
        ("LINK_HZ", link.clocks["link"]), ("BAUD", link.baud), ("RUNNING_LATE", 1),
        ("TEXT", f"0x{hashlib.sha256(text.encode()).hexdigest()[:16]}")))


def test_a_byte_of_each_kind_arrives(shell, tmp_path):
    geometry, run = BOARD.geometry(), tmp_path / "run"
    played, first = stimulus()
    with Served(tmp_path, shell, geometry, BOARD.link().baud, played) as board:
        info = told(board.uri)
        rates = [word for line, rate in RATES.items() for word in ("--front-rate", f"{line}={rate}")]
        done = recorded(board, run, 400_000_000, ("--config", "extended", "--window", "1", "--mode", "4=byte", *rates))
        refused = [command("record", "-b", board.uri, "-o", tmp_path / "no", "--config", "extended", *option)
                   for option in (("--mode", "1=nibble"), ("--mode", "5=byte"), ("--edge", "4=both"))]
    assert done.returncode == 0, done.stderr
    assert info["fronts"] == ["port", "uart", "two_wire", "selected", "swo"], info
    assert info["ports"] == PORTS.replace("serial", "two_wire")
    assert info["build"] == f"{build_hash(geometry):08x}"
    said = json.loads((run / "recording.json").read_text())
    assert said["identity"]["fronts"] == info["fronts"]
    table = command("export", run, "--to", "csv", "-")
    assert table.returncode == 0, table.stderr
    rows = {int(row["node"]): row for row in csv.DictReader(table.stdout.splitlines())}
    assert {node: int(row["nibble"]) for node, row in rows.items()} == {node: value for node, (value, _) in
                                                                      SENT.items()}
    clock_ps = 10**12 // geometry.clock_hz
    for node, begin in first.items():
        assert abs(int(rows[node]["time_ps"]) - begin) <= 2 * clock_ps, (node, rows[node])
    assert len(table.stdout.splitlines()) == len(SENT) + 1, "and nothing else"
    for one in refused:
        assert (one.returncode, one.stderr.count("\n")) == (2, 1), one.stderr
    assert "node 1 has a UART; its modes are word, event, byte, line" in refused[0].stderr
    assert "node 5 has a port; its modes are nibble, word, event" in refused[1].stderr
    assert "--edge 4=both: node 4 has SWO, and has no strobe" in refused[2].stderr
