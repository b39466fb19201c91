"""A board's top as Amaranth hands it to the tools: constraints, and the first flip-flops."""

import re
import warnings

import pytest
from hypermon.boards.clocks.ecp5_pll import ecp_stages
from hypermon.boards.pinout.pinout import balls
from hypermon.boards.registry import BOARDS, find
from hypermon.boards.toolchain.top import BoardTop, platform_of
from hypermon.hdl.verilog import build_hash


def prepared(name, nodes, link=None, config="classic"):
    board = find(name)
    with warnings.catch_warnings():
        # LUNA uses parts of Amaranth that will go.
        warnings.simplefilter("ignore", DeprecationWarning)
        top = BoardTop(board, board.geometry(config, nodes, link), 0x1234, board.link(link))
        return platform_of(board, nodes).prepare(top, "top").files


@pytest.fixture(scope="module")
def two_nodes():
    return prepared("ulx3s-25f", 2)


def test_every_wire_is_at_its_ball(two_nodes):
    lpf = two_nodes["top.lpf"]
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', lpf))
    assert located["node_0__strobe__io"] == "B11"
    assert [located[f"node_1__data__io[{bit}]"] for bit in range(4)] == ["B9", "C10", "A7", "A8"]
    assert located["low_0__io"] == "F1"
    for name in located:
        if name.startswith("node"):
            assert re.search(rf'IOBUF PORT "{re.escape(name)}".*PULLMODE=DOWN', lpf), name


def test_the_first_flip_flops_are_in_the_io_cells(two_nodes):
    assert two_nodes["top.il"].count("cell \\IFS1P3DX") == 2 * 5


def test_a_strobe_is_sampled_twice_a_clock_in_its_io_cell():
    text = prepared("ulx3s-85f", 1, config="half-clock")["top.il"]
    assert [text.count(f"cell \\{kind} ") for kind in ("IDDRX1F", "IFS1P3DX")] == [1, 4]
    assert "CLK_POLARITY 0" not in text


def test_the_first_flip_flop_has_no_logic_before_it():
    """nextpnr takes it into the I/O cell then (``ireg_in_iob``)."""
    files = prepared("tang-primer-20k", 1)
    assert files["top.cst"].count("PULL_MODE=DOWN") == 5
    assert "--vopt ireg_in_iob" in files["build_top.sh"]
    assert 'IO_LOC "node_0__strobe__io" B11;' in files["top.cst"]


def test_an_sdram_has_all_its_flip_flops_in_the_io_cells():
    """Its clock is the inverse one; each of the others has one for its level and one for its driver."""
    files = prepared("ulx3s-25f-deep", 1)
    text = files["top.il"]
    clock = text[text.index("module \\top.sdram_clk\n"):].partition("\nend\n")[0]
    levels = re.findall(r"connect \\A 1'(\d)\n    connect \\B 1'0\n    connect \\Y \\o(\d)_inv", clock)
    assert levels == [("0", "0"), ("1", "1")], "low, then high"
    assert re.search(r"connect \\D0 \\o0_inv \[0\]\n    connect \\D1 \\o1_inv", clock)
    outward = 1 + 1 + 3 + 2 + 13 + 2 + 16      # clock enable, select, command, bank, address, mask, data
    assert text.count("cell \\OFS1P3DX") == 2 * outward + 1
    assert text.count("cell \\IFS1P3DX") == 5 + 16
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', files["top.lpf"]))
    assert located["sdram_0__clk__io"] == "F19"
    assert located["sdram_0__dq__io[15]"] == "J17"


def test_an_ice40s_inputs_are_registered_and_pulled_up():
    files = prepared("ice40-hx8k", 2)
    cells = re.findall(r"cell \\SB_IO (.*?)\n  end", files["top.il"], re.DOTALL)
    inputs = [cell for cell in cells if "parameter \\PIN_TYPE 6'000000" in cell]
    assert len(inputs) == 2 * 5
    assert all("parameter \\PULLUP" in cell and "\\INPUT_CLK" in cell for cell in inputs)
    assert "set_io node_0__strobe__io R15" in files["top.pcf"]
    # The oscillator goes to the PLL, not to a global net.
    assert "SB_GB_IO" not in files["top.il"]


#: One of each link, and of each way that its clock goes; the others go the same ways, in the slow tests.
QUICK = {("tang-primer-20k", "uart"), ("icebreaker", "uart"),
         ("butterstick", "usb-ulpi"), ("ecpix5-85f", "usb-ulpi"), ("ulx3s-85f-deep", "usb-pins")}
#: One of each file, by its last size: the others differ in the part's name.
EVERY = {BOARDS[name].platform.split(":")[0]: name for name in BOARDS}


#: Of each tool's constraints: a wire at a ball.
LOCATED = {"lpf": "LOCATE COMP", "cst": "IO_LOC", "xdc": "set_property LOC", "pcf": "set_io node"}


@pytest.mark.parametrize(("name", "link"), [
    pytest.param(name, link.kind, marks=() if (name, link.kind) in QUICK else pytest.mark.slow)
    for name in EVERY.values() for link in BOARDS[name].links])
def test_all_boards_elaborate(name, link):
    files = prepared(name, 1, link, config=BOARDS[name].configs[0])
    assert [text for text, word in LOCATED.items() if f"top.{text}" in files and word in files[f"top.{text}"]]


@pytest.mark.parametrize(("name", "link"), [(name, link.kind) for name in BOARDS for link in BOARDS[name].links])
def test_nothing_shares_a_ball(name, link):
    """Amaranth refuses a ball that is requested twice."""
    board = BOARDS[name]
    platform = platform_of(board, board.nodes)
    asked = {(platform.default_clk, 0), (board.link(link).resource, 0), *(("node", n) for n in range(board.nodes)),
             *(("low", n) for n in range(len(board.low)))}
    for lamp in board.lamps:
        resource, _, number = lamp.partition(".")[0].partition(":")
        asked.add((resource, int(number)))
    if board.supplies:
        asked.add(("vccio_ctrl", 0))
    if board.memory:
        asked.add((board.memory.resource, 0))
    for resource, number in sorted(asked):
        platform.request(resource, number, dir="-")


@pytest.mark.parametrize(("name", "links"), [(name, link.kind) for name in BOARDS if BOARDS[name].regenerations
                                             for link in BOARDS[name].links])
def test_the_clocks_of_regeneration_boards_can_be_made(name, links):
    """With every link to the host; exactly twice the capture clock, and in phase, which takes one PLL."""
    board = BOARDS[name]
    hz = board.regeneration_hz
    first, _ = ecp_stages(board.oscillator_hz, {"capture": hz, "line": 2 * hz, **board.link(links).clocks})
    assert {"capture", "line"} <= first.keys()


def test_a_regeneration_board_has_two_pins_and_ddr_cells():
    board = find("orangecrab-25f")
    geometry = board.geometry("links2", 17)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        top = BoardTop(board, geometry, 0x1234)
        files = platform_of(board, 1, board.regeneration_pins("links2")).prepare(top, "top").files
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', files["top.lpf"]))
    assert {name: site for name, site in located.items() if name.startswith("regeneration")} == {
        "regeneration_0__reference__io": "N15", "regeneration_0__line__io": "L4",
        "regeneration_1__reference__io": "N3", "regeneration_1__line__io": "N4"}
    assert "node_0__strobe__io" in located
    assert "node_1__strobe__io" not in located
    text = files["top.il"]
    assert text.count("cell \\IDDRX1F ") == 2
    assert len(re.findall(r"cell \\ODDRX1F ", text)) >= 2


def test_strobes_are_sampled_four_times_a_clock_in_their_io_cells():
    """One gear, and one input cell with a delay per strobe; nothing is connected to ALIGNWD."""
    files = prepared("ulx3s-25f-quarter", 2, config="quarter-clock")
    text = files["top.il"]
    kinds = ("IDDRX2F", "DELAYG", "IFS1P3DX", "ECLKSYNCB", "CLKDIVF", "OSCG", "ODDRX1F")
    assert [text.count(f"cell \\{kind} ") for kind in kinds] == [2, 2, 8, 1, 1, 1, 1]
    assert "\\ALIGNWD" not in text
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', files["top.lpf"]))
    assert "phase_out_0__io" in located


@pytest.mark.parametrize(("config", "nodes", "wires"), [("two-wire", 3, 2), ("uart", 2, 1)])
def test_nodes_with_front_ends_have_as_many_pins_as_wires(config, nodes, wires):
    board = find("orangecrab-25f")
    geometry = board.geometry(config, nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        top = BoardTop(board, geometry, 0x1234)
        files = platform_of(board, nodes, front=geometry.fronts[0]).prepare(top, "top").files
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', files["top.lpf"]))
    assert len({site for name, site in located.items() if name.startswith("node_")}) == nodes * wires
    assert ("node_0__data__io" in located) == (wires > 1)


def made(board, nodes=None, config=None):
    """What the tools get for a board, and its BUILD."""
    geometry = board.geometry(config, nodes)
    build = build_hash(geometry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        top = BoardTop(board, geometry, build)
        return platform_of(board, geometry.nodes).prepare(top, "top").files, build


def test_each_node_of_a_mixture_has_the_pads_of_its_kind():
    board = find("ulx3s-25f").mixed("0=port,1=uart,2=serial,3=selected,4=swo")
    files, _ = made(board)
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\S+)"', files["top.lpf"]))
    wires = {name: site for name, site in located.items() if name.startswith("node_")}
    names = ["node_0__strobe__io", *(f"node_0__data__io[{bit}]" for bit in range(4)), "node_1__strobe__io",
             "node_2__strobe__io", "node_2__data__io", "node_3__strobe__io", "node_3__data__io[0]",
             "node_3__data__io[1]", "node_4__strobe__io"]
    places = balls(board)[:len(names)]
    assert wires == dict(zip(names, places, strict=True))
    pulls = dict(re.findall(r'IOBUF PORT "(node_\S+)".*PULLMODE=(\w+)', files["top.lpf"]))
    assert pulls == {name: "UP" if name in ("node_1__strobe__io", "node_4__strobe__io") else "DOWN" for name in names}
    assert files["top.il"].count("cell \\IFS1P3DX") == len(names)


def test_ports_alone_are_built_byte_for_byte_as_without_the_option():
    board = find("ulx3s-25f")
    without, build = made(board, 2, "classic")
    with_it, same = made(board.mixed("0-1=port", "classic"), None, "classic")
    assert build == same
    assert without == with_it
