import pytest
from hypermon.boards.model.board import FRONT_CONFIGS, Board, ClockInput, Pin
from hypermon.boards.model.links import uart, usb_pins
from hypermon.boards.registry import BOARDS, find
from hypermon.hdl.layout import BEAT_BYTES, Extra, Sink
from hypermon.hdl.stream import sdram_part


def board(pins, **changed):
    return Board(**{
        "name": "one", "title": "One", "fpga": "part", "platform": "m:C", "family": "ecp5", "oscillator_hz": 25_000_000,
        "capture_hz": 110_000_000, "links": (uart(), usb_pins()), "pins": pins, "attributes": {},
        "openfpgaloader": "one"} | changed)


def test_five_pins_are_a_node():
    two = board(tuple(Pin(f"c_0:{n}", f"P{n}") for n in range(10)))
    assert two.nodes == 2
    assert [pin.label for pin in two.node(1)] == ["P5", "P6", "P7", "P8", "P9"]
    assert two.clock_ratio == (22, 5)
    assert two.geometry().nodes == 2
    assert two.geometry("classic", 1).nodes == 1
    assert len(two.geometry("classic").sinks) == 1


@pytest.mark.parametrize(("pins", "reason"), [
    ((), "a node takes 5 pins, and 0"), (tuple("abcdef"), "a node takes 5 pins, and 6"),
    (tuple("abcda"), "named twice: a"),
])
def test_wrong_pins(pins, reason):
    with pytest.raises(ValueError, match=reason):
        board(tuple(Pin(name, name) for name in pins))


def test_the_first_link_is_the_default():
    one = board(tuple(Pin(f"{n}", f"P{n}") for n in range(5)))
    assert [one.link(kind).kind for kind in (None, "uart", "usb-pins")] == ["uart", "uart", "usb-pins"]
    assert [one.stem("classic", link) for link in one.links] == ["one-classic", "one-usb-pins-classic"]
    with pytest.raises(ValueError, match="one has no link 'usb-ulpi', but uart, usb-pins"):
        one.link("usb-ulpi")
    with pytest.raises(ValueError, match="one: no link"):
        board(one.pins, links=())


def test_a_board_that_is_too_small_for_the_extended_sink():
    small = board(tuple(Pin(f"{n}", f"P{n}") for n in range(5)), configs=("classic",))
    assert (small.config(), len(small.geometry().sinks)) == ("classic", 1)
    with pytest.raises(ValueError, match="one is built as classic, not as 'extended'"):
        small.geometry("extended")


@pytest.mark.parametrize("nodes", [0, 3])
def test_nodes_that_it_does_not_have(nodes):
    with pytest.raises(ValueError, match=f"pins for 1 to 2 nodes, not {nodes}"):
        board(tuple(Pin(f"{n}", f"P{n}") for n in range(10))).geometry(nodes=nodes)


def test_boards_have_names_of_their_own():
    assert all(name == board.name and find(name) is board for name, board in BOARDS.items())


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if "extended" in board.configs])
def test_both_sinks_are_in_what_is_built_unless_asked_otherwise(name):
    """With the extended sink comes the node emulator, and so the self-test."""
    assert set(BOARDS[name].geometry().sinks) == set(Sink)
    assert BOARDS[name].geometry("classic").sinks == (Sink.CLASSIC,)


@pytest.mark.parametrize(("name", "config"), [
    (name, config) for name, board in BOARDS.items() if board.memory for config in board.configs])
def test_all_of_a_memory_is_used(name, config):
    memory = BOARDS[name].memory
    assert getattr(sdram_part, memory.part).bytes == memory.bytes
    assert BOARDS[name].geometry(config).external_depth * BEAT_BYTES == memory.bytes


def test_a_link_that_needs_block_rams_leaves_less_store():
    small, large = BOARDS["ulx3s-25f"], BOARDS["ulx3s-85f"]
    assert [small.geometry(link=link).store_depth for link in ("uart", "usb-pins")] == [3072, 2048]
    assert [large.geometry(link=link).store_depth for link in ("uart", "usb-pins")] == [16384, 16384]
    assert BOARDS["ulx3s-45f-deep"].geometry(link="usb-pins").store_depth == 0


def test_one_way_into_a_board():
    pins = tuple(Pin(f"{n}", f"P{n}") for n in range(5))
    for ways in ({"openfpgaloader": ""}, {"dfu": "1:2"}, {"apollo": True}):
        with pytest.raises(ValueError, match="one: one of openfpgaloader, dfu and apollo"):
            board(pins, **ways)


def test_a_board_that_does_not_exist_names_those_that_do():
    with pytest.raises(ValueError, match=r"no board 'ulx4s'; there are: .*ulx3s-85f"):
        find("ulx4s")


@pytest.mark.parametrize(("name", "nodes"), [
    ("orangecrab-25f", {"links1": (10, 2), "links2": (18, 2), "links3": (25, 1), "links4": (32, 0)}),
    ("ulx3s-85f", {"links1": (18, 10), "links2": (26, 10), "links3": (32, 8), "links4": (32, 0)}),
    ("icebreaker", {}), ("butterstick-lvds", {}), ("ecp5-evn", {})])
def test_regeneration_boards_bring_nodes(name, nodes):
    """Two pins each, the last ones of the list; no pin twice, and never more than 32 nodes."""
    board = BOARDS[name]
    assert board.regenerations == tuple(nodes)
    for config, (total, wired) in nodes.items():
        geometry = board.geometry(config)
        assert (geometry.nodes, board.wired(config), geometry.links) == (total, wired, int(config[-1]))
        pins = [pin for pair in board.regeneration_pins(config) for pin in pair]
        own = [pin for node in range(wired) for pin in board.node(node)]
        assert len(set(pins + own)) == 2 * geometry.links + 5 * wired
        assert pins == list(board.pins[-2 * geometry.links:])
    assert all(board.wired(config) == board.nodes for config in board.configs)
    assert board.regeneration_pins("extended") == ()


def test_nodes_of_links_cannot_be_left_out():
    board = BOARDS["orangecrab-25f"]
    assert board.geometry("links2", 17).nodes == 17
    for nodes in (15, 19):
        with pytest.raises(ValueError, match=f"16 to 18 nodes, not {nodes}"):
            board.geometry("links2", nodes)
    with pytest.raises(ValueError, match="links1, links2, links3, links4, not as 'links5'"):
        board.geometry("links5")


@pytest.mark.parametrize(("name", "nodes"), [
    ("ulx3s-25f", {"two-wire": 28, "selected": 18, "uart": 32, "swo": 32}),
    ("orangecrab-25f", {"two-wire": 7, "selected": 5, "uart": 15, "swo": 15}),
])
def test_nodes_with_fewer_wires(name, nodes):
    """As many as the pins allow, each pin once; a pin that a port cannot have is used, too."""
    board = find(name)
    assert board.fronts == nodes
    for config, count in nodes.items():
        geometry = board.geometry(config)
        front = FRONT_CONFIGS[config]
        assert (geometry.nodes, geometry.fronts) == (count, (front,) * count)
        pins = [pin for node in range(count) for pin in board.node(node, front)]
        assert len(pins) == len(set(pins)) == count * {"two-wire": 2, "selected": 3}.get(config, 1)
        assert board.geometry(config, 1).fronts == (front,)
        with pytest.raises(ValueError, match=f"has pins for 1 to {count} nodes"):
            board.geometry(config, count + 1)
    assert board.geometry("extended").fronts == ()


def test_small_boards_have_no_front_ends():
    small = board(tuple(Pin(f"{n}", f"P{n}") for n in range(5)), configs=("classic",))
    assert small.fronts == {}
    with pytest.raises(ValueError, match="not as 'uart'"):
        small.geometry("uart")


@pytest.mark.parametrize(("name", "free", "fed"), [
    ("butterstick", 15, 14), ("ecpix5-45f", 11, 11), ("ulx3s-85f", 10, 10), ("ulx3s-25f-deep", 0, 0),
    ("ulx3s-85f-deep", 10, 10), ("ecp5-evn", 31, 30), ("cynthion", 6, 6), ("orangecrab-25f", 2, 1),
    ("tang-nano-9k", 0, 0), ("butterstick-lvds", 0, 0), ("ulx3s-25f-quarter", 0, 0)])
def test_pins_for_time_cost_as_few_nodes_as_they_can(name, free, fed):
    """The last pins of the list, and no other; with a reference clock, one pin less for nodes."""
    board = BOARDS[name]
    referenced = board.fed(board.references_hz[0])
    assert [bool(one.timed) for one in (board, referenced)] == [free > 0, fed > 0]
    for one, nodes in ((board, free), (referenced, fed)):
        if not one.timed:
            assert one.time_pins() == {}
            with pytest.raises(ValueError, match="not as 'timed'"):
                one.geometry("timed")
            continue
        geometry, timed = one.geometry("timed"), one.time_pins()
        assert (geometry.nodes, one.wired("timed"), set(geometry.extras)) == (nodes, nodes, set(Extra))
        assert (geometry.beat_bytes, one.geometry("extended").extras) == (BEAT_BYTES, ())
        assert list(timed) == ["sync_in", "sync_out", "pps_in", "trigger_in", "trigger_out"]
        wired = [pin for node in range(nodes) for pin in one.node(node)]
        assert len({*wired, *timed.values()}) == 5 * nodes + 5
        assert one is board or board.reference.pin not in (*wired, *timed.values())
        assert len(board.pins) + len(board.spare) - (one is referenced) - 5 < 5 * (nodes + 1), "a node could stay"
    assert board.time_pins("extended") == {}
    if free == fed:
        assert board.time_pins() == referenced.time_pins()


def test_a_reference_clock_displaces_one_wire():
    board = BOARDS["ulx3s-85f"]
    fed = board.fed(10_000_000)
    assert (board.input_hz, fed.input_hz, fed.clock_ratio) == (25_000_000, 10_000_000, (12, 1))
    assert [pin.label for pin in fed.node(0)] == ["J1 GP0", "J1 GN0", "J2 GN27", "J1 GN1", "J1 GP2"]
    assert (fed.pins[3:], fed.spare, fed.nodes) == (board.pins[3:], (), 11)
    assert fed.stem("timed", fed.links[1]) == "ulx3s-85f-usb-pins-timed-reference10"
    assert [fed.wired(config) for config in ("extended", "links1", "timed")] == [11, 10, 10]
    small = BOARDS["orangecrab-85f"].fed(25_000_000)
    assert (small.nodes, len(small.spare), small.node(0)[2].label) == (2, 4, "A2")


def test_a_slower_clock():
    one = find("ulx3s-85f").clocked(75_000_000)
    assert one.geometry("extended").clock_hz == 75_000_000
    mixed = one.mixed("0-3=port,4-11=uart", None)
    assert mixed.geometry().clock_hz == 75_000_000
    assert mixed.stem("extended", mixed.links[0]) == "ulx3s-85f-extended-4port-8uart-75mhz"
    with pytest.raises(ValueError, match="ulx3s-85f has a fixed clock with regeneration boards, 80000000 Hz"):
        one.geometry("links1")


@pytest.mark.parametrize("hz", [120_000_000, 125_000_000, 0, -5_000_000, 77_000_000])
def test_clocks_that_cannot_be(hz):
    with pytest.raises(ValueError, match="ulx3s-85f takes multiples of 5000000 Hz below its own clock of 120000000 Hz"):
        find("ulx3s-85f").clocked(hz)
    with pytest.raises(ValueError, match="ulx3s-85f-deep: its memory runs at 100000000 Hz, the capture clock"):
        find("ulx3s-85f-deep").clocked(50_000_000)


def test_reference_clocks_that_cannot_be():
    pins = tuple(Pin(f"{n}", f"P{n}") for n in range(5))
    with pytest.raises(ValueError, match="one takes no reference clock: none of its pins can feed the PLL"):
        board(pins).fed(10_000_000)
    with pytest.raises(ValueError, match="one: the pin of a reference clock is one of its pins"):
        board(pins, reference=ClockInput(Pin("6", "P6"), "PCLK"))
    with pytest.raises(ValueError, match="icebreaker takes a reference clock of 10000000, 100000000 Hz, not of 25"):
        BOARDS["icebreaker"].fed(25_000_000)


@pytest.mark.parametrize("name", BOARDS)
def test_a_reference_clock_is_on_every_board(name):
    """Of each family, and on the boards with differential inputs; a port's strobe is never at another side for it."""
    one = BOARDS[name]
    fed = one.fed(one.references_hz[-1])
    assert fed.reference.pin not in (*fed.pins, *fed.spare)
    assert fed.pins[::5] == one.pins[:len(fed.pins):5] or one.reference.pin in one.pins[::5]
    if one.phase_out:
        assert fed.pins[::5] == one.pins[:len(fed.pins):5]
