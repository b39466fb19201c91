"""The header of a Verilog file: its contents, how it was made, an instance, and a hash of the rest."""

import hashlib
import re
from importlib.metadata import version

__all__ = ["headed", "split"]

#: Patterns that Yosys writes in its own style, all of them intended.
_WAIVED = ("ASCRANGE", "CASEINCOMPLETE", "CASEOVERLAP", "WIDTHEXPAND", "WIDTHTRUNC")
_HASH = "// SHA-256 of all below this line: "


def headed(text: str, name: str, what: str, options: str) -> str:
    """A file's contents: a header, Verilator's waivers for Yosys's style, and the text.

    Parameters
    ----------
    text : Verilog whose outermost module is ``hypermon`` or ``hypermon_port``.
    name : of the file.
    what : the configuration, in words.
    options : of `make verilog` that write it again.
    """
    body = "".join(f"/* verilator lint_off {rule} */\n" for rule in _WAIVED) + text
    return "\n".join((
        f"// HYPERMON {version('hypermon')}, {name}: {what}.",
        "// Ports, clocks and constraints: docs/integrate.md. License: BSD-2-Clause.",
        f'// Made by: make verilog OUT={name} ARGS="{options}"',
        "// An instance; each port is connected to a net of its own name:",
        *(f"//   {line}" for line in _instance(body)),
        f"{_HASH}{hashlib.sha256(body.encode()).hexdigest()}", "")) + body


def split(text: str) -> tuple[str, str, str]:
    """Header, the hash that it names, and the text below it."""
    before, mark, behind = text.partition(_HASH)
    named, _, body = behind.partition("\n")
    return before + mark + named, named, body


def _instance(body: str) -> list[str]:
    """Declarations of nets, and an instance of the outermost module that is connected to them."""
    found = re.search(r"^module (hypermon|hypermon_port)\((.*?)\);(.*?)^endmodule", body, re.MULTILINE | re.DOTALL)
    if found is None:
        return []
    top, names, inside = found[1], re.findall(r"\w+", found[2]), found[3]
    widths = {name: width for width, name in re.findall(
        r"^  (?:input|output|inout) (?:wire |reg )?(\[\d+:\d+\] )?(\w+);", inside, re.MULTILINE)}
    ends = [","] * (len(names) - 1) + [""]
    return [*(f"wire {widths.get(name, '')}{name};" for name in names), f"{top} board (",
            *(f"  .{name}({name}){end}" for name, end in zip(names, ends, strict=True)), ");"]
