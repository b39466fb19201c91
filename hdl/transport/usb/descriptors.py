"""A board's USB descriptors, as bytes: USB 2.0 chapter 9, and Microsoft OS 2.0 descriptors.

Windows reads the latter and loads its WinUSB driver, so that no system needs a driver to be installed.
"""

import enum
import struct
import uuid

from ...layout import USB_MANUFACTURER, USB_NAME, USB_PRODUCT, USB_STREAM, USB_VENDOR, UsbRequest

__all__ = [
    "BULK_FULL", "BULK_HIGH", "CONTROL_PACKET", "MICROSOFT_INDEX", "Type", "descriptors", "microsoft_set",
]

#: Bytes of the largest packet: of endpoint 0, and of the stream at either speed (USB 2.0, 5.5.3 and 5.8.3).
CONTROL_PACKET = 64
BULK_FULL = 64
BULK_HIGH = 512
#: ``wIndex`` of the request for the Microsoft OS 2.0 descriptor set.
MICROSOFT_INDEX = 7

_USB_VERSION = 0x0201         # the lowest version that lets a host ask for a BOS
_DEVICE_VERSION = 0x0100
_ENGLISH = 0x0409
_MILLIAMPERES = 500
_VENDOR_CLASS = 0xff
_WINDOWS_8_1 = 0x06030000
_MICROSOFT_PLATFORM = uuid.UUID("d8dd60df-4589-4cc7-9cd2-659d9e648a9f")
#: GUID by which Windows programs find the interface.
_INTERFACE = "{3c2f1f0a-6a1c-4f0e-9d7b-1d5b6c1e8a54}"


class Type(enum.IntEnum):
    """Descriptor types (USB 2.0, table 9-5; USB 3.2, table 9-6)."""

    DEVICE = 1
    CONFIGURATION = 2
    STRING = 3
    INTERFACE = 4
    ENDPOINT = 5
    QUALIFIER = 6
    OTHER_SPEED = 7
    BOS = 15
    CAPABILITY = 16


def _descriptor(kind: int, body: bytes) -> bytes:
    return bytes((len(body) + 2, kind)) + body


def _device() -> bytes:
    return _descriptor(Type.DEVICE, struct.pack(
        "<HBBBBHHHBBBB", _USB_VERSION, 0, 0, 0, CONTROL_PACKET, USB_VENDOR, USB_PRODUCT, _DEVICE_VERSION, 1, 2, 3, 1))


def _qualifier() -> bytes:
    return _descriptor(Type.QUALIFIER, struct.pack("<HBBBBBB", _USB_VERSION, 0, 0, 0, CONTROL_PACKET, 1, 0))


def _configuration(packet: int, kind: int = Type.CONFIGURATION) -> bytes:
    interface = _descriptor(Type.INTERFACE, bytes((0, 0, 1, _VENDOR_CLASS, 0, 0, 0)))
    endpoint = _descriptor(Type.ENDPOINT, struct.pack("<BBHB", USB_STREAM, 2, packet, 0))
    length = 9 + len(interface) + len(endpoint)
    head = _descriptor(kind, struct.pack("<HBBBBB", length, 1, 1, 0, 0x80, _MILLIAMPERES // 2))
    return head + interface + endpoint


def _string(text: str) -> bytes:
    return _descriptor(Type.STRING, text.encode("utf-16-le"))


def microsoft_set() -> bytes:
    """The Microsoft OS 2.0 descriptor set: WinUSB, and the interface's GUID."""
    compatible = struct.pack("<HH8s8s", 20, 3, b"WINUSB", b"")
    name = "DeviceInterfaceGUIDs\0".encode("utf-16-le")
    value = f"{_INTERFACE}\0\0".encode("utf-16-le")
    registry = struct.pack("<HHHH", 10 + len(name) + len(value), 4, 7, len(name)) + name
    registry += struct.pack("<H", len(value)) + value
    features = compatible + registry
    return struct.pack("<HHIH", 10, 0, _WINDOWS_8_1, 10 + len(features)) + features


def _bos() -> bytes:
    extension = _descriptor(Type.CAPABILITY, struct.pack("<BI", 2, 0))
    platform = _descriptor(Type.CAPABILITY, struct.pack(
        "<BB16sIHBB", 5, 0, _MICROSOFT_PLATFORM.bytes_le, _WINDOWS_8_1, len(microsoft_set()), UsbRequest.MICROSOFT, 0))
    capabilities = extension + platform
    return _descriptor(Type.BOS, struct.pack("<HB", 5 + len(capabilities), 2)) + capabilities


def descriptors(serial: str, high: bool, both: bool = True) -> dict[tuple[int, int], bytes]:
    """Answers to GET_DESCRIPTOR, by type and index.

    Parameters
    ----------
    serial : serial number of the board; letters and digits, at most 126.
    high : the answers at high speed; else those at full speed.
    both : the board supports both speeds; otherwise it has no QUALIFIER and no OTHER_SPEED (USB 2.0, 9.6.2).

    Raises
    ------
    ValueError
        for an invalid serial number.
    """
    if not (serial.isascii() and serial.isalnum() and len(serial) <= 126):
        raise ValueError(f"a serial number is letters and digits, at most 126, not {serial!r}")
    packet, other = (BULK_HIGH, BULK_FULL) if high else (BULK_FULL, BULK_HIGH)
    answers = {
        (Type.DEVICE, 0): _device(),
        (Type.CONFIGURATION, 0): _configuration(packet),
        (Type.STRING, 0): _descriptor(Type.STRING, struct.pack("<H", _ENGLISH)),
        (Type.STRING, 1): _string(USB_MANUFACTURER),
        (Type.STRING, 2): _string(USB_NAME),
        (Type.STRING, 3): _string(serial),
        (Type.BOS, 0): _bos(),
    }
    if both:
        answers[Type.QUALIFIER, 0] = _qualifier()
        answers[Type.OTHER_SPEED, 0] = _configuration(other, Type.OTHER_SPEED)
    return answers
