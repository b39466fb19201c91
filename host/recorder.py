"""From a board into a RUN: start, drain until told to stop, stop, drain the rest."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from hypermon.hdl.layout import FRAME_WINDOW, BlockType, CensusFlag
from hypermon.host.blocks import Block, BlockScanner
from hypermon.host.device import Device, Settings
from hypermon.host.drain import Drain, open_drain, refuse_drain
from hypermon.host.errors import LinkError
from hypermon.host.ledger import Ledger, read_census
from hypermon.host.recording import RunInfo, RunWriter

__all__ = ["Limits", "Interrupt", "Moment", "record"]

#: Seconds between two syncs to the disk: what a power cut costs at most.
_SYNC_S = 1.0
#: Seconds without a byte, and censuses with nothing else between them, after which a stopped board
#: is given up.
_SILENCE_S = 10.0
_CENSUSES = 1000


@dataclass(frozen=True)
class Limits:
    """When to stop by itself; None: never. ``seconds`` are the board's."""

    seconds: float | None = None
    events: int | None = None


@dataclass(frozen=True)
class Moment:
    """How a recording goes, for a progress display: ``board_s`` since the start, the accounts,
    and blocks so far, in bytes."""

    board_s: float
    ledger: Ledger
    bytes: int


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
           limits: Limits | None = None, interrupt: Interrupt | None = None,
           progress: Callable[[Moment], None] | None = None) -> Ledger:
    """Records a run.

    Parameters
    ----------
    device : the board, open.
    path : of the new RUN.
    settings, drain : how to capture, and ``stream`` or ``registers``.
    aside : the RUN appears only when it is whole; see :class:`~.recording.RunWriter`.
    limits, interrupt : what ends it, besides a link that has ended.
    progress : called after every poll.

    Returns
    -------
    the accounts of the run.

    Raises
    ------
    HypermonError
        if the RUN exists, the board does not take the settings, or they do not go with the drain.
    """
    refuse_drain(drain, settings.sink)
    limits, interrupt = limits or Limits(), interrupt or Interrupt()
    link = device.link
    configuration = device.prepare(settings)
    scale, identity = device.scale, device.identity
    window = next(name for name, w in FRAME_WINDOW.items() if w is settings.window)
    info = RunInfo(
        board=link.uri, nodes=identity.nodes, clock_hz=identity.clock_hz, window=window,
        latency=scale.latency, epoch=device.epoch, sink=settings.sink.name.lower(), drain=drain,
        identity=identity.as_dict(), configuration=configuration, modes=configuration["mode"],
        item_timeout_clocks=configuration["item_timeout_clocks"], port_bits=identity.data_bits, half_clock=scale.half)
    with RunWriter(path, info, aside) as writer:
        ledger = Ledger(identity.nodes, scale, device.epoch, drain == "registers", info.item_modes,
                        info.item_timeout_clocks, info.port_bits)
        session = _Session(device, open_drain(drain, device), writer, ledger, progress)
        how, duration = "the program failed", None
        try:
            device.start(session.drain.stream)
            how = session.run(limits, interrupt)
            duration = device.stop()
            if not session.settle():
                how += ", and the board did not say that it had stopped"
        except KeyboardInterrupt:
            how = "interrupted twice"
        except LinkError as lost:
            how = f"{'' if how == 'the program failed' else how + ', but '}{lost}"
        finally:
            session.close()
            if not aside or how != "the program failed":
                writer.close(how=how, duration_ps=duration, outages=[outage._asdict() for outage in link.outages])
    return ledger


class _Session:
    """The loop of :func:`record`, and what it keeps."""

    def __init__(self, device: Device, drain: Drain, writer: RunWriter, ledger: Ledger,
                 progress: Callable[[Moment], None] | None):
        self.device, self.drain, self.writer, self.ledger = device, drain, writer, ledger
        self._progress = progress
        self._scanner = BlockScanner()
        self._censuses = 0  # in a row
        self._outages = len(device.link.outages)
        self._began = self._synced = time.monotonic()

    @property
    def board_s(self) -> float:
        board_ps = getattr(self.device.link, "board_ps", None)
        return time.monotonic() - self._began if board_ps is None else board_ps / 1e12

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
            self.writer.append(self._account(data))
            self.writer.add_groups(self.drain.take_groups())
        now = time.monotonic()
        if now - self._synced > _SYNC_S:
            self.writer.sync()
            self._synced = now
        if self._progress is not None:
            self._progress(Moment(self.board_s, self.ledger, self._scanner.offset))
        return len(data)

    def _account(self, data: bytes) -> bytes:
        """Accounts for the data; gives them back without what comes behind the last block of the run."""
        before = self._scanner.offset + self._scanner.pending
        items = self._scanner.feed(data)
        for _ in self.ledger.event_rows(items):
            pass
        self.ledger.take_losses()
        for item in items:
            if isinstance(item, Block):
                census = item.head.type is BlockType.CENSUS
                self._censuses = self._censuses + 1 if census else 0
                if census and self.ledger.stopped and CensusFlag.STOP in read_census(item).flags:
                    return data[:max(item.offset + item.size - before, 0)]
        return data

    def close(self) -> None:
        """The accounts are closed."""
        if not self.ledger.stopped:  # else what is left came behind the run
            for _ in self.ledger.event_rows(self._scanner.finish()):
                pass
        self.ledger.finish()
