"""Plain Verilog: the module and its ports as they are documented, with both kinds of memory."""

import gc
import hashlib
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import UnusedElaboratable
from hypermon.hdl import layout
from hypermon.hdl.layout import Geometry, Sink
from hypermon.hdl.lib.ram import RAM_KINDS, Ram
from hypermon.hdl.verilog import build_hash, main, verilog
from hypermon.hdl.verilog_header import split

from .harness.stage import refuses

PORTS = {
    "clk": 1, "rst": 1, "data": 8, "strobe": 2,
    "pbx_req": 1, "pbx_more": 1, "pbx_write": 1, "pbx_addr": 13, "pbx_wdata": 32, "pbx_ack": 1, "pbx_rdata": 32,
    "stream_valid": 1, "stream_ready": 1, "stream_data": 128, "stream_last": 1,
    "running": 1, "advance": 32, "quiet": 1, "horizon": 32,
}
#: With 1024 beats of external memory.
MEMORY_PORTS = {
    "memory_command_valid": 1, "memory_command_ready": 1, "memory_command_write": 1, "memory_command_burst": 6,
    "memory_write_valid": 1, "memory_write_ready": 1, "memory_write_data": 128,
    "memory_read_valid": 1, "memory_read_data": 128,
}
SMALL = Geometry(nodes=2, node_depth=4, vector_depth=16, frame_depth=16)


@pytest.mark.parametrize("external", [0, 1024])
@pytest.mark.parametrize("ram", RAM_KINDS)
def test_ports_are_as_documented(ram, external):
    text = verilog(replace(SMALL, external_depth=external), ram)
    top = text[re.search(r"^module hypermon\b", text, re.M).start():]
    top = top[:top.index("endmodule")]
    found = {name: int(high or 0) + 1 for high, name in
             re.findall(r"^\s*(?:input|output)\s+(?:reg\s+)?(?:\[(\d+):0\]\s+)?(\w+);", top, re.M)}
    assert found == PORTS | (MEMORY_PORTS if external else {})
    assert ("16KD" in text) == (ram == "ecp5")
    assert ("SDPX9B" in text) == (ram == "gowin")


@pytest.mark.parametrize("pad_stage", [True, False])
def test_first_flip_flops_inside_or_outside(pad_stage):
    """Of strobe, its early level and data there are two in a row, or one."""
    text = verilog(replace(SMALL, sinks=(Sink.EXTENDED,), phases=2, port_bits=8), pad_stage=pad_stage)
    assert re.search(r"^\s*input \[1:0\] early;", text, re.M)
    assert len(re.findall(r"^\s*\\?hypermon\S*intake\.synchronizer\.(?:strobe|early|data)_sync\b", text, re.M)) == (
        3 * pad_stage)


def test_unknown_memory_is_named():
    assert "'sram'" in refuses(Ram, 8, 16, "sram")


def test_build_hash_tells_geometries_apart():
    assert build_hash(SMALL) == build_hash(SMALL)
    assert build_hash(SMALL) != build_hash(Geometry(nodes=3))


#: Prints BUILD of a small board, of a copy of the gateware that is on the path as the package `copied`.
_BUILD = ("from copied.layout import Geometry; from copied.verilog import build_hash; "
          "print(build_hash(Geometry(nodes=2)))")


@pytest.mark.parametrize(("old", "new", "same"), [
    ("m = Module()", "m = Module()  # a comment", True), ("offered & barred", "offered | barred", False)])
def test_build_hash_is_of_the_logic(old, new, same, tmp_path):
    copy = tmp_path / "copied"
    shutil.copytree(Path(layout.__file__).parents[1], copy, ignore=shutil.ignore_patterns("__pycache__"))

    def build() -> str:
        return subprocess.run([sys.executable, "-c", _BUILD], cwd=tmp_path, capture_output=True, text=True, check=True,
                              timeout=100).stdout

    before = build()
    [gate] = copy.rglob("drop_gate.py")
    text = gate.read_text()
    assert text.count(old) == 1
    gate.write_text(text.replace(old, new))
    assert (build() == before) == same


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("link", "ports"), [
    ("bus", {"wb_clk", "wb_adr", "wb_err", "axis_tvalid", "axis_tkeep"}), ("uart", {"link_clk", "rx", "tx"}),
    ("pcie-s7", {"user_clk_out", "m_axis_rx_tdata", "s_axis_tx_tvalid", "tx_buf_av", "cfg_interrupt_rdy"}),
    ("pcie-us", {"user_clk", "user_reset", "m_axis_cq_tdata", "s_axis_rq_tvalid", "cfg_interrupt_msi_int"}),
    ("usb-ulpi", {"usb_clk", "ulpi_data_oe", "ulpi_dir_i"}),
    ("usb-utmi", {"usb_clk", "utmi_tx_valid"}), ("usb-pins", {"usb_clk", "usb_io_clk", "usb_d_p_oe", "usb_pullup_o"})])
def test_command_writes_a_board_with_a_link(link, ports, tmp_path):
    out = tmp_path / "board.v"
    main(["-o", str(out), "--nodes", "1", "--node-depth", "4", "--vector-depth", "16", "--frame-depth", "16",
          "--link", link, "--serial", "A7"])
    listed = re.search(r"^module hypermon\((.*?)\s*\);", out.read_text(), re.M | re.S)[1].split(", ")
    assert ports | {"clk", "rst", "data", "strobe", "running"} <= set(listed)
    assert not [port for port in listed if port.startswith(("pbx_", "stream_"))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("options", "said"), [
    (["--link", "uart", "--baud", "20000000"], "at least 8 clocks"),
    (["--link", "usb-utmi", "--serial", "a b"], "serial number"),
    (["--link", "uart", "--external-depth", "1024"], "external_depth must be 0")])
def test_links_that_cannot_be(options, said, tmp_path, capsys):
    with warnings.catch_warnings():
        # What could not be made is not used either; Amaranth says so when it is collected.
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(SystemExit) as caught:
            main(["-o", str(tmp_path / "board.v"), "--nodes", "1", *options])
        gc.collect()
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_command_writes_a_port_for_a_soft_core(tmp_path):
    out = tmp_path / "port.v"
    main(["-o", str(out), "--onchip-port", "--port-bits", "8", "--hold", "3"])
    ports = re.search(r"^module hypermon_port\((.*?)\);", out.read_text(), re.M | re.S)[1].split(", ")
    assert set(ports) == {"clk", "rst", "strobe", "data", *(
        f"wb_{name}" for name in ("cyc", "stb", "we", "adr", "sel", "dat_w", "dat_r", "ack", "err"))}
    assert re.search(r"^\s*output \[7:0\] data;", out.read_text(), re.M)


def test_command_writes_the_file_or_says_why_not(tmp_path, capsys):
    out = tmp_path / "deep" / "board.v"
    main(["-o", str(out), "--nodes", "1", "--node-depth", "4", "--vector-depth", "16", "--frame-depth", "16"])
    header, named, body = split(out.read_text())
    assert hashlib.sha256(body.encode()).hexdigest() == named
    assert "module hypermon" in body
    build = build_hash(Geometry(1, node_depth=4, vector_depth=16, frame_depth=16))
    assert f"board.v: module hypermon, 1 nodes, 100 MHz, build {build:08x}." in header
    assert 'OUT=board.v ARGS="--nodes 1 --node-depth 4 --vector-depth 16 --frame-depth 16"\n' in header
    assert "//   hypermon board (\n" in header
    with pytest.raises(SystemExit) as caught:
        main(["-o", str(out), "--nodes", "77"])
    assert caught.value.code == 2
    assert "77" in capsys.readouterr().err
