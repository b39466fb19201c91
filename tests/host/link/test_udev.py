"""The udev rule: it reaches boards, and takes nothing from anything else."""

import re
from fnmatch import fnmatchcase
from importlib.resources import files

import pytest
from hypermon.host.link.udev import RULE, install_rule

#: A device is itself and its parents, nearest first; each is what udev knows of it.
Chain = list[dict[str, str]]
_TERM = re.compile(r'([A-Z]+)(?:\{([^}]*)\})?(==|!=|\+=|=)"([^"]*)"')


def rules() -> list[list[tuple[str, str, str, str]]]:
    """Terms (key, attribute, operator, value) of each rule."""
    lines = [line for line in (files("hypermon.host.link") / RULE).read_text().splitlines() if line and line[0] != "#"]
    found = []
    for line in lines:
        terms = _TERM.findall(line)
        assert ", ".join(f"{key}{{{name}}}" + rest if name else key + rest for key, name, rest in (
            (key, name, f'{operator}"{value}"') for key, name, operator, value in terms)) == line
        found.append(terms)
    return found


def matches(patterns: str, value: str | None) -> bool:
    return value is not None and any(fnmatchcase(value, pattern) for pattern in patterns.split("|"))


def applied(device: Chain, action: str = "add") -> dict[str, str]:
    """What the rule sets of a device, as udev would apply it: all ATTRS of a rule are of one of its parents."""
    done: dict[str, str] = {}
    env: dict[str, str] = {}
    skip: str | None = None
    for rule in rules():
        here = dict(device[0], ACTION=action)
        if skip is not None and ("LABEL", "", "=", skip) not in rule:
            continue
        skip = None
        conditions = [term for term in rule if term[2] in ("==", "!=")]
        parents = [(name, value) for key, name, _, value in conditions if key == "ATTRS"]
        own = all(matches(value, env.get(name) if key == "ENV" else here.get(name or key)) == (operator == "==")
                  for key, name, operator, value in conditions if key != "ATTRS")
        if not own or not any(all(matches(value, parent.get(name)) for name, value in parents) for parent in device):
            continue
        for key, name, operator, value in rule:
            if operator not in ("=", "+="):
                continue
            if key == "GOTO":
                skip = value
            elif key == "ENV":
                env[name] = value
            elif key != "LABEL":
                done[name or key] = value
    assert skip in (None, "hypermon_end")
    return done


def port(subsystem: str, vendor: str, product: str, name: str, interface: str = "00", maker: str = "FTDI") -> Chain:
    """A serial port of a USB chip."""
    return [{"SUBSYSTEM": subsystem, "DRIVER": "ftdi_sio"}, {"bInterfaceNumber": interface},
            {"idVendor": vendor, "idProduct": product, "product": name, "manufacturer": maker}]


BOARDS = [("6015", "ULX3S FPGA 85K v3.0.8", "00", "FER-RADIONA-EMARD"),
          ("6010", "iCEBreaker V1.0e", "01", "1BitSquared"),
          ("6010", "Lattice FTUSB Interface Cable", "01", "Lattice"), ("6010", "Digilent USB Device", "01", "Digilent"),
          ("6010", "Lattice ECP5 Evaluation Board", "01", "Lattice"), ("6010", "JTAG Debugger", "01", "SIPEED"),
          ("6010", "USB Debugger", "01", "SIPEED")]


@pytest.mark.parametrize(("product", "name", "interface", "maker"), BOARDS)
def test_boards(product: str, name: str, interface: str, maker: str) -> None:
    """The port is for who is logged in, and stays in its group; it hands over short data soon."""
    assert applied(port("tty", "0403", product, name, interface, maker)) == {"TAG": "uaccess"}
    assert applied(port("tty", "0403", product, name, interface, maker), "change") == {"TAG": "uaccess"}
    assert applied(port("usb-serial", "0403", product, name, interface, maker)) == {"latency_timer": "1"}
    assert applied(port("usb-serial", "0403", product, name, interface, maker), "remove") == {}
    if interface == "01":       # the other port of the chip is for programming
        assert applied(port("tty", "0403", product, name, "00", maker)) == {}
    assert applied(port("tty", "10c4", product, name, interface, maker)) == {}


@pytest.mark.parametrize(("product", "name"), [
    ("6001", "FT232R USB UART"), ("6010", "Dual RS232-HS"), ("6011", "Quad RS232-HS"), ("6014", "Single RS232-HS"),
    ("6015", "FT230X Basic UART"), ("6010", "Olimex OpenOCD JTAG"), ("6015", "LC231X")])
@pytest.mark.parametrize("subsystem", ["tty", "usb-serial", "usb"])
@pytest.mark.parametrize("interface", ["00", "01"])
def test_other_ports(product: str, name: str, subsystem: str, interface: str) -> None:
    """What is somebody else's, or cannot be told from that, is not touched."""
    assert applied(port(subsystem, "0403", product, name, interface)) == {}


def test_boards_with_usb_of_their_own() -> None:
    """By vendor, product and manufacturer; other devices of the test product's number are not touched."""
    device = {"SUBSYSTEM": "usb", "idVendor": "1209", "idProduct": "0001", "manufacturer": "HYPERMON"}
    assert applied([device]) == {"MODE": "0660", "GROUP": "plugdev", "TAG": "uaccess"}
    for name, value in (("manufacturer", "somebody"), ("idProduct", "0002"), ("idVendor", "0403")):
        assert applied([device | {name: value}]) == {}
    assert applied([{"SUBSYSTEM": "block"}, device]) == {}


def test_boards_in_pcie_slots() -> None:
    """The file of a function, or that of an IOMMU group with a board in it."""
    opened = {"MODE": "0660", "GROUP": "plugdev", "TAG": "uaccess"}
    function = {"vendor": "0x1209", "device": "0x0001"}
    assert applied([{"SUBSYSTEM": "vfio-dev"}, function]) == opened
    assert applied([{"SUBSYSTEM": "vfio-dev"}, function | {"vendor": "0x8086"}]) == {}
    (program,) = (value for rule in rules() for key, _, _, value in rule if key == "PROGRAM")
    assert "iommu_groups/%k/devices" in program
    assert applied([{"SUBSYSTEM": "vfio", "PROGRAM": program}]) == opened
    assert applied([{"SUBSYSTEM": "vfio"}]) == {}


def test_how_it_is_installed() -> None:
    assert str(files("hypermon.host.link") / RULE) in install_rule()
