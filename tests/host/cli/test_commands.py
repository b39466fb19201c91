"""The table of commands says what the commands say of themselves, and the list of them needs none of them."""

import subprocess
import sys

import click
import pytest
from hypermon.host.cli import cli
from hypermon.host.cli.commands import COMMANDS

from tests.patience import patience


def listed(group: click.Group, width: int) -> str:
    context = click.Context(group, info_name="hypermon", terminal_width=width, max_content_width=width)
    formatter = context.make_formatter()
    group.format_commands(context, formatter)
    return formatter.getvalue()


@pytest.mark.parametrize("width", [50, 80, 100, 300])
def test_the_list_is_the_one_of_the_commands_themselves(width):
    context = click.Context(cli)
    plain = click.Group("hypermon", commands={name: cli.get_command(context, name) for name in COMMANDS})
    assert listed(cli, width) == listed(plain, width)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_name_that_it_is_called_by(name):
    assert cli.get_command(click.Context(cli), name).name == name


def test_a_command_that_does_not_exist(capsys):
    from hypermon.host.cli import _run

    assert cli.get_command(click.Context(cli), "nothing") is None
    assert _run(["nothing"]) == 2
    assert "No such command 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_waits_for_no_library(arguments):
    """Arrow, DuckDB, NumPy and Rich need most of a second."""
    code = ("import sys\nfrom hypermon.host.cli import _run\n"
            f"assert _run({arguments!r}) == 0\n"
            "print([name for name in ('duckdb', 'numpy', 'pyarrow', 'rich') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=patience(60),
                          check=True)
    assert done.stdout.splitlines()[-1] == "[]"
