"""The virtual board with an SDRAM controller, and the memory of ``sdram_chip.h`` at its pins."""

from dataclasses import astuple

from hypermon.hdl.layout import Geometry
from hypermon.hdl.stream.sdram_part import SLOWEST_16M16, SdramPart
from hypermon.sim.virtual.build import Shell, plain_harness
from hypermon.sim.virtual.memory.sdram_chip import SOURCE, Delays, part_values

__all__ = ["deep_shell"]


def deep_shell(part: SdramPart = SLOWEST_16M16, delays: Delays | None = None) -> Shell:
    """The virtual board of a geometry with external memory, which is the given part with the given wire delays.

    If the controller violates a rule of the data sheet, the link ends with a HypermonError.
    """
    def verilog(geometry: Geometry) -> str:
        from hypermon.hdl.verilog import verilog as board_verilog

        return board_verilog(geometry, sdram=part, skips=True)

    def braced(values: tuple[int, ...]) -> str:
        return "{" + ",".join(map(str, values)) + "}"

    return Shell("deep", plain_harness(), verilog,
                 (("SDRAM_PART", braced(part_values(part))), ("SDRAM_DELAYS", braced(astuple(delays or Delays())))),
                 (SOURCE,))
