"""Interface between the sources of blocks and the blocker that wraps them."""

from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES, BLOCK_BYTES_MAX

__all__ = ["BEAT_BITS", "block_source"]

BEAT_BITS = 8 * BEAT_BYTES


def block_source(beat_bytes: int = BEAT_BYTES) -> wiring.Signature:
    """Signature of a source of blocks, as seen from the source, with beats of the given number of bytes.

    request : a block is requested; held until ``grant`` (or a reset).
    length : bytes of its payload, a multiple of 8; read with ``grant``.
    time : the header's time; read with ``grant``.
    grant : high for one clock: the block has been begun; the source owes ``length`` bytes of beats.
    beats : the payload, padded with zeros to 16 bytes. ``ready`` only in a block of this source,
        and for as many beats as it owes. After a reset nothing is owed.
    """
    return wiring.Signature({
        "request": Out(1), "length": Out(range(BLOCK_BYTES_MAX)), "time": Out(64), "grant": In(1),
        "beats": Out(stream.Signature(8 * beat_bytes)),
    })
