import pytest
from hypermon.boards.model.board import Board, Pin
from hypermon.boards.model.links import uart, usb_pins
from hypermon.boards.registry import BOARDS, find
from hypermon.hdl.layout import BEAT_BYTES, Sink
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
