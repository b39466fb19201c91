"""Carries the stream from beats to a cable.

Flow: beats_to_bytes, async_fifo, crossing, beat_crossing, uart, usb, pcie
"""
