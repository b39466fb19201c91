"""What helps somebody who does not know the commands yet: the first screen, examples, completion, exit statuses."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypermon.host import cli
from hypermon.host.cli import complete as cli_complete
from hypermon.host.cli import welcome
from hypermon.host.errors import to_install
from hypermon.host.link import Found, tcp

from tests.host.fake_board import FakeBoard
from tests.patience import patience

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
SIM = Found("sim:", "the virtual board, idle")


def commands(group: click.Group = cli.cli, path: str = "hypermon") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


@pytest.mark.parametrize(("boards", "said", "not_said"), [
    ([SIM], ["hypermon sim hello.csv -o hello", "No board is connected; the virtual board"], ["record", "pip"]),
    ([SIM, *tcp.find_boards()], ["hypermon sim hello.csv -o hello", "No board is connected; the virtual board"],
     ["HOST", " -b ", "make demo"]),
    ([SIM._replace(problem="not installed")], [to_install("sim")], ["hello.csv"]),
    ([SIM, Found("uart:/dev/ttyX", "a board")], ["uart:/dev/ttyX  a board", "record -b uart:/dev/ttyX -o RUN"],
     ["hello"]),
    ([SIM, Found("usb:7", "a board", "no permission: do this")], ["usb:7  no permission: do this", "sim hello.csv"],
     [" -b "]),
])
def test_alone_it_says_what_is_next(monkeypatch, tmp_path, capsys, boards, said, not_said):
    monkeypatch.setattr(welcome, "find_boards", lambda: boards)
    monkeypatch.chdir(tmp_path)
    assert cli._run([]) == 0
    out = capsys.readouterr().out
    assert [text for text in (*said, "hypermon --help") if text not in out] == []
    assert [text for text in not_said if text in out] == []


def test_a_checkout_names_its_demo(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(welcome, "find_boards", lambda: [SIM])
    monkeypatch.setattr(welcome, "checkout", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli._run([]) == 0
    assert "  make demo " in capsys.readouterr().out


def test_recordings_are_named_the_newest_first(monkeypatch, make_run, tmp_path, capsys):
    for number in range(7):
        make_run(FakeBoard().start().stop(), name=f"run{number}", started=f"2026-01-0{number + 1}T00:00:00")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "recording.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert cli._run([]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^  (run\d)$", out, re.MULTILINE) == ["run6", "run5", "run4", "run3", "run2"]
    assert "and 2 more" in out
    assert "hypermon stats run6" in out


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_every_command_has_examples_that_it_takes(path, command):
    text = command.get_help(click.Context(command, info_name=path, max_content_width=200, **cli.cli.context_settings))
    shown = [line.strip().removeprefix("sudo ") for line in text.splitlines()]
    lines = [line for line in shown if line.startswith(f"{path} ")]
    assert lines
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for line in lines:
        words = shlex.split(re.split(r"  +|&&", line)[0])
        if "--" in words:
            words = words[:words.index("--")]
        assert [word for word in words if word.startswith("-") and len(word) > 1 and word not in known] == []


def complete(*words: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", "from hypermon.host.cli import main; main()"], capture_output=True,
                          text=True, timeout=patience(60), check=False, env={
                              **os.environ, "_HYPERMON_COMPLETE": "bash_complete", "COMP_WORDS": shlex.join(words),
                              "COMP_CWORD": str(len(words) - 1)})
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_tab_completes():
    assert complete("hypermon", "exp") == ["export"]
    assert complete("hypermon", "export", "x", "--to", "c") == ["csv", "ctf", "ctf2"]


def test_what_is_offered(make_run, monkeypatch, tmp_path):
    run = make_run(FakeBoard().start().stop(), name="recorded")
    (tmp_path / "rest").mkdir()
    monkeypatch.chdir(tmp_path)

    def offered(function, begun):
        return function(None, None, begun)

    assert offered(cli_complete.runs_like, "r") == ["recorded"]
    assert offered(cli_complete.runs_like, "res") == ["rest/"]
    assert offered(cli_complete.runs_like, f"{tmp_path}/rec") == [str(run.path)]
    assert offered(cli_complete.runs_like, "none/x") == []
    assert offered(cli_complete.boards_and_runs_like, "s") == ["sim:"]
    assert offered(cli_complete.formats_like, "per") == ["perfetto"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_that_is_documented(shell):
    assert f"_HYPERMON_COMPLETE={shell}_source hypermon" in PAGE


def test_exit_statuses_are_those_that_are_documented(make_run, capsys, monkeypatch):
    run = make_run(FakeBoard().start().stop())
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == ["0", "1", "2", "3", "4", "130"]
    assert cli._run(["stats", str(run.path), "--json"]) == 0
    json.loads(capsys.readouterr().out)
    for words in (["stats", "nothing"], ["nonsense"], ["stats"], ["stats", str(run.path), "--frob"]):
        assert cli._run(words) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1

    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hypermon.host.analysis.stats.stats", interrupted)
    assert cli._run(["stats", str(run.path), "--json"]) == 130
