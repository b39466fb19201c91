"""The client's side of vfio-user: a function for the host's link, without a kernel between the two."""

import array
import mmap
import os
import socket
import struct
from pathlib import Path

__all__ = ["CONFIG", "VfioClient"]

_VERSION, _DMA_MAP, _SET_IRQS, _READ, _WRITE, _RESET = 1, 2, 8, 9, 10, 13
_BAR0, CONFIG, _MSI = 0, 7, 1
_HEAD = struct.Struct("<HHIII")


class VfioClient:
    """See :class:`hypermon.host.link.pcie.Function`; and what else a virtual machine does.

    Parameters
    ----------
    path : of the server's socket.
    msi : interrupts are wanted.
    """

    def __init__(self, path: Path, msi: bool = True):
        self._peer = socket.socket(socket.AF_UNIX)
        self._peer.settimeout(20)
        try:
            self._peer.connect(str(path))
        except OSError:
            self._peer.close()
            raise
        self._number = 0
        self._iova = 0x10000000
        self.interrupt: int | None = None
        self.call(_VERSION, struct.pack("<HH", 0, 0) + b"{}\0")
        if msi:
            self.interrupt = os.eventfd(0, os.EFD_NONBLOCK)
            self.call(_SET_IRQS, struct.pack("<IIIII", 20, 1 << 2 | 1 << 5, _MSI, 0, 1), [self.interrupt])

    def call(self, command: int, body: bytes, files: list[int] | None = None) -> bytes:
        """Sends a message; returns the body of its answer. Raises OSError if the server is gone or refuses."""
        self._number = self._number + 1 & 0xffff
        message = _HEAD.pack(self._number, command, _HEAD.size + len(body), 0, 0) + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self._peer.sendmsg([message], rights)
        number, _, size, flags, error = _HEAD.unpack(self._exactly(_HEAD.size))
        answer = self._exactly(size - _HEAD.size)
        assert number == self._number
        if flags & 0x20:
            raise OSError(error, os.strerror(error))
        return answer

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._peer.recv(size - len(data))
            if not piece:
                raise ConnectionResetError("the server is gone")
            data += piece
        return data

    def region_read(self, region: int, offset: int, count: int) -> bytes:
        return self.call(_READ, struct.pack("<QII", offset, region, count))[16:]

    def region_write(self, region: int, offset: int, data: bytes) -> None:
        self.call(_WRITE, struct.pack("<QII", offset, region, len(data)) + data)

    def read(self, offset: int) -> int:
        return int.from_bytes(self.region_read(_BAR0, offset, 4), "little")

    def write(self, offset: int, value: int) -> None:
        self.region_write(_BAR0, offset, value.to_bytes(4, "little"))

    def config(self, offset: int) -> int:
        return int.from_bytes(self.region_read(CONFIG, offset, 2), "little")

    def set_config(self, offset: int, value: int) -> None:
        self.region_write(CONFIG, offset, value.to_bytes(2, "little"))

    def reset(self) -> None:
        """Resets the link."""
        self.call(_RESET, b"")

    def memory(self, size: int) -> tuple[mmap.mmap, int]:
        file = os.memfd_create("ring")
        os.ftruncate(file, size)
        area = mmap.mmap(file, size)
        # In two parts, as an IOMMU may map it.
        for start, count in ((0, 4096), (4096, size - 4096)):
            self.call(_DMA_MAP, struct.pack("<IIQQQ", 32, 3, start, self._iova + start, count), [file])
        os.close(file)
        return area, self._iova

    def close(self) -> None:
        self._peer.close()
        if self.interrupt is not None:
            os.close(self.interrupt)
            self.interrupt = None
