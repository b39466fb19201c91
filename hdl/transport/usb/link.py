"""USB 2.0 link, on LUNA: the stream over a bulk endpoint, the registers over control requests."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from luna.gateware.interface.utmi import UTMIInterface
from luna.gateware.usb.usb2 import USBSpeed
from luna.gateware.usb.usb2.device import USBDevice

from ...control.initiator import access_layout
from ...layout import USB_STREAM
from ..beats_to_bytes import byte_layout
from .bulk import UsbBulk
from .control import UsbRequests

__all__ = ["Usb"]

_UTMI_HZ = 60_000_000
_FULL_SPEED_HZ = 12_000_000
#: Silence after which a partly filled packet leaves: one microframe.
_IDLE_S = 125e-6


class Usb(wiring.Component):
    """The device, in the domain ``usb``: 60 MHz on a PHY, 12 MHz (and ``usb_io``, 48 MHz) on D+ and D-.

    Parameters
    ----------
    bus : a bus that LUNA accepts: UTMI or ULPI for high speed and full speed, D+ and D- for full speed alone.
    serial : letters and digits that distinguish this board from others.

    Members
    -------
    bytes : the stream, see :func:`~.beats_to_bytes.byte_layout`. It is not accepted until a host has configured the
        device.
    command, reply : register accesses, see :class:`~.initiator.Initiator`.
    """

    def __init__(self, bus, serial: str):
        self.bus, self.serial = bus, serial
        super().__init__({
            "bytes": In(stream.Signature(byte_layout())),
            "command": Out(stream.Signature(access_layout())), "reply": In(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        both = not hasattr(self.bus, "d_n")
        m.submodules.device = device = USBDevice(bus=self.bus, handle_clocking=False)
        if isinstance(self.bus, UTMIInterface):
            # LUNA treats a bare UTMI bus as a full-speed bus.
            device.always_fs, device.data_clock = False, _UTMI_HZ
        requests = UsbRequests(self.serial, both)
        bulk = UsbBulk(USB_STREAM & 15, round((_UTMI_HZ if both else _FULL_SPEED_HZ) * _IDLE_S))
        device.add_endpoint(requests)
        device.add_endpoint(bulk)
        wiring.connect(m, wiring.flipped(self.bytes), bulk.i)
        wiring.connect(m, requests.command, wiring.flipped(self.command))
        wiring.connect(m, wiring.flipped(self.reply), requests.reply)
        high = device.speed == USBSpeed.HIGH
        m.d.comb += [
            device.connect.eq(1),
            requests.reset.eq(device.reset_detected), requests.high.eq(high),
            bulk.high.eq(high), bulk.open.eq(requests.interface.active_config == 1),
            bulk.halted.eq(requests.halted), bulk.restart.eq(requests.restart),
        ]
        return m
