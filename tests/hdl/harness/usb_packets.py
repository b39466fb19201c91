"""USB packets as bytes (USB 2.0, chapter 8)."""

import struct

__all__ = ["ACK", "DATA0", "DATA1", "IN", "NAK", "OUT", "SETUP", "STALL", "data", "pid", "setup", "token"]

OUT, ACK, DATA0, IN, NAK, DATA1, SETUP, STALL = 0x1, 0x2, 0x3, 0x9, 0xa, 0xb, 0xd, 0xe


def _crc(bits: int, value: int, width: int, polynomial: int) -> int:
    """8.3.5: least significant bit first."""
    sum_ = (1 << width) - 1
    for bit in range(bits):
        feed = (value >> bit ^ sum_) & 1
        sum_ = sum_ >> 1 ^ (polynomial if feed else 0)
    return sum_ ^ (1 << width) - 1


def pid(kind: int) -> bytes:
    """A handshake, or what a packet begins with."""
    return bytes([kind | (kind ^ 15) << 4])


def token(kind: int, endpoint: int = 0, address: int = 0) -> bytes:
    value = address | endpoint << 7
    return pid(kind) + struct.pack("<H", value | _crc(11, value, 5, 0x14) << 11)


def data(kind: int, payload: bytes) -> bytes:
    check = _crc(8 * len(payload), int.from_bytes(payload, "little"), 16, 0xa001)
    return pid(kind) + payload + struct.pack("<H", check)


def setup(*request: int) -> bytes:
    """The data packet of a SETUP: bmRequestType, bRequest, wValue, wIndex, wLength."""
    return data(DATA0, struct.pack("<BBHHH", *request))
