"""The part of the module ``usb1`` that ``host/link/usb.py`` needs, for verilated boards instead of real ones.

Bus time advances only while a caller handles events or waits for a control transfer.
"""

from collections.abc import Callable, Iterator
from typing import Any

from hypermon.hdl.layout import USB_PRODUCT, USB_VENDOR
from hypermon.sim.virtual.usb_board import USB_HZ, Completion, Status, UsbBoard

__all__ = ["Usb1"]

#: Bus time that passes per second of the host's time: a simulation is slower by this factor.
_SLOWNESS = 40


class USBError(Exception):
    """As usb1's."""


class USBErrorAccess(USBError):  # noqa: N818
    """As usb1's."""


class USBErrorBusy(USBError):  # noqa: N818
    """As usb1's."""


class USBErrorPipe(USBError):  # noqa: N818
    """As usb1's."""


class USBErrorTimeout(USBError):  # noqa: N818
    """As usb1's."""


class USBErrorNoDevice(USBError):  # noqa: N818
    """As usb1's."""


class _Transfer:
    def __init__(self, port: "Port"):
        self._port = port
        self._completion: Completion | None = None
        self._submitted = False

    def setBulk(self, endpoint: int, length: int, callback: Callable[["_Transfer"], None], timeout: int) -> None:  # noqa: N802
        self._endpoint, self._length, self._callback = endpoint, length, callback

    def submit(self) -> None:
        if not self._port.plugged:
            raise USBErrorNoDevice
        self._id = self._port.board.submit(self._endpoint, self._length)
        self._port.waiting[self._id] = self
        self._submitted = True

    def ended(self, completion: Completion) -> None:
        self._completion, self._submitted = completion, False
        self._callback(self)

    def isSubmitted(self) -> bool:  # noqa: N802
        return self._submitted

    def cancel(self) -> None:
        self._port.board.cancel(self._id)

    def getStatus(self) -> int:  # noqa: N802
        return int(self._completion.status)

    def getActualLength(self) -> int:  # noqa: N802
        return len(self._completion.data)

    def getBuffer(self) -> bytes:  # noqa: N802
        return self._completion.data


class _Handle:
    def __init__(self, port: "Port"):
        self._port = port

    def claimInterface(self, interface: int) -> None:  # noqa: N802
        if self._port.claimed:
            raise USBErrorBusy
        self._port.claimed = True

    def close(self) -> None:
        self._port.claimed = False

    def getTransfer(self) -> _Transfer:  # noqa: N802
        return _Transfer(self._port)

    def controlRead(self, kind: int, request: int, value: int, index: int, length: int, timeout: int) -> bytes:  # noqa: N802
        return self._port.control(kind, request, value, index, length, b"", timeout)

    def controlWrite(self, kind: int, request: int, value: int, index: int, data: bytes, timeout: int) -> int:  # noqa: N802
        self._port.control(kind, request, value, index, len(data), data, timeout)
        return len(data)

    def clearHalt(self, endpoint: int) -> None:  # noqa: N802
        self._port.control(0x02, 1, 0, endpoint, 0, b"", 1000)


class Port:
    """A socket with a board in it, as usb1 presents the device.

    Parameters
    ----------
    board : which must have been reset.
    number : of the device.
    serial : serial number that it reports.

    Members
    -------
    plugged : False while the cable is out.
    forbidden : the user may not open the device.
    claimed : the device is in use.
    """

    def __init__(self, board: UsbBoard, number: int = 1, serial: str = "0"):
        self.board, self.number, self.serial = board, number, serial
        self.plugged, self.forbidden, self.claimed, self.high = False, False, False, True
        self.waiting: dict[int, _Transfer] = {}
        self.plug()

    def plug(self, high: bool = True) -> None:
        """Enumerates the device; ``high``: by a host that supports high speed."""
        self.high = self.board.reset(high)
        self.plugged = True
        self.control(0x00, 5, 16 + self.number, 0, 0, b"", 1000)
        self.control(0x00, 9, 1, 0, 0, b"", 1000)

    def unplug(self) -> None:
        """Pulls the cable; all transfers fail."""
        self.board.detach()
        self.plugged = False
        self.handle()

    def control(self, kind: int, request: int, value: int, index: int, length: int, data: bytes,
                timeout: int) -> bytes:
        """A control transfer; waits for its end."""
        if not self.plugged:
            raise USBErrorNoDevice
        answer = self.board.control(kind, request, value, index, length, data, USB_HZ * timeout // 1000 // _SLOWNESS)
        self.handle()
        if answer.status is Status.STALLED:
            raise USBErrorPipe
        if answer.status is Status.CANCELLED:
            raise USBErrorTimeout
        if answer.status is not Status.DONE:
            raise USBError(answer.status.name)
        return answer.data if kind & 0x80 else b""

    def handle(self) -> bool:
        """Reports transfers that have ended; returns whether there were any."""
        any_ended = False
        for completion in self.board.completions():
            any_ended = True
            if transfer := self.waiting.pop(completion.id, None):
                transfer.ended(completion)
        return any_ended

    def _string(self, index: int) -> str:
        if self.forbidden:
            raise USBErrorAccess
        return self.control(0x80, 6, 0x300 | index, 0x409, 255, b"", 1000)[2:].decode("utf-16-le")

    def getVendorID(self) -> int:  # noqa: N802
        return USB_VENDOR

    def getProductID(self) -> int:  # noqa: N802
        return USB_PRODUCT

    def getBusNumber(self) -> int:  # noqa: N802
        return 1

    def getDeviceAddress(self) -> int:  # noqa: N802
        return self.number

    def getDeviceSpeed(self) -> int:  # noqa: N802
        return Usb1.SPEED_HIGH if self.high else Usb1.SPEED_FULL

    def getManufacturer(self) -> str:  # noqa: N802
        return self._string(1)

    def getProduct(self) -> str:  # noqa: N802
        return self._string(2)

    def getSerialNumber(self) -> str:  # noqa: N802
        assert self._string(3)
        return self.serial

    def open(self) -> _Handle:
        if self.forbidden:
            raise USBErrorAccess
        return _Handle(self)


class _Device:
    """A port, as one context sees it."""

    def __init__(self, port: Port, context: "_Context"):
        self._port, self._context = port, context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def open(self) -> _Handle:
        handle = self._port.open()
        self._context.opened.add(self._port)
        return handle


class _Context:
    """Handles the events of the ports that it has opened."""

    def __init__(self, ports: tuple[Port, ...]):
        self._ports = ports
        self.opened: set[Port] = set()

    def open(self) -> "_Context":
        return self

    def __enter__(self) -> "_Context":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def getDeviceIterator(self, skip_on_error: bool) -> Iterator[_Device]:  # noqa: N802
        return (_Device(port, self) for port in self._ports if port.plugged)

    def handleEventsTimeout(self, seconds: float) -> None:  # noqa: N802
        for port in self.opened:
            if not port.handle() and seconds and port.plugged:
                port.board.run(int(seconds * USB_HZ / _SLOWNESS))
                port.handle()


class Usb1:
    """Replaces the module, with the boards of some ports plugged in."""

    USBError, USBErrorAccess, USBErrorBusy = USBError, USBErrorAccess, USBErrorBusy
    USBErrorPipe, USBErrorTimeout, USBErrorNoDevice = USBErrorPipe, USBErrorTimeout, USBErrorNoDevice
    SPEED_FULL, SPEED_HIGH = 2, 3
    TRANSFER_COMPLETED, TRANSFER_STALL, TRANSFER_ERROR = Status.DONE, Status.STALLED, Status.FAILED
    TRANSFER_OVERFLOW, TRANSFER_CANCELLED = Status.BABBLE, Status.CANCELLED

    def __init__(self, *ports: Port):
        self.ports = ports

    def USBContext(self) -> _Context:  # noqa: N802
        return _Context(self.ports)
