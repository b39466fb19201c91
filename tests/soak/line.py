"""A serial line between a virtual board and the host's own driver, and all that happens to one."""

import os
import random
import select
import threading
import time
from pathlib import Path

from hypermon.sim.serve.line_faults import LineFaults
from hypermon.sim.virtual.link import VirtualLink

from tests.host.uart_port import ESCAPE, LITERAL, Port

__all__ = ["Line", "Weather"]

#: Bytes of the stream that are taken at a time.
_PIECE = 1024
#: Seconds of the host's time that a heartbeat takes when all is over: the time of an idle board would run away from the
#: host while that is asking it to stop.
_IDLE_S = 0.05
#: Of pieces that pass a line in bad weather: a share is damaged, byte by byte; a share loses a stretch.
_BAD, _SHARE, _GAPS, _GAP = 0.02, 1e-3, 0.01, 1000


class Weather(LineFaults):
    """Mostly nothing happens to bytes. Now and then some of a piece are lost, changed or added; or a stretch is lost.

    Members
    -------
    faults : pieces to which something happened.
    calm : nothing happens any more.
    """

    def __init__(self, seed: int):
        super().__init__(_SHARE, _SHARE, _SHARE / 2, seed)
        self._choose = random.Random(~seed)
        self.faults, self.calm = 0, False

    def pass_on(self, data: bytes) -> bytes:
        chance = 1.0 if self.calm or not data else self._choose.random()
        if chance < _BAD:
            out = super().pass_on(data)
        else:
            out = data
            self.counts["bytes"] += len(data)
            if chance < _BAD + _GAPS:
                at = self._choose.randrange(len(data))
                out = data[:at] + data[at + self._choose.randint(1, _GAP):]
                self.counts["lost"] += len(data) - len(out)
        self.faults += out != data
        return out


class Line(Port):
    """A line to a virtual board, which is run by its own thread until :meth:`close`.

    Board time waits for a host that is slow, or that has not come back.

    Parameters
    ----------
    path : where the port is to appear.
    board : at the other end.
    pulls : spans of board time in picoseconds in which the plug is out.
    seed : of the weather.
    over : called once, when the stimulus has been played; the weather is calm then.

    Members
    -------
    pulled : how often the plug has been out.
    failed : what ended the thread before it was told to.
    """

    def __init__(self, path: Path, board: VirtualLink, pulls: list[tuple[int, int]], seed: int, over):
        self._pulls, self._over, self._lock = list(pulls), over, threading.Lock()
        self.pulled, self.failed = 0, None
        super().__init__(path, board, Weather(seed), Weather(seed + 1))

    def run(self) -> None:
        try:
            while not self.ending:
                self._step()
        except Exception as error:
            self.failed = error
            raise

    def _step(self) -> None:
        if self.fd is None:
            self.board.stream(_PIECE)
            if self.board.board_ps >= self._pulls[0][1] or self.board.ended:
                self._pulls.pop(0)
                self.plug()
                self.pulled += 1
            return
        if self._nobody():
            time.sleep(0.005)
            return
        if self._pulls and self.board.board_ps >= self._pulls[0][0]:
            self.unplug()
            return
        if self.board.ended and not self.to_host.calm:
            self.to_host.calm = self.to_board.calm = True
            self._over()
        stream = self.board.stream(_PIECE)
        ready = select.select([self.fd], [], [], _IDLE_S if self.board.ended else 0)[0]
        out = self.to_host.pass_on(stream.replace(ESCAPE, LITERAL))
        try:
            if ready:
                out += self.to_host.pass_on(self.answer(self.to_board.pass_on(os.read(self.fd, 4096))))
            while out:
                out = out[os.write(self.fd, out):]
        except OSError:    # nobody has it open
            time.sleep(0.005)

    def _nobody(self) -> bool:
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def close(self) -> None:
        super().close()
        if self.fd is not None:
            self.unplug()
        self.board.close()
