"""The driver of a PCIe function, against the kernel's side of VFIO and iommufd (``vfio_kernel.py``)."""

import ctypes
import errno
import os
import subprocess
from pathlib import Path

import pytest
from hypermon.host.link import vfio
from hypermon.host.link.vfio import VfioFunction

from .vfio_kernel import NUMBERS, STRUCTURES, VfioKernel

_SIZE = 5 * 4096


@pytest.fixture(params=[False, True], ids=["group", "iommufd"])
def kernel(request, tmp_path, monkeypatch):
    return machine(tmp_path, monkeypatch, request.param)


def machine(tmp_path, monkeypatch, cdev):
    kernel = VfioKernel(tmp_path, cdev)
    monkeypatch.setattr(vfio.fcntl, "ioctl", kernel.ioctl)
    return kernel


def opened(kernel: VfioKernel) -> VfioFunction:
    return VfioFunction(kernel.BDF, kernel.sys, kernel.dev)


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/usr/include/linux/vfio.h").exists(), reason="the kernel's headers are not installed")
def test_the_headers_say_the_same(tmp_path):
    """Numbers of requests and sizes of structures, by the compiler, of those that this machine's headers have."""
    source, program = tmp_path / "ask.cpp", tmp_path / "ask"
    structures = {kind.__name__: ctypes.sizeof(kind) for kind in STRUCTURES}
    lines = ["#include <cstdio>", "#include <linux/vfio.h>", "#if __has_include(<linux/iommufd.h>)",
             "#include <linux/iommufd.h>", "#endif", "int main() {"]
    for name in NUMBERS:
        lines += [f"#ifdef {name}", f'std::printf("{name} %ld\\n", (long){name});', "#endif"]
    lines += [f'std::printf("{name} %zu\\n", sizeof({name}));' for name in structures
              if name in Path("/usr/include/linux/vfio.h").read_text()]
    source.write_text("\n".join([*lines, "}"]))
    subprocess.run(["g++", "-o", str(program), str(source)], check=True)
    found = dict(line.split() for line in subprocess.run([program], capture_output=True, text=True).stdout.splitlines())
    assert len(found) >= 13
    for name, value in found.items():
        assert int(value) == {**NUMBERS, **structures}[name], name


def test_opens(kernel):
    """By the function's own file where there is one, otherwise by its group; each step as the kernel wants it."""
    before = open_files()
    function = opened(kernel)
    own = "VFIO_DEVICE_BIND_IOMMUFD" in kernel.calls
    assert own == (kernel.dev / "iommu").exists()
    assert ("VFIO_GROUP_GET_STATUS" in kernel.calls) != own
    area, iova = function.memory(_SIZE)
    (mapped,) = kernel.mapped
    assert mapped[:2] == (iova, _SIZE)
    assert len(area) == _SIZE
    assert not any(area[:])
    ctypes.memset(mapped[2] + _SIZE - 1, 0x5a, 1)
    assert area[_SIZE - 1] == 0x5a, "that is the memory which the function writes"
    function.close()
    function.close()
    assert open_files() == before


def test_accesses(kernel):
    function = opened(kernel)
    function.write(0x408, 0x11223344)
    assert function.read(0x408) == 0x11223344
    function.set_config(4, 0x0406)
    assert function.config(4) == 0x0406
    contents = kernel.function.read_bytes()
    assert contents[kernel.bar + 0x408:][:4] == b"\x44\x33\x22\x11"
    assert contents[kernel.config + 4:][:2] == b"\x06\x04"
    os.truncate(kernel.function, kernel.bar)
    with pytest.raises(OSError, match="short read"):
        function.read(0x408)
    function.close()


def test_interrupts(kernel):
    function = opened(kernel)
    assert function.interrupt is not None
    os.write(kernel.eventfd, (1).to_bytes(8, "little"))
    assert os.read(function.interrupt, 8) == (1).to_bytes(8, "little")
    with pytest.raises(BlockingIOError):
        os.read(function.interrupt, 8)
    function.close()


def test_a_function_without_interrupts(kernel):
    kernel.vectors = 0
    function = opened(kernel)
    assert function.interrupt is None
    assert kernel.eventfd is None
    function.close()


def test_an_address_that_the_iommu_refuses(kernel):
    kernel.reserved = (0, 0x2000_0000)
    function = opened(kernel)
    _, iova = function.memory(_SIZE)
    assert iova >= 0x2000_0000
    function.close()


def test_no_address(kernel):
    kernel.reserved = (0, 1 << 63)
    function = opened(kernel)
    with pytest.raises(OSError, match="Invalid argument"):
        function.memory(_SIZE)
    function.close()


def test_too_much_locked_memory(kernel):
    """Said at once: another address would not help."""
    kernel.locked = _SIZE - 1
    function = opened(kernel)
    with pytest.raises(OSError, match="memory") as refused:
        function.memory(_SIZE)
    assert refused.value.errno == errno.ENOMEM
    assert sum("MAP" in call for call in kernel.calls) == 1
    function.close()


def test_a_group_in_use(tmp_path, monkeypatch):
    kernel, before = machine(tmp_path, monkeypatch, False), open_files()
    kernel.viable = False
    with pytest.raises(OSError, match="another function of its IOMMU group") as refused:
        opened(kernel)
    assert refused.value.errno == errno.EBUSY
    assert open_files() == before, "nothing stays open"


@pytest.mark.parametrize("step", ["VFIO_GROUP_SET_CONTAINER", "VFIO_SET_IOMMU", "VFIO_GROUP_GET_DEVICE_FD",
                                  "VFIO_DEVICE_GET_REGION_INFO", "VFIO_DEVICE_SET_IRQS", "VFIO_DEVICE_BIND_IOMMUFD",
                                  "IOMMU_IOAS_ALLOC", "VFIO_DEVICE_ATTACH_IOMMUFD_PT"])
def test_a_step_fails(tmp_path, monkeypatch, step):
    """Nothing stays open."""
    kernel, before = machine(tmp_path, monkeypatch, "IOMMU" in step and step != "VFIO_SET_IOMMU"), open_files()
    monkeypatch.setattr(kernel, f"_{step.lower()}", lambda file, room: -errno.EBUSY)
    with pytest.raises(OSError, match="busy"):
        opened(kernel)
    assert open_files() == before


@pytest.mark.parametrize("missing", ["iommu", "vfio/devices/vfio3"])
def test_without_all_of_iommufd_by_the_group(tmp_path, monkeypatch, missing):
    kernel = machine(tmp_path, monkeypatch, True)
    (kernel.dev / missing).unlink()
    opened(kernel).close()
    assert "VFIO_GROUP_GET_DEVICE_FD" in kernel.calls


@pytest.mark.parametrize("forbidden", ["iommu", "vfio/devices/vfio3"])
def test_without_permission_for_iommufd_by_the_group(tmp_path, monkeypatch, forbidden):
    kernel = machine(tmp_path, monkeypatch, True)
    real, before = os.open, open_files()

    def guarded(path, *more):
        if Path(path) == kernel.dev / forbidden:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *more)
    monkeypatch.setattr(vfio.os, "open", guarded)
    opened(kernel).close()
    assert "VFIO_GROUP_GET_DEVICE_FD" in kernel.calls
    assert open_files() == before
    (kernel.dev / "vfio" / "7").unlink()
    with pytest.raises(PermissionError):
        opened(kernel)
