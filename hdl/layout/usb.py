"""Identity and requests of the USB link."""

import enum

__all__ = [
    "USB_BURST_BYTES", "USB_MANUFACTURER", "USB_NAME", "USB_PRODUCT", "USB_STREAM", "USB_VENDOR", "UsbRequest",
]

#: pid.codes' identity for tests. Others use it too: a board is identified by manufacturer and name as well.
USB_VENDOR = 0x1209
USB_PRODUCT = 0x0001
USB_MANUFACTURER = "HYPERMON"
USB_NAME = "HYPERMON event capture board"
#: Endpoint address of the stream, bulk IN.
USB_STREAM = 0x81
#: The longest READ: the operating systems' limit for one control transfer.
USB_BURST_BYTES = 4096


class UsbRequest(enum.IntEnum):
    """Vendor requests to the device. ``wIndex`` is the byte address of a register."""

    #: IN: ``wLength`` bytes, a multiple of 4 up to USB_BURST_BYTES: consecutive registers.
    READ = 1
    #: OUT: four bytes, one register, written when the host asks for the status.
    WRITE = 2
    #: IN: the Microsoft OS 2.0 descriptor set, at ``wIndex`` 7.
    MICROSOFT = 3
