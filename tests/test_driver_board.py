"""The boards of docs/driver-board.md: every pin of every part, every wire, and what is made of them."""

import re
import runpy
from collections import Counter
from pathlib import Path

import pytest
from hypermon.boards.model.board import PIN_ROLES

ROOT = Path(__file__).parent.parent
MADE = runpy.run_path(str(ROOT / "docs" / "tools" / "driver_board.py"))
BOARDS = MADE["BOARDS"]

#: As in the data sheets: TI, AM26LV31, table 4-1, and KiCad's symbol of the AM26LV32, whose pins the LVDS parts share.
PINS = {"driver": "DIN1 DOUT1+ DOUT1- EN DOUT2- DOUT2+ DIN2 GND DIN3 DOUT3+ DOUT3- EN* DOUT4- DOUT4+ DIN4 VCC",
        "receiver": "RIN1- RIN1+ ROUT1 EN ROUT2 RIN2+ RIN2- GND RIN3- RIN3+ ROUT3 EN* ROUT4 RIN4+ RIN4- VCC"}
#: A header of five pairs, pin by pin from 1 on: a pair's sign and place in PIN_ROLES, or ground.
CABLE = [end for role in PIN_ROLES for end in (f"{role}+", f"{role}-", "GND", "GND")]
#: Kinds of parts that a wire goes through on each board, in the order of its way.
WAYS = {"driver": ("series", "pull-down"), "receiver": ("termination", "series"),
        "bias": ("bias to supply", "bias to ground")}


def at(board):
    """``{(reference, pin): [net, ...]}``."""
    found = {}
    for net, ends in board.nets.items():
        for end in ends:
            found.setdefault(end, []).append(net)
    return found


def faults(board):
    """What is wrong with a board, in words."""
    nets, wrong = at(board), []
    every = {(reference, pin) for reference, kind in board.parts.items() for pin in MADE["KINDS"][kind].pins}
    wrong += [f"{end} is in {len(of)} nets" for end, of in nets.items() if len(of) != 1]
    wrong += [f"{end} is in no net" for end in sorted(every - set(nets))]
    wrong += [f"{end} is no pin" for end in sorted(set(nets) - every)]
    wrong += [f"{net} ends at once" for net, ends in board.nets.items() if len(ends) < 2]
    if wrong:
        return wrong

    def net(reference, pin):
        return nets[reference, pin][0]

    for reference, kind in board.parts.items():
        if kind == "five pairs":
            node = (int(reference[1:]) - 1) % MADE["NODES"]
            for pin, end in enumerate(CABLE, 1):
                if net(reference, pin) != (end if end == "GND" else f"node{node}_{end}"):
                    wrong.append(f"{reference} {pin} is {net(reference, pin)}")
        elif kind == "five wires":
            node = (int(reference[1:]) - 1) % MADE["NODES"]
            for place, role in enumerate(PIN_ROLES):
                if (net(reference, 2 * place + 1), net(reference, 2 * place + 2)) != (f"node{node}_{role}", "GND"):
                    wrong.append(f"{reference} {2 * place + 1} is {net(reference, 2 * place + 1)}")
        elif kind in PINS:
            names = MADE["KINDS"][kind].pins
            tied = {"VCC": "+3V3", "EN": "+3V3", "GND": "GND", "EN*": "GND"}
            for pin, name in names.items():
                if name in tied and net(reference, pin) != tied[name]:
                    wrong.append(f"{reference} {name} is {net(reference, pin)}")
            for gate in "1234":
                by = {name[:-2] + name[-1] if name[-1] in "+-" else name[:-1]: net(reference, pin)
                      for pin, name in names.items() if name.rstrip("+-")[-1] == gate}
                way = {name.strip("DINROUT") or "single": of for name, of in by.items()}
                if way["+"][:-1] != way["-"][:-1] or way["single"].rpartition("_")[0] != way["+"][:-1]:
                    wrong.append(f"{reference} gate {gate} mixes wires: {sorted(way.values())}")
                if (way["+"][-1], way["-"][-1]) != ("+", "-"):
                    wrong.append(f"{reference} gate {gate} is turned round")
    return wrong + ways(board, net)


def ways(board, net):
    """What is wrong between the connectors: each wire has its two resistors, and one gate."""
    wrong = []
    first, second = WAYS[board.name]
    for wire in MADE["WIRES"]:
        inner = {"driver": f"{wire.name}_in", "receiver": f"{wire.name}_out"}.get(board.name)
        ends = {"series": {wire.name, inner}, "pull-down": {inner, "GND"},
                "termination": {f"{wire.name}+", f"{wire.name}-"}, "bias to supply": {"+3V3", f"{wire.name}-"},
                "bias to ground": {f"{wire.name}+", "GND"}}
        for kind in (first, second):
            found = [reference for reference, of in board.parts.items()
                     if of == kind and {net(reference, 1), net(reference, 2)} == ends[kind]]
            if len(found) != 1:
                wrong.append(f"{wire.name}: {kind}: {found}")
        gates = [reference for reference, _ in board.nets[f"{wire.name}+"] if reference[0] == "U"]
        if len(gates) != (inner is not None):
            wrong.append(f"{wire.name} goes through {gates}")
    parts = Counter(board.parts.values())
    quads = sum(parts[kind] for kind in PINS)
    if any(parts[kind] != quads for kind in ("at each supply pin", "at each supply pin, nearest")):
        wrong.append("not every supply pin has its capacitors")
    return wrong


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_every_pin_is_where_it_should_be(board):
    assert faults(board) == []


@pytest.mark.parametrize("kind", PINS)
def test_pins_are_those_of_the_data_sheet(kind):
    assert list(MADE["KINDS"][kind].pins.items()) == list(enumerate(PINS[kind].split(), 1))


def test_every_wire_has_a_gate_of_its_own():
    wires = MADE["WIRES"]
    assert sorted((wire.node, wire.role) for wire in wires) == sorted(
        (node, role) for node in range(MADE["NODES"]) for role in PIN_ROLES)
    assert len({(wire.part, wire.gate) for wire in wires}) == len(wires)
    assert {wire.part for wire in wires if wire.role == "strobe"} == {"U5"}


def test_pairs_are_neighbours_with_ground_beside():
    for place, end in enumerate(CABLE):
        if end.endswith("+"):
            assert CABLE[place + 1] == end[:-1] + "-"
            assert CABLE[place + 2] == "GND"
            assert place == 0 or CABLE[place - 1] == "GND"


def changed(board, net, old, new):
    """The board with one end of a net replaced, or left out."""
    ends = [new if end == old else end for end in board.nets[net]]
    return board._replace(nets=board.nets | {net: [end for end in ends if end]})


@pytest.mark.parametrize(("name", "net", "old", "new", "said"), [
    ("driver", "node0_data0_in", ("U1", 1), ("U1", 7), "('U1', 7) is in 2 nets"),
    ("driver", "GND", ("U3", 12), None, "('U3', 12) is in no net"),
    ("driver", "node2_strobe+", ("U5", 10), None, "('U5', 10) is in no net"),
    ("driver", "node2_strobe", ("R11", 1), ("R11", 3), "('R11', 3) is no pin"),
    ("receiver", "node1_data3-", ("J2", 18), ("J2", 21), "('J2', 21) is no pin"),
    ("bias", "+3V3", ("R7", 1), None, "('R7', 1) is in no net"),
])
def test_a_wrong_end_is_noticed(name, net, old, new, said):
    assert said in faults(changed(BOARDS[name], net, old, new))


@pytest.mark.parametrize(("name", "nets", "said"), [
    ("driver", ("node0_data0+", "node0_data0-"), "J5 5 is node0_data0-"),
    ("driver", ("node0_data1_in", "node1_data1_in"), "U1 gate 2 mixes wires"),
    ("driver", ("+3V3", "GND"), "U1 EN is GND"),
    ("receiver", ("node3_strobe", "node3_data3"), "J8 1 is node3_data3"),
    ("bias", ("node0_data2+", "node0_data2-"), "node0_data2: bias to supply: []"),
])
def test_swapped_nets_are_noticed(name, nets, said):
    board, (one, other) = BOARDS[name], nets
    swapped = board._replace(nets=board.nets | {one: board.nets[other], other: board.nets[one]})
    assert any(said in fault for fault in faults(swapped))


def test_a_missing_capacitor_is_noticed():
    board = BOARDS["driver"]
    less = board._replace(parts={reference: kind for reference, kind in board.parts.items() if reference != "C3"},
                          nets={net: [end for end in ends if end[0] != "C3"] for net, ends in board.nets.items()})
    assert faults(less) == ["not every supply pin has its capacitors"]


def test_parts_list_counts_every_part():
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in MADE["parts"]().splitlines()[2:]]
    for name, board in BOARDS.items():
        listed = Counter({kind: int(count) for of, count, _, kind, *_ in rows if of == f"`{name}`"})
        assert listed == Counter(board.parts.values())
        of = ", ".join(cell[4] for cell in rows if cell[0] == f"`{name}`")
        spelt = [f"{letter}{number}" for letter, low, high in re.findall(r"([A-Z])(\d+)(?: to [A-Z](\d+))?", of)
                 for number in range(int(low), int(high or low) + 1)]
        assert sorted(spelt) == sorted(board.parts)


def test_table_of_wires_says_what_the_nets_say():
    driver, receiver = at(BOARDS["driver"]), at(BOARDS["receiver"])
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in MADE["wires"]().splitlines()[2:]]
    assert len(rows) == len(MADE["WIRES"])
    for wire, near, part, out, cable, ground, back, far, resistors in rows:
        name = "node{}_{}".format(*wire.split())
        quad, near_at, far_at = part.split()[0], near.split(), far.split()
        single, plus, minus = map(int, re.findall(r"\d+", out))
        assert [driver[quad, pin] for pin in (single, plus, minus)] == [[f"{name}_in"], [f"{name}+"], [f"{name}-"]]
        plus, minus, single = map(int, re.findall(r"\d+", back))
        assert [receiver[quad, pin] for pin in (single, plus, minus)] == [[f"{name}_out"], [f"{name}+"], [f"{name}-"]]
        assert driver[near_at[0], int(near_at[1])] == receiver[far_at[0], int(far_at[1])] == [name]
        for nets, header in ((driver, far_at[0]), (receiver, near_at[0])):
            assert [nets[header, int(pin)] for pin in cable.split(", ")] == [[f"{name}+"], [f"{name}-"]]
            assert [nets[header, int(pin)] for pin in ground.split(", ")] == [["GND"], ["GND"]]
        assert all(driver[reference, pin][0] in (name, f"{name}_in", "GND")
                   for reference in resistors.split(", ") for pin in (1, 2))


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_netlist_reads_back(board):
    text = MADE["netlist"](board)
    assert text.count("(") == text.count(")")
    assert re.findall(r'\(comp \(ref "(\w+)"\)', text) == list(board.parts)
    nets = re.split(r'\(net \(code "\d+"\) \(name "([^"]+)"\)', text)[1:]
    read = {name: [(reference, int(pin)) for reference, pin in re.findall(r'\(ref "(\w+)"\) \(pin "(\d+)"\)', ends)]
            for name, ends in zip(nets[::2], nets[1::2], strict=True)}
    assert read == board.nets


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_drawing_has_every_part(board):
    drawn = MADE["drawing"](board)
    for reference in board.parts:
        assert re.search(rf">{reference}\b", drawn), reference
    for wire in MADE["WIRES"]:
        assert drawn.count(f">{wire.name} +<") == drawn.count(f">{wire.name} \u2212<") == 1
