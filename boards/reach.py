"""What a board reaches: how fast a node may write, and what its links bring to a host, from the board's data."""

from hypermon.hdl.layout import BLOCK_HEADER, BLOCK_TRAILER, CENSUS_BOARD, CENSUS_NODE, Geometry, Sink, frame_bytes

from .board import Board
from .links import Link

__all__ = ["carried", "frame_cost", "nibble_cost", "reaches", "strobes"]

_BLOCK = BLOCK_HEADER.bytes + BLOCK_TRAILER.bytes
#: Frames that start a block (docs/frame-format.md), and set-up and hold of an input (docs/nodes.md).
_FRAMES, _APERTURE_NS = 64, 1
#: Bytes of a nibble of the extended sink at a mean gap of 100 ticks, with blocks (docs/frame-format.md); on boards of
#: more than 16 nodes the node is a group of four bits longer.
_NIBBLE, _GROUP = 2.3, 0.5


def strobes(clock_hz: int) -> float:
    """Nibbles a second that one node may write: both levels of its strobe last a clock and the aperture."""
    return 1e9 / (2 * (1e9 / clock_hz + _APERTURE_NS))


def frame_cost(geometry: Geometry) -> float:
    """Bytes that a classic frame takes of a busy link, with its share of its block."""
    return frame_bytes(geometry.nodes) + _BLOCK / min(_FRAMES, geometry.frame_depth)


def nibble_cost(geometry: Geometry) -> float:
    """Bytes that a nibble of the extended sink takes of a busy link."""
    return _NIBBLE + (_GROUP if geometry.nodes > 16 else 0)


def carried(link: Link, nodes: int) -> float:
    """Bytes a second that a link has left beside the census."""
    return link.bytes_per_second - (_BLOCK + CENSUS_BOARD.bytes + nodes * CENSUS_NODE.bytes) * link.censuses_per_second


def reaches(board: Board) -> str:
    """All of it, for people, in two sentences."""
    geometry = board.geometry()
    said = []
    for link in board.links:
        left = carried(link, geometry.nodes)
        classic = f"{_rate(left / frame_cost(geometry))} classic frames/s"
        extended = f" or {_rate(left / nibble_cost(geometry))} nibbles/s of the extended sink"
        said.append(f"{_rate(link.bytes_per_second)}B/s by {link.text}, {classic}"
                    f"{extended * (Sink.EXTENDED in geometry.sinks)}")
    return (f"a node writes up to {_rate(strobes(board.capture_hz))} nibbles/s, until the buffers are full. "
            f"The host gets about {'; '.join(said)}.")


def _rate(number: float) -> str:
    """Two digits and k or M, as in 17 k."""
    scale, letter = (1e6, "M") if number >= 0.995e6 else (1e3, "k")
    return f"{float(f'{number / scale:.2g}'):g} {letter}"
