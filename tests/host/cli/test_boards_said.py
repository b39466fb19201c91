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


@pytest.fixture
def loader(monkeypatch, tmp_path):
    """``loader(script)``: `hypermon flash` finds a bitstream, and this instead of openFPGALoader."""
    (tmp_path / "x.bit").write_bytes(b"bits")
    found = SimpleNamespace(path=tmp_path / "x.bit", said={"nodes": 11, "config": "extended", "build": "0"},
                            source="built here")
    monkeypatch.setattr("hypermon.host.cli.boards.find_bitstream", lambda *of: found)

    def make(script):
        program = tmp_path / "openFPGALoader"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("OPENFPGALOADER", str(program))

    return make


def test_a_board_that_is_loaded(loader, capfd):
    loader("echo $2 loaded")
    assert cli._run(["flash", "ulx3s-85f"]) == 0
    assert capfd.readouterr().out == "ulx3s loaded\n"


def test_a_board_that_is_not_there(loader, capfd):
    """One line, with the program's own last one; the others by -v."""
    loader("echo empty; echo 'unable to open ftdi device: -3 (device not found)' >&2; exit 1")
    assert cli._run(["flash", "ulx3s-85f"]) == 2
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", 2)      # which bitstream, and why not
    assert "ulx3s-85f: not loaded (unable to open ftdi device: -3 (device not found)); are its cable" in err
    assert err.endswith("openFPGALoader says: hypermon flash ulx3s-85f -v\n")
    assert cli._run(["flash", "ulx3s-85f", "-v"]) == 2
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("empty\n", 3)


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
