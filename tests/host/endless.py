"""A board without an end, at the link seam: an event a window at random gaps, as fast as they are taken, or paced.

Alone, it records: ``python endless.py RUN [option=value ...]``, options as of
:func:`hypermon.host.record.recorder.record`.
"""

import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import CENSUS_BOARD, CENSUS_NODE, BlockFlag, BlockType, CensusFlag, Geometry, Sink, Window
from hypermon.host.blocks.blocks import build_block
from hypermon.host.blocks.compact import decode
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.record.recorder import Interrupt, record

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.host.compact_write import encode
from tests.host.fake_board import FakeBoard, FakeLink

NODES = 16


class EndlessLink(FakeLink):
    """Plays the same blocks again and again, later each time, and a census after each round.

    Parameters
    ----------
    gap : windows of one clock, 10 ns, from one event to the next, on average.
    rounds : after so many the stimulus is over; None: never.
    paced : the board's time is the computer's; what is not taken waits.
    frames : the board is the classic one, and sends so many frames of one event in a block.
    """

    def __init__(self, gap: int = 100, rounds: int | None = None, paced: bool = False, seed: int = 1, blocks: int = 64,
                 frames: int | None = None):
        sink = Sink.EXTENDED if frames is None else Sink.CLASSIC
        super().__init__(FakeBoard(window=Window.CLOCK, sink=sink).start().stop(1), endless=True)
        rng = np.random.default_rng(seed)
        self._geometry, self._rounds, self._paced = Geometry.extended(NODES), rounds, paced
        self.settings = Settings(window=Window.CLOCK, sink=sink)
        self._payloads, time_at, self._delivered = [], 0, np.zeros(NODES, np.int64)
        for _ in range(blocks):
            gaps = np.maximum(1, np.rint(rng.exponential(gap, 1800))).astype(int)
            nodes = rng.integers(0, NODES, 1800)
            windows = np.cumsum(gaps) - gaps[0]
            items = zip(windows.tolist(), nodes.tolist(), rng.integers(0, 16, 1800).tolist(), strict=True)
            self._payloads.append((time_at, encode(items, NODES)))
            self._delivered += np.bincount(nodes, minlength=NODES)
            time_at += int(windows[-1]) + gap
        self._span, self.events_a_round = time_at, 1800 * blocks
        self.round = self._sequence = 0
        self._running = False
        self._made: deque[bytes] = deque()
        self._frames = None if frames is None else self._as_frames(frames)

    def _as_frames(self, frames: int) -> list[npt.NDArray[np.uint32]]:
        """The same events as frames, so many a block."""
        payloads, times = zip(*((payload, time) for time, payload in self._payloads), strict=True)
        rows = decode(payloads, times, NODES).parts
        windows, node, nibble = (np.concatenate([getattr(part, name) for part in rows])
                                 for name in ("windows", "node", "nibble"))
        words = np.zeros((len(windows), 4), np.uint32)
        words[np.arange(len(words)), 1 - node // 8] = nibble.astype(np.uint32) << 4 * (node % 8)
        words[:, 2], words[:, 3] = 1 << node.astype(np.uint32), windows
        return [words[at:at + frames] for at in range(0, len(words), frames)]

    def _events(self) -> list[bytes]:
        """The blocks of a round."""
        if self._frames is None:
            return [self._block(BlockType.COMPACT, payload, self.windows + at) for at, payload in self._payloads]
        later = np.array([0, 0, 0, self.windows], np.uint32)
        return [self._block(BlockType.FRAMES, (words + later).tobytes(), self.windows + int(words[0, 3]))
                for words in self._frames]

    def make_ahead(self) -> int:
        """Makes all rounds, so that playing them costs nothing but memory; their bytes."""
        self._sequence = 1  # behind the first census
        self._made.extend(self._make_round() for _ in range(self._rounds))
        self._sequence_behind, self.round, self._sequence = self._sequence, 0, 0
        return sum(map(len, self._made))

    def _make_round(self) -> bytes:
        data = self._events()
        self.round += 1
        return b"".join([*data, self._census()])

    def limit_to(self, rounds: int) -> None:
        self._rounds = rounds

    @property
    def windows_a_round(self) -> int:
        return self._span

    @property
    def windows(self) -> int:
        """The board's time, in windows."""
        return self.round * self._span

    def _block(self, kind: BlockType, payload: bytes, at: int) -> bytes:
        self._sequence += 1
        return build_block(kind, payload, geometry=self._geometry, window=Window.CLOCK, epoch=1,
                           sequence=self._sequence - 1, time=at,
                           flags=BlockFlag.EXTENDED if kind is BlockType.COMPACT else BlockFlag(0))

    def _census(self, flags: int = 0) -> bytes:
        count = self._delivered * self.round
        rows = b"".join(CENSUS_NODE.pack(accepted=int(n), delivered=int(n)) for n in count)
        return self._block(BlockType.CENSUS, CENSUS_BOARD.pack(frames=int(count.sum()), flags=flags) + rows,
                           self.windows)

    def write(self, address, value):
        if address == self.by_name["CONTROL"] and value & 3 == 2:
            self._running, self._began, self.pending = True, time.monotonic(), self._census(CensusFlag.START)
        elif address == self.by_name["CONTROL"] and self._running:
            self._running = False
            self.pending += self._census(CensusFlag.STOP)
        else:
            super().write(address, value)
        if address == self.by_name["LATCH"]:
            self.put(TIME_LOW=self.windows & 0xffffffff, TIME_HIGH=self.windows >> 32)

    def stream(self, limit):
        if self.pending:
            taken, self.pending = self.pending[:limit], self.pending[limit:]
            return taken
        if not self._running or self.ended:
            return b""
        if self._paced and (time.monotonic() - self._began) * 1e8 < self.windows + self._span:
            time.sleep(0.001)
            return b""
        if self._made:
            self.round, self._sequence = self.round + 1, self._sequence_behind
            return self._made.popleft()
        return self._make_round()

    @property
    def ended(self):
        return self._rounds is not None and self.round >= self._rounds and not self.pending


def number(text: str) -> float:
    return float(text) if "." in text else int(text)


def main() -> None:
    given = dict(text.split("=", 1) for text in sys.argv[2:])
    keep = given.pop("keep", "raw")
    options = {name: number(text) for name, text in given.items()}
    link = EndlessLink(**{name: options.pop(name) for name in ("gap", "rounds", "paced", "frames") if name in options})
    interrupt = Interrupt()
    try:
        with interrupt.noted():
            record(Device(link), Path(sys.argv[1]), link.settings, interrupt=interrupt, keep=keep, **options)
    except HypermonError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
