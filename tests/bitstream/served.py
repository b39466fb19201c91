"""The bits at a pseudo terminal, and the unmodified host's commands against it."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from hypermon.hdl.layout import Geometry
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.uart_server import TerminalServer
from hypermon.sim.virtual.build import Shell
from hypermon.sim.virtual.uart_board import UartBoard

from tests.patience import patience

__all__ = ["HYPERMON", "Served", "command", "recorded", "told"]

HYPERMON = Path(sys.executable).with_name("hypermon")
#: Seconds that the host waits for an answer, which the board gives at a hundredth of its real speed.
_ANSWER_S = 60
#: Board clocks between two looks at the port. A request has 3,000, and the bits have 15,000 a second.
_BATCH = 250
#: Seconds for one command, and between two looks at the board's time.
_PATIENCE_S, _LOOK_S = 3600, 0.05


class Served:
    """A board of that shell, powered up, that plays a stimulus from its first enable on, at a port for programs.

    Raises
    ------
    HypermonError
        if it cannot be built.
    """

    def __init__(self, folder: Path, shell: Shell, geometry: Geometry, baud: int, stimulus: Stimulus | None = None):
        self.uri = f"uart:{folder / 'port'}?baud={baud}&timeout={_ANSWER_S}"
        board = UartBoard(stimulus or Stimulus.idle(geometry.nodes), geometry, baud=baud, shell=shell)
        self._server = TerminalServer(board, folder / "port", batch=_BATCH)
        self._ending, self._failed = False, None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def board_ps(self) -> int:
        """Board time, 0 until the first enable."""
        return self._server.board_ps

    def _serve(self) -> None:
        try:
            while not self._ending:
                self._server.step()
        except Exception as error:
            self._failed = error

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        self._thread.join()
        self._server.close()
        if self._failed:
            raise self._failed


def command(*words: str | Path, seconds: float = _PATIENCE_S) -> "subprocess.CompletedProcess[str]":
    """`hypermon` with these words; one that takes more than these seconds of an idle machine has exit status -1."""
    try:
        return subprocess.run([HYPERMON, *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=patience(seconds))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, -1, "", f"no end after {seconds:.0f} s")


def recorded(board: Served, run: Path, until_ps: int, options: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    """`hypermon record` of that board, with these options, ended by Ctrl-C at a board time; or if that never comes."""
    words = [HYPERMON, "record", "-b", board.uri, "-o", run, *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        given_up = time.monotonic() + _PATIENCE_S
        while process.poll() is None and board.board_ps < until_ps and time.monotonic() < given_up:
            time.sleep(_LOOK_S)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            out, said = process.communicate(timeout=patience(_PATIENCE_S))
        except subprocess.TimeoutExpired:
            process.kill()
            out, said = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out, said)


def told(uri: str) -> dict[str, object]:
    """What `hypermon info` reads from a board; empty if it cannot."""
    done = command("info", "-b", uri, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()}
