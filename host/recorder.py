"""From a board into a RUN: start, drain until told to stop, stop, drain the rest."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType

from hypermon.hdl.layout import FRAME_WINDOW, BlockType, CensusFlag
from hypermon.host.blocks import Block, BlockScanner
from hypermon.host.device import Device, Settings
from hypermon.host.drain import Drain, open_drain, refuse_drain
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.keeping import open_keep
from hypermon.host.ledger import Ledger, read_census
from hypermon.host.order import ItemTable
from hypermon.host.recording import RunInfo, RunWriter
from hypermon.host.segments import SEGMENT_BYTES, DiskFullError
from hypermon.host.wallclock import ClockTie, ask, save_clock

__all__ = ["Limits", "Interrupt", "Moment", "record"]

#: Seconds between two syncs to the disk: what a power cut costs at most.
_SYNC_S = 1.0
#: Seconds without a byte, and censuses with nothing else between them, after which a stopped board
#: is given up.
_SILENCE_S = 10.0
_CENSUSES = 1000
#: Bytes that a recording leaves free on the disk, besides what two seconds bring.
_LEAST_FREE = 64 << 20


@dataclass(frozen=True)
class Limits:
    """When to stop by itself; None: never. ``seconds`` are the board's.

    ``trigger``: when the board has found what its triggers look for: the stop, or without one the start.
    """

    seconds: float | None = None
    events: int | None = None
    trigger: bool = False


@dataclass(frozen=True)
class Moment:
    """How a recording goes, for a progress display: ``board_s`` since the start, the accounts,
    blocks so far, in bytes, and bytes that are ``free`` on the disk."""

    board_s: float
    ledger: Ledger
    bytes: int
    free: int


class Interrupt:
    """Ctrl-C (or SIGTERM) as a wish: the first is noted, the second is a KeyboardInterrupt."""

    def __init__(self) -> None:
        self.hit = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.hit:
            raise KeyboardInterrupt
        self.hit = True

    @contextmanager
    def noted(self) -> Iterator["Interrupt"]:
        """While inside, the signals are only noted."""
        before = {n: signal.signal(n, self._handle) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def record(device: Device, path: Path, settings: Settings, *, drain: str = "stream", aside: bool = False,
           limits: Limits | None = None, interrupt: Interrupt | None = None, keep: str = "raw",
           ring_s: float | None = None, segment_bytes: int = SEGMENT_BYTES,
           progress: Callable[[Moment], None] | None = None) -> Ledger:
    """Records a run.

    Parameters
    ----------
    device : the board, open.
    path : of the new RUN.
    settings, drain : how to capture, and ``stream`` or ``registers``.
    aside : the RUN appears only when it is whole; see :class:`~.recording.RunWriter`.
    limits, interrupt : what ends it, besides a link that has ended, and a disk that has almost no room left.
    keep : ``raw`` blocks, ``events`` or ``stats``; see :mod:`.keeping`.
    ring_s : seconds of the board's time of which raw blocks are kept, at least; None: all.
    segment_bytes : of a file of raw blocks.
    progress : called after every poll.

    Returns
    -------
    the accounts of the run.

    Raises
    ------
    HypermonError
        if the RUN exists, the board does not take the settings, they do not go with the drain, or the disk is full.
        In the last case the RUN is there, with everything that came before.
    """
    refuse_drain(drain, settings.sink)
    if ring_s is not None and (keep != "raw" or drain != "stream"):
        raise HypermonError("a ring keeps raw blocks of the stream; leave out --keep and --drain")
    limits, interrupt = limits or Limits(), interrupt or Interrupt()
    link = device.link
    configuration = device.prepare(settings)
    scale, identity = device.scale, device.identity
    window = next(name for name, w in FRAME_WINDOW.items() if w is settings.window)
    info = RunInfo(
        board=link.uri, nodes=identity.nodes, clock_hz=identity.clock_hz, window=window,
        latency=scale.latency, epoch=device.epoch, sink=settings.sink.name.lower(), drain=drain,
        identity=identity.as_dict(), configuration=configuration, modes=configuration["mode"],
        item_timeout_clocks=configuration["item_timeout_clocks"], port_bits=identity.data_bits, half_clock=scale.half,
        keep=keep, ring_seconds=ring_s)
    with RunWriter(path, info, aside, segment_bytes) as writer:
        ledger = Ledger(identity.nodes, scale, device.epoch, drain == "registers", info.item_modes,
                        info.item_timeout_clocks, info.port_bits)
        session = _Session(device, open_drain(drain, device), writer, ledger, settings, progress)
        how, duration = "the program failed", None
        try:
            session.start()
            how = session.run(limits, interrupt)
            duration = device.stop()
            if not session.settle():
                how += ", and the board did not say that it had stopped"
        except KeyboardInterrupt:
            how = "interrupted twice"
        except DiskFullError as full:
            how = f"the disk is full ({full})"
            raise HypermonError(f"{how}; what was recorded until then is in {path}") from None
        except LinkError as lost:
            how = f"{'' if how == 'the program failed' else how + ', but '}{lost}"
        finally:
            with suppress(DiskFullError):  # said already, or all that is missing are the last words
                session.close()
            if not aside or how != "the program failed":
                writer.close(how=how, duration_ps=duration, outages=[outage._asdict() for outage in link.outages])
    return ledger


class _Session:
    """The loop of :func:`record`, and what it keeps."""

    def __init__(self, device: Device, drain: Drain, writer: RunWriter, ledger: Ledger, settings: Settings,
                 progress: Callable[[Moment], None] | None):
        self.device, self.drain, self.writer, self.ledger = device, drain, writer, ledger
        self._progress = progress
        self._keep = open_keep(writer, ledger)
        self._start_only = not settings.stop.on
        self._free, self._rate, self._counted = 1 << 60, 0.0, 0
        self._tie = ClockTie(0)
        self._scanner = BlockScanner(join=True)
        self._censuses = 0  # in a row
        self._outages = len(device.link.outages)
        self._began = self._synced = time.monotonic()

    @property
    def board_s(self) -> float:
        board_ps = getattr(self.device.link, "board_ps", None)
        return time.monotonic() - self._began if board_ps is None else board_ps / 1e12

    def start(self) -> None:
        """Capture begins."""
        self._tie = ClockTie(time.time_ns())
        self.device.start(self.drain.stream)
        self._began = time.monotonic()
        self._ask()
        save_clock(self.writer.directory, self._tie.estimate())

    def run(self, limits: Limits, interrupt: Interrupt) -> str:
        """Drains until something ends it; says what."""
        while True:
            self._step()
            if interrupt.hit:
                return "interrupted"
            if not self._goes_on():
                return "the board was reset or switched off"
            if limits.seconds is not None:
                if self.board_s >= limits.seconds:
                    return "so many seconds"
            elif self.device.link.ended:
                return "the stimulus was over"
            if limits.events is not None and self.ledger.events >= limits.events:
                return "so many events"
            if limits.trigger and self.ledger.census is not None and self._found(self.ledger.census.flags):
                return "the trigger was found"
            if self._free < _LEAST_FREE + 2 * self._rate:
                return f"the disk is almost full: {self._free >> 20} MiB are left"

    def _found(self, flags: CensusFlag) -> bool:
        if CensusFlag.ENDED in flags:
            return True
        return self._start_only and CensusFlag.TRIGGERED in flags

    def _goes_on(self) -> bool:
        """Whether the board that is there again after an outage still captures this run."""
        outages = len(self.device.link.outages)
        if outages == self._outages:
            return True
        try:
            same = self.device.same_run()
        except LinkError:    # gone once more: to be looked at when it is back
            return True
        self._outages = outages
        return same

    def settle(self) -> bool:
        """Drains what is left after a stop; whether the board said that this was all."""
        heard, virtual = time.monotonic(), hasattr(self.device.link, "board_ps")
        while not self.ledger.stopped:
            if self._step():
                heard = time.monotonic()
            # A virtual board may be long about a stall that it was asked for.
            elif not virtual and time.monotonic() - heard > _SILENCE_S:
                return False
            if self._censuses > _CENSUSES:
                return False
        return True

    def _step(self) -> int:
        data = self.drain.poll()
        if data:
            self._take(data)
            self.writer.add_groups(self.drain.take_groups())
        now = time.monotonic()
        if now - self._synced > _SYNC_S:
            self._tick(now)
        if self._progress is not None:
            self._progress(Moment(self.board_s, self.ledger, self._scanner.offset, self._free))
        return len(data)

    def _tick(self, now: float) -> None:
        """Once a second: safe on the disk, how much room there is, what time it is on the board."""
        self._keep.sync(self.ledger)
        self._free = shutil.disk_usage(self.writer.directory).free
        self._rate = (self._scanner.offset - self._counted) / (now - self._synced)
        self._synced, self._counted = now, self._scanner.offset
        if not self.ledger.stopped:
            self._ask()
        save_clock(self.writer.directory, self._tie.estimate())

    def _ask(self) -> None:
        """What time it is on the board. When it is unplugged, it is asked when it is there again."""
        with suppress(LinkError):
            self._tie.add(ask(self.device))

    def _take(self, data: bytes) -> None:
        """Accounts for the data, and keeps them; not what comes behind the last block of the run."""
        before = self._scanner.offset + self._scanner.pending
        items = self._scanner.feed(data)
        end = len(data)
        for number, item in enumerate(items):
            if isinstance(item, Block):
                census = item.head.type is BlockType.CENSUS
                self._censuses = self._censuses + 1 if census else 0
                ours = census and item.head.epoch == self.device.epoch
                if ours and CensusFlag.STOP in read_census(item).flags:
                    end = max(item.offset + item.size - before, 0)
                    items = items[:number + 1]
                    break
        self._keep.add(data[:end], self._scanner.pending, self.ledger.event_rows(items), self.ledger)

    def close(self) -> None:
        """The accounts are closed."""
        # After the last block of the run, what is left came behind it.
        rest = self._scanner.finish() if not self.ledger.stopped else []
        self._keep.close(chain(self.ledger.event_rows(rest), self._held()), self.ledger)
        with suppress(OSError):  # a full disk: the one of the last second is there
            save_clock(self.writer.directory, self._tie.estimate())

    def _held(self) -> Iterator[ItemTable]:
        """Not before everything else has come."""
        yield from self.ledger.finish()
