"""Building, with tools that fail, and (slow) with the real ones."""

import hashlib
import json
import re
import shutil

import pytest
from click.testing import CliRunner
from hypermon.boards.toolchain import bitstream as building
from hypermon.boards.toolchain.families import FAMILIES
from hypermon.host.cli import cli
from hypermon.host.errors import to_install


def run(*arguments):
    return CliRunner().invoke(cli, list(arguments), standalone_mode=False)


def shell(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """What ``_prepared`` does, once for the same board: elaborating it takes seconds."""
    prepare, made = building._prepared, {}

    def again(top, work, seed):
        key = top.board.name, top.board.reference_hz, top.geometry, top.build, top.link.kind, top.serial, seed
        if key not in made:
            made[key] = tmp_path_factory.mktemp("prepared") / "work", prepare(top, work, seed)
            shutil.copytree(work, made[key][0])
        top._MustUse__silence = True    # or it complains that nobody has elaborated it
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(made[key][0], work)
        return made[key][1]

    return again


@pytest.fixture
def tools(tmp_path, monkeypatch, prepared):
    """Every tool is one that does nothing, successfully. Nothing is written where the command is called."""
    monkeypatch.setattr(building, "_prepared", prepared)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for variable in {variable for family in FAMILIES.values() for variable in family.tools}:
        monkeypatch.setenv(variable, shell(tmp_path / variable.lower(), "exit 0"))
    yield tmp_path
    assert list(here.iterdir()) == []


def build(folder, *arguments):
    return run("build", "ulx3s-25f", "--config", "classic", "--nodes", "1", "-o", str(folder / "out"), *arguments)


def test_a_missing_tool_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setenv("ECPPACK", "no-such-packer")
    failed = build(tmp_path)
    assert f"no-such-packer not found: {to_install('boards')}" in str(failed.exception)
    assert not (tmp_path / "out").exists()


def test_a_tool_that_fails_shows_the_end_of_its_log(tools, monkeypatch):
    monkeypatch.setenv("YOSYS", shell(tools / "broken", "echo out of gates; exit 3"))
    failed = build(tools)
    assert "status 3" in str(failed.exception)
    assert "out of gates" in str(failed.exception)
    assert not list((tools / "out").glob("*.bit"))


def test_a_design_that_does_not_fit_is_one_line(tools, monkeypatch):
    """As nextpnr 0.9 writes it to its log, before it fails."""
    said = ("Info: Device utilisation:", "Info: \t TRELLIS_IO:      42/    197    21%",
            "Info: \t     DP16KD:      69/     56   123%", "Info: \t       DCUA:       0/      1     0%")
    (tools / "said").write_text("\n".join(said) + "\n")
    monkeypatch.setenv("NEXTPNR_ECP5", shell(tools / "full", f"cat {tools / 'said'} > hypermon_board.tim; exit 255"))
    failed = str(build(tools).exception)
    assert failed.startswith("ulx3s-25f: does not fit the FPGA: 69 DP16KD of 56; choose fewer nodes (--nodes)")
    assert "\n" not in failed


def test_a_constraint_that_nextpnr_does_not_take_fails(tools, monkeypatch):
    """It warns, and checks that clock against 12 MHz."""
    warning = "net 'phy_clock.i' does not exist in design, ignoring clock constraint"
    monkeypatch.setenv("NEXTPNR_ECP5", shell(tools / "careless", f'echo "Warning: {warning}"'))
    failed = build(tools)
    assert "a clock would not be checked" in str(failed.exception)
    assert warning in str(failed.exception)
    assert not list((tools / "out").glob("*.bit"))


def test_the_clock_that_a_phy_gives_is_constrained_at_its_pin(tools, monkeypatch):
    monkeypatch.setenv("YOSYS", shell(tools / "broken", "exit 3"))
    run("build", "ecpix5-45f", "--config", "classic", "--nodes", "1", "-o", str(tools / "out"))
    constraints, = (tools / "out").glob("ecpix5-45f*-work/*.lpf")
    assert re.search(r'^ *FREQUENCY PORT "ulpi_0__clk__io" 60000000.0 HZ;$', constraints.read_text(), re.MULTILINE)


def test_more_nodes_than_pins(tools):
    assert "pins for 1 to 11 nodes, not 12" in str(run("build", "ulx3s-25f", "--nodes", "12").exception)


@pytest.mark.parametrize(("board", "asked", "reason"), [
    ("ulx3s-25f", ("--serial", "a1"), "a board at a serial port has no serial number"),
    ("ulx3s-25f", ("--link", "usb-ulpi"), "ulx3s-25f has no link 'usb-ulpi', but uart, usb-pins"),
    ("butterstick", ("--link", "uart"), "butterstick has no link 'uart', but usb-ulpi"),
    ("butterstick", ("--serial", "a b"), "a b"),
])
def test_links_and_serial_numbers_that_cannot_be(tools, board, asked, reason):
    failed = run("build", board, "--nodes", "1", "--config", "classic", "-o", str(tools / "out"), *asked)
    assert reason in str(failed.exception)
    assert not (tools / "out").exists()


#: What the last two steps would have left.
_REPORT = {"fmax": {"$glbnet$capture_clk": {"achieved": 99.0, "constraint": 100.0}},
           "utilization": {"TRELLIS_FF": {"used": 5, "available": 24288}}}


def fake_flow(tools, monkeypatch, reached, cells=None, delays=(0, 0, 0, 0, 0)):
    report = json.loads(json.dumps(_REPORT))
    report["fmax"]["$glbnet$capture_clk"]["achieved"] = reached
    pads = {f"pad{wire}": {"type": "TRELLIS_IO", "connections": {"B": [10 + wire]}, "port_directions": {"B": "inout"}}
            for wire in range(5)}
    ports = {"node_0__strobe__io": {"bits": [10]}, "node_0__data__io": {"bits": [11, 12, 13, 14]}}
    names = {name: {"bits": [net]} for name, net in (("a", 2), ("b", 3), ("q", 4), ("stray", 5))}
    netlist = json.dumps({"modules": {"hypermon_board": {
        "cells": (cells or {}) | pads, "netnames": names, "ports": ports}}})
    routed = "\n".join(f"(INTERCONNECT pad{wire}/O flop{wire}/D ({d}:{d}:{d}) ({d}:{d}:{d}))"
                       for wire, d in enumerate(delays))
    monkeypatch.setenv("YOSYS", shell(tools / "yosys2", f"cat > hypermon_board.json <<'E'\n{netlist}\nE"))
    monkeypatch.setenv("NEXTPNR_ECP5", shell(tools / "nextpnr2", f"cat > report.json <<'E'\n{json.dumps(report)}\nE\n"
                                             f"cat > routed.sdf <<'E'\n{routed}\nE"))
    monkeypatch.setenv("ECPPACK", shell(tools / "pack2", "echo bits > hypermon_board.bit"))


def test_what_was_built_is_written_beside(tools, monkeypatch):
    fake_flow(tools, monkeypatch, 120.0, delays=(300, 0, 0, 0, 1200))
    done = build(tools, "--json", "--seed", "7")
    assert done.exception is None
    made = json.loads((tools / "out" / "ulx3s-25f-classic.json").read_text())
    assert json.loads(done.stdout) == made
    assert (made["seed"], made["nodes"], made["clocks"]) == (7, 1, {"capture_clk": [120.0, 100.0]})
    assert (tools / "out" / made["bitstream"]).read_text() == "bits\n"
    assert made["skews_ps"] == [1200]
    assert re.fullmatch(r"([0-9a-f]{40}(-dirty)?)?", made["commit"])
    assert "differ by 1200 ps at most" in build(tools).stdout


def test_what_is_said_of_a_mixture(tools, monkeypatch):
    """Nodes of one wire have no skew; files have names of their own, and the command to load them names the option."""
    fake_flow(tools, monkeypatch, 120.0, delays=(300, 0, 0, 0, 1200))
    arguments = ("build", "ulx3s-25f", "--ports", "port,1-2=uart", "--nodes", "3", "-o", str(tools / "out"))
    done = run(*arguments, "--json")
    assert done.exception is None
    made = json.loads((tools / "out" / "ulx3s-25f-extended-1port-2uart.json").read_text())
    assert json.loads(done.stdout) == made
    assert (made["ports"], made["nodes"], made["skews_ps"]) == ("0=port,1-2=uart", 3, [1200])
    assert made["bitstream"] == "ulx3s-25f-extended-1port-2uart.bit"
    assert "To load it: hypermon flash ulx3s-25f --ports 0=port,1-2=uart -o" in run(*arguments).stdout
    assert "ports" not in json.loads(build(tools, "--json").stdout)


def test_a_mixture_that_cannot_be_is_one_line(tools):
    failed = run("build", "ulx3s-25f", "--ports", "0=uart", "--config", "classic", "-o", str(tools / "out"))
    assert str(failed.exception) == "--ports 0=uart: uart needs the extended configuration"
    assert not (tools / "out").exists()


def test_a_clock_that_is_too_slow_fails(tools, monkeypatch):
    fake_flow(tools, monkeypatch, 99.0)
    failed = build(tools)
    assert "capture_clk 99.0 of 100 MHz; try another --seed" in str(failed.exception)
    assert not list((tools / "out").glob("*.bit"))


def test_wires_that_differ_too_much_fail(tools, monkeypatch):
    fake_flow(tools, monkeypatch, 120.0, delays=(4167, 0, 0, 0, 0))
    failed = build(tools)
    assert "wires of node 0 differ by 4167 ps inside the FPGA, and 4166 are tolerated" in str(failed.exception)
    assert not list((tools / "out").glob("*.bit"))


def test_a_path_between_clocks_fails(tools, monkeypatch):
    def flip_flop(clock, data, out):
        return {"type": "TRELLIS_FF", "connections": {"CLK": [clock], "DI": [data], "Q": [out]},
                "port_directions": {"CLK": "input", "DI": "input", "Q": "output"}}

    fake_flow(tools, monkeypatch, 120.0, {"1": flip_flop(2, "0", 4), "2": flip_flop(3, 4, 5)})
    failed = build(tools)
    assert "without a crossing: a to stray" in str(failed.exception)
    assert not list((tools / "out").glob("*.bit"))


def gowin(tools, monkeypatch, reached):
    """A whole flow of Gowin's parts, whose clocks have other names in its report."""
    report = {"fmax": {"capture_clk": {"achieved": reached, "constraint": 180.0}},
              "utilization": {"DFF": {"used": 5, "available": 15552}}}
    netlist = '{"modules": {"hypermon_board": {"cells": {}, "netnames": {}}}}'
    pads = {f"pad{wire}": {"type": "IBUF", "connections": {"I": [100 + wire]}, "parameters": {"IOLOGIC_IOB": "1"}}
            for wire in range(5)}
    ports = {"node_0__strobe__io": {"bits": [100]}, "node_0__data__io": {"bits": [101, 102, 103, 104]}}
    routed = json.dumps({"modules": {"top": {"cells": pads, "ports": ports}}})
    files = {"YOSYS": {"hypermon_board.syn.json": netlist}, "GOWIN_PACK": {"hypermon_board.fs": "bits"},
             "NEXTPNR_HIMBAECHEL_GOWIN": {"report.json": json.dumps(report), "hypermon_board.pnr.json": routed}}
    for variable, written in files.items():
        monkeypatch.setenv(variable, shell(tools / f"gowin_{variable}", "".join(
            f"cat > {file} <<'E'\n{text}\nE\n" for file, text in written.items())))
    return run("build", "tang-primer-20k", "--nodes", "1", "-o", str(tools / "out"))


def test_a_gowin_board(tools, monkeypatch):
    assert gowin(tools, monkeypatch, 180.5).exception is None
    made = json.loads((tools / "out" / "tang-primer-20k-classic.json").read_text())
    assert (made["bitstream"], made["clocks"]) == ("tang-primer-20k-classic.fs", {"capture_clk": [180.5, 180.0]})
    assert made["skews_ps"] == [0]
    work = tools / "out" / "tang-primer-20k-classic-work"
    assert (work / "hypermon_board.sdc").read_text() == "create_clock -period 5.556 [get_nets {capture_clk}]\n"


def test_a_gowin_board_that_is_too_slow(tools, monkeypatch):
    assert "capture_clk 179.9 of 180 MHz" in str(gowin(tools, monkeypatch, 179.9).exception)


def test_a_configuration_that_it_is_not_built_in(tools):
    failed = run("build", "tang-primer-20k", "--config", "extended", "-o", str(tools / "out"))
    assert "tang-primer-20k is built as classic, not as 'extended'" in str(failed.exception)


def test_a_board_that_the_vendors_tool_places(tools, monkeypatch):
    cells = '{"design": {"num_cells_by_type": {"LUT4": 7, "LUT6": 1, "FDRE": 5, "$scopeinfo": 2}}}'
    monkeypatch.setenv("YOSYS", shell(
        tools / "mapping", f"[ \"$1\" = -q ] || exit 0; cp check.ys called.ys; echo '{cells}' > check.json"))
    done = run("build", "arty-a7-35t", "--nodes", "2", "-o", str(tools / "out"))
    assert done.exception is None
    assert "a project for Vivado, which does the rest; from Yosys: 8 lookup tables, 5 flip-flops" in done.stdout
    folder = tools / "out" / "arty-a7-35t-classic-vivado"
    assert "synth_xilinx" in (folder / "called.ys").read_text()
    assert 'set_property LOC G13 [get_ports "node_0__strobe__io"]' in (folder / "hypermon_board.xdc").read_text()
    assert "a clock is too slow" in (folder / "hypermon_board.tcl").read_text()
    flashed = run("flash", "arty-a7-35t", "-o", str(tools / "out"))
    assert "is missing: Vivado makes it, in that folder" in str(flashed.exception)


def test_flash_takes_what_was_built(tools, monkeypatch):
    fake_flow(tools, monkeypatch, 120.0)
    options = f"ulx3s-25f --config classic -o {tools / 'out'}"
    assert str(run("flash", *options.split()).exception).endswith(f"to make it: hypermon build {options}")
    assert f"To load it: hypermon flash {options}\n" in build(tools).output
    monkeypatch.setenv("OPENFPGALOADER", shell(tools / "loader", f'echo "$@" > {tools}/called'))
    run("flash", "ulx3s-25f", "--config", "classic", "-o", str(tools / "out"), "--keep")
    assert (tools / "called").read_text().split() == ["-b", "ulx3s", "-f", str(tools / "out" / "ulx3s-25f-classic.bit")]


def test_a_reference_clock(tools, monkeypatch):
    """Its bitstream has a name of its own, which is also what is flashed; what the PLL cannot make is not begun."""
    from hypermon.host.flash.bitstreams import clock_known

    fake_flow(tools, monkeypatch, 120.0)
    done = build(tools, "--reference", "10000000", "--json")
    assert done.exception is None
    made = json.loads(done.stdout)
    assert (made["bitstream"], made["reference_hz"]) == ("ulx3s-25f-classic-reference10.bit", 10_000_000)
    assert "from 10 MHz" in done.stderr
    assert clock_known(made["build"], tools / "out") == {
        "bitstreams": ["ulx3s-25f-classic-reference10"], "clock": ["12/1 of 10 MHz (reference)"], "clock_ppm": 0.0}
    constraints = (tools / "out" / "ulx3s-25f-classic-reference10-work" / "hypermon_board.lpf").read_text()
    assert 'LOCATE COMP "reference_0__io" SITE "A10"' in constraints
    options = f"ulx3s-25f --reference 10000000 --config classic -o {tools / 'out'}"
    assert f"To load it: hypermon flash {options}\n" in build(tools, "--reference", "10000000").output
    monkeypatch.setenv("OPENFPGALOADER", shell(tools / "loader", f'echo "$@" > {tools}/called'))
    run("flash", *options.split())
    assert (tools / "called").read_text().split()[-1] == str(tools / "out" / made["bitstream"])
    assert "--reference 10000000" in str(run("flash", "ulx3s-85f", *options.split()[1:]).exception)
    plain = build(tools, "--json")
    assert json.loads(plain.stdout)["reference_hz"] == 0
    refused = run("build", "icebreaker", "--reference", "25000000", "-o", str(tools / "other"))
    assert str(refused.exception) == "icebreaker takes a reference clock of 10000000, 100000000 Hz, not of 25000000"
    assert not (tools / "other").exists()


def test_a_slower_clock(tools, monkeypatch):
    """Its bitstream has a name of its own, and the host derives the clock from what was built."""
    from hypermon.host.flash.bitstreams import clock_known

    fake_flow(tools, monkeypatch, 120.0)
    done = build(tools, "--clock", "60000000", "--json")
    assert done.exception is None
    made = json.loads(done.stdout)
    assert (made["bitstream"], made["capture_hz"]) == ("ulx3s-25f-classic-60mhz.bit", 60_000_000)
    assert clock_known(made["build"], tools / "out") == {
        "bitstreams": ["ulx3s-25f-classic-60mhz"], "clock": ["12/5 of 25 MHz"], "clock_ppm": 0.0}
    options = f"ulx3s-25f --clock 60000000 --config classic -o {tools / 'out'}"
    assert f"To load it: hypermon flash {options}\n" in build(tools, "--clock", "60000000").output
    monkeypatch.setenv("OPENFPGALOADER", shell(tools / "loader", f'echo "$@" > {tools}/called'))
    run("flash", *options.split())
    assert (tools / "called").read_text().split()[-1] == str(tools / "out" / made["bitstream"])
    assert str(build(tools, "--clock", "77000000").exception) == (
        "--clock 77000000: ulx3s-25f takes multiples of 5000000 Hz below its own clock of 120000000 Hz")


def test_pins_for_time_are_refused_where_there_are_none(tools):
    failed = run("build", "tang-nano-9k", "--config", "timed", "-o", str(tools / "out"))
    assert "tang-nano-9k is built as classic, not as 'timed'" in str(failed.exception)


def bitstream(folder, board, nodes):
    """What a build with the real tools says; the file's bytes are those."""
    done = run("build", board, "--config", "classic", "--nodes", str(nodes), "-o", str(folder))
    assert done.exception is None, done.output
    built = json.loads((folder / f"{board}-classic.json").read_text())
    assert hashlib.sha256((folder / built["bitstream"]).read_bytes()).hexdigest() == built["sha256"]
    assert built["clocks"]
    assert not any("$" in clock for clock in built["clocks"])
    assert built["skews_ps"] == [0] * nodes     # the first flip-flops are in I/O cells
    assert all(reached >= asked for reached, asked in built["clocks"].values())
    return built


@pytest.mark.slow
@pytest.mark.parametrize(("board", "nodes"), [
    ("tang-primer-20k", 1), ("icebreaker", 4)])     # the second is the fullest of all
def test_bitstream_of_other_families(tmp_path, board, nodes):
    bitstream(tmp_path, board, nodes)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["ulx3s-25f", "ice40-hx8k"])
def test_bitstream_twice(tmp_path, board):
    """The same sources and seed give the same bytes."""
    one, two = (bitstream(tmp_path / folder, board, 1) for folder in ("one", "two"))
    assert one["sha256"] == two["sha256"]
