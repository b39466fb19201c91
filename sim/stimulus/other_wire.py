"""Finds out why a board rejects what a UART or SWO sends: from the levels of a stimulus, without a board."""

from collections import defaultdict

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import PORT_BITS, Front
from hypermon.sim.stimulus.stimulus import Stimulus

__all__ = ["other_wire"]

#: Changes of a line that are looked at, and of these the share that a glitch may have.
_CHANGES, _GLITCHES = 20_000, 0.02
#: A rate that differs by less is not the cause.
_NEAR = 1.06
#: The share of bytes that may be wrong, or in reserved streams; and of packets, on a line that carries packets. Of a
#: formatter's frames, read as packets, 3 to 8 % are wrong.
_WRONG, _NO_PACKETS = 0.05, 0.02
#: Bytes of a formatter's frame, and those of a stream that are needed to tell one.
_FRAME, _STREAM = 16, 64
#: The formatter's synchronization, and the one inside a frame.
_SYNC, _HALF_SYNC = b"\xff\xff\xff\x7f", b"\xff\x7f"
#: Bytes of text.
_TEXT = bytes((*range(0x20, 0x7f), *b"\t\r\n"))
#: Zero bytes that a synchronization packet of the ITM has at least.
_ZEROS = 5
#: Bytes after the header of a packet of the ITM that says itself where it ends, at most.
_MORE = 6
#: Streams of the formatter: filler, the first of those that are reserved, and the one before any is chosen.
_FILLER, _RESERVED, _UNKNOWN = 0, 0x70, -1

Times = npt.NDArray[np.int64]


def other_wire(stimulus: Stimulus, node: int, front: Front, bit_ps: float) -> str | None:
    """Says why the bytes of a node do not arrive.

    Parameters
    ----------
    front : UART or SWO.
    bit_ps : of the rate that was set.

    Returns
    -------
    a clause for people; None if nothing is found.
    """
    mine = np.flatnonzero(stimulus.node == node)[:_CHANGES]
    levels = stimulus.port[mine] >> PORT_BITS & 1
    changed = np.flatnonzero(np.diff(levels.astype(np.int8), prepend=stimulus.initial[node] >> PORT_BITS & 1))
    times, levels = stimulus.time_ps[mine][changed], levels[changed]
    if len(times) < 4:
        return None
    spans = np.diff(times)
    ends = stimulus.initial[node] >> PORT_BITS & 1, int(levels[-1])
    if not any(ends):
        return "the line is low when idle, so it is inverted"
    least = np.sort(spans)[int(_GLITCHES * len(spans)):]
    own = float(np.median(least[least < 1.5 * least[0]]))
    ratio = own / bit_ps
    data, wrong = _bytes(times, levels, own)
    if max(ratio, 1 / ratio) > _NEAR and wrong <= _WRONG * len(data):
        return f"bits are {ratio:.3g} times as long as the rate says, about {10**12 / own:.0f} baud"
    data, _ = _bytes(times, levels, bit_ps)
    if front is Front.UART or _packets(data):
        return None
    if sum(byte in _TEXT for byte in data) >= (1 - _WRONG) * len(data):
        return "the line carries text and no ITM packets, so the node has a UART (--front, --port: uart)"
    if _formatted(data):
        return ("the trace port's formatter seems to be on (16-byte frames of a TPIU); to switch it off, the node "
                "writes 0x100 to the register FFCR, 0xe0040304")
    return None


def _bytes(times: Times, levels: npt.NDArray[np.uint8], bit_ps: float) -> tuple[bytes, int]:
    """What a UART receives, and how many bytes have a stop bit that is low. Each bit is sampled in its middle."""
    data, wrong, end = bytearray(), 0, -1.0
    for begin in times[levels == 0].tolist():
        if begin < end:
            continue
        at = begin + bit_ps * np.arange(0.5, 10)
        bits = levels[np.searchsorted(times, at, "right") - 1]
        if bits[0]:
            continue
        end = float(at[9])
        if bits[9]:
            data.append(int(np.packbits(bits[1:9], bitorder="little")[0]))
        else:
            wrong += 1
    return bytes(data), wrong


def _packets(data: bytes) -> bool:
    """Whether bytes are ITM packets, as :class:`~hypermon.hdl.input.itm_items.ItmItems` lists them."""
    at = count = wrong = 0
    while at < len(data):
        head, count = data[at], count + 1
        at += 1
        if head & 3:
            at += (0, 1, 2, 4)[head & 3]
        elif head & 0xcf == 0xc0 or head in (0x94, 0xb4) or head & 0x88 == 0x88:
            end = at + _MORE
            while at < min(end, len(data)) and data[at - 1] & 0x80:
                at += 1
            wrong += at == end and data[at - 1] >> 7
        elif not head:
            zeros = len(data) - at - len(data[at:].lstrip(b"\0")) + 1
            at += zeros
            wrong += at <= len(data) and not (zeros >= _ZEROS and data[at - 1] == 0x80)
        else:
            wrong += head & 0x8f not in (0, 8, 12)
    return wrong <= _NO_PACKETS * count


def _formatted(data: bytes) -> bool:
    """Whether bytes are frames of a formatter, from any byte on, and one of their streams is ITM packets."""
    data = data.replace(_SYNC, b"").replace(_HALF_SYNC, b"")
    return any(len(stream) >= _STREAM and _packets(stream)
               for shift in range(_FRAME) for stream in _streams(data[shift:]))


def _streams(data: bytes) -> list[bytes]:
    """What the frames of a formatter carry for each stream (CoreSight Architecture, ARM IHI 0029, D4); none if bytes
    that are no frames choose streams that there are not."""
    streams: dict[int, bytearray] = defaultdict(bytearray)
    stream = _UNKNOWN
    for at in range(0, len(data) - _FRAME + 1, _FRAME):
        flags = data[at + _FRAME - 1]
        for pair in range(_FRAME // 2):
            first, flag = data[at + 2 * pair], flags >> pair & 1
            second = data[at + 2 * pair + 1:at + 2 * pair + 2] if pair < _FRAME // 2 - 1 else b""
            if not first & 1:
                streams[stream] += bytes([first | flag]) + second
            elif flag:
                streams[stream] += second
                stream = first >> 1
            else:
                stream = first >> 1
                streams[stream] += second
    none = sum(len(kept) for number, kept in streams.items() if number >= _RESERVED)
    return [] if none > _WRONG * len(data) else [bytes(kept) for number, kept in streams.items() if number != _FILLER]
