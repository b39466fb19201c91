"""Ports on this machine's own pins: what the kernel is asked, and what is stored."""

import fcntl
import os
import shutil
import struct
import subprocess

import pytest
from hypermon.host.errors import HypermonError
from hypermon.sim.emulate.player import VirtualPort
from hypermon.sim.pins import GpioPort, MappedPort, Style, data_of_event


class Kernel:
    """Notes what is asked, and hands out a file for the lines."""

    def __init__(self):
        self.requests: list[bytes] = []
        self.values: list[tuple[int, int]] = []
        self.lines = os.open(os.devnull, os.O_RDWR)

    def ioctl(self, file: int, what: int, argument) -> int:
        if what == 0xC250B407:
            self.requests.append(bytes(argument))
            argument[588:592] = struct.pack("=i", self.lines)
        else:
            assert (what, file) == (0xC010B40F, self.lines)
            self.values.append(struct.unpack("=QQ", argument))
        return 0


@pytest.fixture
def kernel(monkeypatch):
    kernel = Kernel()
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    return kernel


def test_events_are_a_length_and_bytes_low_nibble_first():
    assert data_of_event(0xA5) == [1, 5, 10]
    assert data_of_event(1, b"\x23\xff") == [3, 1, 0, 3, 2, 15, 15]
    assert data_of_event(1, b"\x23\xff", bits=8) == [3, 1, 0x23, 0xFF]


@pytest.mark.parametrize(("event", "payload"), [(256, b""), (-1, b""), (0, bytes(15))])
def test_events_too_large_are_refused(event, payload):
    with pytest.raises(ValueError, match="an event has"):
        data_of_event(event, payload)


@pytest.mark.parametrize(("lines", "sent"), [
    ([17, 18, 27, 22, 23], [5, 1, 14, 2, *range(8)]),
    ([5, 6, 7, 8, 9, 10, 11, 12, 20], [0xA5, 1, 0x2E, 0x10, 0x32, 0x54, 0x76])])
def test_lines_are_asked_for_and_written(kernel, tmp_path, lines, sent):
    chip = tmp_path / "chip"
    chip.touch()
    with GpioPort(chip, lines) as port:
        port.nibble(0xA5)
        port.event(0x2E)
        port.word(0x76543210)
    [request] = kernel.requests
    count = len(lines)
    assert list(struct.unpack_from("=64I", request)) == lines + (64 - count) * [0]
    assert request[256:288].rstrip(b"\0") == b"hypermon"
    assert struct.unpack_from("=QI", request, 288) == (8, 0)
    assert struct.unpack_from("=I", request, 560) == (count,)
    strobe = 1 << count - 1
    assert kernel.values == [row for data in sent for row in ((data, 2 * strobe - 1), (data | strobe, strobe))]
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(kernel.lines)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc here")
def test_the_request_is_the_kernel_s(tmp_path):
    source = tmp_path / "sizes.c"
    source.write_text(r"""
        #include <linux/gpio.h>
        #include <stddef.h>
        #include <stdio.h>
        int main(void)
        {
            printf("%zu %zu %zu %zu %lu %lu %lu", offsetof(struct gpio_v2_line_request, consumer),
                   offsetof(struct gpio_v2_line_request, config), offsetof(struct gpio_v2_line_request, num_lines),
                   offsetof(struct gpio_v2_line_request, fd), (unsigned long)GPIO_V2_GET_LINE_IOCTL,
                   (unsigned long)GPIO_V2_LINE_SET_VALUES_IOCTL, (unsigned long)GPIO_V2_LINE_FLAG_OUTPUT);
        }""")
    subprocess.run(["cc", source, "-o", tmp_path / "sizes"], check=True)
    said = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout
    assert list(map(int, said.split())) == [256, 288, 560, 588, GpioPort._GET_LINE, GpioPort._SET_VALUES, 8]


def test_a_chip_that_is_not_there():
    with pytest.raises(HypermonError, match=r"/dev/nowhere: No such file"):
        GpioPort("/dev/nowhere", range(5))


@pytest.mark.parametrize("lines", [[1, 2, 3, 4], [1, 2, 3, 4, 4], range(6), [1, 1, *range(2, 9)]])
def test_lines_that_are_neither_five_nor_nine(lines):
    with pytest.raises(HypermonError, match=r"expected five different lines .* or nine"):
        GpioPort("/dev/nowhere", lines)


@pytest.mark.parametrize(("bits", "sent"), [(4, [2, 10, 5, 15, 0]), (8, [2, 0x5A, 0x0F])])
@pytest.mark.parametrize("style", Style)
def test_stores_to_a_mapped_register(tmp_path, style, bits, sent):
    """The register is memory here, so what was stored last is what is read."""
    memory = tmp_path / "memory"
    memory.write_bytes(bytes(4096))
    shown, seen, pins, strobe = 0, [], (2 << bits) - 1, 1 << bits
    with MappedPort(memory, style, at=8, clear=20, shift=3, bits=bits) as port:
        write = port.write

        def watched(value: int) -> None:
            nonlocal shown
            memory.write_bytes(bytes(4096))
            write(value)
            now = memory.read_bytes()
            stored, cleared = (int.from_bytes(now[at:at + 4], "little") for at in (8, 20))
            match style:
                case Style.WHOLE:
                    shown = stored
                case Style.XOR:
                    shown ^= stored
                case Style.BSRR:
                    shown = (shown | stored & 0xFFFF) & ~(stored >> 16)
                case Style.SETCLEAR:
                    shown = shown & ~cleared | stored
            assert not shown & ~(pins << 3)
            seen.append(shown >> 3)

        port.write = watched
        port.event(0x5A, b"\x0f")
    assert seen == [row for data in sent for row in (data, data | strobe)]
    with pytest.raises(HypermonError, match="closed"):
        write(0)


@pytest.mark.parametrize(("style", "shift", "bits"), [(Style.BSRR, 12, 4), (Style.BSRR, 8, 8), (Style.XOR, 28, 4),
                                                      (Style.WHOLE, -1, 4), (Style.SETCLEAR, 24, 8)])
def test_a_port_that_does_not_fit_the_register(tmp_path, style, shift, bits):
    (tmp_path / "memory").write_bytes(bytes(4096))
    with pytest.raises(HypermonError, match="not within"):
        MappedPort(tmp_path / "memory", style, at=0, shift=shift, bits=bits)
    MappedPort(tmp_path / "memory", style, at=0, shift=(15 if style is Style.BSRR else 31) - bits, bits=bits).close()


def test_ports_of_other_widths():
    with pytest.raises(ValueError, match="4 or 8 data bits, not 5"):
        VirtualPort(5)


def test_a_file_that_cannot_be_mapped(tmp_path):
    (tmp_path / "short").touch()
    with pytest.raises(HypermonError, match="short: "):
        MappedPort(tmp_path / "short", Style.XOR, at=0)
