"""Nodes of several kinds on one board: what the option says, which pins they get, and what cannot be."""

import re

import pytest
from hypermon.boards.model.board import FRONT_CONFIGS, FRONT_ROLES, PIN_ROLES
from hypermon.boards.model.mixture import KINDS, parse_mixture, short, stated
from hypermon.boards.registry import BOARDS, find
from hypermon.hdl.layout import FRONT_WIRES, Front

P, T, C, U, S = Front.PORT, Front.TWO_WIRE, Front.SELECTED, Front.UART, Front.SWO
MIXED = "0-3=port,4-9=uart,10=serial,11=selected,12=swo"


def test_kinds_are_those_of_the_virtual_board():
    assert set(KINDS) == {"port", "two_wire", "selected", "uart", "swo", "serial"}
    assert {front: len(roles) for front, roles in FRONT_ROLES.items()} == FRONT_WIRES


def test_what_is_said_is_what_is_read():
    asked = parse_mixture(MIXED)
    assert asked.own == dict(enumerate((P, P, P, P, U, U, U, U, U, U, T, C, S)))
    assert asked.rest is None
    fronts = [asked.own[node] for node in range(13)]
    assert stated(fronts) == MIXED.replace("serial", "two_wire")
    assert parse_mixture(stated(fronts)).own == asked.own
    assert short(fronts) == "4port-6uart-1two_wire-1selected-1swo"
    assert parse_mixture("uart, 3=port").rest is U
    assert (stated(()), short(())) == ("", "")


@pytest.mark.parametrize(("text", "reason"), [
    ("", "'' is not [FIRST[-LAST]=]KIND, such as 0-3=port"), ("0=uart,", "'' is not"),
    ("a-b=uart", "'a-b=uart' is not"), ("0=1=uart", "is not [FIRST"), ("0=", "there is no kind ''"),
    ("0=spi", "there is no kind 'spi', but port, two_wire, selected, uart, swo, serial"),
    ("UART", "there is no kind 'UART'"), ("0-32=uart", "'0-32=uart': a board has nodes 0 to 31"),
    ("3-1=uart", "the lower number comes first"), ("99999=uart", "is not [FIRST"),
    ("0-3=port,2=uart", "node 2 is named twice, as port and as uart"),
    ("port,uart", "'uart': the nodes that are not named have a kind already, port"),
])
def test_what_cannot_be_read(text, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as failed:
        parse_mixture(text)
    assert "\n" not in str(failed.value)


def test_nodes_take_the_pins_in_their_order():
    board = find("ulx3s-85f").mixed(MIXED)
    every = (*board.pins, *board.spare)
    taken = [pin for node in range(board.nodes) for pin in board.node(node)]
    assert taken == list(every[:20 + 6 + 2 + 3 + 1])
    assert [len(board.node(node)) for node in range(13)] == [5] * 4 + [1] * 6 + [2, 3, 1]
    geometry = board.geometry()
    assert (geometry.nodes, geometry.fronts) == (13, board.ports)
    assert board.geometry(nodes=5).fronts == (P, P, P, P, U)
    assert board.geometry(nodes=4).fronts == ()
    assert board.stem("extended", board.links[1]) == (
        "ulx3s-85f-usb-pins-extended-4port-6uart-1two_wire-1selected-1swo")


@pytest.mark.parametrize(("name", "text", "count"), [
    ("ulx3s-85f", "port", 11), ("ulx3s-85f", "two_wire", 28), ("ulx3s-85f", "selected", 18), ("ulx3s-85f", "uart", 32),
    ("ulx3s-85f", "swo", 32), ("ulx3s-85f", "0-3=port,uart", 32), ("ulx3s-85f", "0-9=port,two_wire", 13),
    ("ulx3s-85f", "0-10=port,uart", 12), ("orangecrab-25f", "port", 3), ("orangecrab-25f", "serial", 7),
    ("orangecrab-25f", "uart", 15), ("orangecrab-25f", "0=port,uart", 11), ("icebreaker", "port", 4),
    ("tang-nano-9k", "port", 4)])
def test_a_kind_for_all_others_takes_what_there_is(name, text, count):
    board = find(name).mixed(text)
    assert board.nodes == count
    taken = [pin for node in range(count) for pin in board.node(node)]
    assert len(taken) == len(set(taken)) == sum(FRONT_WIRES[front] for front in board.ports)


@pytest.mark.parametrize("config", FRONT_CONFIGS)
def test_one_kind_has_the_pins_of_the_configuration_of_that_kind(config):
    board = find("ecpix5-45f")
    front = FRONT_CONFIGS[config]
    mixed = board.mixed(config.replace("-", "_"))
    assert mixed.geometry() == board.geometry(config)
    assert [mixed.node(n) for n in range(mixed.nodes)] == [board.node(n, front) for n in range(mixed.nodes)]


def test_only_the_first_nodes():
    board = find("ulx3s-85f")
    assert board.mixed(MIXED, nodes=5).ports == (P, P, P, P, U)
    assert board.mixed("0-1=port,uart", nodes=4).ports == (P, P, U, U)


def test_pins_for_time_stay_free():
    board = find("ulx3s-85f")
    mixed = board.mixed("two_wire", "timed")
    taken = {pin for node in range(mixed.nodes) for pin in mixed.node(node)}
    assert mixed.nodes == 25
    assert not taken & set(mixed.time_pins("timed").values())
    assert set(mixed.geometry("timed").fronts) == {T}


def test_a_wire_that_is_high_when_idle_is_pulled_up():
    board = find("orangecrab-25f")
    mixed = board.mixed("port")
    for front in Front:
        assert board.pad(front) == board.attributes
        assert mixed.pad(front) == board.attributes | {"PULLMODE": "UP" if front in (U, S) else "DOWN"}
    assert find("butterstick-lvds").mixed("uart").pad(U) == find("butterstick-lvds").attributes, "no pull"


@pytest.mark.parametrize(("name", "text", "config", "nodes", "reason"), [
    ("ulx3s-85f", "0-11=port", None, None, "ulx3s-85f has 56 pins for nodes, and the first 12 nodes need more"),
    ("ulx3s-85f", "0-10=port,11=uart,12=swo", None, None, "the first 13 nodes need more"),
    ("ulx3s-85f", "two_wire", None, 29, "the first 29 nodes need more"),
    ("ulx3s-85f", "uart", None, 33, "nodes must be 1..32, not 33"),
    ("ulx3s-85f", "0=port,2=uart", None, None,
     "node 1 has no kind: name it, or add a kind for all others, such as 0=port,2=uart,port"),
    ("ulx3s-85f", "0=port", None, 2, "node 1 has no kind"),
    ("ulx3s-85f", "0=uart", "classic", None, "uart needs the extended configuration"),
    ("ulx3s-12f-deep", "0=uart", None, None, "extended configuration, which ulx3s-12f-deep has no room for"),
    ("icebreaker", "serial", None, None, "two_wire needs the extended configuration, which icebreaker has no room for"),
    ("ulx3s-85f", "0=uart", "uart", None, "--config uart wires all nodes alike; leave one of the two options out"),
    ("ulx3s-85f", "8=port", "links1", None, "--config links1 has nodes on lines of regeneration boards"),
    ("ulx3s-85f", "0=uart", "half", None, "not as 'half'"),
])
def test_mixtures_that_cannot_be(name, text, config, nodes, reason):
    with pytest.raises(ValueError, match=f"^--ports {text}: ") as failed:
        find(name).mixed(text, config, nodes)
    assert reason in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_mixture_is_not_built_in_a_configuration_that_it_was_not_asked_for():
    mixed = find("ulx3s-85f").mixed("0=uart,1=port")
    for config in ("classic", "links1", "swo"):
        with pytest.raises(ValueError, match=r"extended configuration|--config"):
            mixed.geometry(config)


def test_ports_alone_are_what_the_board_is_without_the_option():
    for board in BOARDS.values():
        mixed = board.mixed("port")
        assert mixed.geometry() == board.geometry()
        assert mixed.geometry("classic") == board.geometry("classic") if "classic" in board.configs else True
        assert [mixed.node(n) for n in range(board.nodes)] == [board.node(n) for n in range(board.nodes)]


def test_without_the_option_nothing_is_different():
    """Pins, pulls and names as the data say them, whatever a mixture does."""
    wide = len(PIN_ROLES)
    for board in BOARDS.values():
        assert board.ports == ()
        assert board.nodes == len(board.pins) // wide
        assert [board.node(n) for n in range(board.nodes)] == [
            board.pins[n * wide:(n + 1) * wide] for n in range(board.nodes)]
        assert {front: board.pad(front) for front in Front} == dict.fromkeys(Front, board.attributes)
        for config in board.configs:
            assert board.geometry(config).fronts == ()
            assert board.stem(config, board.links[0]) == f"{board.name}-{config}"
