"""A board on USB, through libusb."""

import datetime
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hypermon.hdl.layout import (
    USB_BURST_BYTES,
    USB_MANUFACTURER,
    USB_NAME,
    USB_PRODUCT,
    USB_STREAM,
    USB_VENDOR,
    Geometry,
    UsbRequest,
)
from hypermon.host.errors import HypermonError, LinkError, to_install
from hypermon.host.link import Found, Link, Outage
from hypermon.host.link.udev import install_rule

__all__ = ["UsbLink", "find_boards", "open_board"]

#: Bytes of a transfer; less at full speed, where 64 KiB would take 50 ms.
_TRANSFER_BYTES, _TRANSFER_BYTES_FULL = 1 << 16, 1 << 12
_TRANSFERS = 32
_INTERFACE = 0
_HIGH_SPEED = 480
_READ, _WRITE = 0xc0, 0x40  # bmRequestType
_CONTROL_MS = 5000
#: Seconds that :meth:`UsbLink.stream` waits for data, and between two checks for a board that is gone.
_PATIENCE_S = 0.02
_LOOK_S = 0.25
#: For this many seconds, data that an earlier run may have left is discarded.
_DISCARD_S = 5.0


def _usb1() -> Any:
    try:
        usb1 = import_module("usb1")
        usb1.loadLibrary()      # which it would do later
        return usb1
    except ImportError:
        raise HypermonError(f"USB needs libusb1, which is not installed: {to_install('usb')}") from None
    except OSError as error:
        raise HypermonError(f"USB needs the library libusb-1.0 ({error}): on Debian, apt-get install libusb-1.0-0"
                            ) from None


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _listed(boards: list["_Board"]) -> str:
    return ", ".join(f"usb:{board.serial}" for board in boards if board.serial is not None)


@dataclass(frozen=True)
class _Board:
    """A board that is plugged in; ``serial`` is None if this user may not open it. ``speed`` in Mbit/s."""

    serial: str | None
    place: str
    speed: int
    device: Any


def _boards(context: Any, usb1: Any) -> Iterator[_Board]:
    # The identity is one for tests: manufacturer and name must match as well.
    speeds = {usb1.SPEED_FULL: 12, usb1.SPEED_HIGH: 480}
    for device in context.getDeviceIterator(skip_on_error=True):
        if (device.getVendorID(), device.getProductID()) != (USB_VENDOR, USB_PRODUCT):
            continue
        place = f"bus {device.getBusNumber()} device {device.getDeviceAddress()}"
        speed = speeds.get(device.getDeviceSpeed(), 0)
        try:
            if (device.getManufacturer(), device.getProduct()) == (USB_MANUFACTURER, USB_NAME):
                yield _Board(device.getSerialNumber(), place, speed, device)
        except usb1.USBErrorAccess:
            yield _Board(None, place, speed, device)
        except usb1.USBError:  # it is being unplugged
            continue


def _forbidden(place: str) -> str:
    return f"no permission for the board at {place}; once: {install_rule()}"


def open_board(uri: str, geometry: Geometry | None = None) -> Link:
    """The board of ``usb:`` or ``usb:SERIAL``, which has its own ``geometry``; see :class:`UsbLink`."""
    return UsbLink(uri.partition(":")[2])


def find_boards(usb1: Any = None) -> list[Found]:
    """The boards that are plugged in."""
    try:
        usb1 = usb1 or _usb1()
    except HypermonError as error:
        return [Found("usb:", "a board at a USB port", str(error))]
    with usb1.USBContext() as context:
        return [Found(f"usb:{board.serial or ''}", f"{USB_NAME}, {board.speed} Mbit/s, {board.place}",
                      _forbidden(board.place) if board.serial is None else None)
                for board in _boards(context, usb1)]


class UsbLink:
    """A link to a board on a USB cable; see :class:`hypermon.host.link.Link`.

    From the first :meth:`stream` on, transfers wait for the stream. When the board is unplugged, the stream is silent
    until it is back, and registers cannot be reached. Blocks that were in transit are lost; their sequence numbers show
    the gap.

    Parameters
    ----------
    serial : of the board; "" if there is only one.
    usb1 : replaces the module of that name.

    Members
    -------
    slow, outages : see there; it is slow at full speed.

    Raises
    ------
    HypermonError
        if there is no such board, or more than one, or it may not be opened, or is in use.
    """

    ended = False
    slowness = 1.0
    board_ps = None
    played = None

    def __init__(self, serial: str = "", usb1: Any = None):
        self._usb1 = usb1 or _usb1()
        self.uri = f"usb:{serial}"
        self.slow = False
        self.outages: list[Outage] = []
        self._arrived: deque[bytes] = deque()
        self._transfers: list[Any] = []
        self._handle: Any = None
        self._failed = self._stalled = self._closing = False
        self._gone = ""
        self._looked = 0.0
        self._context = self._usb1.USBContext().open()
        try:
            self._serial = self._open(serial)
        except HypermonError:
            self._context.close()
            raise

    # ------------------------------------------------------------------------------ the device

    def _open(self, serial: str) -> str:
        boards = list(_boards(self._context, self._usb1))
        if not boards:
            raise HypermonError(f"{self.uri}: no board is plugged in (hypermon devices lists them)")
        wanted = [board for board in boards if board.serial is not None and serial in ("", board.serial)]
        if not wanted:
            if closed := next((board for board in boards if board.serial is None), None):
                raise HypermonError(f"{self.uri}: {_forbidden(closed.place)}")
            raise HypermonError(f"{self.uri}: no such board; there is {_listed(boards)}")
        if len(wanted) > 1:
            raise HypermonError(f"{self.uri}: which one? There is {_listed(wanted)}")
        board = wanted[0]
        try:
            self._handle = board.device.open()
            self._handle.claimInterface(_INTERFACE)
        except self._usb1.USBErrorAccess:
            raise HypermonError(f"{self.uri}: {_forbidden(board.place)}") from None
        except self._usb1.USBErrorBusy:
            raise HypermonError(f"{self.uri}: the board is in use by another program") from None
        except self._usb1.USBError as error:
            raise HypermonError(f"{self.uri}: the board cannot be opened ({error})") from None
        self.slow = board.speed < _HIGH_SPEED
        return board.serial or ""

    def _leave(self) -> None:
        """The board is gone: ends all transfers."""
        self._withdraw()
        self._transfers.clear()
        self._handle.close()
        self._handle = None
        self._failed = False
        self._gone = _now()

    def _look(self) -> None:
        """Opens the board again, if it is back."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        try:
            self._open(self._serial)
        except HypermonError:
            if self._handle is not None:
                self._handle.close()
                self._handle = None
            return
        self.outages.append(Outage(self._gone, _now()))

    @property
    def away(self) -> bool:
        """The board is unplugged, or was found unplugged at the last access."""
        return self._handle is None or self._failed

    # --------------------------------------------------------------------------- the registers

    def _control(self, request: str, *arguments: Any) -> Any:
        if self._failed:
            self._leave()
        if self._handle is None:
            self._look()
        if self._handle is None:
            raise LinkError(f"{self.uri}: the board is unplugged")
        try:
            return getattr(self._handle, request)(*arguments, timeout=_CONTROL_MS)
        except self._usb1.USBErrorPipe:
            raise HypermonError(f"{self.uri}: the board rejects a request; load gateware of this version: "
                                "hypermon flash BOARD") from None
        except self._usb1.USBErrorTimeout:
            raise LinkError(f"{self.uri}: the board does not answer; unplug it and plug it in again") from None
        except self._usb1.USBError as error:
            self._failed = isinstance(error, self._usb1.USBErrorNoDevice)
            raise LinkError(f"{self.uri}: the board cannot be reached any more ({error})") from None

    def read(self, address: int) -> int:
        """The register at a byte address."""
        return int.from_bytes(self.read_burst(address, 1), "little")

    def write(self, address: int, value: int) -> None:
        """Sets the register at a byte address."""
        self._control("controlWrite", _WRITE, UsbRequest.WRITE, 0, address, value.to_bytes(4, "little"))

    def read_burst(self, address: int, words: int) -> bytes:
        """The given number of consecutive registers, as 32-bit little-endian words."""
        out = bytearray()
        for at in range(0, 4 * words, USB_BURST_BYTES):
            size = min(4 * words - at, USB_BURST_BYTES)
            got = self._control("controlRead", _READ, UsbRequest.READ, 0, address + at, size)
            if len(got) != size:
                raise LinkError(f"{self.uri}: the board returned {len(got)} bytes of registers, not {size}")
            out += got
        return bytes(out)

    # ------------------------------------------------------------------------------ the stream

    def stream(self, limit: int) -> bytes:
        """Up to ``limit`` bytes of the stream; none if none arrived in time, or the board is away."""
        if self._handle is None:
            self._look()
        if self._handle is None:
            time.sleep(_PATIENCE_S)
            return b""
        self._submit()
        if not self._arrived:
            self._context.handleEventsTimeout(_PATIENCE_S)
        else:
            self._context.handleEventsTimeout(0)
        if self._failed:
            self._leave()
        elif self._stalled:
            self._unstall()
        return self._take(limit)

    def discard(self) -> None:
        """Discards data that has arrived, and data that arrives until there is silence."""
        stop = time.monotonic() + _DISCARD_S
        while self.stream(_TRANSFER_BYTES) and time.monotonic() < stop:
            pass
        self._arrived.clear()

    def _take(self, limit: int) -> bytes:
        parts = []
        while self._arrived and limit:
            part = self._arrived.popleft()
            if len(part) > limit:
                self._arrived.appendleft(part[limit:])
                part = part[:limit]
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)

    def _submit(self) -> None:
        if not self._transfers:
            size = _TRANSFER_BYTES_FULL if self.slow else _TRANSFER_BYTES
            for _ in range(_TRANSFERS):
                transfer = self._handle.getTransfer()
                transfer.setBulk(USB_STREAM, size, callback=self._came, timeout=0)
                self._transfers.append(transfer)
        for transfer in self._transfers:
            if not transfer.isSubmitted():
                self._resubmit(transfer)

    def _resubmit(self, transfer: Any) -> None:
        try:
            transfer.submit()
        except self._usb1.USBError:
            self._failed = True

    def _came(self, transfer: Any) -> None:
        status = transfer.getStatus()
        if size := transfer.getActualLength():
            self._arrived.append(bytes(transfer.getBuffer()[:size]))
        if status == self._usb1.TRANSFER_COMPLETED:
            if not (self._closing or self._failed or self._stalled):
                self._resubmit(transfer)
        elif status == self._usb1.TRANSFER_STALL:
            self._stalled = True
        elif status != self._usb1.TRANSFER_CANCELLED:
            self._failed = True

    def _withdraw(self) -> None:
        """Cancels all transfers, and waits until none is in progress; the data in them counts as arrived."""
        self._closing = True
        for transfer in self._transfers:
            if transfer.isSubmitted():
                try:
                    transfer.cancel()
                except self._usb1.USBError:
                    continue  # it has already ended
        while any(transfer.isSubmitted() for transfer in self._transfers):
            self._context.handleEventsTimeout(_PATIENCE_S)
        self._closing = False

    def _unstall(self) -> None:
        self._withdraw()
        self._stalled = False
        try:
            self._handle.clearHalt(USB_STREAM)
        except self._usb1.USBError:
            self._failed = True

    def close(self) -> None:
        """Releases the board; data still in transit is lost. May be called again."""
        if self._handle is not None:
            self._leave()
        self._context.close()
