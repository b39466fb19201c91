"""Serves a board to another machine: ``hypermon relay`` here, ``tcp:HOST:PORT`` as its board there.

The protocol carries the interface of :mod:`.host.link`, request by request: raw blocks as the board sent them, and
registers. The relay stores nothing. While no client asks, the board's own buffers fill up and it counts what it
refuses, as on any link. A client that returns continues the same run.

    server   nonce of 32 bytes
    client   HMAC-SHA256 of the nonce, with the token as the key
    server   greeting: an ANSWER with JSON: uri, slow, whether the board is a virtual one, and a ticket
    client   REQUEST                op, address, value, limit or number of words
    server   ANSWER and its bytes   status, length, the link has ended, board time in ps of a virtual board

**One client holds the board**: the one whose request came first. Other clients may connect meanwhile, because the
holder may have disappeared without notice (a cable, a laptop that sleeps):

- The same client, if it returns and presents its ticket (RESUME), continues at once.
- Another client gets the board when the holder has requested nothing for ``_SILENT_S``. A recording makes many requests
a second; while one runs, other clients are refused, so that no ``hypermon info`` ends it.
- A client that insists (TAKE, ``tcp:HOST:PORT?takeover=yes``) gets it at once, if the relay has a token. Without a
token, any user of this computer could insist.

A client that has lost the board is informed at its next request; its ticket is void.
"""

import hmac
import json
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any

from hypermon.host.errors import LinkError
from hypermon.host.link import Link
from hypermon.host.link.access import cannot_listen

__all__ = ["ANSWER", "NONCE_BYTES", "REQUEST", "TICKET_BITS", "Op", "Status", "keep_alive", "listen", "proof",
           "receive", "serve_link"]

REQUEST = struct.Struct("<BxxxII")
ANSWER = struct.Struct("<BBxxIq")
NONCE_BYTES = 32
TICKET_BITS = 64
#: Maximum size of a client's request.
_LIMIT = 1 << 20
#: Bytes of registers that any link can address.
_SPACE = 1 << 16
#: Seconds for a client to authenticate, and for an answer to be received.
_PROOF_S, _SEND_S = 5.0, 60.0
#: Seconds without a request after which another client may get the board.
_SILENT_S = 10.0
#: Maximum numbers of clients: not yet authenticated, and authenticated and waiting. Beyond these, the oldest is
#: dropped.
_STRANGERS, _WAITING = 32, 32
#: Seconds without a byte, seconds between two keep-alive probes, and how many probes may stay unanswered.
_IDLE_S, _PROBE_S, _PROBES = 10, 5, 3


class Op(IntEnum):
    """The request; the member of :class:`.link.Link` with that name.

    ``RESUME``: the board again, with a ticket's low and high half for address and value. ``TAKE``: the board, now.
    """

    READ = 0
    WRITE = 1
    READ_BURST = 2
    STREAM = 3
    DISCARD = 4
    RESUME = 5
    TAKE = 6


class Status(IntEnum):
    """The result: an error's text is the answer's bytes. ``TAKEN``: another client has the board now."""

    DONE = 0
    LINK_ERROR = 1
    ERROR = 2
    TAKEN = 3


def proof(token: str | None, nonce: bytes) -> bytes:
    """Proves knowledge of the token without revealing it."""
    return hmac.new((token or "").encode(errors="surrogateescape"), nonce, "sha256").digest()


def receive(connection: socket.socket, size: int, within_s: float | None = None) -> bytes:
    """Receives the given number of bytes.

    Parameters
    ----------
    within_s : seconds for all of them together; None: no limit.

    Raises
    ------
    ConnectionError
        if the other side has gone.
    TimeoutError
        if they did not arrive in time.
    """
    until = None if within_s is None else time.monotonic() + within_s
    data = bytearray(size)
    view = memoryview(data)
    while view:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(left)
        count = connection.recv_into(view)
        if count == 0:
            raise ConnectionResetError("the other side has closed the connection")
        view = view[count:]
    return bytes(data)


def keep_alive(connection: socket.socket) -> None:
    """Lets the system detect within half a minute that the other side has disappeared; and sends without delay."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _IDLE_S), ("TCP_KEEPALIVE", _IDLE_S), ("TCP_KEEPINTVL", _PROBE_S),
                        ("TCP_KEEPCNT", _PROBES), ("TCP_USER_TIMEOUT", 1000 * (_IDLE_S + _PROBE_S * _PROBES))):
        option = getattr(socket, name, None)    # each system has some of them
        if option is not None:
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def serve_link(link: Link, listener: socket.socket, token: str | None,
               say: Callable[[str], None] = lambda text: None) -> None:
    """Serves clients until it is interrupted, or the listener is closed: then OSError.

    Parameters
    ----------
    say : called, from any thread, with a line when the board gets another client.
    """
    desk = _Desk(link, token, say)
    try:
        while True:
            try:
                connection, (host, port, *_) = listener.accept()
            except OSError:
                if not _open(listener):
                    raise
                time.sleep(0.1)     # too many open files, or a client that left before it was accepted
                continue
            guest = _Guest(connection, f"{host}:{port}")
            threading.Thread(target=desk.receive, args=(guest,), daemon=True).start()
    finally:
        desk.close()


def _open(listener: socket.socket) -> bool:
    """Whether it still listens."""
    try:
        return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False


class _Guest:
    """A client.

    Members
    -------
    name : its address, for people.
    ticket : with which it may return.
    had : it has had the board.
    asked : when its last request came.
    """

    def __init__(self, connection: socket.socket, name: str):
        self.connection, self.name = connection, name
        self.ticket = secrets.randbits(TICKET_BITS)
        self.had, self.asked = False, time.monotonic()

    def send(self, data: bytes) -> None:
        """Raises TimeoutError if the client does not receive them."""
        self.connection.settimeout(_SEND_S)
        self.connection.sendall(data)

    def dismiss(self) -> None:
        """Ends the connection; its thread notices that."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class _Desk:
    """Decides which client has the board. Each client has a thread; one at a time uses the link."""

    def __init__(self, link: Link, token: str | None, say: Callable[[str], None]):
        self._link, self._token, self._say = link, token, say
        self._at_link = threading.Lock()
        # Guards all members below.
        self._news = threading.Condition()
        self._strangers: list[_Guest] = []
        self._waiting: list[_Guest] = []
        self._holder: _Guest | None = None
        self._ticket: int | None = None      # of the client that had the board last

    def close(self) -> None:
        """Makes no more requests to the link."""
        self._at_link.acquire(timeout=_PROOF_S)

    def receive(self, guest: _Guest) -> None:
        """Serves a client until it leaves; runs in a thread."""
        try:
            keep_alive(guest.connection)
            self._line_up(self._strangers, guest, _STRANGERS)
            if self._admitted(guest):
                self._line_up(self._waiting, guest, _WAITING)
                self._greet(guest)
                while self._answered(guest, *REQUEST.unpack(receive(guest.connection, REQUEST.size))):
                    pass
        except OSError:
            pass    # gone; or it does not speak this protocol
        finally:
            self._leave(guest)
            guest.connection.close()

    def _line_up(self, line: list[_Guest], guest: _Guest, most: int) -> None:
        with self._news:
            self._out(guest)
            line.append(guest)
            if len(line) > most:
                line.pop(0).dismiss()

    def _out(self, guest: _Guest) -> None:
        for line in (self._strangers, self._waiting):
            if guest in line:
                line.remove(guest)

    def _leave(self, guest: _Guest) -> None:
        with self._news:
            self._out(guest)
            if self._holder is guest:
                self._holder = None
            self._news.notify_all()

    # ------------------------------------------------------------------------- authentication

    def _admitted(self, guest: _Guest) -> bool:
        nonce = os.urandom(NONCE_BYTES)
        guest.send(nonce)
        said = receive(guest.connection, len(proof(None, b"")), _PROOF_S)
        if hmac.compare_digest(said, proof(self._token, nonce)):
            return True
        guest.send(_packed(None, Status.ERROR, b"the token is missing or wrong: tcp:HOST:PORT?token=TEXT"))
        return False

    def _greet(self, guest: _Guest) -> None:
        greeting = {"uri": self._link.uri, "slow": self._link.slow, "virtual": self._link.board_ps is not None,
                    "ticket": guest.ticket}
        guest.send(_packed(self._link, Status.DONE, json.dumps(greeting).encode()))

    # -------------------------------------------------------------------------------- requests

    def _answered(self, guest: _Guest, op: int, address: int, value: int) -> bool:
        """Answers a request; returns whether another one can follow."""
        refusal = self._refusal(guest, op, value << 32 | address)
        if refusal is None:
            with self._at_link:
                # Another client may have got the board while this one waited for the link.
                if self._holder is guest:
                    status, data = self._done(op, address, value)
                else:
                    status, data = Status.TAKEN, self._taken()
                answer = _packed(self._link, status, data)
        else:
            status, data = refusal
            answer = _packed(self._link, status, data)
        guest.send(answer)
        return status is not Status.TAKEN and refusal is None

    def _refusal(self, guest: _Guest, op: int, ticket: int) -> tuple[Status, bytes] | None:
        """Gives a client the board, if it can have it; otherwise returns the reason."""
        with self._news:
            guest.asked = time.monotonic()
            self._news.notify_all()
            if self._holder is guest:
                return None
            if guest.had or (op == Op.RESUME and self._ticket not in (None, ticket)):
                return Status.TAKEN, self._taken()
            if op == Op.TAKE and self._token is None:
                return Status.ERROR, b"takeover=yes needs a relay with a token: hypermon relay --token TEXT"
            if op == Op.RESUME:
                guest.ticket = ticket
            elif op != Op.TAKE and (holder := self._awaited()) is not None:
                return Status.ERROR, f"the board is in use by {holder.name}; end that first".encode()
            self._give(guest)
            return None

    def _awaited(self) -> _Guest | None:
        """Waits until no client holds the board, or its holder is silent for too long; else returns a holder that
        stays.
        """
        begun = time.monotonic()
        while (holder := self._holder) is not None:
            if holder.asked > begun:
                return holder
            left = holder.asked + _SILENT_S - time.monotonic()
            if left <= 0:
                return None
            self._news.wait(left)
        return None

    def _give(self, guest: _Guest) -> None:
        before, self._holder = self._holder, guest
        self._out(guest)
        if before is not None and before.ticket == guest.ticket:
            before.dismiss()     # the same client, from another address now
        elif before is not None:
            # It stays connected, to be informed at its next request.
            self._line_up(self._waiting, before, _WAITING)
            self._say(f"{guest.name} has taken the board over from {before.name}")
        guest.had, self._ticket = True, guest.ticket

    def _taken(self) -> bytes:
        by = self._holder.name if self._holder is not None else "another client"
        return f"{by} has taken the board over".encode()

    def _done(self, op: int, address: int, value: int) -> tuple[Status, bytes]:
        try:
            return Status.DONE, _at(self._link, op, address, value)
        except LinkError as error:
            return Status.LINK_ERROR, str(error).encode()
        except Exception as error:  # whatever it is, it ends this request alone
            return Status.ERROR, (str(error) or type(error).__name__).encode(errors="replace")


def _packed(link: Link | None, status: Status, data: bytes) -> bytes:
    """An answer."""
    if link is None:
        return ANSWER.pack(status, False, len(data), 0) + data
    return ANSWER.pack(status, link.ended, len(data), link.board_ps or 0) + data


def _at(link: Link, op: int, address: int, value: int) -> bytes:
    """Executes the request. Raises ValueError if it makes no sense, and the link's errors."""
    if op in (Op.RESUME, Op.TAKE):
        return b""
    if op == Op.STREAM:
        return link.stream(min(value, _LIMIT))
    if op == Op.DISCARD:
        link.discard()
        return b""
    words = value if op == Op.READ_BURST else 1
    if address % 4 or words < 1 or address + 4 * words > _SPACE:
        raise ValueError(f"there are no {words} registers at {address:#x}")
    if op == Op.READ:
        return struct.pack("<I", link.read(address))
    if op == Op.READ_BURST:
        return link.read_burst(address, words)
    if op == Op.WRITE:
        link.write(address, value)
        return b""
    raise ValueError(f"no request has number {op}")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises HypermonError if the address is not available."""
    try:
        family: Any = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, ValueError) as error:
        raise cannot_listen(host, port, error) from None
