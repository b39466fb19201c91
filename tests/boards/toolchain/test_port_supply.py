import gc
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable
from amaranth.sim import Simulator
from hypermon.boards.toolchain.port_supply import Supplies, pulse_share


@pytest.mark.parametrize("volts", [1.2, 1.8, 2.5, 3.3])
def test_the_feedback_node_is_at_its_reference(volts):
    """Currents into the node, from the output and from the filtered pulses, are what the set resistor takes."""
    into = (volts - 0.6) / 53_600 + (3.3 * pulse_share(volts) - 0.6) / 68_000
    assert into == pytest.approx(0.6 / 13_000)


@pytest.mark.parametrize("volts", [0.5, 4.0])
def test_out_of_reach(volts):
    with pytest.raises(ValueError, match=f"cannot be set to {volts:g} V"):
        pulse_share(volts)


def test_a_clock_that_is_too_slow():
    with warnings.catch_warnings():
        # What could not be made is not used either; Amaranth says so when it is collected.
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(ValueError, match="too slow for the pulses"):
            Supplies(1_000_000, (3.3,))
        gc.collect()


def test_pulses_first_then_the_regulators_then_the_board():
    supplies = Supplies(30_000_000, (3.3, 1.8))
    # Eight time constants of 68 kilohm and 0.1 uF, and the regulators' millisecond.
    assert (supplies.settled, supplies.started) == (1_632_000, 1_662_000)
    supplies.settled, supplies.started = 2048, 3072
    seen = []

    async def watch(context):
        for _ in range(4096):
            await context.tick()
            seen.append(tuple(context.get(wire) for wire in (supplies.pulses, supplies.enable, supplies.good)))

    simulator = Simulator(supplies)
    simulator.add_clock(1e-6)
    simulator.add_testbench(watch)
    simulator.run()
    for wire, volts in enumerate((3.3, 1.8)):
        high = sum(pulses >> wire & 1 for pulses, _, _ in seen) / len(seen)
        assert high == pytest.approx(pulse_share(volts), abs=0.002)
    enabled = next(clock for clock, (_, enable, _) in enumerate(seen) if enable)
    good = next(clock for clock, (_, _, good) in enumerate(seen) if good)
    assert (enabled, good) == (2048, 3072)
