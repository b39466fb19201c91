"""Boards in PCIe slots: what the kernel says of them, and how they change their driver."""

from pathlib import Path

import pytest
from hypermon.host.errors import HypermonError
from hypermon.host.link.pcie_functions import PcieFunction, bind, functions, hindrance, one_function, unbind

BDF, OTHER = "0000:01:00.0", "0000:02:00.0"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A machine with one board, in IOMMU group 7, and a network card."""
    pci = tmp_path / "bus" / "pci"
    for bdf, vendor, device, group in ((BDF, "0x1209", "0x0001", 7), (OTHER, "0x8086", "0x1533", 8)):
        place = pci / "devices" / bdf
        place.mkdir(parents=True)
        (place / "vendor").write_text(vendor + "\n")
        (place / "device").write_text(device + "\n")
        (tmp_path / "kernel" / "iommu_groups" / str(group)).mkdir(parents=True)
        (place / "iommu_group").symlink_to(tmp_path / "kernel" / "iommu_groups" / str(group))
    for driver in ("vfio-pci", "other"):
        (pci / "drivers" / driver).mkdir(parents=True)
    return tmp_path


def drive(sysfs: Path, driver: str) -> None:
    (sysfs / "bus" / "pci" / "devices" / BDF / "driver").symlink_to(sysfs / "bus" / "pci" / "drivers" / driver)


def test_found_by_identity(sysfs):
    assert functions(sysfs) == [PcieFunction(BDF, "", "7")]
    drive(sysfs, "other")
    assert functions(sysfs) == [PcieFunction(BDF, "other", "7")]
    assert functions(sysfs / "nothing") == []


@pytest.mark.parametrize("name", ["", BDF, "01:00.0"])
def test_names(sysfs, name):
    assert one_function(name, sysfs).bdf == BDF


@pytest.mark.parametrize(("name", "reason"), [
    ("what", "it is pcie:BDF"), ("0000:01:00.9", "it is pcie:BDF"), ("../../etc", "it is pcie:BDF"),
    (OTHER, "does not have the identity 1209:0001"), ("0000:03:00.0", f"no such board; there is pcie:{BDF}")])
def test_wrong_names(sysfs, name, reason):
    with pytest.raises(HypermonError, match=reason):
        one_function(name, sysfs)


def test_which_one(sysfs):
    for name, value in (("vendor", "0x1209"), ("device", "0x0001")):
        (sysfs / "bus" / "pci" / "devices" / OTHER / name).write_text(value)
    with pytest.raises(HypermonError, match=f"which one.*pcie:{BDF}, pcie:{OTHER}"):
        one_function("", sysfs)


def test_what_helps():
    assert "intel_iommu=on" in (hindrance(PcieFunction(BDF, "vfio-pci", "")) or "")
    assert f"sudo hypermon pcie bind {BDF}" in (hindrance(PcieFunction(BDF, "", "7")) or "")
    assert "driver other has it" in (hindrance(PcieFunction(BDF, "other", "7")) or "")
    assert hindrance(PcieFunction(BDF, "vfio-pci", "7")) is None


@pytest.mark.parametrize(("config", "gone"), [(b"\x09\x12\x01\x00", False), (b"\xff" * 4, True), (None, False)])
def test_gone(sysfs, config, gone):
    """It is not opened: that would take the kernel a minute."""
    drive(sysfs, "vfio-pci")
    if config is not None:
        (sysfs / "bus" / "pci" / "devices" / BDF / "config").write_bytes(config)
    said = hindrance(one_function("", sysfs), sysfs)
    assert (said is not None and "the board is gone" in said) == gone


def test_bind(sysfs):
    """Files of sysfs are written in the kernel's order; what the kernel did is checked."""
    drive(sysfs, "other")
    place = sysfs / "bus" / "pci" / "devices" / BDF
    with pytest.raises(HypermonError, match="vfio-pci did not take it \\(its driver is other\\)"):
        bind(one_function("", sysfs), sysfs)
    assert (place / "driver_override").read_text() == "vfio-pci\n"
    assert (sysfs / "bus" / "pci" / "drivers" / "other" / "unbind").read_text() == BDF
    assert (sysfs / "bus" / "pci" / "drivers_probe").read_text() == BDF
    (place / "driver").unlink()
    drive(sysfs, "vfio-pci")
    bind(one_function("", sysfs), sysfs)
    unbind(one_function("", sysfs), sysfs)
    assert (place / "driver_override").read_text() == "\n"
    assert (sysfs / "bus" / "pci" / "drivers" / "vfio-pci" / "unbind").read_text() == BDF


def test_no_iommu(sysfs):
    (sysfs / "bus" / "pci" / "devices" / BDF / "iommu_group").unlink()
    with pytest.raises(HypermonError, match="no IOMMU"):
        bind(one_function("", sysfs), sysfs)
    assert not (sysfs / "bus" / "pci" / "devices" / BDF / "driver_override").exists()


def test_refused(sysfs, monkeypatch):
    for error, reason in ((PermissionError(13, "no"), f"sudo hypermon pcie bind {BDF}"), (OSError(19, "No such device"),
                                                                                      "kernel refuses")):
        monkeypatch.setattr(Path, "write_text", lambda self, text, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(HypermonError, match=reason):
            bind(PcieFunction(BDF, "", "7"), sysfs)
