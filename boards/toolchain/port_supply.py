"""The port supplies of a ButterStick, which the FPGA sets with pulses that a filter converts to a voltage.

The circuit is that of the board's schematic, as the platform in ``amaranth-boards`` describes it: a buck converter
holds its feedback node at 0.6 V, and the filtered pulses push a current into that node through 68 kilohm.
"""

from math import pi

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = ["Supplies", "pulse_share"]

_FEEDBACK_V, _PULSE_V = 0.6, 3.3
_INJECTION_OHM, _FEEDBACK_OHM, _SET_OHM = 68_000, 53_600, 13_000
_FILTER_S = _INJECTION_OHM * 0.1e-6
#: The regulators' own start, from their data sheet.
_START_S = 1e-3
_STEPS = 1024


def pulse_share(volts: float) -> float:
    """Duty cycle of the pulses for that supply, 0 to 1.

    Raises
    ------
    ValueError
        for volts out of the regulators' reach.
    """
    set_a = _FEEDBACK_V / _SET_OHM
    control_v = _FEEDBACK_V + _INJECTION_OHM * (set_a - (volts - _FEEDBACK_V) / _FEEDBACK_OHM)
    if not 0 < control_v < _PULSE_V:
        raise ValueError(f"the supply cannot be set to {volts:g} V")
    return control_v / _PULSE_V


class Supplies(wiring.Component):
    """Sets the supplies, enables them when the filters have settled, and signals when they are stable.

    Parameters
    ----------
    clock_hz : frequency of its domain.
    volts : one value per supply.

    Members
    -------
    pulses : one wire per supply.
    enable : enable of all regulators.
    good : all supplies are stable.

    Raises
    ------
    ValueError
        for volts out of the regulators' reach, or a clock so slow that the pulses are visible after the filter.
    """

    def __init__(self, clock_hz: int, volts: tuple[float, ...]):
        if clock_hz / _STEPS < 100 / (2 * pi * _FILTER_S):
            raise ValueError(f"{clock_hz} Hz is too slow for the pulses")
        self.shares = [pulse_share(supply) for supply in volts]
        #: Eight time constants, within 0.04 % of the final value.
        self.settled = round(8 * _FILTER_S * clock_hz)
        self.started = self.settled + round(_START_S * clock_hz)
        super().__init__({"pulses": Out(len(volts)), "enable": Out(1), "good": Out(1)})

    def elaborate(self, platform):
        m = Module()
        step = Signal(range(_STEPS))
        passed = Signal(range(self.started + 1))
        m.d.sync += [
            step.eq(step + 1), self.pulses.eq(Cat(step < int(share * _STEPS) for share in self.shares)),
            self.enable.eq(passed >= self.settled), self.good.eq(passed == self.started),
        ]
        with m.If(passed != self.started):
            m.d.sync += passed.eq(passed + 1)
        return m
