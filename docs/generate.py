"""Writes the tables of docs/ anew from the sources, so that they cannot drift.

In a page, everything between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made by the
function NAME below; the rest is written by hand. ``make docs`` writes, ``--check`` only compares
and fails if a page is behind (so does ``tests/test_docs.py``).
"""

import argparse
import ast
import csv
import difflib
import enum
import itertools
import json
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hypermon.hdl import layout

__all__ = ["TABLES", "PORTS", "main", "rendered"]

HERE = Path(__file__).parent
ROOT = HERE.parent
#: The boards of erb.md.
ERB = runpy.run_path(str(HERE / "erb.py"))

#: Ports of the Verilog module: what they mean. The rest is read from the gateware.
PORTS: dict[str, str] = {
    "clk": "capture clock, a multiple of 5 MHz",
    "rst": "synchronous, active high. Restores the state at power-up, including EPOCH; may be tied to 0",
    "data": "node i's nibble in bits 4i+3 to 4i, or its byte in bits 8i+7 to 8i; asynchronous, two flip-flops inside",
    "strobe": "node i's strobe in bit i; asynchronous, two flip-flops inside",
    "early": "with half clocks: level of `strobe` half a clock before each clock edge, from a DDR input",
    "pbx_req": "bus request; asynchronous, two flip-flops inside",
    "pbx_write": "1 write, 0 read; held while `pbx_req` or `pbx_ack` is high",
    "pbx_addr": "byte address of a register; held in the same way",
    "pbx_wdata": "word to write; held in the same way",
    "pbx_ack": "bus acknowledge",
    "pbx_rdata": "word read; valid while `pbx_ack` is high",
    "stream_valid": "a beat of the stream is available",
    "stream_ready": "the beat is accepted at this clock edge",
    "stream_data": "16 bytes of a block, the first in bits 7..0",
    "stream_last": "this beat is the last of its block",
    "running": "time runs; the first rising clock edge at which it is high is time 0",
    "advance": "windows to skip, for simulation; tie to 0",
    "quiet": "nothing is in flight; for simulation, leave open",
    "horizon": "windows until the next timer is due; for simulation, leave open",
    "sync_in": "another board's wave, with the extended sink; asynchronous, two flip-flops inside; may be tied to 0",
    "sync_out": "this board's wave, with the extended sink; from a flip-flop",
    "memory_command_valid": "a command to write or read a burst of 16 beats is available",
    "memory_command_ready": "the command is accepted at this clock edge",
    "memory_command_write": "1 write, 0 read",
    "memory_command_burst": "number of the burst in the memory; commands are executed in order",
    "memory_write_valid": "a beat to be written is available, in the order of commands, before or after its command",
    "memory_write_ready": "the beat is accepted at this clock edge",
    "memory_write_data": "16 bytes to be written",
    "memory_read_valid": "a beat that was read is available, at any time, in the order of commands; always accepted",
    "memory_read_data": "16 bytes that were read",
}


# ---------------------------------------------------------------------------------------- writing

def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def record(r: layout.Record) -> str:
    """The fields of a record."""
    return table(("byte", "field", "bits", "meaning"),
                 ((at, f"`{f.name}`", f.bits, f.doc) for at, f in r.offsets())) + f"\n\n{r.bytes} bytes in all."


def summary(path: Path) -> str:
    """First paragraph of a module's docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text()))
    if not doc:
        raise ValueError(f"{path}: no docstring")
    return " ".join(doc.split("\n\n")[0].split()).replace("``", "`")


def flow(package: Path) -> tuple[str, list[str]]:
    """What a package's docstring says: about it in a sentence, and its modules and packages in their order.

    Raises
    ------
    ValueError
        if the line ``Flow:`` does not name each of them once.
    """
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    about, _, listed = doc.rpartition("Flow:")
    names = [name.strip() for name in listed.split(",")]
    there = {p.stem for p in package.glob("*.py")} - {"__init__"}
    there |= {p.parent.name for p in package.glob("*/__init__.py")}
    if sorted(names) != sorted(there):
        raise ValueError(f"{package}/__init__.py: Flow names {sorted(names)}, there are {sorted(there)}")
    return " ".join(about.split("\n\n")[0].split()).replace("``", "`"), names


def packages(folder: str, apart: tuple[str, ...] = ()) -> Iterator[str]:
    """A package and those in it, in their order; without those that are told elsewhere."""
    yield folder
    for name in flow(ROOT / folder)[1]:
        if (ROOT / folder / name).is_dir() and f"{folder}/{name}" not in apart:
            yield from packages(f"{folder}/{name}", apart)


def rooms(folder: str, *apart: str) -> str:
    """The modules of a package and of those in it, and what each is."""
    parts = []
    for package in packages(folder, apart):
        about, names = flow(ROOT / package)
        paths = [(ROOT / package / f"{name}.py") for name in names]
        rows = [(f"`{path.relative_to(ROOT)}`", summary(path)) for path in paths if path.exists()]
        head = [] if package == folder else [f"**`{package}/`** {about}"]
        parts += [*head, *([table(("file", "what it is"), rows)] if rows else [])]
    return "\n\n".join(parts)


def house() -> str:
    """All packages, in their order."""
    parts = ("hdl", "sim", "boards", "host")
    rows = [(package, flow(ROOT / package)[0]) for part in parts for package in packages(part)]
    lines = [f"{'  ' * package.count('/')}{package.rpartition('/')[2]}/" for package, _ in rows]
    wide = max(map(len, lines)) + 2
    shown = (f"{line:{wide}}{about}" for line, (_, about) in zip(lines, rows, strict=True))
    return "\n".join(("```text", *shown, "```"))


# ----------------------------------------------------------------------------------------- tables

def registers() -> str:
    return table(("offset", "name", "access", "bits", "meaning"),
                 ((f"`0x{r.offset:02x}`", f"**{r.name}**", r.access, r.bits, r.doc)
                  for r in sorted(layout.REGISTERS.values(), key=lambda r: r.offset)))


def areas() -> str:
    last = layout.COUNTERS_BASE + layout.COUNTERS_STRIDE * layout.NODES_MAX - 1
    return table(("from", "to", "what"), (
        (f"`0x{layout.REDUCTION_BASE:04x}`", f"`0x{layout.REDUCTION_BASE + 8 * layout.REDUCTION_GROUP - 1:04x}`",
         f"words {layout.REDUCTION_GROUP} * REDUCTION_INDEX and following of the reduction, two words each, the lower "
         "first (boards with the extended sink)"),
        (f"`0x{layout.COUNTERS_BASE:04x}`", f"`0x{last:04x}`",
         f"per-node counters, latched: node i, counter c at `0x{layout.COUNTERS_BASE:x} + "
         f"{layout.COUNTERS_STRIDE} * i + 8 * c`, two words each, the lower first"),
        (f"`0x{layout.BURST_BASE:04x}`", f"`0x{layout.BURST_END - 1:04x}`",
         "FRAME_FIFO again at every word, for burst reads")))


def reduction() -> str:
    """What can be read through REDUCTION_INDEX."""
    bins = layout.REDUCTION_GAP_BINS
    return table(("word", "latched", "meaning"), (
        (f"`{layout.REDUCTION_GAPS} + {bins} * i + b`", "yes",
         "node i's items that came 2^b windows and more, but fewer than 2^(b+1), after the one before of that node"),
        (f"`{layout.REDUCTION_SHARED} + k`", "yes", "windows with k items; an item that was passed over has its own"),
        (f"`{layout.REDUCTION_NODE_HIGH} + i`", "no", "the most nibbles that node i's FIFO has held since reset"),
        (f"`{layout.REDUCTION_VECTOR_HIGH}`", "no", "the most vectors in the strobe-vector FIFO"),
        (f"`{layout.REDUCTION_STORE_HIGH}`", "no", "the most beats in the memory of the COMPACT blocks")))


def counters() -> str:
    return table(("c", "offset", "counter", "meaning"),
                 ((int(c), f"`{8 * c:#04x}`", f"`{c.name}`", doc) for c, doc in layout.COUNTERS.items()))


def windows() -> str:
    clock_hz = layout.Geometry().clock_hz
    rows = []
    for name, window in layout.FRAME_WINDOW.items():
        length = f"{window.ns} ns" if window.ns else "one clock"
        seconds = 2**32 * window.clocks(clock_hz) / clock_hz
        wraps = f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"
        rows.append((int(window), f"`--window {name}`", length, window.clocks(clock_hz), wraps))
    return table(("setting", "option", "window", f"clocks at {clock_hz / 1e6:g} MHz", "32 bits wrap after"), rows)


def frame(nodes: int) -> str:
    words = layout.frame_words(nodes)
    row = layout.Geometry(nodes=nodes).row_nodes
    rows = [(k, f"nibbles of nodes {row - 8 * k - 1}..{row - 8 * k - 8}: node {row - 8 * k - 8} in bits 3..0, "
                f"node {row - 8 * k - 1} in bits 31..28") for k in range(words - 2)]
    vector = "bits 31..16 zero, bits 15..0 strobe vector" if row == 16 else "strobe vector"
    rows += [(words - 2, f"{vector}: bit i set if node i has a nibble here"),
             (words - 1, "time stamp: number of the window, bits 31..0")]
    return table(("word", f"event frame of {layout.frame_bytes(nodes)} bytes"), rows)


def members(of: type[enum.IntEnum], docs: dict[int, str]) -> str:
    """An enumeration and its meanings; fails if one is missing."""
    return table(("value", "name", "payload"), ((int(v), f"`{v.name}`", docs[v]) for v in of))


def types() -> str:
    kinds = layout.BlockType
    return members(kinds, {
        kinds.FRAMES: "event frames, nothing else; all of them share bits 63..32 of their time",
        kinds.COMPACT: "items of the extended board, in groups of four bits",
        kinds.LOSS: "loss records",
        kinds.CENSUS: "a head, then one record for every node, in order",
    })


def uart_marks() -> str:
    marks = {layout.UartMark.LITERAL: "the byte `0xdb` itself", layout.UartMark.PACKET: "a packet begins here"}
    return table(("mark", "name", "meaning"), ((int(m), f"`{m.name}`", marks[m]) for m in layout.UartMark))


def codes() -> str:
    return table(("code", "name", "followed by"), ((int(c), f"`{c.name}`", doc) for c, doc in layout.CODES.items()))


def numbers() -> str:
    return table(("what", "value"), (
        ("format version", layout.FORMAT_VERSION), ("register map version", layout.REGISTER_VERSION),
        ("magic", f"`0x{layout.BLOCK_MAGIC:08x}`, the bytes `HMON`"),
        ("beat, to which header, payload and trailer are padded", f"{layout.BEAT_BYTES} bytes"),
        ("longest block, header and trailer included", f"{layout.BLOCK_BYTES_MAX} bytes"),
        ("latency, clocks from pad to window", layout.LATENCY)))


def ports() -> str:
    from amaranth.back import rtlil
    from hypermon.hdl.top import PlainTop

    top = PlainTop(layout.Geometry(nodes=2, node_depth=4, vector_depth=16, frame_depth=4, external_depth=1024,
                                   sinks=tuple(layout.Sink), half_clock=True))
    text = rtlil.convert(top, name="hypermon", ports=top.ports())
    text = text[text.index("module \\hypermon\n"):]
    found = {name: (int(bits or 1), way.removesuffix("put"))
             for bits, way, name in re.findall(
                 r"^  wire (?:width (\d+) )?(input|output) \d+ +\\(\w+)$", text[:text.index("\nend")], re.MULTILINE)}
    if set(found) != set(PORTS):
        raise ValueError(f"the module has the ports {sorted(found)}, described are {sorted(PORTS)}")
    widths = {"data": f"{layout.PORT_BITS} or 8 x nodes", "strobe": "nodes", "early": "nodes",
              "memory_command_burst": "as the depth needs"}
    return table(("port", "direction", "bits", "meaning"), (
        (f"`{name}`", found[name][1], widths.get(name, found[name][0]), meaning) for name, meaning in PORTS.items()))


def geometry() -> str:
    g = layout.Geometry()
    return table(("what", "option", "default"), (
        ("nodes, 1..32", "`--nodes`", g.nodes), ("capture clock in hertz", "`--clock`", g.clock_hz),
        ("writes that a node FIFO holds", "`--node-depth`", g.node_depth),
        ("strobe vectors queued", "`--vector-depth`", g.vector_depth),
        ("event frames queued", "`--frame-depth`", g.frame_depth),
        ("beats of 16 bytes in the store, which wait for the link", "`--store-depth`", g.store_depth),
        ("beats in external memory after the store", "`--external-depth`", g.external_depth),
        ("data bits of a port, 4 or 8", "`--port-bits`", g.port_bits),
        ("strobes sampled twice per clock", "`--half-clock`", "no")))


def commands() -> str:
    import click
    from hypermon.host.cli import cli

    def page(name: str, command: click.Command, parent: click.Context | None) -> str:
        context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100,
                                **command.context_settings)
        text = f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
        below = sorted(command.commands.items()) if parent and isinstance(command, click.Group) else []
        return "\n\n".join([text, *(page(n, c, context) for n, c in below)])

    top = click.Context(cli, info_name="hypermon", **cli.context_settings)
    below = {name: cli.get_command(top, name) for name in cli.list_commands(top)}
    return "\n\n".join([page("hypermon", cli, None), *(page(n, c, top) for n, c in below.items())])


#: Logic, flip-flops and block RAMs, as nextpnr calls them on each family.
SHOWN = ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "LUT4", "DFF", "BSRAM", "ICESTORM_LC", "ICESTORM_RAM")


def boards() -> str:
    """What the last build of every board came to, and which there is no bitstream of."""
    from hypermon.boards.registry import BOARDS
    from hypermon.hdl.verilog import build_hash

    rows, missing = [], []
    for board in BOARDS.values():
        before = len(rows)
        for link, config in itertools.product(board.links, board.configs):
            kept = HERE / "boards" / f"{board.stem(config, link)}.json"
            if not kept.exists():
                continue
            built = json.loads(kept.read_text())
            clocks = {clock.removesuffix("_clk"): asked for clock, asked in built["clocks"].items()}
            slack = "; ".join(f"{1e3 / asked - 1e3 / reached:.2f}" for reached, asked in clocks.values())
            clocks = "; ".join(f"{clock} {reached:.1f} of {asked:g}" for clock, (reached, asked) in clocks.items())
            used = ", ".join(f"{built['used'][cell]} of {built['there'][cell]} {cell}"
                             for cell in SHOWN if built["used"].get(cell) and built["there"].get(cell))
            now = f"{build_hash(board.geometry(config, built['nodes'], link.kind)):08x}"
            gateware = f"`{built['build']}`{'' if built['build'] == now else ', older'}"
            rows.append((f"[{board.name}]({board.name}.md)", board.fpga, link.kind, config, built["nodes"], clocks,
                         slack, max(built["skews_ps"], default=""), used, built["seconds"], gateware,
                         f"`{built['sha256'][:12]}`"))
        if len(rows) == before:
            missing.append(f"[{board.name}]({board.name}.md) ({board.nodes} nodes)")
    built_here = table(("board", "FPGA", "link", "sinks", "nodes", "MHz reached of asked", "slack, ns", "skew, ps",
                        "used", "seconds", "gateware", "sha256"), rows)
    return built_here + (f"\n\nNo bitstream has been built here yet of {', '.join(missing)}." if missing else "")


def mtbf() -> str:
    """Mean time between failures of every board's synchronizer, by clocks."""
    from hypermon.boards.measure.metastability import EDGES, TAU_S, decides_s, mtbf_s, said
    from hypermon.boards.registry import BOARDS

    kinds: dict[tuple[str, int, bool], list[str]] = {}
    for board in BOARDS.values():
        for half in sorted({config == "half-clock" for config in board.configs}):
            kinds.setdefault((board.family, board.capture_hz, half), []).append(board.name)
    rows = []
    for (family, clock, half), names in sorted(kinds.items()):
        time = decides_s(BOARDS[names[0]], half)
        rows.append((", ".join(names), family, f"{clock / 1e6:g}", "yes" if half else "", f"{time * 1e9:.1f}",
                     *(said(mtbf_s(clock, EDGES, time, tau)) for tau in (TAU_S, 2 * TAU_S))))
    return table(("boards", "family", "MHz", "half clocks", "time to decide, ns", "MTBF", "with twice the tau"), rows)


def resources() -> str:
    """What the core takes, as `make resources` counted it."""
    with (HERE / "resources.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = {"config": "sinks", "vectors": "strobe vectors", "frames": "event frames", "store": "store, beats"}
    kept = [name for name in rows[0] if name != "seconds"]
    return table((names.get(name, name) for name in kept), ([row[name] for name in kept] for row in rows))


def paper() -> str:
    """What came of the paper's evaluation in short, as `make paper` wrote it."""
    said = (HERE / "paper.md").read_text().partition("In short:\n\n")[2].partition("\n\n")[0]
    return said.replace("](paper/", "](docs/paper/")


TABLES: dict[str, Callable[[], str]] = {
    "registers": registers, "areas": areas, "reduction": reduction, "counters": counters, "windows": windows,
    "frame-16": lambda: frame(16), "frame-32": lambda: frame(32), "types": types, "codes": codes, "numbers": numbers,
    "header": lambda: record(layout.BLOCK_HEADER), "trailer": lambda: record(layout.BLOCK_TRAILER),
    "compact-head": lambda: record(layout.COMPACT_HEAD),
    "uart-marks": uart_marks, "uart-request": lambda: record(layout.UART_REQUEST),
    "uart-reply": lambda: record(layout.UART_REPLY),
    "loss": lambda: record(layout.LOSS_RECORD), "census-board": lambda: record(layout.CENSUS_BOARD),
    "census-node": lambda: record(layout.CENSUS_NODE),
    "boards": boards, "mtbf": mtbf, "ports": ports, "resources": resources, "geometry": geometry, "commands": commands,
    "house": house, "rooms-hdl": lambda: rooms("hdl"), "rooms-sim": lambda: rooms("sim", "sim/ipsc"),
    "rooms-ipsc": lambda: rooms("sim/ipsc", "sim/ipsc/programs"), "rooms-programs": lambda: rooms("sim/ipsc/programs"),
    "rooms-boards": lambda: rooms("boards"), "rooms-host": lambda: rooms("host", "host/live"),
    "rooms-live": lambda: rooms("host/live"), "paper": paper,
    "erb-wires": ERB["wires"], "erb-parts": ERB["parts"],
}

def files() -> dict[Path, str]:
    """Files that are made whole: the boards' balls, pages and drawings, and what docs/erb.py makes."""
    from hypermon.boards.model import lvds
    from hypermon.boards.pinout import pinout
    from hypermon.boards.registry import BOARDS, DIFFERENTIAL

    balls = {name: pinout.balls(board) for name, board in BOARDS.items()}
    lines = (f'"{name}": {json.dumps(of)}' for name, of in balls.items())
    made = {ROOT / "boards" / "pinout" / pinout.BALLS: "{\n" + ",\n".join(lines) + "\n}\n"}
    found = (f'"{name}": {json.dumps(lvds.pairs(BOARDS[name], balls[name]))}' for name in DIFFERENTIAL)
    made[ROOT / "boards" / "model" / lvds.PAIRS] = "{\n" + ",\n".join(found) + "\n}\n"
    for name, board in BOARDS.items():
        wires = pinout.wires(board, balls[name])
        made[HERE / "boards" / f"{name}.md"] = pinout.page(board, wires)
        made[HERE / "boards" / f"{name}.svg"] = pinout.drawing(board, wires)
    return made | ERB["files"](HERE)


_MARKED = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def rendered(text: str) -> str:
    """A page with every marked part made anew.

    Raises
    ------
    KeyError
        for a mark whose name is not in :data:`TABLES`.
    ValueError
        for a mark that is not closed.
    """
    fresh = _MARKED.sub(lambda m: f"{m[1]}{TABLES[m['name']]()}\n{m[3]}", text)
    if fresh.count("<!-- begin ") != len(_MARKED.findall(fresh)):
        raise ValueError("a mark is not closed, or stands within another")
    return fresh


def main(argv: list[str] | None = None) -> int:
    """Writes or checks all pages; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is behind")
    check = parser.parse_args(argv).check
    behind = 0
    whole = files()
    for page in [*whole, *sorted([*HERE.rglob("*.md"), ROOT / "README.md"])]:
        old = page.read_text() if page.exists() else ""
        new = whole[page] if page in whole else rendered(old)
        if old == new:
            continue
        behind += 1
        if check:
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), str(page.relative_to(ROOT)), "as it should be"))
        else:
            page.parent.mkdir(exist_ok=True)
            page.write_text(new)
            print(f"{page.relative_to(ROOT)}: written anew")
    if check and behind:
        print("Behind the sources. To mend: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
