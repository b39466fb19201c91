"""A board on another machine, where ``hypermon relay`` runs: ``tcp:HOST:PORT``, ``tcp:HOST:PORT?token=TEXT``.

The other side is not trusted. Only what a relay can send is accepted: the request limits the length of the answer, and
texts are escaped before they are printed.
"""

import datetime
import json
import os
import socket
import struct
import time
from typing import NamedTuple
from urllib.parse import parse_qsl

from hypermon.hdl.layout import Geometry
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import Found, Link, Outage
from hypermon.host.link.relay import (
    ANSWER,
    NONCE_BYTES,
    REQUEST,
    TICKET_BITS,
    Op,
    Status,
    keep_alive,
    proof,
    receive,
)
from hypermon.host.text.printable import printable

__all__ = ["TcpLink", "find_boards", "open_board"]

#: Seconds for an answer to begin, and between two attempts to reach a relay that has gone.
_TIMEOUT_S, _AGAIN_S = 20.0, 0.2
#: Minimum bytes per second of a long answer.
_SLOWEST = 10_000
#: Maximum bytes of a greeting, and of an error's text; characters of it that are shown.
_TEXT, _SHOWN = 4096, 400


def open_board(uri: str, geometry: Geometry | None = None) -> Link:
    """Opens a board at a relay, which has its own ``geometry``.

    Raises
    ------
    HypermonError
        if the URI is invalid, nothing answers there, or the token is wrong.
    """
    address, _, query = uri.partition(":")[2].partition("?")
    host, colon, port = address.rpartition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    token = options.pop("token", None) or os.environ.get("HYPERMON_TOKEN")
    takeover = options.pop("takeover", "no")
    if not colon or not host or not port.isdecimal() or options or takeover not in ("no", "yes"):
        raise HypermonError(f"{uri}: it is tcp:HOST:PORT, optionally with ?token=TEXT and &takeover=yes after it")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        raise HypermonError(f"{uri}: a port is a number from 1 to 65535")
    return TcpLink(f"tcp:{address}", host.strip("[]"), int(port), token, takeover == "yes")


def find_boards() -> list[Found]:
    """Relays cannot be discovered; this only states that the link exists."""
    return [Found("tcp:HOST:PORT", "a board on another machine, where `hypermon relay` runs")]


class _Greeting(NamedTuple):
    """A relay's description of its board. ``ticket``: with which this client may return; None: the relay is old."""

    uri: str
    slow: bool
    virtual: bool
    ticket: int | None


class TcpLink:
    """A link through a relay.

    When the connection fails, it is restored as soon as the relay is back: see :class:`.link.Link`. It is given up for
    good, and everything raises LinkError, when another client has taken the board over, or when the other side is not
    this board's relay. ``board_ps`` of a virtual board is that of the last answer.

    Parameters
    ----------
    uri : its name, without the token.
    host, port, token : of the relay.
    takeover : take the board even if another client has it.

    Raises
    ------
    HypermonError
        if nothing answers there, the token is wrong, or the other side is not a relay.
    """

    slowness = 1.0
    played = None

    def __init__(self, uri: str, host: str, port: int, token: str | None, takeover: bool = False):
        self.uri, self.slow, self.ended = uri, False, False
        self.outages: list[Outage] = []
        self.board_ps: int | None = None
        self._where, self._token = (host, port), token
        self._connection: socket.socket | None = None
        self._since: str | None = None
        self._greeting: _Greeting | None = None
        self._over: LinkError | None = None
        try:
            self._connect()
        except OSError as error:
            raise HypermonError(f"{uri}: no answer ({error.strerror or error}); there: hypermon relay "
                                f"-b BOARD --port {port}") from None
        except UnicodeError:
            raise HypermonError(f"{uri}: {host} is not the name of a computer") from None
        if takeover:
            try:
                self._ask(Op.TAKE)
            except HypermonError:
                self._disconnect()
                raise

    # -------------------------------------------------------------------------------- the connection

    def _connect(self) -> None:
        """Raises OSError if nothing answers, HypermonError if the other side is not the expected relay."""
        connection = socket.create_connection(self._where, timeout=_TIMEOUT_S)
        try:
            keep_alive(connection)
            connection.sendall(proof(self._token, receive(connection, NONCE_BYTES, _TIMEOUT_S)))
            greeting = self._greeted(self._answer(connection, range(_TEXT + 1), since_ps=None))
            if self._greeting is not None and greeting.ticket is not None and self._greeting.ticket is not None:
                ticket = self._greeting.ticket
                connection.sendall(REQUEST.pack(Op.RESUME, ticket & 0xffffffff, ticket >> 32))
                self._answer(connection, range(1), since_ps=None)
                greeting = greeting._replace(ticket=ticket)
        except BaseException:
            connection.close()
            raise
        self._connection, self._greeting = connection, greeting
        self.slow = greeting.slow
        self.board_ps = 0 if greeting.virtual else None

    def _greeted(self, data: bytes) -> _Greeting:
        try:
            said = json.loads(data)
            greeting = _Greeting(said["uri"], said["slow"], said["virtual"], said.get("ticket"))
            if [type(value) for value in greeting[:3]] != [str, bool, bool]:
                raise ValueError
            if greeting.ticket is not None and not (type(greeting.ticket) is int
                                                    and 0 <= greeting.ticket < 1 << TICKET_BITS):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self._nonsense("its greeting makes no sense") from None
        if self._greeting is not None and greeting[:3] != self._greeting[:3]:
            raise LinkError(f"{self.uri}: another board is there now: {printable(greeting.uri, _SHOWN)}")
        return greeting

    def _answer(self, connection: socket.socket, sizes: range, since_ps: int | None) -> bytes:
        """An answer's bytes.

        Parameters
        ----------
        sizes : allowed sizes of the answer.
        since_ps : the answer has the time of a virtual board, which is this or later; None: it has no time.
        """
        status, ended, length, board_ps = ANSWER.unpack(receive(connection, ANSWER.size, _TIMEOUT_S))
        if status not in tuple(Status) or length not in (sizes if status == Status.DONE else range(_TEXT + 1)):
            raise self._nonsense(f"an answer of status {status} has {length:,} bytes")
        if since_ps is not None and board_ps < since_ps:
            raise self._nonsense("its time goes backwards")
        data = receive(connection, length, _TIMEOUT_S + length / _SLOWEST)
        if status != Status.DONE:
            text = f"{self.uri}: {printable(data.decode(errors='replace'), _SHOWN)}"
            if status == Status.TAKEN:
                self._over = LinkError(text)
                raise self._over
            raise (LinkError if status == Status.LINK_ERROR else HypermonError)(text)
        self.ended = bool(ended)
        if since_ps is not None:
            self.board_ps = board_ps
        return data

    def _nonsense(self, what: str) -> LinkError:
        self._over = LinkError(f"{self.uri}: it answers, but not like a relay: {what}; there: hypermon relay "
                               "-b BOARD")
        return self._over

    def _ask(self, op: Op, address: int = 0, value: int = 0, sizes: range = range(1)) -> bytes:
        """Raises LinkError while nothing answers, and when the link is given up."""
        if self._over is not None:
            raise self._over
        try:
            if self._connection is None:
                self._connect_again()
            assert self._connection is not None
            self._connection.sendall(REQUEST.pack(op, address, value))
            return self._answer(self._connection, sizes, self.board_ps)
        except OSError as error:
            self._disconnect()
            self._since = self._since or _now()
            raise LinkError(f"{self.uri} cannot be reached: {error.strerror or error}") from None
        finally:
            if self._over is not None:
                self._disconnect()

    def _connect_again(self) -> None:
        try:
            self._connect()
        except HypermonError as error:
            self._over = LinkError(str(error))
            raise self._over from None
        if self._since is not None:
            self.outages.append(Outage(self._since, _now()))
            self._since = None

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --------------------------------------------------------------------------------- the interface

    def read(self, address: int) -> int:
        value: int = struct.unpack("<I", self._ask(Op.READ, address, sizes=range(4, 5)))[0]
        return value

    def write(self, address: int, value: int) -> None:
        self._ask(Op.WRITE, address, value)

    def read_burst(self, address: int, words: int) -> bytes:
        return self._ask(Op.READ_BURST, address, words, range(4 * words, 4 * words + 1))

    def stream(self, limit: int) -> bytes:
        try:
            return self._ask(Op.STREAM, 0, limit, range(limit + 1))
        except LinkError:
            if self._over is not None:
                raise
            time.sleep(_AGAIN_S)
            return b""

    def discard(self) -> None:
        self._ask(Op.DISCARD)

    @property
    def away(self) -> bool:
        return self._connection is None

    def close(self) -> None:
        self._disconnect()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
