"""Buffer sizes of an extended board on each ECP5, in block RAMs of 18 kbit (DP16KD)."""

from hypermon.hdl.layout import Geometry

__all__ = ["BLOCK_RAMS", "SIZES"]

#: Block RAMs of the device.
BLOCK_RAMS = {"25F": 56, "85F": 208}

#: The extended board on each: the block RAMs that its own memories leave, minus some for the link, are store.
SIZES = {"25F": Geometry.extended(), "85F": Geometry.extended(store_depth=16384)}
