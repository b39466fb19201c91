"""Rates of a board, from its data: how fast a node may write, and how much its links carry to a host."""

from math import floor, log10

from hypermon.hdl.layout import (
    BLOCK_HEADER,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_NODE,
    CENSUS_SHARE,
    CENSUS_TIMES,
    Geometry,
    Sink,
    frame_bytes,
)

from .board import Board
from .links import BoardLink

__all__ = ["FRAMES", "carried", "frame_cost", "frames_per_block", "level_ns", "nibble_cost", "reaches", "strobes"]

_BLOCK = BLOCK_HEADER.bytes + BLOCK_TRAILER.bytes
#: Frames that start a block, or a quarter of the frame FIFO (docs/frame-format.md).
FRAMES = 64
#: Set-up and hold of an input (docs/nodes.md).
_APERTURE_NS = 1
#: Bytes per nibble of the extended sink at a mean gap of 100 ticks, with blocks (docs/frame-format.md); on boards of
#: more than 16 nodes the node is a group of four bits longer.
_NIBBLE, _GROUP = 2.3, 0.5


def level_ns(clock_hz: int) -> int:
    """Nanoseconds that each level of a strobe must last: one clock and the aperture."""
    return -(-10**9 // clock_hz) + _APERTURE_NS


def strobes(clock_hz: int) -> float:
    """Nibbles per second that one node may write."""
    return 1e9 / (2 * level_ns(clock_hz))


def frame_cost(geometry: Geometry) -> float:
    """Bytes that a classic frame uses of a busy link, with its share of its block."""
    return frame_bytes(geometry.nodes) + _BLOCK / frames_per_block(geometry)


def frames_per_block(geometry: Geometry) -> int:
    """Classic frames in a block on a busy link.

    A store accepts blocks as soon as they are begun; without one they grow while the link is busy.
    """
    stored = geometry.store_depth or geometry.external_depth
    return min(FRAMES, geometry.frame_depth // (4 if stored else 1))


def nibble_cost(geometry: Geometry) -> float:
    """Bytes that a nibble of the extended sink uses of a busy link."""
    return _NIBBLE + (_GROUP if geometry.nodes > 16 else 0)


def carried(link: BoardLink, nodes: int) -> float:
    """Bytes per second that the censuses leave on a busy link."""
    census = _BLOCK + CENSUS_BOARD.bytes + nodes * CENSUS_NODE.bytes
    most, share = link.censuses_per_second, link.bytes_per_second / (CENSUS_SHARE + 1) / census
    soonest, latest, _ = CENSUS_TIMES
    return link.bytes_per_second - census * min(max(share, most * soonest / latest), most)


def reaches(board: Board) -> str:
    """All of it as text, in one sentence, and one per link."""
    said = []
    for link in board.links:
        geometry = board.geometry(link=link.kind)
        left = carried(link, geometry.nodes)
        classic = (f"{_rate(left / frame_cost(geometry))} classic frames/s (in blocks of "
                   f"{frames_per_block(geometry)} frames)")
        extended = f", or {_rate(left / nibble_cost(geometry))} nibbles/s from the extended sink"
        said.append(f" Over {link.text}, the host receives about {_rate(link.bytes_per_second)}B/s: {classic}"
                    f"{extended * (Sink.EXTENDED in geometry.sinks)}.")
    return (f"a node writes up to {_rate(strobes(board.capture_hz))} nibbles/s, until the buffers are full."
            f"{''.join(said)}")


def _rate(number: float) -> str:
    """Two digits and k or M, as in 17 k; further digits are cut off."""
    scale, letter = (1e6, "M") if number >= 1e6 else (1e3, "k")
    unit = scale * 10 ** (floor(log10(number / scale)) - 1)
    return f"{floor(number / unit + 1e-9) * unit / scale:g} {letter}"
