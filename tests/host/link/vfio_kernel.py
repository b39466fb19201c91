"""The kernel's side of VFIO and iommufd, as a driver in user space sees it: ioctls, and files to read and write.

Written from Linux 6.12, include/uapi/linux/vfio.h and iommufd.h, and from what drivers/vfio and drivers/iommu/iommufd
refuse; nothing here is taken from the driver that it judges. Structures are those of the headers, field by field.
"""

import ctypes
import errno
import os
from ctypes import POINTER, Structure, c_char, c_int32, c_uint32, c_uint64, cast
from pathlib import Path

__all__ = ["NUMBERS", "STRUCTURES", "VfioKernel"]

_VFIO, _IOMMUFD = ord(";") << 8 | 100, ord(";") << 8
#: Requests by the names of the headers: _IO(type, number).
NUMBERS = {
    "VFIO_SET_IOMMU": _VFIO + 2, "VFIO_GROUP_GET_STATUS": _VFIO + 3, "VFIO_GROUP_SET_CONTAINER": _VFIO + 4,
    "VFIO_GROUP_GET_DEVICE_FD": _VFIO + 6, "VFIO_DEVICE_GET_REGION_INFO": _VFIO + 8,
    "VFIO_DEVICE_GET_IRQ_INFO": _VFIO + 9, "VFIO_DEVICE_SET_IRQS": _VFIO + 10, "VFIO_IOMMU_MAP_DMA": _VFIO + 13,
    "VFIO_DEVICE_BIND_IOMMUFD": _VFIO + 18, "VFIO_DEVICE_ATTACH_IOMMUFD_PT": _VFIO + 19,
    "IOMMU_IOAS_ALLOC": _IOMMUFD + 0x81, "IOMMU_IOAS_MAP": _IOMMUFD + 0x85}
_NAMES = {number: name for name, number in NUMBERS.items()}


def _structure(name: str, **fields) -> type[Structure]:
    return type(name, (Structure,), {"_fields_": list(fields.items())})


_32, _64 = c_uint32, c_uint64
GroupStatus = _structure("vfio_group_status", argsz=_32, flags=_32)
RegionInfo = _structure("vfio_region_info", argsz=_32, flags=_32, index=_32, cap_offset=_32, size=_64, offset=_64)
IrqInfo = _structure("vfio_irq_info", argsz=_32, flags=_32, index=_32, count=_32)
IrqSet = _structure("vfio_irq_set", argsz=_32, flags=_32, index=_32, start=_32, count=_32)
MapDma = _structure("vfio_iommu_type1_dma_map", argsz=_32, flags=_32, vaddr=_64, iova=_64, size=_64)
Bind = _structure("vfio_device_bind_iommufd", argsz=_32, flags=_32, iommufd=c_int32, out_devid=_32)
Attach = _structure("vfio_device_attach_iommufd_pt", argsz=_32, flags=_32, pt_id=_32)
IoasAlloc = _structure("iommu_ioas_alloc", size=_32, flags=_32, out_ioas_id=_32)
IoasMap = _structure(
    "iommu_ioas_map", size=_32, flags=_32, ioas_id=_32, reserved=_32, user_va=_64, length=_64, iova=_64)
STRUCTURES = (GroupStatus, RegionInfo, IrqInfo, IrqSet, MapDma, Bind, Attach, IoasAlloc, IoasMap)

_PAGE = 4096
_BAR0, _CONFIG, _MSI, _REGIONS, _IRQS = 0, 7, 1, 9, 5
_IOAS = 77


class VfioKernel:
    """A machine with one function in IOMMU group 7, its files below ``root``, and the ioctls on them.

    Members
    -------
    viable : no other function of the group has a driver of its own.
    reserved : addresses that the IOMMU refuses, as (first, one past the last).
    locked : bytes that the user may pin.
    vectors : MSI that the function has.
    mapped : (iova, size, user address) of each mapping. eventfd : what an interrupt is written to.
    memory : contents of the function's own file: BAR0 from ``bar``, the configuration space from ``config`` on.
    calls : names of the requests so far.
    """

    BDF = "0000:01:00.0"
    bar, config = 0x2000, 0x7000

    def __init__(self, root: Path, cdev: bool):
        self.sys, self.dev = root / "sys", root / "dev"
        self.viable, self.reserved, self.locked, self.vectors = True, (0xfee00000, 0xfef00000), 8 << 20, 1
        self.mapped: list[tuple[int, int, int]] = []
        self.eventfd: int | None = None
        self.calls: list[str] = []
        self._container: int | None = None
        self._iommu = self._bound = self._attached = False
        place = self.sys / "bus" / "pci" / "devices" / self.BDF
        place.mkdir(parents=True)
        (self.sys / "kernel" / "iommu_groups" / "7").mkdir(parents=True)
        (place / "iommu_group").symlink_to(self.sys / "kernel" / "iommu_groups" / "7")
        (self.dev / "vfio" / "devices").mkdir(parents=True)
        self.function = self.dev / "function"
        for path in (self.dev / "vfio" / "vfio", self.dev / "vfio" / "7", self.function):
            path.touch()
        os.truncate(self.function, self.config + 4096)
        if cdev:
            (place / "vfio-dev" / "vfio3").mkdir(parents=True)
            (self.dev / "iommu").touch()
            os.link(self.function, self.dev / "vfio" / "devices" / "vfio3")

    def _is(self, file: int, *path: str) -> bool:
        wanted = self.dev.joinpath(*path)
        return wanted.exists() and os.path.samestat(os.fstat(file), wanted.stat())

    def ioctl(self, file: int, request: int, argument: object = 0, mutate: bool = True) -> int:
        """As :func:`fcntl.ioctl`. Raises OSError."""
        name = _NAMES.get(request)
        if name is None:
            raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")
        self.calls.append(name)
        # What is immutable is passed as a copy.
        room = argument if isinstance(argument, bytearray) or argument is None else bytearray(argument) if isinstance(
            argument, bytes) else argument
        error = getattr(self, f"_{name.lower()}")(file, room)
        if error < 0:
            raise OSError(-error, os.strerror(-error))
        return error

    @staticmethod
    def _take(kind: type[Structure], room: object):
        assert isinstance(room, bytearray), "a pointer"
        assert len(room) >= ctypes.sizeof(kind), "the kernel would read beyond it"
        found = cast((c_char * len(room)).from_buffer(room), POINTER(kind)).contents
        return found if getattr(found, kind._fields_[0][0]) >= ctypes.sizeof(kind) else None

    # ---- the group, /dev/vfio/7, and its container, /dev/vfio/vfio

    def _vfio_group_get_status(self, file, room):
        status = self._take(GroupStatus, room)
        if not self._is(file, "vfio", "7") or not status:
            return -errno.ENOTTY
        status.flags = self.viable | (self._container is not None) << 1
        return 0

    def _vfio_group_set_container(self, file, room):
        container = int.from_bytes(room[:4], "little", signed=True)
        if not self._is(file, "vfio", "7") or self._container is not None or not self._is(container, "vfio", "vfio"):
            return -errno.EINVAL
        if not self.viable:
            return -errno.EPERM
        self._container = container
        return 0

    def _vfio_set_iommu(self, file, argument):
        if not self._is(file, "vfio", "vfio") or self._container is None or argument not in (1, 3):
            return -errno.EINVAL
        self._iommu = True
        return 0

    def _vfio_group_get_device_fd(self, file, room):
        if not self._is(file, "vfio", "7") or not self._iommu:
            return -errno.EINVAL
        if bytes(room).split(b"\0")[0].decode() != self.BDF or b"\0" not in room:
            return -errno.ENODEV
        self._attached = True
        return os.open(self.function, os.O_RDWR)

    def _vfio_iommu_map_dma(self, file, room):
        request = self._take(MapDma, room)
        if not self._is(file, "vfio", "vfio") or not self._iommu or not request or not request.flags & 3:
            return -errno.EINVAL
        return self._map(request.iova, request.size, request.vaddr)

    def _map(self, iova, size, address):
        if not size or (iova | size | address) % _PAGE:
            return -errno.EINVAL
        if any(first < iova + size and iova < first + count for first, count, _ in self.mapped):
            return -errno.EEXIST
        if iova < self.reserved[1] and self.reserved[0] < iova + size:
            return -errno.EINVAL
        if sum(count for _, count, _ in self.mapped) + size > self.locked:
            return -errno.ENOMEM
        self.mapped.append((iova, size, address))
        return 0

    # ---- the function's own file, /dev/vfio/devices/vfio3, and /dev/iommu

    def _vfio_device_bind_iommufd(self, file, room):
        request = self._take(Bind, room)
        if not self._is(file, "vfio", "devices", "vfio3") or not request or request.flags or self._bound:
            return -errno.EINVAL
        if not self._is(request.iommufd, "iommu"):
            return -errno.EBADF
        self._bound, request.out_devid = True, 5
        return 0

    def _iommu_ioas_alloc(self, file, room):
        request = self._take(IoasAlloc, room)
        if not self._is(file, "iommu") or not request or request.flags:
            return -errno.EINVAL
        request.out_ioas_id = _IOAS
        return 0

    def _vfio_device_attach_iommufd_pt(self, file, room):
        request = self._take(Attach, room)
        if not self._is(file, "vfio", "devices", "vfio3") or not request or request.flags or not self._bound:
            return -errno.EINVAL
        if request.pt_id != _IOAS:
            return -errno.ENOENT
        self._attached = True
        return 0

    def _iommu_ioas_map(self, file, room):
        request = self._take(IoasMap, room)
        if not self._is(file, "iommu") or not request or request.reserved or request.flags & ~7:
            return -errno.EOPNOTSUPP
        if request.ioas_id != _IOAS:
            return -errno.ENOENT
        if request.flags != 7:
            return -errno.EINVAL        # the driver names the address, and the function reads and writes there
        return self._map(request.iova, request.length, request.user_va)

    # ---- the function

    def _reached(self, file):
        return self._is(file, "function") and self._attached

    def _vfio_device_get_region_info(self, file, room):
        request = self._take(RegionInfo, room)
        if not self._reached(file) or not request or request.index >= _REGIONS:
            return -errno.EINVAL
        size = {_BAR0: 8192, _CONFIG: 4096}.get(request.index, 0)
        request.flags, request.size = 3 if size else 0, size
        request.offset = {_BAR0: self.bar, _CONFIG: self.config}.get(request.index, 0)
        return 0

    def _vfio_device_get_irq_info(self, file, room):
        request = self._take(IrqInfo, room)
        if not self._reached(file) or not request or request.index >= _IRQS:
            return -errno.EINVAL
        request.flags, request.count = 1 | 1 << 3, self.vectors if request.index == _MSI else 0
        return 0

    def _vfio_device_set_irqs(self, file, room):
        request = self._take(IrqSet, room)
        if not self._reached(file) or not request or request.argsz != ctypes.sizeof(IrqSet) + 4 * request.count:
            return -errno.EINVAL
        if request.flags != 1 << 2 | 1 << 5 or request.index != _MSI or request.start + request.count > self.vectors:
            return -errno.EINVAL
        self.eventfd = int.from_bytes(room[20:24], "little", signed=True)
        return 0
