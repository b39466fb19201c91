"""Whole blocks, and the memories where they wait for the link.

Flow: block_source, blocker, crc, store, external, sdram_part, sdram, deep_buffer, widen
"""
