"""A verilated board at the USB port of a virtual machine: a server of the usb-redir protocol.

The other side is QEMU (``-device usb-redir``), or any other program with version 0.7 of the protocol (spice/usbredir,
docs/usb-redirection-protocol.md). All numbers are little-endian.
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path

from hypermon.hdl.layout import USB_STREAM
from hypermon.sim.virtual.usb_board import Completion, Status, UsbBoard

__all__ = ["serve"]

#: Clocks of the bus between two checks of the socket.
_SLICE = 20_000
_ADDRESS = 1
_DEVICE, _CONFIGURATION = 0x100, 0x200
_BULK_FULL, _BULK_HIGH, _CONTROL = 64, 512, 64


class _Type(IntEnum):
    """Type of a packet."""

    HELLO = 0
    DEVICE_CONNECT = 1
    RESET = 3
    INTERFACE_INFO = 4
    EP_INFO = 5
    SET_CONFIGURATION = 6
    GET_CONFIGURATION = 7
    CONFIGURATION_STATUS = 8
    SET_ALT_SETTING = 9
    GET_ALT_SETTING = 10
    ALT_SETTING_STATUS = 11
    CANCEL_DATA_PACKET = 21
    FILTER_REJECT = 22
    FILTER_FILTER = 23
    DEVICE_DISCONNECT_ACK = 24
    CONTROL_PACKET = 100
    BULK_PACKET = 101


class _Capability(IntEnum):
    """What a side may support in addition to the first version of the protocol."""

    CONNECT_DEVICE_VERSION = 1
    EP_INFO_MAX_PACKET_SIZE = 4
    WIDE_IDS = 5
    WIDE_BULK_LENGTH = 6


_OURS = sum(1 << capability for capability in _Capability)
_STATUS = {Status.DONE: 0, Status.CANCELLED: 1, Status.FAILED: 3, Status.STALLED: 4, Status.BABBLE: 6}
_FULL_SPEED, _HIGH_SPEED = 1, 2
_TYPE_CONTROL, _TYPE_BULK, _TYPE_NONE = 0, 2, 255


def serve(board: UsbBoard, path: str, stop: threading.Event) -> None:
    """Serves one virtual machine at a Unix domain socket, until it disconnects or ``stop``.

    The board's time does not advance until the machine has connected.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(0.1)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                peer, _ = listener.accept()
                break
        else:
            return
    with peer, contextlib.suppress(ConnectionError):
        _Session(board, peer).run(stop)
    Path(path).unlink(missing_ok=True)


class _Session:
    """One connection."""

    def __init__(self, board: UsbBoard, peer: socket.socket):
        self._board, self._peer = board, peer
        self._came = bytearray()
        self._wide_ids = self._wide_length = False
        # Transfers in progress: by the board's number, the other side's, and the head of the answer.
        self._control: dict[int, tuple[int, bytes]] = {}
        self._bulk: dict[int, int] = {}
        self._handlers: dict[int, Callable[[int, bytes], None]] = {
            _Type.RESET: self._reset, _Type.SET_CONFIGURATION: self._set_configuration,
            _Type.GET_CONFIGURATION: self._get_configuration, _Type.SET_ALT_SETTING: self._alt_setting,
            _Type.GET_ALT_SETTING: self._alt_setting, _Type.CANCEL_DATA_PACKET: self._cancel,
            _Type.CONTROL_PACKET: self._control_packet, _Type.BULK_PACKET: self._bulk_packet,
        }

    def run(self, stop: threading.Event) -> None:
        """Runs until the other side disconnects."""
        self._send(_Type.HELLO, 0, struct.pack("<64sI", b"hypermon verilated board", _OURS))
        self._hello(self._packet(True))
        self._plug()
        self._connect()
        while not stop.is_set():
            while packet := self._packet(False):
                kind, number, body = packet
                if handler := self._handlers.get(kind):
                    handler(number, body)
            self._board.run(_SLICE)
            for completion in self._board.completions():
                self._ended(completion)

    # ------------------------------------------------------------------------------------- packets

    def _send(self, kind: int, number: int, body: bytes) -> None:
        head = struct.pack("<IIQ" if self._wide_ids else "<III", kind, len(body), number)
        self._peer.sendall(head + body)

    def _packet(self, wait: bool) -> tuple[int, int, bytes] | None:
        """The next packet: type, number, body. None if there is none, unless the call waits for one."""
        head = struct.Struct("<IIQ" if self._wide_ids else "<III")
        while True:
            if len(self._came) >= head.size:
                kind, length, number = head.unpack_from(self._came)
                end = head.size + length
                if len(self._came) >= end:
                    body = bytes(self._came[head.size:end])
                    del self._came[:end]
                    return kind, number, body
            if not wait and not select.select([self._peer], [], [], 0)[0]:
                return None
            piece = self._peer.recv(1 << 16)
            if not piece:
                raise ConnectionResetError
            self._came += piece

    def _hello(self, packet: tuple[int, int, bytes] | None) -> None:
        theirs = int.from_bytes(packet[2][64:68], "little") if packet else 0
        self._wide_ids = bool(theirs >> _Capability.WIDE_IDS & 1)
        self._wide_length = bool(theirs >> _Capability.WIDE_BULK_LENGTH & 1)
        self._versions = bool(theirs >> _Capability.CONNECT_DEVICE_VERSION & 1)
        self._sizes = bool(theirs >> _Capability.EP_INFO_MAX_PACKET_SIZE & 1)

    # -------------------------------------------------------------------------------------- device

    def _plug(self) -> None:
        self._high = self._board.reset()
        self._board.control(0x00, 5, _ADDRESS)
        self._control.clear()
        self._bulk.clear()

    def _connect(self) -> None:
        """Describes the device."""
        device = self._board.control(0x80, 6, _DEVICE, 0, 18).data
        interface = self._board.control(0x80, 6, _CONFIGURATION, 0, 255).data[14:17]
        self._send(_Type.INTERFACE_INFO, 0, struct.pack(
            "<I32s32s32s32s", 1, b"", interface[0:1], interface[1:2], interface[2:3]))
        self._endpoints()
        body = struct.pack("<B3s4s", _HIGH_SPEED if self._high else _FULL_SPEED, device[4:7], device[8:12])
        self._send(_Type.DEVICE_CONNECT, 0, body + (device[12:14] if self._versions else b""))

    def _endpoints(self) -> None:
        types, sizes = bytearray([_TYPE_NONE] * 32), [0] * 32
        for index, kind, size in ((0, _TYPE_CONTROL, _CONTROL), (16, _TYPE_CONTROL, _CONTROL),
                                  (16 | USB_STREAM & 15, _TYPE_BULK, _BULK_HIGH if self._high else _BULK_FULL)):
            types[index], sizes[index] = kind, size
        body = bytes(types) + bytes(64)
        self._send(_Type.EP_INFO, 0, body + (struct.pack("<32H", *sizes) if self._sizes else b""))

    def _reset(self, number: int, body: bytes) -> None:
        self._plug()
        self._board.completions()

    def _set_configuration(self, number: int, body: bytes) -> None:
        status = self._board.control(0x00, 9, body[0]).status
        self._endpoints()
        self._send(_Type.CONFIGURATION_STATUS, number, bytes((_STATUS[status], body[0])))

    def _get_configuration(self, number: int, body: bytes) -> None:
        answer = self._board.control(0x80, 8, 0, 0, 1)
        self._send(_Type.CONFIGURATION_STATUS, number, bytes((_STATUS[answer.status],)) + (answer.data or b"\0"))

    def _alt_setting(self, number: int, body: bytes) -> None:
        # There is only one alternative setting.
        self._send(_Type.ALT_SETTING_STATUS, number, bytes((0, body[0], 0)))

    # ----------------------------------------------------------------------------------- transfers

    def _control_packet(self, number: int, body: bytes) -> None:
        endpoint, request, kind, _, value, index, length = struct.unpack_from("<BBBBHHH", body)
        setup = struct.pack("<BBHHH", kind, request, value, index, length)
        ours = self._board.submit(0, length, setup=setup, data=b"" if kind & 0x80 else body[10:])
        self._control[ours] = number, struct.pack("<BBBxHH", endpoint, request, kind, value, index)

    def _bulk_packet(self, number: int, body: bytes) -> None:
        endpoint, _, length = struct.unpack_from("<BBH", body)
        if self._wide_length:
            length |= int.from_bytes(body[8:10], "little") << 16
        self._bulk[self._board.submit(endpoint, length)] = number

    def _cancel(self, number: int, body: bytes) -> None:
        for ours, theirs in [*self._bulk.items(), *((k, v[0]) for k, v in self._control.items())]:
            if theirs == number:
                self._board.cancel(ours)

    def _ended(self, completion: Completion) -> None:
        status, size = _STATUS[completion.status], len(completion.data)
        if completion.id in self._bulk:
            number = self._bulk.pop(completion.id)
            head = struct.pack("<BBHI", USB_STREAM, status, size & 0xffff, 0)
            if self._wide_length:
                head += struct.pack("<H", size >> 16)
            self._send(_Type.BULK_PACKET, number, head + completion.data)
        elif completion.id in self._control:
            number, head = self._control.pop(completion.id)
            reads = head[2] & 0x80
            head = head[:3] + bytes((status,)) + head[4:] + struct.pack("<H", size)
            self._send(_Type.CONTROL_PACKET, number, head + (completion.data if reads else b""))
