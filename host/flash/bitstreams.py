"""Bitstreams: the output of `hypermon build`, or else the contents of the package `hypermon-bitstreams`."""

import hashlib
import json
from dataclasses import dataclass
from importlib.util import find_spec
from math import gcd
from pathlib import Path
from typing import Any

from hypermon.boards.registry import BOARDS, find
from hypermon.hdl.layout import FORMAT_VERSION, REGISTER_VERSION
from hypermon.host.errors import HypermonError

__all__ = ["Bitstream", "clock_known", "described", "find_bitstream"]

_PACKAGE, _WHEEL = "hypermon_bitstreams", "hypermon-bitstreams"


@dataclass(frozen=True)
class Bitstream:
    """A bitstream whose hash has been checked.

    Parameters
    ----------
    path : the file.
    said : the contents of its manifest: ``board``, ``config``, ``nodes``, ``build``, ``sha256`` and more.
    source : its origin, for people.
    """

    path: Path
    said: dict[str, Any]
    source: str


def described(out: Path, stem: str) -> Path:
    """The manifest of a build into the folder ``out``, whose files are called ``stem``."""
    return out / f"{stem}.json"


def find_bitstream(out: Path, stem: str, build: str) -> Bitstream:
    """The bitstream that was built into ``out``, or that of the package; ``build`` : the command that builds it.

    Raises
    ------
    HypermonError
        if there is none, its hash is not the recorded one, or it is not for this program; the message names the command
        that helps.
    """
    local = described(out, stem)
    if local.exists():
        said = _said(local)
        if other := _other_version(said):
            raise HypermonError(f"{local} is {other[0]} than this program ({other[1]}); to make it anew: {build}")
        return _checked(Bitstream(local, said, f"built here, {out}"), build)
    folder = _folder()
    if folder is None:
        raise HypermonError(f"{local} does not exist, and the package {_WHEEL} is not installed; to make it: {build}")
    manifest = json.loads((folder / "manifest.json").read_text())
    if other := _other_version(manifest):
        which = _WHEEL if other[0] == "older" else "hypermon"
        raise HypermonError(f"the bitstreams of {_WHEEL} are {other[0]} than this program ({other[1]}): "
                            f"pip install --upgrade {which}")
    there = {Path(entry["bitstream"]).stem: entry for entry in manifest["bitstreams"]}
    if stem not in there:
        raise HypermonError(f"{_WHEEL} has no {stem}; it has: {', '.join(sorted(there))}; to make it: {build}")
    found = Bitstream(folder / "manifest.json", there[stem], f"of {_WHEEL}")
    return _checked(found, f"install {_WHEEL} again; or: {build}")


def _other_version(said: dict[str, Any]) -> tuple[str, str] | None:
    """Whether the contents of a manifest are older or newer than this program, and in which respect."""
    for kind, known in (("format_version", FORMAT_VERSION), ("register_version", REGISTER_VERSION)):
        if (found := said.get(kind, known)) != known:
            return "older" if found < known else "newer", f"{kind.replace('_', ' ')} {found}, not {known}"
    return None


def _said(path: Path) -> dict[str, Any]:
    """A build's manifest of its bitstream; empty for a file that does not belong to the build."""
    try:
        said = json.loads(path.read_text("utf-8"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def clock_known(build: str, out: Path) -> dict[str, Any]:
    """Boards and clocks according to the bitstreams of that build, in ``out`` or in the package.

    ``bitstreams``: names, several if boards share a geometry. ``clock``: how the capture clock is derived from each
    oscillator or reference clock. ``clock_ppm``: its deviation from the clock that the board reports, without the error
    of the oscillator or the reference itself. ``bitstreams`` alone, and empty, if none of the known ones is of that
    build; nothing at all if none is known.
    """
    local = [said for path in sorted(out.glob("*.json")) if "bitstream" in (said := _said(path))]
    folder = _folder()
    packed = json.loads((folder / "manifest.json").read_text())["bitstreams"] if folder else []
    of = {Path(said["bitstream"]).stem: _ratio(said) for said in (*packed, *local)
          if said.get("build") == build and said.get("board") in BOARDS}
    if not of:
        return {"bitstreams": []} if packed or local else {}
    return {"bitstreams": sorted(of), "clock": sorted(set(of.values())),
            # A board's PLL makes an exact ratio, or there is no bitstream.
            "clock_ppm": 0.0}


def _ratio(said: dict[str, Any]) -> str:
    """How the capture clock of a manifest's board is derived from the clock that feeds its PLL."""
    board = find(said["board"])
    reference_hz = said.get("reference_hz", 0)
    capture_hz, input_hz = said.get("capture_hz", board.capture_hz), reference_hz or board.oscillator_hz
    common = gcd(capture_hz, input_hz)
    return f"{capture_hz // common}/{input_hz // common} of {input_hz / 1e6:g} MHz" \
        + (" (reference)" if reference_hz else "")


def _folder() -> Path | None:
    spec = find_spec(_PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else None


def _checked(found: Bitstream, again: str) -> Bitstream:
    if not {"bitstream", "sha256"} <= found.said.keys():
        raise HypermonError(f"{found.path} is damaged: it names no bitstream; to repair: {again}")
    path = found.path.parent / found.said["bitstream"]
    vendor = found.said.get("vendor")
    if not path.exists():
        raise HypermonError(f"{path} is missing: {vendor} makes it, in that folder" if vendor else
                            f"{path} is missing; to make it: {again}")
    if vendor:
        return Bitstream(path, found.said, f"made by {vendor}")     # only the vendor knows its format
    if hashlib.sha256(path.read_bytes()).hexdigest() != found.said["sha256"]:
        raise HypermonError(f"{path} is damaged: its SHA-256 is not {found.said['sha256'][:16]}...; to repair: {again}")
    return Bitstream(path, found.said, found.source)
