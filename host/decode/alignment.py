"""How the times of boards that were recorded together are converted to those of the first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.errors import InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.text.json_file import integer, maybe, number, one_of, table, text

__all__ = ["ALIGNMENT", "Alignment", "align", "offsets"]

_Times = npt.NDArray[np.int64]
#: The shape of an :class:`Alignment`; ``decode.json`` has one per board.
ALIGNMENT = table({
    "board": text(1 << 16), "first_node": integer(0, 1 << 16), "nodes": integer(1, 1 << 16),
    "how": one_of("first", "wire", "host clock", "together"), "offset_ps": integer(-1 << 63, (1 << 63) - 1),
    "drift_ppm": number(-10**6, 10**6), "uncertainty_ns": maybe(integer(0, 1 << 63))}, more=True)
#: Boards that are recorded together begin within seconds of each other, and times have 64 bits.
_APART_PS = 30 * 86_400 * 10**12


@dataclass(frozen=True)
class Alignment:
    """How a board's time is converted to the run's.

    Parameters
    ----------
    board : its URI; ``first_node``, ``nodes``: which nodes of the run belong to it.
    how : ``first``, ``wire``, ``host clock``, or ``together``: virtual boards begin together.
    offset_ps, drift_ppm : the run's time when the board's is 0, and how much faster the run's time passes.
    uncertainty_ns : of the alignment, during the recording; None: not known.
    """

    board: str
    first_node: int
    nodes: int
    how: str
    offset_ps: int = 0
    drift_ppm: float = 0.0
    uncertainty_ns: int | None = 0

    def times(self, times_ps: _Times) -> _Times:
        """Converts times to the run's; their order is preserved."""
        moved: _Times = times_ps + self.offset_ps
        return moved + np.rint(times_ps * (self.drift_ppm * 1e-6)).astype(np.int64) if self.drift_ppm else moved

    def as_text(self) -> str:
        """One line, for people."""
        if self.how == "first":
            way = "its time is the run's time"
        elif self.how == "together":
            way = "virtual: not aligned; it begins with the first"
        elif self.how == "wire" and self.uncertainty_ns is None:
            way = "not aligned: the first board's wave never arrived, or it failed for a while"
        elif self.uncertainty_ns is None:
            way = "not aligned: the host's clock was not compared with the boards' (too short a recording)"
        else:
            way = f"by {'wire' if self.how == 'wire' else self._by_clock()}, to {self.uncertainty_ns / 1000:,.2f} us"
        return f"{self.board}: nodes {self.first_node} to {self.first_node + self.nodes - 1}, {way}"

    def _by_clock(self) -> str:
        # The alignment was measured, or it is exactly 0.
        drift = f"{self.drift_ppm:+.3f} ppm" if self.drift_ppm else "drift not measured"
        return f"the host's clock: {self.offset_ps / 1e12:+.6f} s, {drift}"


def offsets(parts: Sequence[RunDirectory]) -> list[Alignment]:
    """How the times of recordings that were made together are converted to that of the first.

    What is known before anything is decoded: that of a wire has no uncertainty yet; see :func:`align`.
    """
    found: list[Alignment] = []
    first, base = parts[0], 0
    for part in parts:
        info = part.info
        if part is first:
            found.append(Alignment(info.board, base, info.nodes, "first"))
        elif info.configuration.get("follow"):
            found.append(Alignment(info.board, base, info.nodes, "wire", uncertainty_ns=None))
        elif (info.board.startswith("sim:") and first.info.board.startswith("sim:")
              and None in (part.clock.uncertainty_ns, first.clock.uncertainty_ns)):
            found.append(Alignment(info.board, base, info.nodes, "together", uncertainty_ns=None))
        else:
            found.append(_by_host(first, part, base))
        base += info.nodes
    return found


def align(parts: Sequence[RunDirectory], done: Sequence[dict[str, Any]]) -> list[Alignment]:
    """The same, with all uncertainties.

    Parameters
    ----------
    done : the :func:`.decode.summary` of each.
    """
    # A wire is exact within one clock (docs/integrate.md), if the board reports that it followed; the delay of the line
    # is not included.
    return [replace(own, uncertainty_ns=-(-10**9 // part.info.clock_hz))
            if own.how == "wire" and summary["followed"] else own
            for part, summary, own in zip(parts, done, offsets(parts), strict=True)]


def _by_host(first: RunDirectory, part: RunDirectory, base: int) -> Alignment:
    own, other = part.clock, first.clock
    sure = None
    if own.uncertainty_ns is not None and other.uncertainty_ns is not None:
        sure = own.uncertainty_ns + other.uncertainty_ns
    # UTC is offset + time * (1 + drift) by either clock; solved for the time of the first.
    rate = 1 + other.drift_ppm * 1e-6
    offset = round((own.utc_ns - other.utc_ns) * 1000 / rate)
    if abs(offset) > _APART_PS:
        raise InputError(part.path, None, f"its clock is {abs(offset) / 86_400e12:.0f} days from that of "
                                          f"{first.path.name}: they are not of one run")
    drift = ((1 + own.drift_ppm * 1e-6) / rate - 1) * 1e6
    return Alignment(part.info.board, base, part.info.nodes, "host clock", offset, drift, sure)
