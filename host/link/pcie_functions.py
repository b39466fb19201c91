"""Boards in PCIe slots: lists them with their drivers, and changes the driver of one."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from hypermon.hdl.layout import PCIE_DEVICE, PCIE_VENDOR
from hypermon.host.errors import HypermonError
from hypermon.host.link.udev import install_rule

__all__ = ["DRIVER", "SYS", "PcieFunction", "bind", "forbidden", "functions", "hindrance", "one_function", "unbind"]

#: The driver through which this program reaches a board.
DRIVER = "vfio-pci"
SYS = Path("/sys")


class PcieFunction(NamedTuple):
    """A function with the boards' identity: its address, such as 0000:01:00.0; its driver and its IOMMU group, or ""
    without one.
    """

    bdf: str
    driver: str
    group: str


def functions(sys: Path = SYS) -> list[PcieFunction]:
    """Every function that has the boards' identity. Others may have it too: it is one for tests."""
    found = []
    for place in sorted((sys / "bus" / "pci" / "devices").glob("*")):
        try:
            identity = tuple(int((place / name).read_text(), 16) for name in ("vendor", "device"))
        except (OSError, ValueError):
            continue                # it is being removed
        if identity == (PCIE_VENDOR, PCIE_DEVICE):
            found.append(PcieFunction(place.name, _target(place / "driver"), _target(place / "iommu_group")))
    return found


def _target(link: Path) -> str:
    return link.resolve().name if link.exists() else ""


def one_function(name: str, sys: Path = SYS) -> PcieFunction:
    """The function of that address (the domain may be left out), or the only one for "".

    Raises
    ------
    HypermonError
        if there is none, or more than one.
    """
    bdf = name if name.count(":") != 1 else f"0000:{name}"
    if name and not re.fullmatch(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", bdf := bdf.lower()):
        raise HypermonError(f"pcie:{name}: it is pcie:BDF, such as pcie:0000:01:00.0; to list them: hypermon devices")
    present = functions(sys)
    wanted = [function for function in present if bdf in ("", function.bdf)]
    if len(wanted) == 1:
        return wanted[0]
    listed = ", ".join(f"pcie:{function.bdf}" for function in present)
    if wanted:
        raise HypermonError(f"pcie:{name}: which one? There is {listed}")
    if (sys / "bus" / "pci" / "devices" / bdf).exists() and bdf:
        raise HypermonError(f"pcie:{name}: that device is no board: it does not have the identity "
                            f"{PCIE_VENDOR:04x}:{PCIE_DEVICE:04x}")
    raise HypermonError(f"pcie:{name}: no such board" + (f"; there is {listed}" if listed else
                        " is in a PCIe slot; lspci -d 1209: lists what the machine has found"))


def hindrance(function: PcieFunction, sys: Path = SYS) -> str | None:
    """Why a function cannot be opened, as far as that is known without a try, and what helps.

    To open a function that is gone takes the kernel a minute: it resets it, and waits for its answer.
    """
    if not function.group:
        return ("the machine has no IOMMU, or it is off: switch it on in the firmware, and add intel_iommu=on (or "
                "amd_iommu=on) to the kernel's command line")
    if function.driver != DRIVER:
        has = f"driver {function.driver} has it" if function.driver else "no driver has it"
        return f"{has}; to give it to {DRIVER}: sudo hypermon pcie bind {function.bdf}"
    try:
        with (sys / "bus" / "pci" / "devices" / function.bdf / "config").open("rb") as config:
            gone = config.read(2) == b"\xff\xff"
    except OSError:
        gone = False                # opening it will tell
    return "the board is gone (its configuration space reads as ones): is it on, and its FPGA loaded?" if gone else None


def forbidden(function: PcieFunction) -> str:
    """What a user does who may not open the function."""
    return f"no permission for IOMMU group {function.group}; once: {install_rule()}"


def bind(function: PcieFunction, sys: Path = SYS) -> None:
    """Gives a function to vfio-pci.

    Raises
    ------
    HypermonError
        if this user may not, or the kernel refuses.
    """
    if not function.group:
        raise HypermonError(f"pcie:{function.bdf}: {hindrance(function)}")
    pci = sys / "bus" / "pci"
    if not (pci / "drivers" / DRIVER).exists():
        _load(DRIVER)
    _hand_over(function, DRIVER, sys)
    if (now := _target(pci / "devices" / function.bdf / "driver")) != DRIVER:
        raise HypermonError(f"pcie:{function.bdf}: {DRIVER} did not take it (its driver is {now or 'none'}); "
                            "the reason is in: dmesg | tail")


def unbind(function: PcieFunction, sys: Path = SYS) -> None:
    """Gives a function back to the driver that the kernel chooses, if any. Raises as :func:`bind` does."""
    _hand_over(function, "", sys)


def _hand_over(function: PcieFunction, driver: str, sys: Path) -> None:
    pci = sys / "bus" / "pci"
    place = pci / "devices" / function.bdf
    what = "bind" if driver else "unbind"
    try:
        (place / "driver_override").write_text(driver + "\n")
        if function.driver and function.driver != driver:
            (place / "driver" / "unbind").write_text(function.bdf)
        (pci / "drivers_probe").write_text(function.bdf)
    except PermissionError:
        raise HypermonError(f"only root may do that: sudo hypermon pcie {what} {function.bdf}") from None
    except OSError as error:
        raise HypermonError(f"pcie:{function.bdf}: the kernel refuses ({error.strerror})") from None


def _load(module: str) -> None:
    try:
        subprocess.run(["modprobe", module], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise HypermonError(f"the kernel's module {module} cannot be loaded; as root: modprobe {module}") from None
