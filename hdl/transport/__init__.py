"""Converts the beats of the stream to the signals of a cable.

Flow: beats_to_bytes, async_fifo, crossing, beat_crossing, uart, usb, pcie
"""
