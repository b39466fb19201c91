"""Rewrites the gateware's Verilog for simulation: registers that keep their value cost no time.

Yosys writes a register as two processes. One computes the next value, starting from the present one; the other assigns
it at the clock edge. Verilator then moves every register twice in every clock, changed or not. This module merges the
two processes into one, in which a register is written only where a value is assigned to it. A register whose next value
is read elsewhere is left unchanged.
"""

import re

__all__ = ["clocked"]

# A name that Yosys has generated; a blank ends it.
_NEXT = r"\\\$\d+ "
_EDGE = re.compile(rf"^  always @\((posedge \S+?) ?\)\n    (.+?) <= ({_NEXT});\n", re.MULTILINE)
_NEXT_VALUE = re.compile(
    rf"^  always @\* begin\n    if \(\\\$auto\S+ \) begin end\n    ({_NEXT}) = (.+?);\n(.*?)^  end\n",
    re.MULTILINE | re.DOTALL)
_DECLARATION = rf"^  reg (?:\[\d+:\d+\] )?({_NEXT});\n"


def clocked(verilog: str) -> str:
    """The same Verilog with one process per register."""
    return "".join(map(_module, re.split(r"(?<=^endmodule\n)", verilog, flags=re.MULTILINE)))


def _module(text: str) -> str:
    uses: dict[str, int] = {}
    for name in re.findall(_NEXT, text):
        uses[name] = uses.get(name, 0) + 1
    worked_out = {match[1]: match for match in _NEXT_VALUE.finditer(text)}
    declared = {match[1]: match for match in re.finditer(_DECLARATION, text, re.MULTILINE)}
    edits: list[tuple[int, int, str]] = []
    for edge in _EDGE.finditer(text):
        clock, register, name = edge.groups()
        process = worked_out.get(name)
        # Named in its declaration, at the edge, and in its process; nowhere else.
        if process is None or name not in declared or uses[name] != process[0].count(name) + 2:
            continue
        assigned = rf"{re.escape(name)}(\[[\d:]+\])? ?="
        if len(re.findall(assigned, process[3])) != process[3].count(name):
            continue
        body = re.sub(assigned, lambda match, register=register: f"{register}{match[1] or ''} <=", process[3])
        first = "" if process[2].strip() == register.strip() else f"    {register} <= {process[2]};\n"
        edits += [(*process.span(), f"  always @({clock}) begin\n{first}{body}  end\n"),
                  (*edge.span(), ""), (*declared[name].span(), "")]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
