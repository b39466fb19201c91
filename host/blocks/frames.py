"""Converts event frames to items: time, node, nibble (section 3.2.1 of the paper, Figure 5)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import frame_bytes
from hypermon.host.blocks.times import TimeScale

__all__ = ["Events", "FrameRows"]

#: Frames processed at once; the intermediate arrays of this number fit a core's cache.
_CHUNK = 4096
#: Maximum number of rows whose bytes can be added, eight columns at a time, without overflow.
_ADD = 255


@dataclass(frozen=True)
class Events:
    """Items in columns: by time, ties by node. ``time_ps`` int64, ``node`` int16, ``nibble`` uint8."""

    time_ps: npt.NDArray[np.int64]
    node: npt.NDArray[np.int16]
    nibble: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.time_ps)


class FrameRows:
    """Frames as they are in a FRAMES payload, in columns.

    Parameters
    ----------
    payload : whole frames.
    nodes : of the board; determines the frame's form.
    high : bits 63..32 of the stamps, one for all frames or one each.

    Members
    -------
    words : the frames, one row each.
    vectors : strobe vectors, uint16 or uint32.
    stamps : 64-bit time stamps, int64.
    """

    def __init__(self, payload: bytes | memoryview, nodes: int, high: int | npt.NDArray[np.int64]):
        self.nodes = nodes
        self.row = 16 if nodes <= 16 else 32
        self.words = words = np.frombuffer(payload, "<u4").reshape(-1, frame_bytes(nodes) // 4)
        pairs = np.frombuffer(payload, "<u8").reshape(-1, frame_bytes(nodes) // 8)
        self.vectors = words[:, -2].astype("<u2" if self.row == 16 else "<u4")
        self.upper_bits = self.row == 16 and bool(words[:, -2].max(initial=0) >> 16)
        self.stamps = words[:, -1].astype(np.int64)
        self.stamps |= np.int64(high) << 32 if isinstance(high, int) else high << 32
        # The highest nodes come first, the lower half of a word pair last. In reverse order, byte k of a row is nodes
        # 2k and 2k + 1.
        self._packed = np.empty((len(words), self.row // 16), "<u8")
        for k in range(self.row // 16):
            pair = pairs[:, self.row // 16 - 1 - k]
            np.bitwise_or(pair << np.uint64(32), pair >> np.uint64(32), out=self._packed[:, k])

    def __len__(self) -> int:
        return len(self.stamps)

    def fault(self, after: int, stamp_max: int) -> str | None:
        """Why no board can have made these frames; None if one can.

        Parameters
        ----------
        after : the last stamp before these; -1 if there is none.
        stamp_max : the last stamp that is a valid time.
        """
        if len(self) == 0:
            return None
        if self.upper_bits or int(self.vectors.max()) >> self.nodes:
            return "strobes of nodes that the board does not have"
        if self.stamps[0] <= after or np.any(self.stamps[1:] <= self.stamps[:-1]):
            return "time stamps that do not rise"
        if self.stamps[-1] > stamp_max:
            return "a time beyond 2^63 ps"
        return None

    def without_filler(self, first: int) -> "FrameRows":
        """Only the frames that contain items, of a block that a reset has cut.

        Zeros may begin within a frame on a board with short beats. Such a frame has a strobe vector and no stamp: its
        stamp does not follow the one before. ``first`` : the header's time, which is the stamp of the first frame.
        """
        keep = self.vectors != 0
        some = np.flatnonzero(keep)
        if len(some):
            last, stamp = some[-1], self.stamps[some[-1]]
            keep[last] = stamp > self.stamps[some[-2]] if len(some) > 1 else stamp == first
        rows = object.__new__(FrameRows)
        rows.nodes, rows.row, rows.upper_bits = self.nodes, self.row, self.upper_bits
        rows.words, rows._packed = self.words[keep], self._packed[keep]
        rows.vectors, rows.stamps = self.vectors[keep], self.stamps[keep]
        return rows

    def sizes(self) -> npt.NDArray[np.uint8]:
        """Number of items in each frame."""
        sizes: npt.NDArray[np.uint8] = np.bitwise_count(self.vectors)
        return sizes

    def per_node(self) -> npt.NDArray[np.int64]:
        """Number of items of each node."""
        total = np.zeros(self.row, np.int64)
        # Eight columns in a word, one byte each; 255 rows can be added before a byte overflows.
        bits = np.unpackbits(self.vectors.view(np.uint8), bitorder="little").view("<u8")
        whole = len(self) // _ADD * (self.row // 8)
        for part in (bits[:whole * _ADD].reshape(_ADD, -1), bits[whole * _ADD:].reshape(-1, self.row // 8)):
            sums = part.sum(axis=0, dtype="<u8").view(np.uint8)
            total += sums.reshape(-1, self.row).sum(axis=0, dtype=np.int64)
        return total[:self.nodes]

    def events(self, scale: TimeScale) -> Events:
        """All items: nodes in ascending order within a frame."""
        count = int(self.sizes().sum(dtype=np.int64))
        out = Events(np.empty(count, np.int64), np.empty(count, np.int16), np.empty(count, np.uint8))
        time_ps = scale.starts_ps(self.stamps)
        if count == len(self) and count and int(self.sizes().max()) == 1:
            out.time_ps[:] = time_ps
            self._singles(out)
        else:
            self._spread(time_ps, out)
        return out

    def _singles(self, out: Events) -> None:
        """Nodes and nibbles of frames that have one item each, without searching or gathering."""
        node = np.bitwise_count(self.vectors - self.vectors.dtype.type(1))
        out.node[:] = node
        nibbles = self._packed[:, 0]
        for k in range(1, self.row // 16):
            nibbles = np.where(node >= 16 * k, self._packed[:, k], nibbles)
        np.bitwise_and(nibbles >> (node & 15).astype("<u8") * np.uint64(4), 15, out=out.nibble, casting="unsafe")

    def _spread(self, time_ps: npt.NDArray[np.int64], out: Events) -> None:
        """Times, nodes and nibbles of any frames."""
        shift, at = self.row.bit_length() - 1, 0
        for low in range(0, len(self), _CHUNK):
            part = slice(low, low + _CHUNK)
            bits = np.unpackbits(self.vectors[part].view(np.uint8), bitorder="little")
            which = np.flatnonzero(bits.view(np.bool_))
            # One byte of two nibbles becomes two bytes.
            spread = self._packed[part].view(np.uint8).ravel().astype("<u2")
            spread |= spread << 4
            spread &= 0x0f0f
            end = at + len(which)
            # Every index is in range; "clip" only spares take() a buffer.
            np.take(spread.view(np.uint8), which, out=out.nibble[at:end], mode="clip")
            np.bitwise_and(which, self.row - 1, out=out.node[at:end], casting="unsafe")
            which >>= shift
            np.take(time_ps[part], which, out=out.time_ps[at:end], mode="clip")
            at = end
