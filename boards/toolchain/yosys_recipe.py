"""Synthesis for the boards: Yosys options in addition to the name of the family."""

from typing import NamedTuple, Self

__all__ = ["Recipe"]

_ECP5 = "-abc9 -nowidelut"


class Recipe(NamedTuple):
    """Yosys commands before a family's last ``synth_``, its options, and commands after it.

    Enables and resets of a few flip-flops become logic in front of them, because the flip-flops of one tile share both:
    with 400 of them the placer of an ECP5's extended board loops for hours, and with 190 that of an iCEBreaker.
    """

    before: tuple[str, ...]
    options: str
    after: tuple[str, ...]

    @classmethod
    def ecp5(cls, top: str) -> Self:
        """Recipe for a top of that name.

        The capture core is mapped separately, and flattened when that is done: ABC uses the slowest path of all clocks
        as the limit for each of them, and would trade the depth of the core's logic for area, next to a link of 60 MHz.
        No lookup tables of more than 4 inputs, which need more room and are harder to place.
        """
        return cls(
            ("setattr -mod -set keep_hierarchy 1 *.capture",
             f"synth_ecp5 {_ECP5} -top {top} -run begin:map_ffs",
             "dfflegalize -minsrst 17 -mince 6 -cell $_DFF_?_ 01 -cell $_DFF_?P?_ r -cell $_SDFF_?P?_ r"
             " -cell $_DFFE_??_ 01 -cell $_DFFE_?P??_ r -cell $_SDFFE_?P??_ r -cell $_DLATCH_?_ x"),
            f"{_ECP5} -run map_ffs:",
            ("setattr -mod -unset keep_hierarchy *", "flatten", "opt_clean"))

    @classmethod
    def ice40(cls, top: str) -> Self:
        """Recipe for a top of that name: area counts, and ABC's script ``flow3`` needs a fortieth less of it than the
        default one."""
        return cls(
            (f"synth_ice40 -top {top} -run begin:map_ffs",
             "dfflegalize -minsrst 8 -mince 8 -cell $_DFF_?_ 0 -cell $_DFFE_?P_ 0 -cell $_DFF_?P?_ 0"
             " -cell $_DFFE_?P?P_ 0 -cell $_SDFF_?P?_ 0 -cell $_SDFFCE_?P?P_ 0 -cell $_DLATCH_?_ x",
             "scratchpad -copy abc9.script.flow3 abc9.script"),
            "-run map_ffs:", ())
