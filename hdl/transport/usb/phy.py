"""Supported PHYs between a board and its USB cable, as plain ports."""

import enum

from amaranth.hdl import Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from luna.gateware.interface.utmi import UTMIInterface

__all__ = ["Phy", "UsbBus"]


class Phy(enum.Enum):
    """Kinds of PHY."""

    #: A PHY on an 8-bit UTMI bus: high speed, and full speed as fall-back. 60 MHz.
    UTMI = "utmi"
    #: A PHY on a ULPI bus, as on most boards: the same speeds. 60 MHz, the PHY's clock.
    ULPI = "ulpi"
    #: No PHY, only D+, D- and the pull-up: full speed. 12 MHz, and ``usb_io``, 48 MHz in phase with it.
    PINS = "pins"


def _pin(**members) -> wiring.Member:
    return Out(wiring.Signature(members))


#: Members as LUNA requires them.
_BUSES = {
    Phy.ULPI: {"data": _pin(i=In(8), o=Out(8), oe=Out(1)), "dir": _pin(i=In(1)), "nxt": _pin(i=In(1)),
               "stp": _pin(o=Out(1)), "rst": _pin(o=Out(1))},
    Phy.PINS: {"d_p": _pin(i=In(1), o=Out(1), oe=Out(1)), "d_n": _pin(i=In(1), o=Out(1), oe=Out(1)),
               "pullup": _pin(o=Out(1))},
}
#: Signals of the UTMI bus: those that the device drives, and those that the PHY drives.
_DEVICE = ("tx_data", "tx_valid", "xcvr_select", "term_select", "op_mode")
_PHY = ("rx_data", "rx_active", "rx_valid", "tx_ready", "line_state", "session_end")


class UsbBus:
    """A bus to a PHY.

    Members
    -------
    bus : the record that LUNA accepts.
    ports : plain signals that represent it outside: ``utmi_*``, ``ulpi_*``, ``usb_*``.
    """

    def __init__(self, phy: Phy):
        self.phy = phy
        self._outward: list[tuple[Signal, Signal]] = []
        self._inward: list[tuple[Signal, Signal]] = []
        if phy is Phy.UTMI:
            self.bus = UTMIInterface()
            signals = [(f"utmi_{name}", name in _DEVICE, self.bus[name]) for name in (*_DEVICE, *_PHY)]
        else:
            self.bus = wiring.Signature(_BUSES[phy]).create(path=(phy.value,))
            prefix = "ulpi" if phy is Phy.ULPI else "usb"
            signals = [("_".join((prefix, *path)), member.flow is Out, signal)
                       for path, member, signal in self.bus.signature.flatten(self.bus)]
        for name, driven, signal in signals:
            (self._outward if driven else self._inward).append((Signal.like(signal, name=name), signal))

    @property
    def ports(self) -> list[Signal]:
        return [port for port, _ in (*self._outward, *self._inward)]

    def connected(self) -> list:
        """The assignments between bus and ports."""
        return [*(port.eq(signal) for port, signal in self._outward),
                *(signal.eq(port) for port, signal in self._inward)]
