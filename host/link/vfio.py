"""A PCIe function through the kernel's VFIO: configuration space, BAR0, memory for the device, interrupts.

Source: Linux, include/uapi/linux/vfio.h and iommufd.h.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["VfioFunction"]

assert sys.platform == "linux"      # no other has it

_BAR0, _CONFIG, _MSI = 0, 7, 1
_TYPE1V2 = 3
#: Addresses at which the device may find its memory: the first one that the IOMMU accepts is used.
_ADDRESSES = (0x1000_0000, 0x1_0000_0000, 0x4000_0000)


def _vfio(number: int) -> int:
    return ord(";") << 8 | 100 + number


def _iommu(number: int) -> int:
    return ord(";") << 8 | 0x80 + number


_GROUP_STATUS, _SET_CONTAINER, _GET_DEVICE = _vfio(3), _vfio(4), _vfio(6)
_SET_IOMMU, _MAP_DMA = _vfio(2), _vfio(13)
_REGION_INFO, _IRQ_INFO, _SET_IRQS = _vfio(8), _vfio(9), _vfio(10)
_BIND, _ATTACH = _vfio(18), _vfio(19)
_IOAS_ALLOC, _IOAS_MAP = _iommu(1), _iommu(5)


class VfioFunction:
    """A function that driver vfio-pci has; see :class:`hypermon.host.link.pcie.Function`.

    Through iommufd, if the kernel has the function's own file; otherwise through its IOMMU group.

    Parameters
    ----------
    bdf : its address, such as 0000:01:00.0.
    sysfs, dev : where sysfs and the devices are.

    Raises
    ------
    OSError
        if it cannot be opened.
    """

    def __init__(self, bdf: str, sysfs: Path = Path("/sys"), dev: Path = Path("/dev")):
        self.interrupt: int | None = None
        self._files: list[int] = []
        self._memory: list[mmap.mmap] = []
        self._device = -1
        place = sysfs / "bus" / "pci" / "devices" / bdf
        try:
            own = sorted(path.name for path in (place / "vfio-dev").glob("vfio*"))
            group = dev / "vfio" / (place / "iommu_group").resolve().name
            if not (own and self._by_iommufd(dev / "vfio" / "devices" / own[0], dev / "iommu", group)):
                self._by_group(bdf, group, dev / "vfio" / "vfio")
            self._bar, self._config = self._region(_BAR0), self._region(_CONFIG)
            self._listen()
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------------------------- opening

    def _open(self, path: Path) -> int:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._files.append(file)
        return file

    def _by_group(self, bdf: str, group_path: Path, container_path: Path) -> None:
        container, group = self._open(container_path), self._open(group_path)
        status = bytearray(struct.pack("<II", 8, 0))
        fcntl.ioctl(group, _GROUP_STATUS, status)
        if not struct.unpack("<II", status)[1] & 1:
            raise OSError(errno.EBUSY, "another function of its IOMMU group is in use")
        fcntl.ioctl(group, _SET_CONTAINER, struct.pack("<i", container))
        fcntl.ioctl(container, _SET_IOMMU, _TYPE1V2)
        self._device = fcntl.ioctl(group, _GET_DEVICE, bytearray(bdf.encode() + b"\0"), True)
        self._files.append(self._device)

        def attempt(address: int, size: int, iova: int) -> int:
            fcntl.ioctl(container, _MAP_DMA, struct.pack("<IIQQQ", 32, 3, address, iova, size))
            return iova

        self._map: Callable[[int, int, int], int] = attempt

    def _by_iommufd(self, device_path: Path, iommu_path: Path, group_path: Path) -> bool:
        """False: there is no iommufd, or it is forbidden to this user, who has the group's file."""
        try:
            iommu, self._device = self._open(iommu_path), self._open(device_path)
        except (FileNotFoundError, PermissionError) as error:
            if isinstance(error, PermissionError) and not os.access(group_path, os.R_OK | os.W_OK):
                raise
            self.close()
            return False
        fcntl.ioctl(self._device, _BIND, bytearray(struct.pack("<IIiI", 16, 0, iommu, 0)))
        space = bytearray(struct.pack("<III", 12, 0, 0))
        fcntl.ioctl(iommu, _IOAS_ALLOC, space)
        number = struct.unpack("<III", space)[2]
        fcntl.ioctl(self._device, _ATTACH, bytearray(struct.pack("<III", 12, 0, number)))

        def attempt(address: int, size: int, iova: int) -> int:
            # Flags: this very address, readable, writable.
            fcntl.ioctl(iommu, _IOAS_MAP, bytearray(struct.pack("<IIIIQQQ", 40, 7, number, 0, address, size, iova)))
            return iova

        self._map = attempt
        return True

    def _region(self, index: int) -> int:
        """The offset of a region in the device's file."""
        info = bytearray(struct.pack("<IIIIQQ", 32, 0, index, 0, 0, 0))
        fcntl.ioctl(self._device, _REGION_INFO, info)
        return int(struct.unpack("<IIIIQQ", info)[5])

    def _listen(self) -> None:
        info = bytearray(struct.pack("<IIII", 16, 0, _MSI, 0))
        fcntl.ioctl(self._device, _IRQ_INFO, info)
        if not struct.unpack("<IIII", info)[3]:
            return
        self.interrupt = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._files.append(self.interrupt)
        # Flags: data are event file descriptors; they are triggered.
        fcntl.ioctl(self._device, _SET_IRQS, bytearray(struct.pack(
            "<IIIIIi", 24, 1 << 2 | 1 << 5, _MSI, 0, 1, self.interrupt)))

    # --------------------------------------------------------------------------------- the function

    # BAR0 is accessed through the file and not through a mapping: a mapping of a device that is gone ends the process.

    def read(self, offset: int) -> int:
        return int.from_bytes(self._pread(4, self._bar + offset), "little")

    def write(self, offset: int, value: int) -> None:
        os.pwrite(self._device, value.to_bytes(4, "little"), self._bar + offset)

    def config(self, offset: int) -> int:
        return int.from_bytes(self._pread(2, self._config + offset), "little")

    def set_config(self, offset: int, value: int) -> None:
        os.pwrite(self._device, value.to_bytes(2, "little"), self._config + offset)

    def _pread(self, count: int, at: int) -> bytes:
        data = os.pread(self._device, count, at)
        if len(data) != count:
            raise OSError(errno.EIO, "short read")
        return data

    def memory(self, size: int) -> tuple[mmap.mmap, int]:
        area = mmap.mmap(-1, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(area))
        for iova in _ADDRESSES:
            try:
                self._map(address, size, iova)
            except OSError as error:
                if error.errno == errno.ENOMEM or iova == _ADDRESSES[-1]:
                    raise
                continue
            self._memory.append(area)
            return area, iova
        raise AssertionError

    def close(self) -> None:
        # The device's file last but for what it stands on: with it, DMA ends.
        for file in reversed(self._files):
            os.close(file)
        self._files.clear()
        self._memory.clear()
