"""Pages of boards: one for all with the same wires, each fact with the boards of which it is true."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypermon.boards.pinout.pages import page, pages
from hypermon.boards.pinout.pinout import balls, drawing, facts, wires
from hypermon.boards.registry import BOARDS

PAGES = {own.name: own for own in pages(BOARDS.values())}
REMARKS = ("Shared", "Note", "Limit", "Source of the pins")
SVG = "{http://www.w3.org/2000/svg}"


def text_of(name):
    return page(PAGES[name], balls(PAGES[name].boards[0]))


def drawn(board):
    """Of a drawing: kind, place, text and label of every hole, in words."""
    root = ElementTree.fromstring(drawing(board, wires(board)))
    for group in root.iter(f"{SVG}g"):
        box = next(part for part in group if part.tag in (f"{SVG}rect", f"{SVG}use"))
        texts = ["".join(text.itertext()) for text in group.iter(f"{SVG}text")]
        bears = texts.pop(0) if group.get("class") in ("wire", "ground", "unknown") else ""
        yield group.get("class"), (box.get("x"), box.get("y")), bears, [word for text in texts for word in text.split()]


@pytest.mark.parametrize("name", PAGES)
def test_every_wire_of_the_page_is_drawn_once_at_the_hole_of_its_label(name):
    board = PAGES[name].boards[0]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text_of(name), re.MULTILINE)
    said = {}
    for node, cells in rows:
        for short, cell in zip(("S", "D0", "D1", "D2", "D3"), cells.split(" | "), strict=True):
            label, ball = re.fullmatch(r"(.*) \((.*)\)", cell).groups()
            pairs = list(zip(label.split(" / "), ball.split("/"), strict=True))
            for sign, (at, pad) in zip("+-" if len(pairs) > 1 else ("",), pairs, strict=True):
                said[f"{node} {short}{sign}"] = (at.split()[-1], pad)
    assert len(said) == (10 if board.pins[0].negative else 5) * board.nodes
    shown = {bears: words for kind, _, bears, words in drawn(board) if kind == "wire"}
    assert len(shown) == sum(kind == "wire" for kind, *_ in drawn(board))
    assert {wire: {label, ball} for wire, (label, ball) in said.items()} == {
        wire: {word for word in words if word not in "◂▸"} for wire, words in shown.items()}
    places = [place for _, place, *_ in drawn(board)]
    assert len(set(places)) == len(places)


def test_boards_that_differ_by_their_part_share_a_page():
    assert {name: [board.name for board in own.boards] for name, own in PAGES.items() if len(own.boards) > 1} == {
        "ulx3s": [f"ulx3s-{size}{deep}" for deep in ("", "-deep") for size in ("12f", "25f", "45f", "85f")],
        "ecpix5": ["ecpix5-45f", "ecpix5-85f"], "orangecrab": ["orangecrab-25f", "orangecrab-85f"],
        "arty-a7": ["arty-a7-35t", "arty-a7-100t"]}
    assert [PAGES[name].title for name in ("ulx3s", "ecpix5", "arty-a7")] == ["ULX3S", "ECPIX-5", "Arty A7"]
    # Other pins need another page, and so does another level.
    assert [board.name for board in PAGES["ulx3s-25f-quarter"].boards] == ["ulx3s-25f-quarter"]
    one = BOARDS["ulx3s-12f"]
    assert len(pages([one, replace(one, level="2.5 V")])) == len(pages([one, BOARDS["ulx3s-25f-quarter"]])) == 2


@pytest.mark.parametrize("name", PAGES)
def test_every_fact_of_every_board_is_on_its_page(name):
    own, text = PAGES[name], text_of(name)
    for board in own.boards:
        several = replace(board, name="BOARD") if len(own.boards) > 1 else board
        for fact, said in facts(several, balls(board)):
            said = said[0].upper() + said[1:]
            if fact == REMARKS[-1]:
                found = [f"- Source of the pins: {said[0].lower()}", f"- Source of the pins: {said[0]}"]
                assert any(begin in text for begin in found)
                continue
            begin = r"- (?:(.*?): )?" if fact in REMARKS else rf"\| {fact}(?:, (.*?))? \| "
            of = re.search(rf"^{begin}{re.escape(said)}", text, re.MULTILINE)
            assert of, (board.name, fact)
            assert of[1] is None or f"`{board.name}`" in of[1], (board.name, fact)
        if len(own.boards) > 1:
            assert f"| {board.title} | `{board.name}` | {board.fpga} |" in text


def test_a_section_names_its_boards_unless_all_have_it():
    text = text_of("ulx3s").partition("## With pins for time\n\n")[2]
    assert text.startswith("Boards: `ulx3s-12f`, `ulx3s-25f`, `ulx3s-45f`, `ulx3s-85f`, `ulx3s-45f-deep`, "
                           "`ulx3s-85f-deep`.\n\n`hypermon build BOARD --config timed`")
    assert "\nBoards: " not in text_of("ecpix5") + text_of("ulx3s-25f-quarter")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_drawing_first_and_its_facts_in_a_table(name):
    text, board = text_of(name), PAGES[name].boards[0]
    drawn, wired, known = (text.index(begin) for begin in ("![Wiring]", "| node | strobe |", "## Facts"))
    assert text.index(f"**{board.level}.**") < drawn < wired < known
    table, _, remarks = text[known:].partition("\n\n")[2].partition("\n\n")
    rows = [line.split(" | ")[0].strip("| ").split(", ")[0] for line in table.splitlines()[2:]]
    assert list(dict.fromkeys(rows)) == [fact for fact, _ in facts(board) if fact not in REMARKS]
    assert len(set(rows)) == 11, name
    assert remarks.startswith("- ")
