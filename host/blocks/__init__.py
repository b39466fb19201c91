"""The bytes of the wire: blocks, frames, compact items, times.

Flow: times, item_modes, native, counts, sequence, blocks, blocks_joined, block_scanner, frames,
    compact, compact_rows, compact_c, compact_plain, item_merge
"""
