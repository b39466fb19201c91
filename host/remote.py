"""A board at another machine, where ``hypermon relay`` runs: ``tcp:HOST:PORT``, ``tcp:HOST:PORT?token=TEXT``."""

import datetime
import json
import os
import socket
import struct
import time
from urllib.parse import parse_qsl

from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import Found, Outage
from hypermon.host.relay import ANSWER, NONCE_BYTES, REQUEST, Op, Status, proof, receive

__all__ = ["RemoteLink", "find_boards", "open_board"]

#: Seconds that an answer may take, and between two tries to reach a relay that has gone.
_TIMEOUT_S, _AGAIN_S = 20.0, 0.2


def open_board(uri: str) -> "RemoteLink":
    """Opens a board at a relay.

    Raises
    ------
    HypermonError
        if the URI is not right, nobody is there, or the token is wrong.
    """
    address, _, query = uri.partition(":")[2].partition("?")
    host, colon, port = address.rpartition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    token = options.pop("token", None) or os.environ.get("HYPERMON_TOKEN")
    if not colon or not host or not port.isdecimal() or options:
        raise HypermonError(f"{uri}: it is tcp:HOST:PORT, or tcp:HOST:PORT?token=TEXT")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        raise HypermonError(f"{uri}: a port is a number from 1 to 65535")
    return RemoteLink(f"tcp:{address}", host.strip("[]"), int(port), token)


def find_boards() -> list[Found]:
    """None can be seen: only that there are such."""
    return [Found("tcp:HOST:PORT", "a board at another machine, where `hypermon relay` runs")]


class RemoteLink:
    """A link by a relay.

    When the connection fails, it is made again as soon as the relay is there: see :class:`.link.Link`. A virtual
    board's has ``board_ps``, too, as of the last answer.
    """

    board_ps: int

    def __init__(self, uri: str, host: str, port: int, token: str | None):
        self.uri, self.slow, self.ended = uri, False, False
        self.outages: list[Outage] = []
        self._where, self._token = (host, port), token
        self._connection: socket.socket | None = None
        self._since: str | None = None
        self._virtual = False
        try:
            self._connect()
        except OSError as error:
            raise HypermonError(f"{uri}: nobody answers ({error.strerror or error}); there: hypermon relay "
                                f"-b BOARD --port {port}") from None

    def _connect(self) -> None:
        connection = socket.create_connection(self._where, timeout=_TIMEOUT_S)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(proof(self._token, receive(connection, NONCE_BYTES)))
            self._connection = connection
            greeting = json.loads(self._answer(connection))
        except BaseException:
            self._connection = None
            connection.close()
            raise
        self.slow, self._virtual = bool(greeting["slow"]), bool(greeting["virtual"])
        if self._virtual:
            self.board_ps = 0

    def _answer(self, connection: socket.socket) -> bytes:
        status, ended, length, board_ps = ANSWER.unpack(receive(connection, ANSWER.size))
        data = receive(connection, length)
        self.ended = bool(ended)
        if self._virtual:
            self.board_ps = board_ps
        if status != Status.DONE:
            raise (LinkError if status == Status.LINK_ERROR else HypermonError)(f"{self.uri}: {data.decode()}")
        return data

    def _ask(self, op: Op, address: int = 0, value: int = 0) -> bytes:
        """Raises LinkError while nobody is there."""
        try:
            if self._connection is None:
                self._connect()
                if self._since is not None:
                    self.outages.append(Outage(self._since, _now()))
                    self._since = None
            assert self._connection is not None
            self._connection.sendall(REQUEST.pack(op, address, value))
            return self._answer(self._connection)
        except OSError as error:
            self.close()
            self._since = self._since or _now()
            raise LinkError(f"{self.uri} cannot be reached: {error.strerror or error}") from None

    def read(self, address: int) -> int:
        value: int = struct.unpack("<I", self._ask(Op.READ, address))[0]
        return value

    def write(self, address: int, value: int) -> None:
        self._ask(Op.WRITE, address, value)

    def read_burst(self, address: int, words: int) -> bytes:
        return self._ask(Op.READ_BURST, address, words)

    def stream(self, limit: int) -> bytes:
        try:
            return self._ask(Op.STREAM, 0, limit)
        except LinkError:
            time.sleep(_AGAIN_S)
            return b""

    def discard(self) -> None:
        self._ask(Op.DISCARD)

    @property
    def away(self) -> bool:
        return self._connection is None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
