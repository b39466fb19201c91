"""What `hypermon build` prints of what was built."""

from types import SimpleNamespace

import pytest
from hypermon.host import cli


@pytest.fixture
def built(monkeypatch):
    """``built(**values)``: `hypermon build` has built this."""
    building = pytest.importorskip("hypermon.boards.toolchain.bitstream")

    def make(**values):
        found = {"bitstream": "x.bit", "vendor": "", "sha256": "0123456789abcdef" * 4, "skews_ps": [],
                 "clocks": {"capture": (171.5, 150.0), "usb": (61.25, 60.0)}, "used": {}, "seconds": 7} | values
        monkeypatch.setattr(building, "build", lambda *of, **more: SimpleNamespace(**found))

    return make


def said(capsys, tmp_path, *options):
    assert cli._run(["build", "ulx3s-85f", "-o", str(tmp_path), *options]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("skews", "text"), [
    ([], ""), ([120, 340, 90], "wires of a port differ by 340 ps at most inside the FPGA; ")])
def test_a_bitstream(built, capsys, tmp_path, skews, text):
    built(skews_ps=skews)
    file, command = said(capsys, tmp_path)
    assert file == (f"{tmp_path}/x.bit: capture 171.5 MHz of 150, usb 61.25 MHz of 60; {text}7 s; "
                    "sha256 0123456789abcdef...")
    assert command.startswith("To load it: hypermon flash ulx3s-85f")


def test_a_project_for_a_vendors_tool(built, capsys, tmp_path):
    built(vendor="Vivado", bitstream="project/x.bit", used={"LUT4": 10, "LUT6": 5, "FDRE": 7, "RAMB36": 2})
    folder, bits, command = said(capsys, tmp_path)
    assert folder == (f"{tmp_path}/project: a project for Vivado, which does the rest; "
                      "from Yosys: 15 lookup tables, 7 flip-flops; 7 s")
    assert bits == f"The bitstream: (cd {tmp_path}/project && vivado -mode batch -source hypermon_board.tcl)"
    assert command.startswith("To load it: hypermon flash")
