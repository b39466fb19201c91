"""The example of docs/first-picture.md: what two Picos write, on a virtual board; the page's wiring and outputs."""

import re
from pathlib import Path

import pytest
from emulators.two_picos import stimulus
from hypermon.boards.pinout.pinout import wires
from hypermon.boards.registry import BOARDS
from hypermon.host import cli
from hypermon.host.run import open_run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-picture.md").read_text()
NAMES = str(ROOT / "examples" / "two_picos" / "picos.toml")
#: Pins of a Pico's board by its GPIOs.
PICO = {2: 4, 3: 5, 4: 6, 5: 7, 6: 9, 14: 19, 15: 20, 16: 21}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("picos")
    (folder / "picos.csv").write_text(stimulus(60))
    return folder


def run(*words: str) -> None:
    assert cli._run(list(words)) == 0, words


@pytest.mark.parametrize("form", ["events", "nibbles"])
def test_every_throw_is_caught(played: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In event mode, and framed from the nibbles of a classic board, as on an iCEBreaker."""
    path = str(played / form)
    more = ("--config", "extended", "--mode", "event") if form == "events" else ()
    run("record", "-b", f"sim:{played / 'picos.csv'}", "-o", path, *more)
    run("decode", path, "--dictionary", NAMES, *(() if form == "events" else ("--framing", "event")))
    capsys.readouterr()
    run("check", path)
    assert "60 messages, 60 sent and received" in capsys.readouterr().out
    opened = open_run(path)
    assert opened.stats()["events_per_name"] == dict.fromkeys(("aim", "throw", "wait", "catch"), 60)
    states = opened.sql("select node, name, count(*) from states group by all order by all").fetchall()
    assert states == [(node, name, 30) for node in range(2) for name in ("aiming", "waiting")]
    if form == "events":
        run("tail", path)
        lines = capsys.readouterr().out.splitlines()
        assert "\n".join(lines[:8]) in PAGE


@pytest.mark.parametrize(("board", "heading"), [
    ("ulx3s-85f", "## 3. Wire them"), ("icebreaker", "## With an iCEBreaker")])
def test_the_page_wires_what_pinout_prints(board: str, heading: str) -> None:
    table = PAGE.partition(heading)[2]
    rows = re.findall(r"\| (data\d|strobe) \| GP(\d+) \((\d+)\) \| (.+?) \| (.+?) \|", table)[:5]
    of = {(wire.node, wire.role): wire.label for wire in wires(BOARDS[board])}
    assert [row[0] for row in rows] == ["data0", "data1", "data2", "data3", "strobe"]
    for role, gpio, pin, first, second in rows:
        assert (first, second) == (of[0, role], of[1, role])
        assert PICO[int(gpio)] == int(pin)
        assert int(gpio) == 2 + ["data0", "data1", "data2", "data3", "strobe"].index(role)


def test_both_boards_have_the_levels_of_the_program() -> None:
    program = (ROOT / "examples" / "two_picos" / "main.py").read_text()
    clock = int(re.search(r"CLOCK_HZ = ([\d_]+)", program)[1])
    assert clock <= min(BOARDS[name].capture_hz for name in ("ulx3s-85f", "icebreaker"))
