"""Records from a board into a RUN: start, drain until the end of the recording, stop, drain the rest."""

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hypermon.hdl.layout import BEAT_BYTES, FRAME_WINDOW, BlockType, CensusFlag, Geometry, MarkSource, frame_bytes
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.decode.ledger import Ledger, read_census
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, IncompleteError, LinkError
from hypermon.host.record.ask import ask
from hypermon.host.record.drain import Drain, open_drain, refuse_drain
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.record.keep import open_keep
from hypermon.host.recording.clock import ClockTie, save_clock, utc_offset_ns
from hypermon.host.recording.drift_log import DriftLog
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.pulses import pulse_clock
from hypermon.host.recording.segments import SEGMENT_BYTES, StorageError, storage
from hypermon.host.recording.writer import RunWriter

__all__ = ["CutShortError", "Interrupt", "Limits", "Moment", "record"]

#: Seconds between two syncs to the disk: the most that a power cut costs.
_SYNC_S = 1.0
#: At the time limit, a board is asked for its time that often.
_ASK_S = 0.01
#: When a stopped board is given up: seconds of silence, in the host's time; and seconds of the board's time with
#: nothing but heartbeats, in addition to what FLUSH and the time-out of items may hold back.
_SILENCE_S = 10.0
#: Also that many heartbeats in a row: on a very slow link two heartbeats are far apart while blocks still wait.
_HEARTBEATS = 16
#: Minimum bytes per second of any link, and seconds that a stopped board may need in addition to draining its contents
#: at that rate. A virtual board computes its time, and may be that much slower.
_SLOWEST, _LAST_S, _VIRTUAL_TIMES = 10_000, 60.0, 100
#: Bytes that may be in transit besides those on the board: in drivers, in a relay, and as heartbeats.
_ON_THE_WAY = 64 << 20
#: A stopped board sends only noise if no whole block of the run arrives for `_NOISE_S` seconds and more than
#: `_NOISE_BYTES` bytes (four of the longest blocks), or in `_NOISE_MOST` bytes, however fast they arrive.
_NOISE_S, _NOISE_BYTES, _NOISE_MOST = 30.0, 4 << 16, 16 << 20
_NO_WORD = "the board did not report that it had stopped"
#: Bytes that a recording leaves free on the disk, besides the data of two seconds.
_LEAST_FREE = 64 << 20


@dataclass(frozen=True)
class Limits:
    """When to stop automatically; None: never. ``seconds`` are the board's.

    ``trigger``: stop when the board has found what its triggers look for: the stop, or without one the start.
    """

    seconds: float | None = None
    events: int | None = None
    trigger: bool = False


@dataclass(frozen=True)
class Moment:
    """State of a recording, for a progress display: seconds of the board's time since the start, the accounting, the
    bytes of all blocks so far, and the ``free`` bytes on the disk.
    """

    board_s: float
    ledger: Ledger
    bytes: int
    free: int


@dataclass(frozen=True)
class _End:
    """How a recording ended: in words, whether as requested, its duration in board time, and whether all received data
    has been written.
    """

    how: str
    proper: bool = True
    duration_ps: int | None = None
    all_written: bool = True

    def but(self, reason: str, joint: str = "but") -> "_End":
        """Adds a failure to the end."""
        return replace(self, how=f"{self.how}, {joint} {reason}" if self.how else reason, proper=False)


class CutShortError(IncompleteError):
    """A recording did not end as requested; the data before that is kept.

    Members
    -------
    ledger : the accounting of what is kept.
    """

    def __init__(self, message: str, ledger: Ledger):
        self.ledger = ledger
        super().__init__(message)


def record(device: Device, path: Path, settings: Settings, *, drain: str = "stream", aside: bool = False,
           limits: Limits | None = None, interrupt: Interrupt | None = None, keep: str = "raw",
           ring_s: float | None = None, segment_bytes: int = SEGMENT_BYTES,
           progress: Callable[[Moment], None] | None = None) -> Ledger:
    """Records a run.

    Parameters
    ----------
    device : the board, open.
    path : of the new RUN.
    settings, drain : settings of the capture; ``stream`` or ``registers``.
    aside : the RUN appears only when it is whole; see :class:`~.writer.RunWriter`.
    limits, interrupt : conditions that end it, in addition to a link that has ended and a disk that is almost full.
    keep : ``raw`` blocks, ``events`` or ``stats``; see :mod:`.keep`.
    ring_s : at least this many seconds of the board's time are kept as raw blocks; None: all.
    segment_bytes : size of a file of raw blocks.
    progress : called after every poll.

    Returns
    -------
    the accounting of the run.

    Raises
    ------
    CutShortError
        if it did not end as requested: the disk is (almost) full or fails, the link failed, the board was reset or
        never confirmed its stop, an awaited condition never occurred, it was interrupted twice. The RUN is kept.
    HypermonError
        if the RUN exists, the board rejects the settings, or they do not fit the drain. With ``aside``, also for any
        other failure of a board; there is no RUN then.
    """
    refuse_drain(drain, settings.sink)
    if ring_s is not None and (keep != "raw" or drain != "stream"):
        raise HypermonError("a ring keeps raw blocks of the stream; omit --keep and --drain")
    limits, interrupt = limits or Limits(), interrupt or Interrupt()
    link = device.link
    configuration = device.prepare(settings)
    scale, identity = device.scale, device.identity
    window = next(name for name, w in FRAME_WINDOW.items() if w is settings.window)
    info = RunInfo(
        board=link.uri, nodes=identity.nodes, clock_hz=identity.clock_hz, window=window,
        latency=scale.latency, epoch=device.epoch, sink=settings.sink.name.lower(), drain=drain,
        identity=identity.as_dict(), configuration=configuration, modes=configuration["mode"],
        item_timeout_clocks=configuration["item_timeout_clocks"], port_bits=identity.data_bits,
        half_clock=scale.phases == 2, quarter_clock=scale.phases == 4,
        keep=keep, ring_seconds=ring_s)
    with RunWriter(path, info, aside, segment_bytes) as writer:
        ledger = Ledger.of(info)
        session = _Session(device, open_drain(drain, device), writer, ledger, settings, progress)
        end = _End("", proper=False)
        try:
            end = session.play(limits, interrupt)
        except HypermonError as error:
            if aside:
                raise
            end = end.but(str(error))
        except BaseException as fault:
            end = end if aside else end.but(f"the program failed: {fault!r}")
            raise
        finally:
            interrupt.closing = True
            if end.how:
                session.close(end)
    end = session.end
    if not end.proper:
        least = "" if ledger.stopped else "at least "
        kept = f"{ledger.events:,} items are kept, {least}{ledger.lost:,} lost" if path.is_dir() else \
            "nothing was recorded"
        raise CutShortError(f"{path}: the recording ended early: {end.how}; {kept}", ledger)
    return ledger


class _Patience:
    """How much a stopped board may send, and for how long.

    Parameters
    ----------
    geometry : of the board.
    times : how many times as slow as a real board it may be.
    came : bytes that had arrived when it was stopped.
    """

    def __init__(self, geometry: Geometry, times: float, came: int):
        g = geometry
        held = (frame_bytes(g.nodes) * (g.nodes * g.node_depth + g.vector_depth + g.frame_depth)
                + BEAT_BYTES * (g.compact_depth + g.store_depth + g.external_depth))
        self._came, self._most = came, 2 * held + _ON_THE_WAY
        self._times = times
        self._seconds = times * (_LAST_S + held / _SLOWEST)
        self._began = self._own_at = time.monotonic()
        self._own, self._then = -1, came

    def ended(self, came: int, own: int) -> str:
        """Why the recorder stops waiting, in words; empty while it waits. ``own`` counts blocks of the run."""
        now = time.monotonic()
        if own != self._own:
            self._own, self._own_at, self._then = own, now, came
        noise, seconds = came - self._then, now - self._own_at
        if noise > _NOISE_MOST or (noise > _NOISE_BYTES and seconds > self._times * _NOISE_S):
            return f"{noise:,} bytes of noise arrived after its last block"
        if came - self._came > self._most or now - self._began > self._seconds:
            return (f"{came - self._came:,} bytes came in the {now - self._began:,.0f} s since it was stopped, "
                    "and no end of them")
        return ""


class _Session:
    """The loop of :func:`record`, and its state."""

    def __init__(self, device: Device, drain: Drain, writer: RunWriter, ledger: Ledger, settings: Settings,
                 progress: Callable[[Moment], None] | None):
        self.device, self.drain, self.writer, self.ledger = device, drain, writer, ledger
        self._progress = progress
        self._keep = open_keep(writer, ledger)
        self._start_only = not settings.stop.on
        self._free, self._rate, self._counted = 1 << 60, 0.0, 0
        self._tie, self._offset_ns = ClockTie(0), 0
        self._drift: DriftLog | None = None
        self._scanner = BlockScanner(join=True)
        self._virtual = device.link.board_ps is not None
        self._follow = settings.follow
        # Consecutive blocks without data of the run: its heartbeats, and blocks of other runs.
        self._heartbeats = self._foreign = 0
        self._own = 0       # blocks of the run
        # The host's time when data last arrived, or when the time of a virtual board last advanced.
        self._heard, self._heard_ps = time.monotonic(), -1
        self._patience_ps = round(1e12 * _SILENCE_S + 1e9 * (settings.flush_ms + settings.item_timeout_ms))
        self._outages = len(device.link.outages)
        self._answered_ns, self._reset = 0, False
        self._answered = self._synced = time.monotonic()
        self.end = _End("", proper=False)

    @property
    def board_s(self) -> float:
        """A virtual board states it. Of another board: its last answer, and the host's time since."""
        board_ps = self.device.link.board_ps
        if board_ps is None:
            return self._answered_ns / 1e9 + time.monotonic() - self._answered
        return board_ps / 1e12

    def start(self) -> None:
        """Starts the capture."""
        if self.writer.info.configuration.get("own_clock"):
            self._drift, self.ledger.pins.sync = DriftLog(self.writer.directory), []
        self._offset_ns = utc_offset_ns()
        self._tie = ClockTie(time.time_ns())
        self.writer.begun = True
        self.device.start(self.drain.stream)
        self._answered = time.monotonic()
        self._ask()
        self._save_clock()

    def play(self, limits: Limits, interrupt: Interrupt) -> _End:
        """Runs a recording from its start to the last block, however it ends. Raises HypermonError if the board fails.
        """
        end = _End("", proper=False)
        try:
            self.start()
            end = self.run(limits, interrupt)
            if self._reset:     # another run's board now, maybe another recorder's: leave it alone
                return end
            stopped_ps = self.device.stop()
            end = replace(end, duration_ps=stopped_ps)
            if unsettled := self.settle(stopped_ps):
                end = end.but(f"{self.device.link.uri} is gone") if self.device.link.away else end.but(
                    unsettled, "and")
        except KeyboardInterrupt:
            return replace(end, how="interrupted twice", proper=False)
        except StorageError as error:
            end = replace(end.but(str(error)), all_written=False)
        except LinkError as error:
            end = end.but(str(error))
        if self._follow and not self._scanner.offset and not self._scanner.pending:
            end = end.but("the wave that it follows never arrived", "and")
        return end

    def run(self, limits: Limits, interrupt: Interrupt) -> _End:
        """Drains until something ends the recording; returns the reason."""
        self._heard = time.monotonic()
        while True:
            self._step()
            if interrupt.hit:
                return _End(interrupt.why)
            if not self._goes_on():
                self._reset = True
                return _End("the board was reset or switched off", proper=False)
            if limits.trigger and self.ledger.census is not None and self._found(self.ledger.census.flags):
                return _End("the trigger was found")
            over = self._over(limits)
            if over is not None:
                return _End(over).but("the trigger was not found", "and") if limits.trigger else _End(over)
            if self._free < _LEAST_FREE + 2 * self._rate:
                return _End(f"the disk is almost full: {self._free >> 20} MiB are left", proper=False)
            if self._virtual and not self.device.link.away and self._silent():
                return _End("the time of the virtual board has stopped", proper=False)

    def _over(self, limits: Limits) -> str | None:
        """Which limit has been reached, in words."""
        if limits.seconds is not None:
            if self._passed(limits.seconds):
                return "stopped at the time limit"
        elif self.device.link.ended:
            return "the stimulus ended"
        if limits.events is not None and self.ledger.events >= limits.events:
            return "stopped at the given number of items"
        return None

    def _passed(self, seconds: float) -> bool:
        """Whether the board's time has come. The host's time is believed only if the board does not answer, or its time
        stands still."""
        late = self.board_s >= seconds
        if not late or self._virtual:
            return late
        before, stands = self._answered_ns, False
        if time.monotonic() - self._answered >= _ASK_S:
            self._ask()
            stands = self._answered_ns == before
        return stands or self._answered_ns >= 1e9 * seconds

    def _found(self, flags: CensusFlag) -> bool:
        if CensusFlag.ENDED in flags:
            return True
        return self._start_only and CensusFlag.TRIGGERED in flags

    def _goes_on(self) -> bool:
        """Whether the board still captures this run: checked after an outage, and when its time has restarted."""
        outages = len(self.device.link.outages)
        if outages == self._outages and not self._reset:
            return True
        try:
            same = self.device.same_run()
        except LinkError:    # gone once more: to be checked when it is back
            return True
        self._outages, self._reset = outages, False
        return same

    def settle(self, stopped_ps: int) -> str:
        """Drains the rest after a stop at that time. Returns an empty text if the board confirmed the end, otherwise
        what the board did.

        A stopped board is given up when it sends nothing for a while. A virtual board that was asked to stall is silent
        for long, but its time advances. A board is also given up when it has sent nothing but heartbeats for longer
        than anything can be held back. Heartbeats from before the stop, which may still be in transit, do not count.
        Whatever it sends, noise or blocks, it is given up when it has sent more, or for longer, than a board can.
        """
        if not self._silent():      # else it has been waited for already
            self._heard = time.monotonic()
        self._heartbeats = self._foreign = 0
        numerator, denominator = self.device.scale.ratio
        window_ps = self.device.scale.window_clocks * numerator / denominator
        news_ps = float(stopped_ps)
        times = _VIRTUAL_TIMES if self._virtual else self.device.link.slowness
        patience = _Patience(self.device.geometry, times, self._scanned)
        while not self.ledger.stopped:
            self._step()
            if self._silent() or self._foreign > _HEARTBEATS:
                return _NO_WORD
            if excess := patience.ended(self._scanned, self._own):
                return f"{_NO_WORD}: {excess}"
            heard_ps = self.ledger.last_time * window_ps
            if not self._heartbeats:
                news_ps = max(news_ps, heard_ps)
            elif self._heartbeats >= _HEARTBEATS and heard_ps > news_ps + self._patience_ps:
                return _NO_WORD
        return ""

    @property
    def _scanned(self) -> int:
        """Bytes that have arrived."""
        return self._scanner.offset + self._scanner.pending

    def _silent(self) -> bool:
        """Nothing has arrived for long, and a virtual board's time has not advanced. The first bytes may take longer,
        by the slowness of the link: a board that follows another one has no time before that one's wave."""
        return time.monotonic() - self._heard > _SILENCE_S * (1 if self._scanned else self.device.link.slowness)

    def _step(self) -> int:
        data = self.drain.poll()
        if data:
            self._take(data)
            self.writer.add_groups(self.drain.take_groups())
        now = time.monotonic()
        board_ps = self._heard_ps if self.device.link.board_ps is None else self.device.link.board_ps
        if data or board_ps != self._heard_ps:
            self._heard, self._heard_ps = now, board_ps
        if now - self._synced > _SYNC_S:
            self._tick(now)
            self._heard += time.monotonic() - now   # a slow disk is not silence of the board
        if self._progress is not None:
            self._progress(Moment(self.board_s, self.ledger, self._scanner.offset, self._free))
        return len(data)

    def _tick(self, now: float) -> None:
        """Once a second: sync to the disk, check the free space, ask the board for its time."""
        self._keep.sync(self.ledger)
        with storage(self.writer.directory):
            self._free = shutil.disk_usage(self.writer.directory).free
            self._rate = (self._scanner.offset - self._counted) / (now - self._synced)
        self._synced, self._counted = now, self._scanner.offset
        with storage(self.writer.directory):
            self._save_drift()
        if not self.ledger.stopped:
            self._ask()
        self._save_clock()

    def _save_clock(self) -> None:
        with storage(self.writer.directory):
            self._save_drift()
            host, scale, marks = self._tie.estimate(), self.device.scale, self.ledger.pins.marks[MarkSource.PPS]
            save_clock(self.writer.directory, pulse_clock(
                [mark.time_ps(scale) for mark in marks], host, scale.clocks_ps(1),
                self.ledger.last_time * scale.window_ps) or host)

    def _save_drift(self) -> None:
        """Marks that show the drift, as far as they have arrived."""
        if self._drift is not None and self.ledger.pins.sync is not None:
            marks, self.ledger.pins.sync = self.ledger.pins.sync, []
            self._drift.add(marks)

    def _ask(self) -> None:
        """Asks the board for its time. If it is unplugged, it is asked when it is back."""
        with suppress(LinkError):
            answer = ask(self.device, self._offset_ns)
            if answer is None:
                return
            # Time that has restarted belongs to another run: the board was reset, and that need not have cut the link.
            self._reset |= answer.board_ns < self._answered_ns
            self._answered_ns, self._answered = answer.board_ns, time.monotonic()
            self._tie.add(answer)

    def _take(self, data: bytes) -> None:
        """Accounts for the data, and keeps it; except data after the last block of the run."""
        before = self._scanner.offset + self._scanner.pending
        items = self._scanner.feed(data)
        end = len(data)
        for number, item in enumerate(items):
            if not isinstance(item, Block):
                continue
            if item.head.epoch != self.device.epoch:
                self._foreign += 1
                continue
            self._foreign = 0
            self._own += 1
            if item.head.type is not BlockType.CENSUS:
                self._heartbeats = 0
                continue
            self._heartbeats += 1
            if CensusFlag.STOP in read_census(item).flags:
                end = max(item.offset + item.size - before, 0)
                items = items[:number + 1]
                break
        self._keep.add(data[:end], self._scanner.pending, self.ledger.event_rows(items), self.ledger)

    def close(self, end: _End) -> None:
        """Closes the accounting and writes the final data; ``end`` then equals the one in ``recording.json``."""
        try:
            self._finish()
        except StorageError as error:
            # If that was the reason for the end, it is reported already.
            end = replace(end.but(str(error)) if end.all_written else end, all_written=False)
        finally:
            self.end = self._write_end(end)

    def _write_end(self, end: _End) -> _End:
        outages = [outage._asdict() for outage in self.device.link.outages]
        try:
            said = self.writer.close(**asdict(end), outages=outages)
        except StorageError as error:
            return end.but(str(error)) if end.all_written else end
        return replace(end, how=said["how"], proper=said["proper"])

    def _finish(self) -> None:
        # After the last block of the run, the rest arrived after it.
        rest = self._scanner.finish() if not self.ledger.stopped else []
        self._keep.close(self.ledger.rows_to_end(rest), self.ledger)
        self._save_clock()
