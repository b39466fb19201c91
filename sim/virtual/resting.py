"""Lets parts of the simulated gateware rest while nothing in them changes.

Verilator computes every register in every clock. Here the gateware's modules are sorted into rooms, and each room gets
a clock of its own, which the harness leaves out at will. Verilator then writes functions for each clock. This module
reads from them what each room reads and writes, and generates the C++ that decides which rooms rest.

A room may rest when everything that it reads, its own registers included, has been the same in three clocks: another
clock would change nothing. (Three, because memories are not compared: what was written into one at the first edge could
be read at the second.) It wakes when something changes that it reads and others write, and when they write into a
memory that it reads: where they do is marked. A number that changes all the time, like the window's, is not compared if
the room reads it in branches only. These are marked, too, and the room may rest when none of them was taken in the last
two clocks: without another change, none will be.

Nothing has to be known about the gateware for this. The rooms only decide how much can rest.
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["HEADER", "in_rooms", "rests"]

#: Name of the header that :func:`rests` is for, in the directory of the model.
HEADER = "rests.h"

#: Modules below ``hypermon.capture`` (without Amaranth's numbers) and their rooms. The longest name decides.
#: Those that change in every clock, because they sweep over the nodes or read the time, are in none.
_ROOMS = {
    "accounts.census": "census", "accounts.loss": "loss", "accounts.reduction": "reduction",
    "accounts.reduction.gap_counts.copies": "copies", "accounts.reduction.shared_counts.copies": "copies",
    "blocker": "blocker", "buffer": "buffer",
    "intake": "intake", "intake.emulator": "emulator", "intake.framer": "framer",
    "intake.rate_limit": "", "intake.timeout": "",
    "merge.gate": "gate", "merge.room": "gate", "merge.node_fifos": "node_fifos", "merge.vector_fifo": "vector_fifo",
    "pbx": "registers", "registers": "registers",
    "sinks.classic": "classic", "sinks.classic.source.deadline": "",
    "sinks.extended": "compact", "sinks.extended.lineup.deadline": "", "sinks.extended.source.deadline": "",
    "sinks.extended.lineup": "lineup", "sinks.extended.vector_skid": "lineup", "sinks.extended.expander": "expander",
    "sinks.extended.trigger": "trigger", "sinks.extended.event_mask": "event_mask",
    "sinks.extended.item_skid": "encoder", "sinks.extended.encoder": "encoder", "sinks.extended.packer": "packer",
    "sinks.extended.source": "source",
}
#: Registers in them that belong to another room: to none if they change in every clock all the same.
_APART = {
    "accounts.census": dict.fromkeys(("elapsed", "over", "due", "horizon", "dirty"), ""),
    "accounts.loss": dict.fromkeys(("node", "node1", "turn", "visited", "seen", "earlier"), ""),
    "accounts.reduction.gap_counts": dict.fromkeys(("turn", "free"), ""),
    "accounts.reduction.shared_counts": dict.fromkeys(("turn", "free"), ""),
    "accounts.reduction.node_high": dict.fromkeys(
        ("mark_which", *(f"mark_of_{node}" for node in range(0, 32, 4)), "high"), "marks"),
}
#: Bits from which on an input that changes in every clock is a number; endings of the names of narrower numbers.
_WIDE, _SWEPT = 24, tuple(sorted({"__DOT__" + name for names in _APART.values() for name in names if not names[name]}))
#: Endings of the names of others' inputs that change often, and are read in branches that are seldom taken.
_BUSY = ("merge___05Flevel", "i___05Fvectors___05Fpayload", "capture__DOT__i___05Fnibble")
#: What a room's mark means: it has read in a branch what is not compared; others have written into a memory.
_TAKEN, _FOREIGN = 1, 2
#: Values that are compared together.
_PART = 8
_TOP, _CORE = "hypermon", "hypermon.capture."
_BEAT = "beat_"

_MODULE = re.compile(r"^module \\?(\S+?) ?\(", re.MULTILINE)
_EDGE = re.compile(r"@\(posedge \\?\S+? ?\)(?=.*?\\?(\w+)(?:\[[\d:]+\])? <=)", re.DOTALL)
#: The clocks that rise, where functions for them are called.
_CLOCKS = "vlSelfRef.__VnbaTriggered[0U]"
_TRIGGERED = re.compile(r"\((?:0x)?([0-9a-f]+)ULL & vlSelfRef\.__VnbaTriggered\[0U\]\)\) \{")
_FUNCTION = re.compile(r"^\w[\w ]*?\b(\w+___024root___\w+)\(\w+___024root\* vlSelf\) \{\n(.*?)^\}\n",
                       re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"\b(\w+___024root___\w+)\(vlSelf\);")
#: A variable, with the number of its word if that is constant.
_VARIABLE = re.compile(r"\bvlSelfRef\.(\w+)((?:\[(?:0x)?[0-9a-f]+U\])?)")
_WRITTEN = re.compile(r"(?:^|[;{}]|\belse)\s*vlSelfRef\.(\w+)(?:\s*\[[^=;]*?\])*\s*=(?!=)")
#: A call that may write into its arguments.
_WIDE_CALL = re.compile(r"\bVL_\w+_\w*W\w*\(|\bVL_ASSIGN\w*\(")
#: A test of whether a clock has fallen.
_FALLS = re.compile(r"\(~ \(IData\)\(vlSelfRef\.clk\)\)")
_WIDTH = re.compile(r"(?:/\*(\d+):0\*/ (\w+);|VL_IN\w*\((\w+),(\d+),0)")
_TRIGGER = re.compile(r"__Vtrigprevexpr___TOP__(\w+)__0 *\n? *=")
_MEMORY = re.compile(r"VlUnpacked<[^;]*?> (\w+);")


def in_rooms(verilog: str) -> tuple[str, tuple[str, ...]]:
    """The same Verilog with a clock ``beat_*`` per room, inputs of the top module; and the names of these rooms."""
    used: set[str] = set()
    parts = []
    for text in re.split(r"(?<=^endmodule\n)", verilog, flags=re.MULTILINE):
        found = _MODULE.search(text)
        path = re.sub(r"\$\d+", "", found[1]) if found else ""
        room = _room(path)
        if room and _EDGE.search(text):
            apart = _APART.get(path.removeprefix(_CORE), {})
            rooms = [apart.get(edge[1], room) for edge in _EDGE.finditer(text)]
            used.update(filter(None, rooms))
            text = _EDGE.sub(lambda edge, room=room, apart=apart: _clock(edge, apart.get(edge[1], room)), text)
        parts.append(text)
    rooms = tuple(sorted(used))
    text = "".join(parts)
    top = re.search(rf"^module {_TOP}\(", text, re.MULTILINE)
    if not rooms or not top:
        return verilog, ()
    begin, end = top.start(), text.index(";\n", top.start()) + 2
    head = text[begin:end].replace("(", "(" + "".join(f"{_BEAT}{room}, " for room in rooms), 1)
    inputs = "".join(f"  input {_BEAT}{room};\n  wire {_BEAT}{room};\n" for room in rooms)
    return text[:begin] + head + inputs + text[end:], rooms


def _clock(edge: re.Match[str], room: str) -> str:
    return f"@(posedge {_TOP}.{_BEAT}{room})" if room else edge[0]


def _room(path: str) -> str:
    if not path.startswith(_CORE):
        return ""
    path = path.removeprefix(_CORE) + "."
    names = [name for name in _ROOMS if path.startswith(name + ".")]
    return _ROOMS[max(names, key=len)] if names else ""


@dataclasses.dataclass
class _Fragment:
    """A part of the model that runs when one of its clocks rises: places in its files, and what happens there.

    Attributes
    ----------
    mask : the clocks.
    spans : of each function, or part of one: its beginning and its end in the text.
    reads : the places where a variable is read, by its name, with a word's number if that is constant.
    writes : names of variables, with the places.
    """

    mask: int
    spans: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    reads: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    writes: dict[str, list[int]] = dataclasses.field(default_factory=dict)


class _Model:
    """Verilator's C++, the fast part of it, as one text."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self.files = [path for path in sorted(directory.glob(f"{prefix}___024root__*.cpp")) if "Slow" not in path.name]
        self.parts = [path.read_text() for path in self.files]
        self.text = "".join(self.parts)
        self.header = (directory / f"{prefix}___024root.h").read_text()
        self.root = f"{prefix}___024root"
        self.widths = {found[2] or found[3]: int(found[1] or found[4]) + 1 for found in _WIDTH.finditer(self.header)}
        self.functions = {found[1]: found.span(2) for found in _FUNCTION.finditer(self.text)}

    def clocks(self) -> dict[str, int] | None:
        """The bit of each clock in the model's mask: they are listed in this order."""
        begin, end = self.functions.get(f"{self.root}___eval_triggers_vec__act", (0, 0))
        names = _TRIGGER.findall(self.text[begin:end])
        return {name: k for k, name in enumerate(names)} if names and names[0] == "clk" and len(names) <= 64 else None

    def fragments(self) -> list[_Fragment] | None:
        """All parts, the inputs' effects as one that always runs; None if the text has an unknown form."""
        root = self.root
        if _FALLS.search(self.text) or not {f"{root}___eval_nba", f"{root}___eval_ico"} <= self.functions.keys():
            return None
        begin, end = self.functions[f"{root}___eval_nba"]
        begin = self.text.find("// Body\n", begin, end) + len("// Body\n")
        found = []
        for part in re.finditer(r"    if \((.*?)^    \}\n", self.text[begin:end], re.MULTILINE | re.DOTALL):
            head = _TRIGGERED.match(part[1])
            if not head or begin + part.start() != (found[-1].spans[0][1] + len("    }\n") if found else begin):
                return None
            fragment = _Fragment(int(head[1], 16 if part[1].startswith("(0x") else 10))
            inside = begin + part.start(1)
            self._add(fragment, inside + head.end(), inside + len(part[1]))
            found.append(fragment)
        if not found or self.text[found[-1].spans[0][1] + len("    }\n"):end].strip():
            return None
        found.append(inputs := _Fragment(1))
        self._add(inputs, *self.functions[f"{root}___eval_ico"])
        inputs.reads = {}
        return found

    def _add(self, fragment: _Fragment, begin: int, end: int) -> None:
        """Adds a span of the text, and the functions that it calls."""
        fragment.spans.append((begin, end))
        text = self.text[begin:end]
        written = {found.start(1) for found in _WRITTEN.finditer(text)}
        for found in _VARIABLE.finditer(text):
            if found.start(1) in written:
                fragment.writes.setdefault(found[1], []).append(begin + found.start())
            else:
                fragment.reads.setdefault(found[1] + found[2], []).append(begin + found.start())
        for call in _WIDE_CALL.finditer(text):
            for name, _ in _VARIABLE.findall(text[call.end():text.index(";", call.end())]):
                fragment.writes.setdefault(name, []).append(begin + call.start())
        for name in _CALL.findall(text):
            self._add(fragment, *self.functions[name])

    def branches(self, fragment: _Fragment, places: list[int]) -> set[int] | None:
        """Where the branches begin in which the places are; None if one is in no branch."""
        found = set()
        for place in places:
            begin = next(begin for begin, end in fragment.spans if begin <= place < end)
            depth = 0
            for brace in reversed([*re.finditer("[{}]", self.text[begin:place])]):
                depth += 1 if brace[0] == "}" else -1
                if depth < 0:
                    found.add(begin + brace.end())
                    break
            else:
                return None
        return found

    def insert(self, texts: dict[int, str]) -> None:
        """Writes the files with additional texts at places. The clocks are kept in a local variable: more than a
        hundred fragments test them.
        """
        begin, end = self.functions[f"{self.root}___eval_nba"]
        first = self.text.find("// Body\n", begin, end) + len("// Body\n")
        texts = texts | {first: f"    const uint64_t clocks = {_CLOCKS};\n"}
        tests = {place.start() for place in re.finditer(re.escape(_CLOCKS), self.text) if first <= place.start() < end}
        begin = 0
        for path, part in zip(self.files, self.parts, strict=True):
            end = begin + len(part)
            new = part
            for place in sorted((place for place in {*texts, *tests} if begin <= place < end), reverse=True):
                rest = new[place - begin:]
                if place in tests:
                    rest = "clocks" + rest[len(_CLOCKS):]
                new = new[:place - begin] + texts.get(place, "") + rest
            path.write_text(new)
            begin = end


@dataclasses.dataclass
class _Room:
    """What a room reads: by name, with a word's number.

    Attributes
    ----------
    bit : of its clock.
    kept : what is compared, apart from memories and from what is read in branches only.
    others : what others write, by their clocks. None: a memory into which they may write at any time.
    """

    name: str
    bit: int
    kept: list[str] = dataclasses.field(default_factory=list)
    others: dict[int, list[str | None]] = dataclasses.field(default_factory=dict)


def rests(directory: Path, prefix: str, rooms: tuple[str, ...]) -> str:
    """C++ that decides which rooms rest, from Verilator's C++ in a directory, where it marks branches; empty if that
    has an unknown form.
    """
    model = _Model(directory, prefix)
    clocks, fragments = model.clocks(), model.fragments()
    if clocks is None or fragments is None or set(clocks) != {"clk", *(_BEAT + room for room in rooms)}:
        return ""
    memories = set(_MEMORY.findall(model.header))
    writers: dict[str, int] = {}
    for fragment in fragments:
        for name in fragment.writes:
            writers[name] = writers.get(name, 0) | fragment.mask
    marks: dict[int, str] = {}
    found = {}
    for room in rooms:
        bit = 1 << clocks[_BEAT + room]
        own = [fragment for fragment in fragments if fragment.mask == bit]
        others = [fragment for fragment in fragments if fragment.mask != bit]
        found[room] = _read(model, _Room(room, bit), (own, others), writers, memories, marks)
    model.insert(marks)
    return _header(model.root, found)


def _read(model: _Model, room: _Room, fragments: tuple[list[_Fragment], list[_Fragment]], writers: dict[str, int],
          memories: set[str], marks: dict[int, str]) -> _Room:
    """What a room reads, with marks for the branches in which it reads what others write, and for those in which they
    write into memories that it reads. ``fragments``: its own, and all others.
    """
    own, others = fragments

    def mark(branches: set[int], bit: int) -> None:
        for place in branches:
            marks[place] = marks.get(place, "") + f" vlSelfRef.{_BEAT}{room.name} |= {bit};"

    places: dict[str, list[tuple[_Fragment, list[int]]]] = {}
    whole = {name for fragment in own for name in fragment.reads if not name.endswith("]")}
    for fragment in own:
        for name, found in fragment.reads.items():
            bare = name.partition("[")[0]
            if not bare.startswith("__Vnba"):
                places.setdefault(bare if bare in whole else name, []).append((fragment, found))
    for name, uses in sorted(places.items()):
        bare = name.partition("[")[0]
        mask = 1 if writers.get(bare, 1) & 1 else writers[bare]
        if bare in memories:
            written = [model.branches(fragment, fragment.writes[bare]) for fragment in others
                       if bare in fragment.writes]
            if None in written:
                room.others.setdefault(mask, []).append(None)
            else:
                mark(set().union(*written), _FOREIGN)
            continue
        if bare.endswith(_BUSY) if mask != 1 else model.widths.get(bare, 64) >= _WIDE or bare.endswith(_SWEPT + _BUSY):
            branches = [model.branches(*use) for use in uses]
            if None not in branches:
                mark(set().union(*branches), _TAKEN)
                continue
        room.kept.append(name)
        if mask != room.bit:
            room.others.setdefault(mask, []).append(name)
    return room


def _header(root: str, rooms: dict[str, _Room]) -> str:
    decides, kept = [], []
    for k, (name, room) in enumerate(rooms.items()):
        values = [(value, value.replace("[", "_").replace("]", "")) for value in room.kept]
        kept.append("  struct {\n" + "".join(
            f"    std::remove_cv_t<std::remove_reference_t<decltype(std::declval<Root&>().{value})>> {copy};\n"
            for value, copy in values) + f"  }} {name}_;\n")
        parts = [(1 + at // _PART, values[at:at + _PART]) for at in range(0, len(values), _PART)]
        copied = {part: "".join(f"    {name}_.{copy} = root.{value};\n" for value, copy in some)
                  for part, some in parts}
        differ = {part: "\n        | ".join(f"differs(root.{value}, {name}_.{copy})" for value, copy in some)
                  for part, some in parts}
        decides.append(
            f"  // {name}\n"
            f"  bool stirs(Number<{k}>, [[maybe_unused]] const Root& root, [[maybe_unused]] uint64_t last) const {{\n"
            f"{''.join(_tests(room))}    return false;\n  }}\n"
            f"  void keep(Number<{k}>, Root& root) {{\n    root.{_BEAT}{name} = 0;\n"
            + "".join(copied.values()) + "  }\n"
            f"  int changed(Number<{k}>, const Root& root) const {{\n    if (root.{_BEAT}{name}) return 0;\n"
            + "".join(f"    if ({test}) return {part};\n" for part, test in differ.items()) + "    return NONE;\n  }\n"
            f"  void keep(Number<{k}>, Root& root, int part) {{\n    root.{_BEAT}{name} = 0;\n    switch (part) {{\n"
            + "".join(f"    case {part}:\n{text}    break;\n" for part, text in copied.items()) + "    }\n  }\n"
            f"  bool changed(Number<{k}>, const Root& root, int part) const {{\n"
            f"    if (root.{_BEAT}{name}) return true;\n    switch (part) {{\n"
            + "".join(f"    case {part}: return {test};\n" for part, test in differ.items())
            + "    }\n    return false;\n  }\n"
            f"  static bool reads(Number<{k}>, const Root& root) {{ return root.{_BEAT}{name} & {_TAKEN}; }}\n")
    return f"""// Generated by sim/virtual/resting.py.
struct Rooms {{
  using Root = {root};
  static constexpr int COUNT = {len(rooms)}, NONE = -1;
  static constexpr uint64_t BITS[] = {{{''.join(f'{room.bit:#x}, ' for room in rooms.values())}0}};
  static constexpr const char* NAMES[] = {{{''.join(f'"{name}", ' for name in rooms)}""}};
  template <class Top> static void beat([[maybe_unused]] Top& top, [[maybe_unused]] int level) {{
    {' '.join(f'top.{_BEAT}{name} = level;' for name in rooms)}
  }}
  static void inputs(Root* root) {{
    root->__VicoTriggered[0] = ~uint64_t{{0}};
    {root}___eval_ico(root);
  }}
  static void edge(Root* root, uint64_t rooms) {{
    root->__VnbaTriggered[0] = rooms;
    {root}___eval_nba(root);
  }}
{''.join(decides)}
{''.join(kept)}}};
"""


def _tests(room: _Room) -> Iterator[str]:
    """What is written in every clock is always compared, and the rest if its writer did not rest. A memory is not
    compared: others mark that they have written into it.
    """
    yield f"    if (root.{_BEAT}{room.name} & {_FOREIGN}) return true;\n"
    any_other = 0
    for mask in room.others:
        any_other |= 0 if mask == 1 else mask
    for mask, values in sorted(room.others.items()):
        differ = "\n          | ".join(
            "true" if value is None
            else f"differs(root.{value}, {room.name}_.{value.replace('[', '_').replace(']', '')})" for value in values)
        yield f"    if ({'' if mask == 1 else f'(last & {mask:#x}u) && '}({differ})) return true;\n"
        if mask == 1 and any_other:
            yield f"    if (!(last & {any_other:#x}u)) return false;\n"
