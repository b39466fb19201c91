"""The verilated board at a pseudo terminal: a serial port for programs, connected to the gateware pin by pin.

    python -m hypermon.sim.uart_server hello.csv --link ./board
    hypermon record -b 'uart:./board?timeout=10' -o run --events 1

Board time advances while a program has the port open, at the speed of the simulation: some ten times slower than real
time.
"""

import argparse
import contextlib
import errno
import os
import pty
import select
import shlex
import signal
import sys
import time
import tty
from pathlib import Path

from hypermon.hdl.layout import Geometry, Sink
from hypermon.host.errors import HypermonError
from hypermon.sim.serve.line_faults import LineFaults
from hypermon.sim.stimulus.stimulus import Stimulus, load
from hypermon.sim.virtual.uart_board import BAUD, UartBoard

__all__ = ["TerminalServer", "main", "refuse_used"]

#: Board clocks between two checks of the port, unless the server is given another number.
_BATCH = 5_000
#: Seconds between two checks for a program that opens it.
_IDLE_S = 0.01


class TerminalServer:
    """A board at a pseudo terminal.

    Parameters
    ----------
    board : the board that is served.
    link : a path that is made to point to the terminal.
    to_host, to_board : faults of the line, in each direction.
    batch : board clocks between two checks of the port; fewer for a board that is simulated slowly.

    Members
    -------
    board_ps : board time.

    Raises
    ------
    HypermonError
        see :func:`refuse_used`.
    """

    def __init__(self, board: UartBoard, link: Path, to_host: LineFaults | None = None,
                 to_board: LineFaults | None = None, batch: int = _BATCH):
        self._board, self._link, self._batch = board, link, batch
        self.to_host, self.to_board = to_host or LineFaults(), to_board or LineFaults()
        refuse_used(link)
        self._fd = -1
        self._waiting = b""    # for the program to take it
        self.plug()

    @property
    def board_ps(self) -> int:
        return self._board.board_ps

    def plug(self) -> None:
        """Makes a new terminal, and points the path to it."""
        self._fd, program = pty.openpty()
        tty.setraw(program)
        aside = self._link.with_name(f".{self._link.name}.new")
        aside.unlink(missing_ok=True)
        aside.symlink_to(os.ttyname(program))
        aside.replace(self._link)
        os.close(program)
        os.set_blocking(self._fd, False)

    def unplug(self) -> None:
        """Removes the terminal and its path. Board time continues, and data that the board sends is lost."""
        self._link.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = -1

    def step(self) -> None:
        """Advances board time a little; pauses if no program has the port open."""
        if self._fd < 0:
            self._board.run(self._batch)
            return
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            self._waiting = b""
            time.sleep(_IDLE_S)
            return
        if len(self._waiting) < 1 << 16:
            self._waiting += self.to_host.pass_on(self._board.run(self._batch, self.to_board.pass_on(self._read())))
        else:
            time.sleep(_IDLE_S)
        with contextlib.suppress(OSError):
            self._waiting = self._waiting[os.write(self._fd, self._waiting):]

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 1 << 16)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EIO):
                return b""
            raise

    def close(self) -> None:
        """Ends terminal and board."""
        if self._fd >= 0:
            self.unplug()
        self._board.close()


def refuse_used(link: Path) -> None:
    """Raises HypermonError if a port cannot appear there: another server's port is, or something else than a port."""
    if not link.parent.is_dir():
        raise HypermonError(f"--link {link}: there is no directory {link.parent}")
    if not link.is_symlink():
        if link.exists():
            raise HypermonError(f"--link {link}: it exists and is not a port; choose another name")
    elif link.exists():
        raise HypermonError(f"--link {link}: another server's port is there ({link.readlink()}); end that server, or "
                            f"choose another name. If none runs: rm {shlex.quote(str(link))}")


def main(argv: list[str] | None = None) -> None:
    """Serves until it is ended by a signal; SIGUSR1 unplugs the port for a second."""
    parser = argparse.ArgumentParser(prog="hypermon.sim.uart_server", description=__doc__.partition("\n")[0])
    parser.add_argument("stimulus", nargs="*", help="files that the nodes play from the first enable on")
    parser.add_argument("--link", type=Path, required=True, metavar="PATH", help="where the port is to appear")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--config", choices=[sink.name.lower() for sink in Sink], default="classic")
    parser.add_argument("--baud", type=int, default=BAUD, help=f"of the board (default {BAUD})")
    parser.add_argument("--lose", type=float, default=0.0, metavar="SHARE", help="of the bytes, lost each way")
    parser.add_argument("--flip", type=float, default=0.0, metavar="SHARE", help="of the bytes, damaged each way")
    parser.add_argument("--seed", type=int, default=0, help="seed of losses and damage")
    args = parser.parse_args(argv)
    geometry = Geometry(args.nodes, sinks=tuple(Sink)) if args.config == "extended" else Geometry(args.nodes)
    try:
        refuse_used(args.link)
        stimulus = (load(args.stimulus, nodes=geometry.nodes, clock_hz=geometry.clock_hz) if args.stimulus
                    else Stimulus.idle(geometry.nodes))
        board = UartBoard(stimulus, geometry, baud=args.baud)
        server = TerminalServer(board, args.link, LineFaults(args.lose, args.flip, seed=args.seed),
                                LineFaults(args.lose, args.flip, seed=args.seed + 1))
    except HypermonError as error:
        sys.exit(f"uart_server: {error}")
    wishes: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, _: wishes.append(number))
    print(f"uart:{args.link}?baud={args.baud}&timeout=10", flush=True)
    back = 0.0
    while not wishes or wishes == [signal.SIGUSR1]:
        if wishes:
            wishes.clear()
            server.unplug()
            back = time.monotonic() + 1
        if back and time.monotonic() > back:
            server.plug()
            back = 0.0
        server.step()
    server.close()


if __name__ == "__main__":
    main()
