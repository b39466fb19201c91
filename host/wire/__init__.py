"""The bytes of the wire: blocks, frames, compact items, times.

Flow: times, modes, native, sequence, blocks, blocks_native, frames, compact, compact_rows, compact_lanes,
    compact_native
"""
