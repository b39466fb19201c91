"""Runs one stage of the gateware in Amaranth's simulator."""

from amaranth.sim import Simulator

__all__ = ["refuses", "run"]


def run(dut, *benches, clocks: int = 20_000) -> None:
    """Runs until all ``benches`` have ended; fails if that takes more than ``clocks``."""

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    for bench in benches:
        simulator.add_testbench(bench)
    # Each step is half a clock; there are none left when all benches have ended.
    steps = 0
    while simulator.advance():
        steps += 1
        assert steps < 2 * clocks, f"not done after {clocks} clocks"


def refuses(cls, *args) -> str:
    """What ``cls(*args)`` says in the ValueError that it raises."""
    component = cls.__new__(cls)
    component._MustUse__silence = True  # nobody will elaborate it, and that is right
    try:
        component.__init__(*args)
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{cls.__name__}{args} is not refused")
