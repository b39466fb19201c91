"""How large the buffers of an extended board are on each ECP5, in block RAMs of 18 kbit (DP16KD)."""

from hypermon.hdl.layout import Geometry, Sink

__all__ = ["BLOCK_RAMS", "SIZES"]

#: Block RAMs of the device.
BLOCK_RAMS = {"25F": 56, "85F": 208}

#: The extended board of each: what its own memories leave, less some for the link, is store. The
#: frame FIFO is small, in distributed memory: the store waits for the link behind either sink. The
#: extended sink's own beats stand in memories that are 1024 deep anyway.
SIZES = {
    "25F": Geometry(frame_depth=16, sinks=tuple(Sink), compact_depth=1024, store_depth=3072),
    "85F": Geometry(frame_depth=16, sinks=tuple(Sink), compact_depth=1024, store_depth=16384),
}
