"""Other people's programs that read what the host exports."""

import os
import subprocess

import pytest

from tests.patience import patience
from tests.programs import MissingError, working

__all__ = ["needs", "read_by"]


def needs(program: str) -> str:
    """The path of a program of :data:`tests.programs.PROGRAMS`; the test is skipped if it does not work here."""
    try:
        return working(program)
    except MissingError as missing:
        pytest.skip(str(missing))


def read_by(program: str, *arguments: object, **environment: str) -> str:
    """What a program prints; see :func:`needs`. It may abort at its end, as sigrok-cli sometimes does after all its
    output: the output is judged, and a program that failed has none that is right."""
    done = subprocess.run([needs(program), *map(str, arguments)], capture_output=True, text=True, timeout=patience(120),
                          check=False, env={**os.environ, **environment})
    assert done.returncode <= 0, done.stderr[-2000:]
    return done.stdout + done.stderr
