"""The published maps of the extension board's headers agree with each module's contacts.

A hole is wired to one contact of the SODIMM, whichever module is plugged in. So the maps of the modules, which
boards/colorlight.py and boards/icesugar_pro.py have, and the tables of their contacts must name the same balls.
"""

import pytest
from amaranth_boards.icesugar_pro import ICESugarProPlatform
from hypermon.boards.colorlight import I5, I9
from hypermon.boards.icesugar_pro import BALLS
from hypermon.boards.model.ext_board import UART_HOLES, at_holes, connectors, pins
from hypermon.boards.registry import BOARDS

#: The contact at each hole that is no ground and no supply, from the square pad down its column and back up.
CONTACTS = {
    "P2": "49 57 61 65 69 73 77 81 85 95 89 83 79 75 71 67 63 59 51 41",
    "P3": "111 119 123 127 131 135 139 143 147 151 149 145 141 137 133 129 125 121 117 99",
    "P4": "153 128 132 136 140 144 154 148 156 - - 109 152 150 146 142 138 134 130 155",
    "P5": "126 122 118 114 110 102 98 94 90 86 84 88 92 96 100 104 112 116 120 124",
    "P6": "82 78 74 70 66 62 58 52 48 44 42 46 50 54 60 64 68 72 76 80"}
#: The i5's balls at these contacts, in ascending order of the contacts.
I5_CONTACTS = """
    U16 R1 T1 U1 Y2 K18 W1 C18 V1 M1 T18 N2 R18 N3 R17 T2 P17 M3 M17 T3 T17 R3 U18 N4 U17 M4 P18 L4 N17 L5 N18 P16
    M18 J16 L20 J18 L18 J17 K20 H18 H17 J20 G18 H16 F18 G20 G16 E18 F20 F17 F16 E16 E19 E17 D20 D18 D17 G5 B20 D16
    B19 F5 B18 E6 A19 E5 C17 F4 A18 E4 D3 F1 C4 F3 B4 G3 C3 H3 E3 H4 A3 H5 C2 J4 B1 J5 C1 K3 D2 K4 D1 K5 E2 B3 E1 A2
    F2 B2"""


def test_the_maps_agree_with_the_contacts_of_the_modules():
    wired = sorted(int(contact) for of in CONTACTS.values() for contact in at_holes(of).values())
    i5 = dict(zip(map(str, wired), I5_CONTACTS.split(), strict=True))
    pro = {name.rpartition(":")[2]: ball for connector in ICESugarProPlatform.connectors
           for name, ball in dict(connector).items()}
    for name, of in CONTACTS.items():
        for balls, table in ((I5, i5), (I9, i5 | {"41": "L2"}), (BALLS, pro)):
            assert at_holes(balls[name]) == {hole: table[contact] for hole, contact in at_holes(of).items()}, name


def test_grounds_and_supplies_are_at_the_same_holes():
    assert [connector.name for connector in connectors(BALLS, ("P2",))] == ["P2", "P6"]
    for connector in connectors(I5, I5):
        assert connector.grounds == "2, 8, 11, 20, 29"
        assert [hole.number for hole in connector.holes if hole.burns] == [23]
        assert len(connector.holes) == 30


def test_a_map_has_a_ball_or_nothing_for_each_hole():
    with pytest.raises(ValueError, match="shorter"):
        at_holes("A1 A2")
    assert list(at_holes(" ".join(["-"] * 19 + ["B2"]))) == [28]


def test_pins_leave_out_those_of_the_link_and_the_named_ones():
    every = [pin.label for pin in pins(I5, ("P2", "P6"), ("U16",))]
    assert len(every) == 40 - 1 - len(UART_HOLES)
    assert not {"P2 U16", "P6 M1", "P6 N2"} & set(every)
    for name in ("colorlight-i5", "colorlight-i9", "icesugar-pro"):
        said = " ".join(BOARDS[name].notes)
        board = {"colorlight-i5": I5, "colorlight-i9": I9, "icesugar-pro": BALLS}[name]
        at = at_holes(board["P6"])
        assert f"TXD to P6 {at[UART_HOLES['rx']]}, its RXD to P6 {at[UART_HOLES['tx']]}" in said
