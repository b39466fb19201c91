"""A board at a serial port: ``uart:/dev/ttyUSB1?baud=3000000``.

Requests have a number and a time-out, and are repeated until their reply arrives; the board executes each once. Stream
data that the line loses is missing from its blocks, which show the gap.
"""

import datetime
import errno
import os
import random
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from hypermon.hdl.layout import UART_WORDS_MAX, Geometry, UartOp
from hypermon.host.errors import HypermonError, LinkError, to_install
from hypermon.host.link import Found, Link, Outage
from hypermon.host.link.uart_packets import Reply, Separator, build_request
from hypermon.host.link.udev import install_rule

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BAUD", "UartLink", "find_boards", "open_board"]

#: Baud rate of the line, unless the URI states another one.
BAUD = 3_000_000
#: Seconds for a reply, unless the URI states more: an FTDI chip holds back short data for up to 16 ms.
_TIMEOUT_S = 0.5
#: How often a request is sent before the board is given up.
_ATTEMPTS = 8
#: Seconds to wait for the stream, and for a read of the port; and between two checks for a port that is gone.
_PATIENCE_S = 0.1
_AGAIN_S = 0.2
#: Seconds of silence after which no data of an earlier run is in transit; and seconds after which a board that still
#: sends is given up.
_SILENT_S, _ENDLESS_S = 0.25, 10.0
#: USB vendor and product of chips that may connect a board's UART.
_BRIDGES = {(0x0403, 0x6010): "FT2232H", (0x0403, 0x6011): "FT4232H", (0x0403, 0x6014): "FT232H",
            (0x0403, 0x6015): "FT231X"}


def open_board(uri: str, geometry: Geometry | None = None) -> Link:
    """Opens a serial port and checks whether a board answers, which has its own ``geometry``.

    Raises
    ------
    HypermonError
        if the URI is invalid, the port cannot be opened, or nothing answers there.
    """
    path, baud, timeout = _parse(uri)
    return UartLink(uri, path, baud, timeout)


def find_boards() -> list[Found]:
    """Serial ports of chips that boards have. Nothing is sent to them: other devices use the same chips."""
    try:
        serial = _serial()
    except HypermonError as error:
        return [Found("uart:DEVICE", "a board at a serial port", str(error))]
    found = []
    for port in serial.tools.list_ports.comports():
        chip = _BRIDGES.get((port.vid, port.pid))
        if chip is not None:
            number = f", serial number {port.serial_number}" if port.serial_number else ""
            found.append(Found(f"uart:{port.device}", f"a serial port ({chip}{number}); hypermon info -b "
                                                      f"uart:{port.device} shows whether it is a board",
                               _why_closed(serial, port.device)))
    return found


def _serial() -> "ModuleType":
    try:
        import serial  # type: ignore[import-untyped]
        import serial.tools.list_ports  # type: ignore[import-untyped]
    except ImportError:
        raise HypermonError("a serial port needs pyserial, which is not installed: "
                            f"{to_install('uart')}") from None
    module: ModuleType = serial
    return module


def _parse(uri: str) -> tuple[str, int, float]:
    """Device, baud rate and time-out of a URI."""
    path, _, query = uri.partition(":")[2].partition("?")
    values = {"baud": str(BAUD), "timeout": str(_TIMEOUT_S)}
    try:
        options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
        baud, timeout = int((values | options)["baud"]), float((values | options)["timeout"])
        if not path or options.keys() - values.keys() or baud <= 0 or not 0 < timeout < 3600:
            raise ValueError
    except ValueError:
        raise HypermonError(f"{uri}: it is uart:DEVICE, such as uart:/dev/ttyUSB1, then, if needed, ?baud=N and "
                            "&timeout=SECONDS") from None
    return path, baud, timeout


def _why_closed(serial: Any, path: str) -> str | None:
    """Why the port cannot be opened, and what helps; None if it can."""
    try:
        serial.Serial(path, exclusive=True).close()
    except (OSError, ValueError) as error:
        return _reason(path, error)
    return None


def _group(path: str) -> str:
    """The group that may open it, if it has a name. Windows has no such groups."""
    if sys.platform == "win32":
        return ""
    try:
        import grp

        return f", {grp.getgrgid(os.stat(path).st_gid).gr_name}"
    except (ImportError, OSError, KeyError):
        return ""


def _reason(path: str, error: Exception) -> str:
    """What is wrong with a port that cannot be opened, and what helps."""
    number = getattr(error, "errno", None)
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission for {path}; once: {install_rule()} (or join the group of the port{_group(path)})"
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"there is no {path}; plug the board in, then: hypermon devices"
    if number in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in str(error):
        return f"another program has {path} open; to see which: fuser {path}"
    return f"{path} cannot be opened: {error}"


class UartLink:
    """A link to a board at a serial port; see :class:`hypermon.host.link.Link`.

    Parameters
    ----------
    uri : its name.
    path, baud : of the port.
    timeout : seconds for a reply.

    Members
    -------
    slowness : how many times as slow as usual the board may be, by that time-out: one at the port may be simulated.

    Raises
    ------
    HypermonError
        if the port cannot be opened, or nothing answers there.
    """

    slow = True
    ended = False
    board_ps = None
    played = None

    def __init__(self, uri: str, path: str, baud: int = BAUD, timeout: float = _TIMEOUT_S):
        self.uri, self._path, self._baud, self._timeout = uri, path, baud, timeout
        self.slowness = max(1.0, timeout / _TIMEOUT_S)
        self.outages: list[Outage] = []
        self._serial = _serial()
        self._identity = self._identify()
        self._news = threading.Condition()
        # The reader thread also uses everything below; access needs the condition's lock.
        self._port: Any = None
        self._stream = bytearray()
        self._replies: list[Reply] = []
        self._separator = Separator()
        self._lost: str | None = None    # since when
        self._closed = False
        self._sequence: int | None = None    # of the last request; None: no HELLO on this port yet
        try:
            self._port = self._open(path)
        except (OSError, ValueError) as error:
            raise HypermonError(f"{uri}: {_reason(path, error)}") from None
        self._reader = threading.Thread(target=self._read_on, name=f"reader of {path}", daemon=True)
        self._reader.start()
        try:
            self._greet()
        except LinkError:
            self.close()
            raise HypermonError(f"{uri}: nothing answers at {baud} baud; if the board has another rate, add ?baud=N; "
                                "if it has no gateware, load it: hypermon flash BOARD") from None

    # --------------------------------------------------------------------------------- the interface

    def read(self, address: int) -> int:
        return int.from_bytes(self.read_burst(address, 1), "little")

    def write(self, address: int, value: int) -> None:
        self._request(UartOp.WRITE, address, value)

    def read_burst(self, address: int, words: int) -> bytes:
        parts = []
        for at in range(0, words, UART_WORDS_MAX):
            count = min(UART_WORDS_MAX, words - at)
            data = self._request(UartOp.READ, address + 4 * at, count)
            if len(data) != 4 * count:
                raise LinkError(f"{self.uri}: {len(data)} bytes came for {count} words; switch the board off and on")
            parts.append(data)
        return b"".join(parts)

    def stream(self, limit: int) -> bytes:
        with self._news:
            if not self._stream:
                self._news.wait_for(lambda: self._stream, _PATIENCE_S)
            taken = bytes(self._stream[:limit])
            del self._stream[:limit]
        return taken

    def discard(self) -> None:
        begun = heard = time.monotonic()
        while time.monotonic() - heard < max(_SILENT_S, self._timeout / 2):
            if self.stream(1 << 20):
                heard = time.monotonic()
            if heard - begun > _ENDLESS_S:
                raise HypermonError(f"{self.uri}: the board does not stop sending; switch it off and on")

    @property
    def away(self) -> bool:
        return self._lost is not None

    def close(self) -> None:
        """Closes the port; may be called again."""
        with self._news:
            self._closed = True
        if self._reader is not threading.current_thread():
            self._reader.join()

    # -------------------------------------------------------------------------------------- requests

    def _greet(self) -> None:
        """Tells the board that request numbers start again."""
        self._sequence = random.randrange(256)
        self._exchange(UartOp.HELLO, 0, 0)

    def _request(self, op: UartOp, address: int, value: int) -> bytes:
        if self._sequence is None:
            self._greet()
        assert self._sequence is not None
        self._sequence = (self._sequence + 1) % 256
        return self._exchange(op, address, value)

    def _exchange(self, op: UartOp, address: int, value: int) -> bytes:
        """Sends a request until its reply arrives, and returns that."""
        sequence = self._sequence
        assert sequence is not None
        packet = build_request(sequence, op, address, value)
        for _ in range(_ATTEMPTS):
            with self._news:
                self._replies.clear()
            self._send(packet)
            deadline = time.monotonic() + self._timeout
            while (reply := self._next_reply(deadline)) is not None:
                if reply.sequence != sequence:
                    continue    # of a request that was sent twice
                if not reply.understood:
                    raise LinkError(f"{self.uri} does not understand a request; load gateware of this version: "
                                   "hypermon flash BOARD")
                return reply.data
        raise LinkError(f"{self.uri} does not answer")

    def _send(self, packet: bytes) -> None:
        with self._news:
            port = self._reachable()
        try:
            port.write(packet)
        except (OSError, TypeError):    # TypeError: closed by the reader meanwhile
            raise self._gone() from None

    def _next_reply(self, deadline: float) -> Reply | None:
        """The oldest reply; None if none arrives in time."""
        with self._news:
            self._news.wait_for(lambda: self._replies or self._lost, max(deadline - time.monotonic(), 0))
            if self._replies:
                return self._replies.pop(0)
            self._reachable()
            return None

    def _reachable(self) -> Any:
        """The port; raises LinkError if it is not there."""
        if self._closed:
            raise LinkError(f"{self.uri} is closed")
        if self._lost is not None:
            raise self._gone()
        return self._port

    def _gone(self) -> LinkError:
        return LinkError(f"{self.uri} is gone; plug it in again")

    # -------------------------------------------------------------------------------------- the reader

    def _open(self, path: str) -> Any:
        return self._serial.Serial(path, self._baud, timeout=_PATIENCE_S, write_timeout=self._timeout, exclusive=True)

    def _read_on(self) -> None:
        """Reads the port until it is closed; if the port disappears, waits until it is back."""
        while not self._closed:
            try:
                data = self._port.read(max(self._port.in_waiting, 1))
            except (OSError, TypeError):
                self._wait_for_port()
                continue
            if data:
                stream, replies = self._separator.feed(data)
                with self._news:
                    self._stream += stream
                    self._replies += replies
                    self._news.notify_all()
        self._port.close()

    def _wait_for_port(self) -> None:
        since = _now()
        with self._news:
            self._lost = since
            self._news.notify_all()
        self._port.close()
        while not self._closed:
            time.sleep(_AGAIN_S)
            try:
                port = self._open(self._where())
            except (OSError, ValueError):
                continue
            with self._news:
                # Data that begins now does not continue what was cut off.
                self._port, self._separator, self._sequence = port, Separator(), None
                self._lost = None
                self.outages.append(Outage(since, _now()))
            return

    def _identify(self) -> Sequence[object] | None:
        """Identifies the port's hardware, if anything does."""
        for port in self._serial.tools.list_ports.comports():
            if port.device == self._path and port.vid is not None:
                return port.vid, port.pid, port.serial_number, (port.location or "").rpartition(".")[2]
        return None

    def _where(self) -> str:
        """The path of the port; it may change when the device is plugged in again."""
        if self._identity is None:
            return self._path
        for port in self._serial.tools.list_ports.comports():
            same = (port.vid, port.pid, port.serial_number, (port.location or "").rpartition(".")[2])
            if same == self._identity:
                return str(port.device)
        raise FileNotFoundError(self._path)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
