"""A command on a terminal of its own, which types Ctrl-C: ``python terminal.py SECONDS COMMAND ...``.

The exit status is the command's.
"""

import contextlib
import os
import pty
import select
import sys
import time


def main(seconds: float, command: list[str]) -> int:
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    typed, until = False, time.monotonic() + seconds
    with contextlib.suppress(OSError):      # what Linux says when the command has ended
        while True:
            left = None if typed else max(until - time.monotonic(), 0)
            if select.select([terminal], [], [], left)[0]:
                os.write(1, os.read(terminal, 1 << 16))
            else:
                os.write(terminal, b"\x03")
                typed = True
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
