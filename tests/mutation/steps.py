"""Which tests a mutant meets: the benches of its stage, the proofs about it, then tests of whole boards."""

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Step", "benches", "boards", "proofs", "whole"]

_TESTS = Path(__file__).parents[1]
_HDL = "tests/hdl/"


@dataclass(frozen=True)
class Step:
    """Tests that are run together: arguments for pytest; if it is a proof; seconds after which they have failed, which
    are many times what they take; what they are called, if not by their arguments."""

    arguments: str
    proof: bool = False
    seconds: float = 300
    called: str = ""

    @property
    def name(self) -> str:
        return self.called or self.arguments

    def has(self, test: str) -> bool:
        """Is a test, which is known to be of this file or of these files, among them?"""
        words = shlex.split(self.arguments)
        return not self.called or test in words or test.partition("[")[0] in words

    def key(self, root: Path) -> str:
        """A hash of the tests."""
        digest = hashlib.sha256()
        for file in dict.fromkeys(w.split("::")[0] for w in shlex.split(self.arguments) if w.startswith("tests/")):
            digest.update((root / file).read_bytes())
        if self.proof:
            for source in sorted((root / _HDL / "formal").rglob("*.py")):
                digest.update(source.read_bytes())
        return digest.hexdigest()[:12]


#: Benches of a stage beside the one of its name: of what it is part of.
_ALSO = {
    "bit_sliced": "rate_limit glitch_filter node_fifo window counters loss_records high_water", "crc32": "byte_crc",
    "deadline": "lineup", "intake": "pads", "lfsr": "item_framer item_timeout", "loss_records_narrow": "loss_records",
    "ram": "fifo", "skid": "fifo", "link_code": "frame_serializer line_aligner",
    "frame_checker": "line_aligner receiver",
    "moment_parser": "receiver", "replay": "receiver", "link_losses": "receiver", "link_life": "link_losses",
}
#: ... which take long, and come with the whole boards.
_AROUND = {
    **dict.fromkeys(("compact_source", "discards", "encoder", "event_mask", "expander", "halver", "lineup", "packer",
                     "word_packer", "deadline", "trigger"), "compact_sink"),
    **dict.fromkeys(("frame_builder", "frame_fifo", "frames_source", "loss_records", "loss_records_narrow"),
                    "narrow_board"),
    "crc32": "blocker", "ram": "verilog", "tally": "counters",
}
_FORMAL = {
    "_fifos": {"fifo": ("small fifo", "stream fifo", "stream fifo, with a skid"), "skid": ("skid",),
               "drop_gate": ("gate",), "node_fifo": ("node fifos",)},
    "_coding": {"encoder": ("codes", "choice of codes")},
    "_counting": {"rate_limit": ("rate limit",),
                  "glitch_filter": ("glitch filter", "glitch filter, half clocks", "glitch filter, quarter clocks"),
                  "bit_sliced": ("rate limit",)},
    "_extended": {"item_timeout": ("item time-out",), "halver": ("halver", "halver, quarter clocks"),
                  "tally": ("tally",), "trigger": ("trigger",)},
    "_fronts": {"byte_items": ("checked events", "packets"), "itm_items": ("packets",), "one_wire": ("one wire",),
                "two_wire": ("two wires", "two wires, chip select")},
    "_items": {"item_framer": ("framer", "whole items", "framer to node FIFO"),
               "node_fifo": ("framed node FIFOs", "framer to node FIFO"), "drop_gate": ("framer to node FIFO",)},
    "_packing": {"expander": ("expander, items", "expander, vectors"), "packer": ("packer", "packer, blocks"),
                 "word_packer": ("word packer",)},
    "_path": {
        "drop_gate": ("gate to frame, two nodes",), "node_fifo": ("gate to frame, two nodes",),
        "window": ("window's accounts", "window's accounts, quarter clocks", "gate to frame, two nodes"),
        "gate_room": ("room for vectors, two nodes",),
        "timebase": ("length of windows", "a time that is led"),
        "frame_builder": ("frame builder, four words", "frame builder, six words", "gate to frame, two nodes",
                          "frame builder and frame FIFO"),
        "frame_fifo": ("frame builder and frame FIFO",), "bit_sliced": ("window's accounts",),
        "frame_port": ("frame port, four words", "frame port, six words"),
        "frames_source": ("frame source, four words", "frame source, six words")},
    "_regeneration": {"moment_gate": ("moment gate",), "byte_coder": ("words",), "store_port": ("store port",)},
    "_stores": {"store": ("store",)},
    "_sync": {"board_sync": ("own clock",), "marks": ("marks", "marks of the drift"), "echo": ("echo",),
              "trigger_out": ("trigger out",)},
}
#: Proofs that are tests by themselves.
_OTHERS = {
    "expander": ("tests/hdl/formal/test_formal_compact.py::test_holds[expander]",),
    "lineup": ("tests/hdl/formal/test_formal_compact.py::test_holds[lineup]",),
    "deadline": ("tests/hdl/formal/test_formal_compact.py::test_holds[lineup]",),
    "ram": ("tests/hdl/formal/test_formal_memory.py::test_memories_are_equal",
            "tests/hdl/formal/test_formal_memory.py::test_gowins_memories_are_equal"),
}
#: Tests of whole boards: on the virtual board, then on cocotb.
_BOARDS = [Step(arguments, seconds=600) for arguments in (
    "tests/hdl/whole/test_exact.py -k 'small or waits'", "tests/sim/played/test_items.py -k 'not classic'",
    "tests/sim/played/test_guard.py", "tests/sim/played/triggers/test_trigger_played.py -k 'not options'",
    "tests/sim/played/triggers/test_event_mask_played.py -k 'not option'",
    "tests/sim/played/test_item_filter.py -k 'not option'", "tests/sim/played/test_emulator_played.py",
    "tests/sim/played/test_reduction.py -k 'not dense and not classic and not alone'",
    "tests/hdl/whole/test_exact.py -k 'deep and extended'", "tests/hdl/whole/test_narrow_board.py",
    "tests/hdl/time/test_board_sync.py", "tests/hdl/whole/test_board.py", "tests/hdl/whole/test_whole_board.py",
    "tests/sim/played/triggers/test_trigger_played.py -k options",
)]
#: ... for stages that some of them are about: these are met with the benches.
_BOARDS_FIRST = {
    "node_emulator": "tests/sim/played/test_emulator_played.py", "reduction": "tests/sim/played/test_reduction.py "
    "-k 'not dense and not classic and not alone'", "board_sync": "tests/hdl/time/test_board_sync.py",
    "link_accounts": "tests/sim/played/test_regeneration.py",
    "front_ends": "tests/sim/played/fronts/test_front_ends_played.py",
    "intake": "tests/sim/played/test_guard.py", "capture": "tests/hdl/whole/test_exact.py -k 'small or waits'",
}


def _of(name: str) -> list[Step]:
    """The bench of that name, if there is one."""
    return [Step(str(path.relative_to(_TESTS.parent))) for path in sorted((_TESTS / "hdl").rglob(f"test_{name}.py"))]


def benches(stage: str) -> list[Step]:
    found = [step for name in [stage, *_ALSO.get(stage, "").split()] for step in _of(name)]
    return [*found, *(Step(arguments, seconds=600) for arguments in [_BOARDS_FIRST.get(stage)] if arguments)]


def boards(stage: str) -> list[Step]:
    around = [step for name in _AROUND.get(stage, "").split() for step in _of(name)]
    return [*around, *(step for step in _BOARDS if step.name not in {s.name for s in around})]


def whole(stage: str) -> bool:
    """Does it take whole boards already among the benches?"""
    return stage in _BOARDS_FIRST


def proofs(stage: str) -> list[Step]:
    found = [f"{_HDL}formal/test_formal{file}.py::test_holds[{name}]"
             for file, stages in _FORMAL.items() for name in stages.get(stage, ())]
    return [Step(f'"{arguments}"', proof=True) for arguments in (*found, *_OTHERS.get(stage, ()))]
