"""A verilated board for other programs: as a USB device or at a serial port, with line faults.

Flow: usb1, usbredir, line_faults
"""
