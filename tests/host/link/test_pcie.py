"""The host's PCIe link against a function that behaves as docs/pcie.md says, and against one that does not.

``tests/sim/virtual/pcie/test_pcie_board.py`` has the same link at the gateware.
"""

import errno
import mmap
import os
import struct
from pathlib import Path

import pytest
from hypermon.host.cli import cli
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import pcie, pcie_functions
from hypermon.host.link.pcie import PcieLink, find_boards, open_board

ONES = 0xffffffff
ID, CONTROL, STATUS, LOW, HIGH, PAGES, HEAD, TAIL, ARM, STARTS, TIMEOUTS = (
    0x400, 0x404, 0x408, 0x40c, 0x410, 0x414, 0x418, 0x41c, 0x420, 0x430, 0x434)
BDF = "0000:01:00.0"
IOVA = 0x1_2345_6000


class Slot:
    """A function, its ring in memory, and what may happen to it.

    Members
    -------
    gone : everything reads as ones, as the kernel answers for a device that is not there. raises: the kernel refuses.
    busy : so many reads of STATUS until the board has carried out a write to register 0; None: for ever.
    late : reads of a register that are answered with ones first.
    """

    magic = 0x45494350

    def __init__(self):
        self.registers = {ID: self.magic, STATUS: 0b100, STARTS: 4, TIMEOUTS: 0, 0x10: ONES, 0x14: 77}
        self.settings = {4: 0x0010, 0: 0x1209}
        self.gone = self.closed = False
        self.raises: OSError | None = None
        self.busy: int | None = 0
        self.waits, self.late = 0, {}
        self.accesses = []
        self.interrupt = None
        self.refuses_memory: int | None = None
        self.ring = None

    def _here(self):
        if self.raises:
            raise self.raises
        assert not self.closed, "an access after the end"
        return not self.gone

    def read(self, offset):
        if not self._here():
            return ONES
        if self.late.get(offset):
            self.late[offset] -= 1
            self.registers[TIMEOUTS] = self.registers[TIMEOUTS] + 1 & 255
            self.waits = 3
            return ONES
        if offset == STATUS:
            busy, self.waits = self.waits != 0, max(self.waits - 1, 0) if self.busy is not None else 1
            return self.registers[STATUS] | busy << 5
        if self.waits and not 0x400 <= offset < 0x440:
            self.registers[TIMEOUTS] += 1
            return ONES
        return self.registers.get(offset, 0)

    def write(self, offset, value):
        if not self._here():
            return
        self.accesses.append((offset, value))
        assert not self.waits or 0x400 <= offset < 0x440, "the board would drop it"
        if offset == 0:
            self.waits = self.busy if self.busy is not None else 1
        if offset == CONTROL and value & 1 and not self.registers[STATUS] & 1:
            self.registers[STATUS] |= 1
            self.registers[STARTS] += 1
            self.head = 0
        if offset == CONTROL and not value & 1:
            self.registers[STATUS] &= ~1
        self.registers[offset] = value

    def config(self, offset):
        return self.settings.get(offset, 0) if self._here() else 0xffff

    def set_config(self, offset, value):
        if self._here():
            self.settings[offset] = value

    def memory(self, size):
        self._here()
        if self.refuses_memory:
            raise OSError(self.refuses_memory, os.strerror(self.refuses_memory))
        self.size, self.ring = size - 4096, mmap.mmap(-1, size)
        return self.ring, IOVA

    def close(self):
        self.closed = True

    def sends(self, data, number=None):
        """Writes into the ring and reports it, as the function does."""
        for byte in data:
            self.ring[self.head % self.size] = byte
            self.head += 1
        self.ring[self.size:self.size + 8] = struct.pack(
            "<II", self.head & ONES, self.registers[STARTS] if number is None else number)


def linked(slot=None, **options):
    slot = slot or Slot()
    return PcieLink("pcie:test", lambda: slot, **options), slot


def test_starts():
    link, slot = linked()
    assert slot.settings[4] == 0x0016, "memory, bus master, and what was set before"
    assert (slot.registers[LOW], slot.registers[HIGH], slot.registers[PAGES]) == (0x23456000, 1, 10)
    assert slot.accesses[0] == (CONTROL, 0), "what another program has left is stopped first"
    assert slot.accesses[-1] == (CONTROL, 1)
    assert len(slot.ring) == (4 << 20) + 4096
    assert not link.away
    link.close()
    link.close()
    assert slot.accesses[-1] == (CONTROL, 0)
    assert slot.closed


def test_stream_and_wrap():
    link, slot = linked(pages_log=0)
    sent = b""
    for k in range(20):
        piece = bytes([k]) * (256 * (k % 15 + 1))
        slot.sends(piece)
        sent += piece
        got = b""
        while len(got) < len(piece):
            got += link.stream(1000)
        assert got == piece
        assert slot.registers[TAIL] == len(sent) & ONES
    assert link.stream(1000) == b""
    assert slot.registers[ARM] == len(sent)
    link.close()


def test_a_report_of_an_earlier_start_does_not_count():
    link, slot = linked()
    slot.sends(bytes(64), number=slot.registers[STARTS] - 1)
    assert link.stream(1000) == b""
    link.close()


def test_more_than_the_ring_holds():
    link, slot = linked(pages_log=0)
    slot.sends(bytes(4096 + 16))
    with pytest.raises(LinkError, match="reports 4,112 bytes in a ring of 4,096"):
        link.stream(1 << 20)


@pytest.mark.parametrize("how", ["ones", "error"])
@pytest.mark.parametrize("access", ["read", "write", "stream", "burst"])
def test_gone(how, access, monkeypatch):
    """The board disappears: registers raise, the stream is silent, what had arrived is kept, and it is opened again."""
    monkeypatch.setattr(pcie, "_LOOK_S", 0)
    slots = [Slot()]

    def opener():
        slots[-1].closed = False
        return slots[-1]
    link, first = PcieLink("pcie:test", opener), slots[0]
    first.sends(b"a" * 32)
    if how == "ones":
        first.gone = True
    else:
        first.raises = OSError(errno.ENODEV, "No such device")
    calls = {"read": lambda: link.read(0x14), "write": lambda: link.write(0x14, 1), "burst": lambda: link.read_burst(
        0x10, 2)}
    second = Slot()
    second.gone = True
    slots.append(second)        # what is opened meanwhile does not answer
    if access == "stream":
        got = b""
        while not link.away or len(got) < 32:
            got += link.stream(16)
        assert got == b"a" * 32
    else:
        with pytest.raises(LinkError, match="the board is gone; hypermon devices says why"):
            calls[access]()
        assert link.stream(100) == b"a" * 32
    assert link.away
    assert first.closed
    assert link.stream(100) == b""
    with pytest.raises(LinkError, match="gone"):
        link.read(0x14)
    assert not link.outages
    assert second.closed, "nothing that was opened in vain stays open"
    slots.append(Slot())
    assert link.stream(100) == b""
    assert not link.away
    (outage,) = link.outages
    assert outage.since <= outage.until
    assert link.read(0x14) == 77
    slots[-1].sends(b"b" * 16)
    assert link.stream(100) == b"b" * 16
    link.close()


def test_ones_are_a_value_while_the_function_is_there():
    link, _ = linked()
    assert link.read(0x10) == ONES
    assert not link.away
    link.close()


def test_a_late_board():
    """A read that was given up is repeated; no write follows before the board has carried out the one before."""
    link, slot = linked()
    slot.late[0x14] = 1
    assert link.read(0x14) == 77
    slot.busy = 5
    for value in (1, 3):
        link.write(0, value)
        link.write(0x14, value)
        assert link.read(0x14) == value
    link.close()


def test_a_board_that_never_answers(monkeypatch):
    monkeypatch.setattr(pcie, "_LATE_S", 0.05)
    link, slot = linked()
    slot.busy = None
    with pytest.raises(LinkError, match="the board does not answer; switch it off and on"):
        link.write(0, 1)


@pytest.mark.parametrize(("change", "reason"), [
    ({STATUS: 0b100}, None), ({STARTS: 99}, None), ({STATUS: ONES}, None)])
def test_another_has_stopped_the_ring(change, reason, monkeypatch):
    """In silence, the link looks: a ring that is not running, or not its own any more, is an outage."""
    monkeypatch.setattr(pcie, "_LOOK_S", 0)
    link, slot = linked()
    monkeypatch.setattr(pcie, "_LOOK_S", 1000)
    link._checked = -1e9
    slot.registers.update(change)
    link.stream(16)
    assert link.away


@pytest.mark.parametrize(("change", "reason"), [
    (lambda s: s.registers.update({ID: 0x12345678}), "is not a HYPERMON board \\(its PCIE_ID is 0x12345678"),
    (lambda s: setattr(s, "gone", True), "does not answer \\(its registers read as ones"),
    (lambda s: setattr(s, "raises", OSError(5, "Input/output error")), "does not answer \\(.*Input/output error"),
    (lambda s: s.registers.update({STATUS: 0b10100}), "its ring does not start, PCIE_STATUS is 0x15"),
    (lambda s: setattr(s, "refuses_memory", errno.ENOMEM), "may not keep 4 MiB in memory; before .*: ulimit -l"),
    (lambda s: setattr(s, "refuses_memory", errno.EINVAL), "does not answer \\(.*Invalid argument"),
])
def test_no_board(change, reason):
    slot = Slot()
    change(slot)
    with pytest.raises(HypermonError, match=reason):
        linked(slot)
    assert slot.closed


def test_a_ring_that_does_not_stop(monkeypatch):
    monkeypatch.setattr(pcie, "_STOP_S", 0.02)
    slot = Slot()
    slot.registers[STATUS] |= 1
    slot.write = lambda offset, value: None
    with pytest.raises(HypermonError, match="its ring does not stop"):
        linked(slot)


def test_interrupts_are_waited_for(monkeypatch):
    slot = Slot()
    slot.interrupt = os.eventfd(1, os.EFD_NONBLOCK)
    link, _ = linked(slot)
    assert link.stream(16) == b""
    with pytest.raises(BlockingIOError):
        os.read(slot.interrupt, 8)
    assert link.stream(16) == b"", "and in vain if there is none"
    link.close()
    os.close(slot.interrupt)


# ------------------------------------------------------------------------------------ found and opened

@pytest.fixture
def sysfs(tmp_path, monkeypatch):
    """A machine with one board, which driver vfio-pci has."""
    place = tmp_path / "bus" / "pci" / "devices" / BDF
    place.mkdir(parents=True)
    (place / "vendor").write_text("0x1209\n")
    (place / "device").write_text("0x0001\n")
    for what in ("kernel/iommu_groups/7", "bus/pci/drivers/vfio-pci", "bus/pci/drivers/other"):
        (tmp_path / what).mkdir(parents=True)
    (place / "iommu_group").symlink_to(tmp_path / "kernel" / "iommu_groups" / "7")
    (place / "driver").symlink_to(tmp_path / "bus" / "pci" / "drivers" / "vfio-pci")
    for name in ("functions", "one_function", "bind", "unbind"):
        function = getattr(pcie_functions, name)
        arguments = {"functions": 0, "one_function": 1, "bind": 1, "unbind": 1}[name]
        monkeypatch.setattr(pcie_functions, name,
                            lambda *given, f=function, n=arguments: f(*given[:n], tmp_path))
        if hasattr(pcie, name):
            monkeypatch.setattr(pcie, name, getattr(pcie_functions, name))
    return tmp_path


def drive(sysfs, driver):
    link = sysfs / "bus" / "pci" / "devices" / BDF / "driver"
    link.unlink()
    if driver:
        link.symlink_to(sysfs / "bus" / "pci" / "drivers" / driver)


def said(capsys, *arguments):
    cli.main(args=list(arguments), standalone_mode=False)
    return capsys.readouterr().out


def test_devices(sysfs, capsys):
    """What ``hypermon devices`` says: driver, IOMMU group, and what helps."""
    line = f"pcie:{BDF}  HYPERMON in a PCIe slot, driver vfio-pci, IOMMU group 7"
    assert line in " ".join(said(capsys, "devices").replace("\n", " ").split("   "))
    drive(sysfs, "other")
    (found,) = find_boards()
    assert found.what == "HYPERMON in a PCIe slot, driver other, IOMMU group 7"
    assert found.problem == f"driver other has it; to give it to vfio-pci: sudo hypermon pcie bind {BDF}"
    assert f"sudo hypermon pcie bind {BDF}" in said(capsys, "devices")
    drive(sysfs, "")
    assert find_boards()[0].problem == f"no driver has it; to give it to vfio-pci: sudo hypermon pcie bind {BDF}"
    (sysfs / "bus" / "pci" / "devices" / BDF / "iommu_group").unlink()
    (found,) = find_boards()
    assert found.what.endswith("driver none, IOMMU group none")
    assert "intel_iommu=on" in found.problem
    assert "intel_iommu=on" in " ".join(said(capsys, "devices").split())


def test_bind_and_unbind(sysfs, capsys):
    place = sysfs / "bus" / "pci" / "devices" / BDF
    assert said(capsys, "pcie", "bind") == f"pcie:{BDF} is ready: IOMMU group 7\n"
    assert (place / "driver_override").read_text() == "vfio-pci\n"
    assert said(capsys, "pcie", "unbind", BDF) == f"pcie:{BDF} is released\n"
    assert (place / "driver_override").read_text() == "\n"


@pytest.mark.parametrize(("error", "reason"), [
    (errno.EACCES, "no permission for IOMMU group 7; once: sudo cp .*70-hypermon.rules /etc/udev/rules.d/"),
    (errno.EPERM, "no permission for IOMMU group 7"),
    (errno.EBUSY, "in use by another program or driver"),
    (errno.ENOENT, "the board cannot be opened \\(No such file or directory\\)")])
def test_what_the_kernel_refuses(sysfs, monkeypatch, error, reason):
    def refuses(bdf):
        assert bdf == BDF
        raise OSError(error, os.strerror(error))
    monkeypatch.setattr("hypermon.host.link.vfio.VfioFunction", refuses)
    with pytest.raises(HypermonError, match=f"pcie:{BDF}: .*{reason}"):
        open_board("pcie:")


def test_opened_by_name(sysfs, monkeypatch):
    slot = Slot()
    monkeypatch.setattr("hypermon.host.link.vfio.VfioFunction", lambda bdf: slot)
    link = open_board("pcie:01:00.0")
    assert link.uri == f"pcie:{BDF}"
    link.close()
    drive(sysfs, "other")
    with pytest.raises(HypermonError, match=f"sudo hypermon pcie bind {BDF}"):
        open_board("pcie:")


def test_not_on_linux(monkeypatch):
    monkeypatch.setattr(pcie.sys, "platform", "darwin")
    with pytest.raises(HypermonError, match="needs Linux"):
        open_board("pcie:")
    assert Path("/proc").exists()
