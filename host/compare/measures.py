"""Measures of recordings that are compared: durations of states, latencies, periods, rates, shares, losses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import duckdb
import numpy as np
from hypermon.host.compare.estimates import Ratio, Samples
from hypermon.host.compare.recording import Measure, Recording
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.errors import HypermonError

__all__ = ["BLOCKS", "THRESHOLDS", "Measured"]

_Result = TypeVar("_Result")
#: Blocks of a group of recordings; with as many recordings as :data:`_RUNS`, each is a block.
BLOCKS, _RUNS = 100, 10
#: The limits that samples depend on, by their names in output.
THRESHOLDS = {"blocks": BLOCKS, "runs": _RUNS}
#: Times of a group that are read at once, at most, unless those of one name are more. They and the intervals between
#: them are in memory together, 8 bytes each.
_MOST = 1 << 25


class Measured(Mapping[Measure, Samples | Ratio]):
    """The measures of a group of recordings, in order.

    Each is read when it is asked for. Only rates, shares, and the periods that were read last are kept. Periods are
    read of several names at once: who asks in order reads each recording a few times.

    Raises
    ------
    HypermonError
        if there is more than memory and disk can hold; InputError if a recording is empty or cannot be read. Both also
        when a measure is asked for.
    """

    def __init__(self, runs: Sequence[DecodedRun]) -> None:
        self._blocks = 1 if len(runs) >= _RUNS else -(-BLOCKS // len(runs))
        self._recordings = _within_memory(lambda: [Recording(run, self._blocks) for run in runs])
        self._sizes: dict[str, int] = {}
        for own in self._recordings:
            for name, size in own.sizes.items():
                self._sizes[name] = self._sizes.get(name, 0) + size
        spans = {span for own in self._recordings for span in own.spans}
        self._names = sorted({*spans, *(Measure("share", span.name) for span in spans if span.kind == "duration"),
                              *(Measure(kind, name) for kind in ("period", "rate") for name in self._sizes),
                              *(name for own in self._recordings for name in own.ratios)})
        self._periods: dict[str, list[Samples | None]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Measure]:
        return iter(self._names)

    def __getitem__(self, measure: Measure) -> Samples | Ratio:
        if measure not in self._names:
            raise KeyError(measure)
        return _joined(_within_memory(lambda: self._each(measure)), self._blocks)

    def _each(self, measure: Measure) -> list[Samples | Ratio | None]:
        """The measure of each recording that has it."""
        kind, name = measure
        if kind == "period":
            return [*self._period(name)]
        mine = [own if measure in own.spans else None for own in self._recordings]
        if kind == "latency":
            return [None if own is None else own.latencies(name) for own in mine]
        if kind == "duration":
            return [None if own is None else own.durations(name) for own in mine]
        return [own.ratio(measure) for own in self._recordings]

    def _period(self, name: str) -> list[Samples | None]:
        if name not in self._periods:
            self._periods.clear()
            names, total = [name], self._sizes[name]
            for later in sorted(self._sizes)[sorted(self._sizes).index(name) + 1:]:
                total += self._sizes[later]
                if total > _MOST:
                    break
                names.append(later)
            found = [own.periods(names) for own in self._recordings]
            self._periods = {one: [own.get(one) for own in found] for one in names}
        return self._periods[name]


def _within_memory(what: Callable[[], _Result]) -> _Result:
    try:
        return what()
    except duckdb.OutOfMemoryException as error:
        raise HypermonError(f"compare: more memory or disk is needed: {str(error).splitlines()[0]}") from None


def _joined(parts: Sequence[Samples | Ratio | None], blocks: int) -> Samples | Ratio:
    """A measure of a group: the blocks of its recordings, one after another."""
    some = [part for part in parts if part is not None]
    if isinstance(some[0], Ratio):
        ratios = [part for part in some if isinstance(part, Ratio)]
        wholes = [float(part.whole.sum()) for part in ratios]
        less, more = (sum(getattr(part, side) * whole for part, whole in zip(ratios, wholes, strict=True)) / sum(wholes)
                      for side in ("less", "more"))
        return Ratio(np.concatenate([part.part for part in ratios]), np.concatenate([part.whole for part in ratios]),
                     less, more)
    # Block by block: a recording that does not have the measure has blocks without a sample.
    found = [part for part in parts if isinstance(part, Samples)]
    counts = np.concatenate([part.per_block if isinstance(part, Samples) else np.zeros(blocks, np.int64)
                             for part in parts])
    return Samples(found[0].values if len(found) == 1 else np.concatenate([part.values for part in found]),
                   np.concatenate([[0], np.cumsum(counts)]), sum(part.missing for part in found),
                   sum(part.wrong for part in found), max(part.slack_ps for part in found))
