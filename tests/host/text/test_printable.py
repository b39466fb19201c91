"""What comes from elsewhere is printed, and does nothing to the terminal."""

import json
import random

import pytest
from hypermon.host import link
from hypermon.host.cli import _run, complete, welcome
from hypermon.host.link import Found
from hypermon.host.text.printable import printable

from tests.host.fake_board import FakeBoard, random_run

NASTY = "\x1b]0;owned\x07\x1b[2J\u202e\u2066\x9b31m\x7f\r\udcff[bold]:skull:"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\u202e\u2066\x9b31m\x7f \udcff[bold]:skull:"


def test_text_for_people_stays():
    for text in ("Größe 3 µs, 火, 🙂 \u00e9", "a [b] 'c' \\ <d>", ""):
        assert printable(text) == text
    assert printable(" one\ntwo\t three\r\n") == "one two three"


def test_nothing_else_gets_through():
    assert printable(NASTY) == SHOWN
    for code in (*range(0x3000), *range(0xd7f0, 0xe100), *range(0xfe00, 0x11000), *range(0xe0000, 0xe0200)):
        text = printable(f"a{chr(code)}b")
        assert text.isprintable(), hex(code)
        assert text == f"a{chr(code)}b" or text == "a b" or f"{code:x}b" in text
    assert printable("x" * 10_000, 10) == "x" * 10 + "..."
    assert printable("\x1b" * 10_000, 10) == r"\x1b\x1b\x" + "..."


def test_what_follows_many_blanks_is_shown_or_said_to_be_cut():
    assert printable("a" + " " * 100_000 + "b") == "a b"
    assert printable("a" + "\n" * 100_000) == "a"
    assert printable(" " * 100_000 + "x" * 11, 10) == "x" * 10 + "..."
    assert printable(" ".join("abcdef"), 11) == "a b c d e f"
    assert printable(" ".join("abcdefg"), 11) == "a b c d e f..."
    assert printable("ab  cd", 1) == "a..."


@pytest.fixture
def nasty_run(make_run):
    run = make_run(random_run(FakeBoard(), random.Random(3), 5))
    path = run.path / "recording.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"board": NASTY, "software": f"<script>{NASTY}"}))
    return run.path


@pytest.mark.parametrize("command", [
    ["stats"], ["query", "select 'a\x1b[2Jb' as \"c\x1b[2J\", 7"], ["decode"], ["export"]])
def test_runs(nasty_run, capsys, command):
    """What a run says of itself, what is in its tables, and errors of any command."""
    _run([command[0], str(nasty_run), *command[1:], *(["--to", NASTY, "x"] if command == ["export"] else [])])
    said = capsys.readouterr()
    assert all(letter.isprintable() or letter == "\n" for letter in said.out + said.err)
    if command != ["decode"]:
        assert r"\x1b" in said.out + said.err


def test_a_report_is_text_of_html(nasty_run):
    """Names are shown as they are, and make no elements; one with control characters is refused before."""
    pytest.importorskip("matplotlib")
    path, page = nasty_run / "recording.json", nasty_run / "report.html"
    assert _run(["report", str(nasty_run), "-o", str(page)]) == 2
    assert not page.exists()
    values = json.loads(path.read_text()) | {"board": "<script>a & b", "software": "<b>1"}
    del values["check"]
    path.write_text(json.dumps(values))
    assert _run(["report", str(nasty_run), "-o", str(page)]) == 0
    text = page.read_text()
    assert "&lt;script&gt;a &amp; b" in text
    assert not any(element in text for element in ("<script>", "<b>1"))


def test_boards(monkeypatch, capsys, tmp_path):
    """What a USB device or a serial port says of itself."""
    found = [Found("sim:", "the virtual board"), Found(f"usb:{NASTY}", NASTY, NASTY)]
    for module in (link, welcome):
        monkeypatch.setattr(module, "find_boards", lambda: found)
    monkeypatch.chdir(tmp_path)
    assert _run(["devices"]) == 0
    assert _run([]) == 0
    said = capsys.readouterr()
    assert all(letter.isprintable() or letter == "\n" for letter in said.out + said.err)
    assert said.out.count(SHOWN) >= 4
    assert complete.boards_like(None, None, "") == ["sim:"]


def test_the_live_view_of_a_terminal():
    terminal = pytest.importorskip("hypermon.host.live.terminal")
    state = {"name": NASTY, "state": "failed", "run": NASTY, "failure": NASTY}
    text = terminal._head(state, NASTY, "1 s", False).plain
    assert text.count(SHOWN) == 4
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("arguments", [["stats", NASTY], [NASTY], ["record", "-b", NASTY, "-o", "x"],
                                       ["serve", "-b", NASTY], ["relay", "-b", "sim:", "--host", NASTY]])
def test_errors(capsys, arguments):
    assert _run(arguments) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.rstrip("\n").isprintable()
