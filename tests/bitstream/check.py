"""From the bits back to the events: `make bitstream-check BOARD=ice40-hx8k`.

The file that `hypermon build` wrote is unpacked, verilated with models of the cells that are more than logic, and
driven at its package pins: nodes as the pinout page says, the serial line at its baud rate. The unmodified `hypermon
info`, `selftest` and `record` talk to it through a pseudo terminal; what `export` makes of each recording must be, byte
for byte, what it makes of `hypermon sim` with the same stimulus. What this shows, and what not: docs/first-light.md.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypermon.boards.model.board import Board
from hypermon.boards.registry import find
from hypermon.boards.toolchain.bitstream import BuildError, build
from hypermon.boards.toolchain.top import platform_of
from hypermon.hdl.layout import BEAT_BYTES, Geometry
from hypermon.hdl.verilog import build_hash
from hypermon.host.errors import HypermonError
from hypermon.sim.virtual.build import Shell

sys.path.insert(0, str(Path(__file__).parent))

import ecp5
import ice40
import trellis
from netlist import BitstreamError, Clocks, Wiring, shell, wrapped
from served import Served, command, recorded, told
from stimuli import Play, displays, mixture, played, random_writes

__all__ = ["BUILT", "Bits", "BitstreamError", "Outcome", "checks", "compared", "found", "main", "plays_of"]

_ROOT = Path(__file__).parents[2]
BUILT = _ROOT / ".build" / "boards"
_CAPTURES = Path(os.environ.get("HYPERMON_DATA", _ROOT.parent / "shared" / "data")) / "sr"
#: Board time from the last write until the recording is ended: that of a flush, and of what is then on the line.
_GRACE_PS = 15 * 10**9
#: Board clocks that a self-test takes besides those in which the link empties a full store; and the fewest a second.
_SELFTEST_CLOCKS, _SLOWEST_HZ = 100_000_000, 5_000
#: What is asked besides who the board is.
_PARTS = ("selftest", "displays", "random-1", "random-2", "mixture-1", "mixture-2")


@dataclass(frozen=True)
class Outcome:
    """What one check found: its name, whether it is as it should be, and what it saw."""

    name: str
    passed: bool
    text: str


class Bits:
    """A board's bitstream as a virtual board.

    Parameters
    ----------
    board : whose it is.
    built : what the build says of it, see :class:`hypermon.boards.toolchain.bitstream.Built`.
    file : the bits.
    wiring : of the package pins; the board's own unless another is given.
    form : of the bits in the unpacker's form; the file's unless another is given (damaged, for a test).
    """

    def __init__(self, board: Board, built: dict[str, Any], file: Path, wiring: Wiring | None = None,
                 form: Any = None):
        self.board, self.built = board, built
        self.link = board.link(built["link"])
        self.geometry: Geometry = board.geometry(built["config"], built["nodes"], built["link"])
        self.wiring = wiring or Wiring.of(board, self.link, built["nodes"])
        self.form = form or _forms(board)[0](file)

    def shell(self) -> Shell:
        """The virtual board of the bits.

        Raises
        ------
        BitstreamError
            if the bits cannot be unpacked, or their pins or clocks are not the board's.
        """
        clocks = Clocks.of(self.board, self.link, self.geometry)
        chip, other_hz = _forms(self.board)[1](self.form, clocks)
        return shell(f"bits-{self.board.name}", wrapped(chip, self.wiring), other_hz, self.link.baud)


def _forms(board: Board) -> tuple[Callable[[Path], Any], Callable[[Any, Clocks], tuple[str, int]]]:
    """How a board's bits are read, and what makes a chip of them."""
    if board.family == "ice40":
        return ice40.text_of, lambda text, clocks: ice40.chip(ice40.verilog_of(text), clocks)
    if board.family == "gowin":
        import gowin

        platform = platform_of(board, board.nodes)
        return lambda file: gowin.tiles_of(file, platform.part, platform._chipdb_device), gowin.chip
    if board.family == "ecp5":
        package = ecp5.package_of(platform_of(board, board.nodes).package)
        return trellis.text_of, lambda text, clocks: ecp5.chip(text, package, clocks)
    raise BitstreamError(f"{board.name}: of {board.family} there is no open way from the bits to a netlist")


def checks(bits: Bits, folder: Path, plays: list[Play], only: Container[str] | None = None) -> Iterator[Outcome]:
    """Everything that is asked of a board's bits, or only what has these names, one after the other; files go into a
    folder.

    Raises
    ------
    BitstreamError, HypermonError
        if they cannot be simulated.
    """
    made, baud = bits.shell(), bits.link.baud
    with Served(folder, made, bits.geometry, baud) as board:
        yield _identity(told(board.uri), bits)
        if only is None or "selftest" in only:
            yield _selftest(board.uri, bits)
    for play in plays:
        if only is None or play.name in only:
            yield compared(bits, made, folder, play)


def _identity(info: dict[str, Any], bits: Bits) -> Outcome:
    geometry = bits.geometry
    wanted = {"build": bits.built["build"], "nodes": geometry.nodes, "clock_hz": geometry.clock_hz,
              "node_depth": geometry.node_depth, "vector_depth": geometry.vector_depth,
              "frame_depth": geometry.frame_depth}
    wrong = [f"{key} {info.get(key)!r} instead of {value!r}" for key, value in wanted.items() if info.get(key) != value]
    if "error" in info:
        wrong = [str(info["error"])]
    return Outcome("info", not wrong, "; ".join(wrong) or f"gateware {info['build']}, {geometry.nodes} nodes, "
                   f"{geometry.clock_hz / 1e6:g} MHz")


def _selftest(uri: str, bits: Bits) -> Outcome:
    """The board's own tests, but for that of its time base: the simulation's clock is slower than the host's."""
    geometry = bits.geometry
    emptied_s = BEAT_BYTES * geometry.store_depth / bits.link.bytes_per_second
    clocks = _SELFTEST_CLOCKS + 2 * emptied_s * geometry.clock_hz
    done = command("selftest", "-b", uri, "--json", seconds=clocks / _SLOWEST_HZ)
    if not geometry.emulated:
        said = _last(done.stdout + done.stderr)
        return Outcome("selftest", done.returncode != 0 and "has no node emulator" in said, "none, and says so")
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [f"{verdict['name']}: {verdict['seen']}" for verdict in verdicts
             if verdict["passed"] is False and verdict["name"] != "time base"]
    passed = [verdict["name"] for verdict in verdicts if verdict["passed"]]
    if done.stderr or "link" not in passed:
        wrong.append(_last(done.stderr))
    return Outcome("selftest", not wrong, "; ".join(wrong) or ", ".join(passed))


def compared(bits: Bits, made: Shell, folder: Path, play: Play) -> Outcome:
    """A recording of the bits, against the same of `hypermon sim`: rows of `export --to csv`, and of nodes of several
    kinds also of `--to events`, byte for byte."""
    geometry = bits.geometry
    ours, theirs = folder / f"{play.name}-bits", folder / f"{play.name}-sim"
    done = command("sim", play.csv, "-o", theirs, "--nodes", str(geometry.nodes), "--clock", str(geometry.clock_hz),
                   *play.options, *play.wired)
    expected, said = _exported(theirs, play)
    if done.returncode or not expected:
        return Outcome(play.name, False, f"`hypermon sim` gave nothing to compare with: {done.stderr.strip()} {said}")
    began = time.monotonic()
    with Served(folder, made, geometry, bits.link.baud, played(play, geometry)) as board:
        done = recorded(board, ours, play.until_ps + _GRACE_PS, play.options)
    seconds = time.monotonic() - began
    if not ours.exists():
        return Outcome(play.name, False, f"`hypermon record` recorded nothing: {_last(done.stderr)}")
    got, said = _exported(ours, play)
    for number, (one, other) in enumerate(zip(got, expected, strict=False), 1):
        if one != other:
            return Outcome(play.name, False, f"event {number} of {len(expected)} is {one}, in the simulation {other}")
    if len(got) != len(expected):
        return Outcome(play.name, False, f"{len(got)} items, and {len(expected)} in the simulation {said}".rstrip())
    if done.returncode or said:
        return Outcome(play.name, False, f"the same events, but `hypermon record` says: {_last(done.stderr)} {said}")
    return Outcome(play.name, True, f"{len(got)} items, byte for byte ({play.until_ps / 1e9:.0f} ms of board time in "
                   f"{seconds:.0f} s)")


def _exported(run: Path, play: Play) -> tuple[list[str], str]:
    """Rows of a run's items, and what `export` had to say, which is nothing if nothing is missing."""
    done = [command("export", run, "--to", to, "-") for to in (("csv", "events") if play.wired else ("csv",))]
    return [row for one in done for row in one.stdout.splitlines()[1:]], "; ".join(
        one.stderr.strip() for one in done if one.stderr.strip())


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["nothing"])[-1]


def plays_of(bits: Bits, folder: Path, bursts: int) -> list[Play]:
    """What is recorded: random writes in both kinds of windows and edges, and the displays if there are captures; of
    nodes of several kinds, what such nodes send."""
    rate = bits.link.bytes_per_second
    if bits.geometry.fronts:
        return [mixture(folder, bits.geometry, rate, bursts=bursts, seed=seed) for seed in (1, 2)]
    made = [random_writes(folder, bits.geometry, rate, bursts=bursts, seed=1, window="800", edge="rising"),
            random_writes(folder, bits.geometry, rate, bursts=bursts, seed=2, window="1", edge="both")]
    return [displays(_CAPTURES, folder, bits.geometry, rate), *made] if _CAPTURES.is_dir() else made


def found(board: Board, out: Path, say: Callable[[str], None]) -> tuple[dict[str, Any], Path]:
    """The board's bitstream in a folder of `hypermon build`, and what is said of it there; built if there is none.

    Raises
    ------
    BuildError, BitstreamError
        if it cannot be built, or is not the file that was.
    """
    link = next((link for link in board.links if link.kind == "uart"), None)
    if link is None:
        raise BitstreamError(f"{board.name} has no serial port, which is the only way to its bits here")
    config = board.config(None) if board.ports else board.configs[0]
    described = out / f"{board.stem(config, link)}.json"
    if not described.exists():
        kept = _ROOT / "docs" / "boards" / described.name
        last = f", {json.loads(kept.read_text())['seconds']} s when it was built last" if kept.exists() else ""
        say(f"no bitstream of {board.name} in {out}: building it{last}")
        out.mkdir(parents=True, exist_ok=True)
        build(board, out, config=config, link=link.kind, say=say)
    built = json.loads(described.read_text())
    file = out / built["bitstream"]
    if hashlib.sha256(file.read_bytes()).hexdigest() != built["sha256"]:
        raise BitstreamError(f"{file} is not the file that {described.name} describes; remove both")
    if (now := f"{build_hash(board.geometry(config, built['nodes'], link.kind)):08x}") != built["build"]:
        say(f"{file.name} is gateware {built['build']}, and the sources are {now}: events are compared all the same")
    return built, file


def main(argv: list[str] | None = None) -> None:
    """Command line; exit status 1 if a check fails."""
    parser = argparse.ArgumentParser(prog="make bitstream-check", description=__doc__.partition("\n")[0])
    parser.add_argument("board", nargs="+", help="as `hypermon pinout` lists them")
    parser.add_argument("--ports", help="as of `hypermon build`: nodes of several kinds")
    parser.add_argument("--clock", type=int, help="as of `hypermon build`: a slower clock, in Hz")
    parser.add_argument("--built", type=Path, default=BUILT, help="folder of `hypermon build`")
    parser.add_argument("--bursts", type=int, default=20, help="of random writes, each recording (default 20)")
    parser.add_argument("--only", action="append", choices=_PARTS, help="besides `info`; may be repeated")
    args = parser.parse_args(argv)
    failed = False
    if not _CAPTURES.is_dir():
        print(f"none   displays: no real captures in {_CAPTURES}; set HYPERMON_DATA to what has sr/", flush=True)
    for name in args.board:
        try:
            board = find(name) if args.clock is None else find(name).clocked(args.clock)
            board = board if args.ports is None else board.mixed(args.ports)
            bits = Bits(board, *found(board, args.built, _say))
            print(f"{bits.built['bitstream']}: sha256 {bits.built['sha256'][:16]}...", flush=True)
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                for outcome in checks(bits, folder, plays_of(bits, folder, args.bursts), args.only):
                    failed |= not outcome.passed
                    print(f"{'ok    ' if outcome.passed else 'FAILED'} {outcome.name}: {outcome.text}", flush=True)
        except (BitstreamError, BuildError, HypermonError, ValueError, OSError) as error:
            failed = True
            print(f"FAILED {name}: {error}", file=sys.stderr)
    sys.exit(failed)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
