"""A board for another machine: ``hypermon relay`` here, ``tcp:HOST:PORT`` as its board there.

What crosses the wire is the seam of :mod:`.link`, request by request, one client at a time: raw blocks as the board
gave them, and registers. Nothing is kept here. While no client asks, the board's own buffers fill up and it counts what
it refuses, as behind any link; a client that comes again goes on with the same run.

    server   nonce of 32 bytes
    client   HMAC-SHA256 of it by the token
    server   greeting: an ANSWER with JSON: uri, slow, and whether the board is a virtual one
    client   REQUEST                op, address, value, limit or number of words
    server   ANSWER and its bytes   status, length, the link has ended, board time in ps of a virtual board
"""

import hmac
import json
import os
import socket
import struct
from enum import IntEnum
from typing import Any

from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import Link

__all__ = ["ANSWER", "NONCE_BYTES", "REQUEST", "Op", "Status", "listen", "proof", "receive",
           "serve_link"]

REQUEST = struct.Struct("<BxxxII")
ANSWER = struct.Struct("<BBxxIq")
NONCE_BYTES = 32
#: What a client may ask for at once.
_LIMIT = 1 << 20
#: Seconds that a client may take to prove itself; then somebody else has a chance.
_PROOF_S = 5.0


class Op(IntEnum):
    """What is asked; the member of :class:`.link.Link` with that name."""

    READ = 0
    WRITE = 1
    READ_BURST = 2
    STREAM = 3
    DISCARD = 4


class Status(IntEnum):
    """How it went: an error's text is the answer's bytes."""

    DONE = 0
    LINK_ERROR = 1
    ERROR = 2


def proof(token: str | None, nonce: bytes) -> bytes:
    """That one knows the token, without saying it."""
    return hmac.new((token or "").encode(), nonce, "sha256").digest()


def receive(connection: socket.socket, size: int) -> bytes:
    """So many bytes; raises ConnectionError if the other side has gone."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise ConnectionResetError("the other side has closed the connection")
        view = view[count:]
    return bytes(data)


def serve_link(link: Link, listener: socket.socket, token: str | None) -> None:
    """Serves clients, one after the other, until it is interrupted."""
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                if _admitted(connection, token):
                    _serve(link, connection)
            except (OSError, struct.error):
                continue  # gone; or nobody who speaks this


def _admitted(connection: socket.socket, token: str | None) -> bool:
    nonce = os.urandom(NONCE_BYTES)
    connection.settimeout(_PROOF_S)
    connection.sendall(nonce)
    said = receive(connection, len(proof(None, b"")))
    connection.settimeout(None)
    if hmac.compare_digest(said, proof(token, nonce)):
        return True
    connection.sendall(_answer(None, Status.ERROR, b"the token is missing or wrong: tcp:HOST:PORT?token=TEXT"))
    return False


def _serve(link: Link, connection: socket.socket) -> None:
    virtual = hasattr(link, "board_ps")
    greeting = {"uri": link.uri, "slow": link.slow, "virtual": virtual}
    connection.sendall(_answer(link, Status.DONE, json.dumps(greeting).encode()))
    while True:
        op, address, value = REQUEST.unpack(receive(connection, REQUEST.size))
        try:
            status, data = Status.DONE, _done(link, op, address, value)
        except LinkError as error:
            status, data = Status.LINK_ERROR, str(error).encode()
        except (HypermonError, ValueError) as error:
            status, data = Status.ERROR, str(error).encode()
        connection.sendall(_answer(link, status, data))


def _answer(link: Link | None, status: Status, data: bytes) -> bytes:
    ended = link is not None and link.ended
    return ANSWER.pack(status, ended, len(data), int(getattr(link, "board_ps", 0))) + data


def _done(link: Link, op: int, address: int, value: int) -> bytes:
    if op == Op.READ:
        return struct.pack("<I", link.read(address))
    if op == Op.STREAM:
        return link.stream(min(value, _LIMIT))
    if op == Op.READ_BURST:
        return link.read_burst(address, min(value, _LIMIT // 4))
    if op == Op.WRITE:
        link.write(address, value)
    elif op == Op.DISCARD:
        link.discard()
    else:
        raise ValueError(f"no request has number {op}")
    return b""


def listen(host: str, port: int) -> socket.socket:
    """A socket that waits for clients; raises HypermonError if the address cannot be had."""
    try:
        family: Any = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise HypermonError(f"--host {host} --port {port}: {error.strerror or error}") from None
