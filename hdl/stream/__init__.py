"""Builds whole blocks, and buffers them for the link.

Flow: block_source, blocker, crc32, store, external_fifo, sdram_part, sdram_controller, deep_buffer, beats_to_16, buffer
"""
