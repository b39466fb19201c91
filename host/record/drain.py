"""The two ways in which data leave a board: over the link's stream, or through the registers as in 1990."""

from typing import Protocol

import numpy as np
from hypermon.hdl.layout import BURST_BASE, BURST_END, BlockFlag, BlockType, Sink, frame_bytes
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import PAYLOAD_MAX, build_block
from hypermon.host.device.device import Device
from hypermon.host.errors import HypermonError, LinkError

__all__ = ["Drain", "RegisterDrain", "StreamDrain", "open_drain", "refuse_drain"]

_LIMIT = 1 << 20
#: Maximum of register RUN, which has 16 bits.
_RUN_MAX = (1 << 16) - 1
#: How often in a row the number of buffered frames must be read as 0 before the stream may wait for data.
_LOOKS = 32
#: Number of groups in a row before the stream is checked.
_BUSY = 64


class Drain(Protocol):
    """Reads blocks from a board.

    Members
    -------
    stream : whether the board is to send its frames over the stream.
    """

    stream: bool

    def poll(self) -> bytes:
        """The data since the last call, in stream order; blocks may be cut anywhere."""

    def take_groups(self) -> list[tuple[int, int, int]]:
        """Groups of frames that were read since the last call: number of frames, times of the first and of the last."""


class StreamDrain:
    """The link's stream, unchanged."""

    stream = True

    def __init__(self, device: Device):
        self._link = device.link

    def poll(self) -> bytes:
        return self._link.stream(_LIMIT)

    def take_groups(self) -> list[tuple[int, int, int]]:
        return []


class RegisterDrain:
    """Drains as footnote 5 of the paper describes it: reads the number of buffered frames, then that number of frames.
    Notes the size of the group and the time between its first and its last frame.

    A group becomes one FRAMES block marked HOST, or more if it does not fit one. LOSS and CENSUS blocks still arrive
    over the stream; a block made by the host is never inserted into the middle of one of those.
    """

    stream = False

    def __init__(self, device: Device):
        self._device, self._link = device, device.link
        self._size = frame_bytes(device.identity.nodes)
        self._sequence = 0
        self._groups: list[tuple[int, int, int]] = []
        self._scanner = BlockScanner()
        self._rest = b""  # of the stream: a block that has not arrived whole yet
        self._busy = 0  # groups since the stream was checked
        self._torn = False  # a group was cut off, maybe in the middle of a frame

    def poll(self) -> bytes:
        try:
            for _ in range(_LOOKS):
                if self._busy < _BUSY and (group := self._read_group()):
                    self._busy += 1
                    return group
        except LinkError:
            # Frames popped meanwhile are gone; the last census tells how many.
            if not self._link.away:
                raise
            self._torn = True
        # Silence, or enough groups: now the stream is read, and may wait.
        self._busy = 0
        data = self._link.stream(_LIMIT)
        self._scanner.feed(data)
        self._rest += data
        whole = len(self._rest) - self._scanner.pending
        settled, self._rest = self._rest[:whole], self._rest[whole:]
        return settled

    def _read_group(self) -> bytes:
        if self._torn:
            if read := self._device.read("FRAME_POS") & 0xff:
                self._link.read_burst(BURST_BASE, self._size // 4 - read)
            self._torn = False
        frames = self._device.read("RUN")
        if frames == 0:
            return b""
        if frames > _RUN_MAX:
            raise LinkError(f"{self._link.uri}: {frames:,} frames are reported waiting; the limit is {_RUN_MAX:,}")
        high = self._device.read("FRAME_HIGH")
        data = self._read_frames(frames)
        stamps = np.frombuffer(data, "<u4").reshape(frames, -1)[:, -1]
        scale = self._device.scale
        if high << 32 | int(stamps.max()) > scale.window_max:
            raise LinkError(f"{self._link.uri} reports an impossible time: FRAME_HIGH is {high:#x}")
        first, last = (scale.start_ps(high << 32 | int(stamp)) for stamp in (stamps[0], stamps[-1]))
        self._groups.append((frames, first, last))
        blocks = []
        step = PAYLOAD_MAX // self._size * self._size
        for at in range(0, len(data), step):
            blocks.append(build_block(
                BlockType.FRAMES, data[at:at + step], geometry=self._device.geometry, window=scale.window,
                epoch=self._device.epoch, sequence=self._sequence, latency=scale.latency,
                time=high << 32 | int(stamps[at // self._size]), flags=BlockFlag.HOST))
            self._sequence += 1
        return b"".join(blocks)

    def _read_frames(self, frames: int) -> bytes:
        words = frames * self._size // 4
        room = (BURST_END - BURST_BASE) // 4
        return b"".join(self._link.read_burst(BURST_BASE, min(room, words - at)) for at in range(0, words, room))

    def take_groups(self) -> list[tuple[int, int, int]]:
        groups, self._groups = self._groups, []
        return groups


def refuse_drain(name: str, sink: Sink) -> None:
    """Raises HypermonError if events of this sink cannot leave a board that way."""
    if name == "registers" and sink is not Sink.CLASSIC:
        raise HypermonError(f"--drain registers: the {sink.name.lower()} configuration has no frames that could be "
                            "read through registers; use --drain stream")


def open_drain(name: str, device: Device) -> Drain:
    """The drain called ``stream`` or ``registers``."""
    return StreamDrain(device) if name == "stream" else RegisterDrain(device)
