"""Builds the wheel `hypermon-bitstreams` from finished builds: `python -m hypermon.boards.toolchain.wheel`.

It contains the bitstreams and ``manifest.json``: for each its board, configuration, gateware, commit, tools and
SHA-256. Builds from other sources than these are rejected, so that a package is consistent.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hypermon.hdl.layout import FORMAT_VERSION, REGISTER_VERSION
from hypermon.hdl.verilog import build_hash

from ..registry import find

__all__ = ["MANIFEST", "MODULE", "PackageError", "main", "wheel"]

MODULE, MANIFEST = "hypermon_bitstreams", "manifest.json"
_NEEDED = {"board", "config", "nodes", "link", "build", "bitstream", "sha256"}
_PROJECT = Path(__file__).parents[1] / "bitstreams"


class PackageError(Exception):
    """There is nothing to pack, or something that does not belong in; the message names the command that helps."""


def _said(described: Path) -> dict[str, Any]:
    """A build's description of its bitstream."""
    try:
        said = json.loads(described.read_text("utf-8"))
    except ValueError:
        said = None
    if not isinstance(said, dict) or _NEEDED - said.keys():
        raise PackageError(f"{described} is damaged; make that bitstream anew, or remove it")
    return said


def _checked(described: Path, built: dict[str, Any]) -> dict[str, Any]:
    """The same, if the bitstream is unchanged, and from these sources."""
    again = f"hypermon build {built['board']} --config {built['config']} --link {built['link']} -o {described.parent}"
    bitstream = described.with_name(built["bitstream"])
    if not bitstream.exists() or hashlib.sha256(bitstream.read_bytes()).hexdigest() != built["sha256"]:
        raise PackageError(f"{bitstream} is not the file that {described.name} tells of; to make both: {again}")
    now = f"{build_hash(find(built['board']).geometry(built['config'], built['nodes'], built['link'])):08x}"
    if built["build"] != now:
        raise PackageError(f"{bitstream} is gateware {built['build']}, the sources are {now}; to make it anew: {again}")
    return built


def wheel(built: Iterable[Path], out: Path) -> Path:
    """Packs the results that these build manifests describe into a wheel in a folder, and returns its path.

    Projects for a vendor's tool are left out, because their result is unknown.

    Raises
    ------
    PackageError
        if there are none, one does not match its bitstream or these sources, or the wheel cannot be made.
    """
    entries = [(path, _checked(path, said)) for path in sorted(built) if not (said := _said(path)).get("vendor")]
    if not entries:
        raise PackageError("no bitstreams to pack; to make them: make bitstreams")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(_PROJECT, project)
        (project / "VERSION").write_text(version("hypermon"))
        package = project / MODULE
        package.mkdir()
        (package / "__init__.py").write_text('"""Bitstreams of HYPERMON; manifest.json says what they are."""\n')
        for path, entry in entries:
            shutil.copyfile(path.with_name(entry["bitstream"]), package / entry["bitstream"])
        (package / MANIFEST).write_text(json.dumps({
            "format_version": FORMAT_VERSION, "register_version": REGISTER_VERSION,
            "bitstreams": [entry for _, entry in entries]}, indent=1) + "\n")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
             "--disable-pip-version-check", "-w", str(Path(folder) / "wheel"), str(project)],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise PackageError(f"pip cannot make the wheel: {done.stderr.strip()[-1000:]}")
        made = next((Path(folder) / "wheel").glob("*.whl"))
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(made, out / made.name))


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m hypermon.boards.toolchain.wheel", description=__doc__)
    parser.add_argument("--built", type=Path, default=Path(".build/boards"), help="folder of `hypermon build`")
    parser.add_argument("-o", "--out", type=Path, default=Path(".build/dist"), help="folder of the wheel")
    args = parser.parse_args(argv)
    try:
        made = wheel(args.built.glob("*.json"), args.out)
    except PackageError as error:
        sys.exit(f"python -m hypermon.boards.toolchain.wheel: {error}")
    print(f"{made}: {made.stat().st_size} bytes, sha256 {hashlib.sha256(made.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
