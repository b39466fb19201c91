"""The rows of the SP2: Tabe, Hardwick and Stout 1995."""

from collections.abc import Iterator

import numpy as np
from hypermon.studies.machine.page.rows import Data, Row, beside, shown, text, within

__all__ = ["FREE", "TERMS", "PRINTED", "STALLS", "rows"]

FREE = ("the undisturbed exchange of 1024 bytes (from the mean of 173 us)",
        "the duration of a page fault (from the deviation of 58 us)",
        "the undisturbed exchange of 1 MB (from 40.991 MB/s on two nodes)", "D and T of the row *free*")
#: Table 1, MB/s by nodes.
PRINTED = {2: 40.991, 4: 40.928, 8: 40.533, 16: 39.436, 32: 38.970}
STALLS = (0.5, 2.0, 3.0, 5.0, 10.0, 30.0)
#: What a stall of D every T is at most: D * D / T, ms * ms / s.
_BOUND_MS = 58.0**2 / (2 * 173.0)
_EXPECTED = {0.5: 1.8, 2.0: 2.6, 3.0: 2.6, 5.0: 2.5, 10.0: 2.0, 30.0: 0.9}

#: What the rows' terms mean.
TERMS = """\
Pairs of nodes exchange messages; in an all-to-all each node exchanges with every other one, in the order of the
paper's Figure 2. The paper measured a standard deviation of 58 us for the exchange of 1024 bytes. Stalls of duration
*D*, at random times, with a mean interval of *T*, cannot raise the deviation above this value, which bounds D * D / T.
*bounded*: stalls of one length, as often as this bound allows. *free*: D and T fitted to the paper's Table 1,
without the bound. *resampled*: all-to-alls made of exchange times drawn independently from the recording, as the
paper's simulator does."""


def rows(data: Data) -> Iterator[Row]:
    """The table."""
    plain = {"task": "exchange "}
    yield beside("exchange of 1024 bytes: mean", "F", 173, data.values("single", "exchange_mean_us", **plain),
                 part=0.01, unit=" us", note="sets the undisturbed time")
    yield beside("exchange of 1024 bytes: standard deviation", "F", 58,
                 data.values("single", "exchange_sd_us", **plain), part=0.03,
                 unit=" us", note="sets the page faults; rare, so short runs scatter")
    yield within("exchange of 1024 bytes: skew", "P", "highly skewed to the right",
                 data.values("single", "exchange_skew", **plain), 1.0, np.inf, form=".1f")
    yield shown("undisturbed exchanges", "P", "the bottom line of Figure 4", text(
        [100 * value for value in data.values("single", "exchange_undisturbed", **plain)], ".1f", " %"),
        "the figure's values are not in the text")
    for printed in (10_000, 6025):
        own = [value for value in data.values("periods_us", "value", **plain) if abs(value / printed - 1) < 0.05]
        yield beside(f"period of interruption, {printed} us", "R", printed, own, part=0.01, unit=" us", form=".1f")
    yield beside("exchange on an nCUBE, with which the paper compares the SP2", "F", 4500,
                 data.values("single", "exchange_mean_us", task="nCUBE"), part=0.01, unit=" us",
                 note="sd below 0.05 ms: the same program with no noise has "
                 + (text(data.values("single", "exchange_sd_us", task="nCUBE"), ".2g") or "?") + " us")
    yield from _idle(data)
    yield from _bound(data)
    yield shown("pairs of the all-to-all", "C", "Figure 1 (twice called 'Table 1' in the text)",
                "they follow from the rule in Figure 2")
    yield shown("values of Figures 3 to 6", "N", "curves", "not possible",
                "the paper's text does not contain the values of its curves")


def _idle(data: Data) -> Iterator[Row]:
    for column, name, paper, sign, kind in (("idle_zero", "share of all-to-alls in which node 0 is never idle",
                                             "falls drastically from 4 to 32 nodes", -1, ".3f"),
                                            ("idle_us", "mean idle time of node 0, us", "rises", 1, ",.0f"),
                                            ("idle_max_us", "longest idle time of node 0, us", "rises", 1, ",.0f")):
        means = {nodes: data.values("all_to_all", column, task="all-to-all", nodes=nodes) for nodes in (4, 8, 16, 32)}
        there = {nodes: float(np.mean(values)) for nodes, values in means.items() if values}
        met = None if len(there) < 4 else bool(sign * (there[32] - there[4]) > 0)
        yield Row(name, paper, "P", "falls" if sign < 0 else "rises",
                  "; ".join(f"{nodes}: {text(means[nodes], kind)}" for nodes in there), met=met,
                  note="from the recording: the time at which both nodes are ready minus the time at which node 0 is "
                       "ready. The paper had to simulate it")
    again = data.rows("resampling", task="all-to-all", nodes=32)
    values = [100 * (float(row["resampled_us"]) / float(row["recorded_us"]) - 1) for row in again]
    yield Row("resampled all-to-all against the recorded one, mean, 32 nodes", "the means did not coincide", "P",
              "they differ by more than 0.1 %", text(values, "+.2f", " %"),
              met=abs(float(np.mean(values))) > 0.1 if values else None,
              note="positive: independently drawn exchanges take longer")


def relative(data: Data, nodes: int, **match: object) -> list[float]:
    """Throughput over that of two nodes, a value for each seed."""
    two, own = (data.values("all_to_all", "mb_per_s", nodes=number, **match) for number in (2, nodes))
    return [b / a for a, b in zip(two, own, strict=False)]


def _most(data: Data) -> str:
    """What independent stalls within the bound lose at most."""
    lost = {ms: values for ms in STALLS if (values := [
        100 * (1 - value) for value in relative(data, 32, variant=f"{ms:g} ms")])}
    if not lost:
        return ""
    ms = max(lost, key=lambda key: float(np.mean(lost[key])))
    return (f". The bound explains the miss: with independent stalls of a single length, within the bound, the loss is "
            f"at most {np.mean(lost[ms]):.2f} % (at {ms:g} ms); the paper lost 4.93 %")


def _bound(data: Data) -> Iterator[Row]:
    for nodes, printed in PRINTED.items():
        if nodes > 2:
            yield beside(f"all-to-all, {nodes} nodes, relative to two", "P", printed / PRINTED[2],
                         relative(data, nodes, task="all-to-all"), part=0.02, form=".4f",
                         note="timers, swapper, and as many faults of 2 ms as the deviation of 58 us allows"
                         + (_most(data) if nodes == 32 else ""))
    for ms in STALLS:
        lost = {nodes: [100 * (1 - value) for value in relative(data, nodes, variant=f"{ms:g} ms")]
                for nodes in (4, 8, 16, 32)}
        note = ""
        seen = data.values("all_to_all", "mb_per_s", nodes=32, variant=f"{ms:g} ms")
        whole = [100 * (1 - value / PRINTED[2]) for value in seen]
        if seen:
            note = (f"expected {_EXPECTED[ms]} %. At 4 nodes {text(lost[4], '.2f', ' %')}, paper 0.15 %. Relative to "
                    f"an exchange without stalls: {text(whole, '.2f', ' %')}")
        row = within(f"bounded: stalls of {ms:g} ms, loss at 32 nodes", "P", "4.93 %", lost[32], 0.8, 2.8, form=".2f",
                     unit=" %", note=note)
        means = [float(np.mean(values)) for values in lost.values() if values]
        rising = means == sorted(means)
        yield row._replace(accept=f"{row.accept}; rises from 4 to 32 nodes", met=row.met and rising and len(means) == 4
                           if row.met is not None else None, note=note + (
                               f". 4 to 32 nodes: {', '.join(f'{value:.2f}' for value in means)} %" if means else ""
                           ) + ("" if rising else f". A node has one such stall in {ms**2 / _BOUND_MS:,.0f} s: too few "
                                "in the runs of few nodes"))
    for nodes in (4, 8, 16, 32):
        yield beside(f"free: stalls of 30 ms every 12 s, {nodes} nodes", "F", PRINTED[nodes] / PRINTED[2],
                     relative(data, nodes, variant="free"), part=0.0075, form=".4f",
                     note="D and T are fitted, and break the bound: the deviation would be 160 us"
                     if nodes == 4 else "")
