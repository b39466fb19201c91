"""Packets on the serial line: building requests, separating replies from the stream."""

import zlib
from dataclasses import dataclass

from hypermon.hdl.layout import UART_ESCAPE, UART_REPLY, UART_REQUEST, UART_WORDS_MAX, UartMark, UartOp

__all__ = ["Reply", "Separator", "build_request"]

_PACKET = bytes((UART_ESCAPE, UartMark.PACKET))
_ESCAPE = bytes((UART_ESCAPE,))
_LITERAL = bytes((UART_ESCAPE, UartMark.LITERAL))
_CRC_BYTES = 4


def build_request(sequence: int, op: UartOp, address: int = 0, value: int = 0) -> bytes:
    """The bytes of a request, escaped for the line."""
    fields = {"sequence": sequence, "op": op, "address": address, "value": value}
    body = UART_REQUEST.pack(**fields)[:-_CRC_BYTES]
    return _PACKET + (body + zlib.crc32(body).to_bytes(_CRC_BYTES, "little")).replace(_ESCAPE, _LITERAL)


@dataclass(frozen=True)
class Reply:
    """A reply that arrived whole: its request's number, whether the request was understood, and the data read."""

    sequence: int
    understood: bool
    data: bytes


class Separator:
    """Receives the line's bytes in pieces of any size and separates replies from the stream between them.

    Whatever was lost or damaged, it never returns a reply that the board has not sent (unless a CRC-32 fails). The
    stream recovers soon: its blocks have their own checks.
    """

    def __init__(self) -> None:
        self._escaped = False
        self._packet: bytearray | None = None
        self._stream = bytearray()
        self._replies: list[Reply] = []

    def feed(self, data: bytes) -> tuple[bytes, list[Reply]]:
        """Bytes of the stream, and replies."""
        at = 0
        while at < len(data):
            if self._escaped:
                self._mark(data[at])
                at += 1
                continue
            found = data.find(_ESCAPE, at)
            end = len(data) if found < 0 else found
            self._take(data[at:end])
            self._escaped = found >= 0
            at = end + 1
        stream, self._stream = bytes(self._stream), bytearray()
        replies, self._replies = self._replies, []
        return stream, replies

    def _mark(self, byte: int) -> None:
        self._escaped = byte == UART_ESCAPE
        if byte == UartMark.LITERAL:
            self._take(_ESCAPE)
        elif byte == UartMark.PACKET:
            self._packet = bytearray()

    def _take(self, data: bytes) -> None:
        while self._packet is not None and data:
            packet = self._packet
            missing = self._size(packet) - len(packet)
            packet += data[:missing]
            data = data[missing:]
            if len(packet) == self._size(packet):
                self._packet = None
                self._finish(bytes(packet))
        self._stream += data

    @staticmethod
    def _size(packet: bytearray) -> int:
        """Bytes of the packet; before its head is complete, those of the head."""
        if len(packet) < UART_REPLY.bytes:
            return UART_REPLY.bytes
        words = UART_REPLY.unpack(packet)["words"]
        return UART_REPLY.bytes + (4 * words + _CRC_BYTES if words <= UART_WORDS_MAX else 0)

    def _finish(self, packet: bytes) -> None:
        body, crc = packet[:-_CRC_BYTES], packet[-_CRC_BYTES:]
        if len(body) >= UART_REPLY.bytes and zlib.crc32(body) == int.from_bytes(crc, "little"):
            head = UART_REPLY.unpack(body)
            self._replies.append(Reply(head["sequence"], head["status"] == 0, body[UART_REPLY.bytes:]))
