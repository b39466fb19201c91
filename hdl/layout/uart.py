"""Marks and packets of the UART link."""

import enum

from .record import Field, Record

__all__ = [
    "UART_ESCAPE", "UART_REPLY", "UART_REQUEST", "UART_WORDS_MAX", "UartMark", "UartOp",
]

#: The escape byte: the next one gives its meaning. 0xdb is rare in blocks, and also SLIP's (RFC 1055).
UART_ESCAPE = 0xdb
#: Maximum number of words that a request can read.
UART_WORDS_MAX = 256


class UartMark(enum.IntEnum):
    """Meaning of an escape byte, by the byte after it. If any other byte follows, one of the two is damaged, and both
    are dropped; but if an escape byte follows, only the first is dropped, and the second counts."""

    #: The byte 0xdb itself.
    LITERAL = 0
    #: A packet begins here: a request from the host, a reply from the board.
    PACKET = 1


class UartOp(enum.IntEnum):
    """Operation of a request."""

    #: A host starts: the board forgets all requests before this one.
    HELLO = 0
    READ = 1
    WRITE = 2


UART_REQUEST = Record("UART request", "Host to board, after a PACKET mark.", (
    Field("sequence", 8, "differs from that of the previous request. If it is equal, the request is not executed "
                         "again, and the previous reply is repeated"),
    Field("op", 8, "0 HELLO, 1 READ, 2 WRITE"),
    Field("address", 16, "byte address of a register"),
    Field("value", 32, f"READ: number of consecutive words, 1 to {UART_WORDS_MAX}; WRITE: the value; HELLO: 0"),
    Field("crc", 32, "CRC-32 (IEEE 802.3, as in zlib) of the fields before it; a request with a wrong CRC is ignored"),
))

UART_REPLY = Record("UART reply", "Board to host, after a PACKET mark; words follow, then a CRC-32.", (
    Field("sequence", 8, "that of the request"),
    Field("status", 8, "0 done, 1 request not understood"),
    Field("words", 16, "number of 32-bit words after this header: those that a READ requested, otherwise 0; a CRC-32 "
                       "of header and words follows them"),
))
