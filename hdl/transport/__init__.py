"""From beats to a cable.

Flow: narrow, async_fifo, crossing, uart, usb
"""
