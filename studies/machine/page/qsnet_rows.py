"""The rows of QsNet: Petrini and others 2001. The available copy of the paper has lost its digits: it gives
comparisons, but no figures.
"""

from collections.abc import Iterator

import numpy as np
from hypermon.studies.machine.machines.elan import Model
from hypermon.studies.machine.machines.qsnet import VARIANTS
from hypermon.studies.machine.page.rows import Data, Row, beside, shown, text, within

__all__ = ["BOUNDS", "FREE", "MEMORIES", "OWN", "TERMS", "latency", "rate", "rows"]

FREE = ("start of a DMA", "its delay if the source is in main memory", "rate of PCI, reading", "rate of PCI, writing",
        "rate of Elan memory", "rate of a link", "bytes of a block", "blocks of a packet", "header of a block",
        "header of a packet", "bytes of an acknowledgement", "delay of the switches", "delay of the notification",
        "time to match a tag", "longest inline message", "packets in flight")
#: From the abstract of the published paper (Hot Interconnects 9, 2001): us and MB/s.
BOUNDS = (2.0, 300.0)
#: The variant of the runs with the model's own assumptions.
OWN = "own"
_OUTSIDE = "a bound that is not in the project's copy of the paper, but in the published abstract"
_NO_DIGITS = "the text has lost its digits"
MEMORIES = [(source, destination) for source in ("main", "elan") for destination in ("main", "elan")]

#: What the rows' terms mean.
TERMS = """\
The copy of the paper from which this project works has lost its digits, so only its relations can be compared. The
parameters of the model are assumed, except the start of a DMA from main memory and the rates of PCI, which were
fitted to two bounds (class F). A *put* writes to another node's memory, a *get* reads it, *MPI* is a message with a
tag that the receiver's thread processor matches. Memory is the node's (main) or the network adapter's (Elan).
*Hotspot*: many nodes write to one block of memory, or read it."""


def rows(data: Data) -> Iterator[Row]:
    """The table."""
    model = Model()
    yield from _planted(data, model)
    yield within("a put of up to 64 bytes, main to main memory", "F", "latency below 2 us", latency(data, 64), -np.inf,
                 BOUNDS[0], unit=" us", note=f"{_OUTSIDE}. Sets the start of a DMA")
    yield within("put, main to main memory", "F", "more than 300 MB/s", rate(data), BOUNDS[1], np.inf, unit=" MB/s",
                 note=f"{_OUTSIDE}. Sets the rates of PCI")
    yield beside("put, Elan to Elan memory", "C", model.payload_rate, rate(data, "put", "elan", "elan"), part=0.02,
                 unit=" MB/s", printed="the link's rate times payload / (payload + headers): "
                 f"{model.payload_rate:.1f} of {model.link:g} MB/s", note="with the assumed sizes")
    yield from _both(data)
    yield from _hotspot(data)
    for what, note in (("every latency, rate and size", _NO_DIGITS),
                       ("noise of MPI's latency at one size", "the size is lost, and the noise is caused by the "
                                                              "message policy that the inline limit shows"),
                       ("another PCI chip set, significantly slower", "its rate would be planted")):
        yield shown(what, "N", "curves and values", "not possible", note)


def latency(data: Data, size: int, operation: str = "put", source: str = "main", destination: str = "main", *,
            both: bool = False) -> list[float]:
    """Of messages of a size, us, a value for each seed."""
    return data.values("latency", "us", variant=OWN, operation=operation, source=source, destination=destination,
                       both=both, bytes=size)


def rate(data: Data, operation: str = "put", source: str = "main", destination: str = "main", *, both: bool = False,
         variant: str = OWN) -> list[float]:
    """MB/s, a value for each seed."""
    return data.values("rates", "mb_per_s", variant=variant, operation=operation, source=source,
                       destination=destination, both=both)


def _near(what: str, paper: str, planted: float, values: list[float], near: float, unit: str, note: str) -> Row:
    """A planted value that is to be found, to an absolute difference."""
    accept = f"{planted:.4g} within {near:g}{unit}"
    if not values:
        return Row(what, paper, "R", accept, note=note)
    off = float(np.mean(values)) - planted
    return Row(what, paper, "R", accept, text(values, ".4g", unit), f"{off:+.3g}{unit}", abs(off) <= near, note)


def _planted(data: Data, model: Model) -> Iterator[Row]:
    def single(name: str) -> list[float]:
        return data.values("single", name, task="ping ", variant=OWN)

    yield _near("size up to which the latency of a put is constant", "one write-block transaction", model.block,
                single("block_bytes"), 2, " bytes", "planted: 64")
    yield _near("largest MPI message that travels with its envelope", "shorter ones; longer ones wait for the receiver",
                model.inline, single("inline_bytes"), 4, " bytes", "planted: 288, between two of the sizes")
    yield _near("latency of MPI above that of a put, up to this size", "the thread processor matches tags", model.match,
                single("match_us"), 0.02, " us", "planted")
    yield _near("source in main instead of Elan memory", "extra delay to start a DMA across PCI",
                model.pci_start + model.block / model.pci_read - model.block / model.sdram, single("main_us"), 0.02,
                " us", "planted: the start, and the first block by PCI instead of by Elan memory")
    for source, destination, planted, name in (("main", "elan", model.pci_read, "reads"),
                                               ("elan", "main", model.pci_write, "writes")):
        yield beside(f"put, {_memory(source)} to {_memory(destination)} memory: PCI {name}", "R", planted,
                     rate(data, "put", source, destination), part=0.01, unit=" MB/s",
                     printed="slight asymmetry of the PCI bus", note="planted")


def _memory(name: str) -> str:
    """As the page writes it: Elan is a name."""
    return name.replace("elan", "Elan")


def _both(data: Data) -> Iterator[Row]:
    own = {ends: rate(data, "put", *ends, both=True) for ends in MEMORIES}
    best = ("main", "elan")
    halves = [b / a for a, b in zip(rate(data, "put", *best), own[best], strict=False)]
    yield within("both directions at once, main to Elan memory: rate of each, relative to one direction alone", "P",
                 "less than twice the rate of one direction", halves, -np.inf, 0.99, form=".3f",
                 note="acknowledgements wait for the link" + _variants(data, best, best))
    others = [own[ends] for ends in MEMORIES if ends != best]
    lead = [a / max(rest) for a, *rest in zip(own[best], *others, strict=False)]
    seen = ", ".join(f"{_memory(a)} to {_memory(b)} {np.mean(own[a, b]):.0f}" for a, b in MEMORIES if own[a, b])
    yield within("both directions at once: rate of main to Elan memory, relative to the best of the others", "P",
                 "the best; Elan to Elan memory is not, because Elan memory is the bottleneck", lead, 1.0, np.inf,
                 form=".3f", note=f"MB/s: {seen}. Given the assumed 560 MB/s of Elan memory"
                 + _variants(data, best, ("elan", "elan")))
    tagged = [b / a for a, b in zip(own["main", "main"], rate(data, "mpi", both=True), strict=False)]
    yield within("both directions at once, main to main memory: rate of MPI, relative to put", "P",
                 "one rate for both libraries", tagged, 0.95, 1.05, form=".3f")
    for size in (0, 4096):
        more = _slower(data, size)
        yield within(f"latency with both directions at once, relative to one direction alone: {size} bytes", "P",
                     "bidirectional traffic affects it", more, 1.01, np.inf, form=".3f",
                     note="the paper does not state the size" + (_from_which(data) if size == 0 else ""))


def _slower(data: Data, size: int) -> list[float]:
    """Latency with messages in both directions, to one direction alone, a value for each seed."""
    return [b / a for a, b in zip(latency(data, size), latency(data, size, both=True), strict=False)]


def _from_which(data: Data) -> str:
    """At which of the sizes the two directions disturb one another."""
    seen = {size: values for size in (64, 512, 4096) if (values := _slower(data, size))}
    shown = ", ".join(f"{size} bytes {np.mean(values):.3f}" for size, values in seen.items())
    return (f". By size: {shown}. A message of at most one block is in each queue once, and the two directions are "
            "there at different times") if seen else ""


def _variants(data: Data, over: tuple[str, str], under: tuple[str, str]) -> str:
    """What other assumptions give."""
    parts = []
    for name in VARIANTS:
        top, low = (rate(data, "put", *ends, both=True, variant=name) for ends in (over, under))
        if over == under:
            low = rate(data, "put", *under)[:1]
        if top and low:
            parts.append(f"{name} {np.mean(top) / np.mean(low):.2f}")
    return f". With {'; '.join(parts)}" if parts else ""


def _hotspot(data: Data) -> Iterator[Row]:
    levels = {}
    for operation, name, planted in (("put", "write", Model().pci_write), ("get", "read", Model().pci_read)):
        seeds = sorted({row["seed"] for row in data.rows("hotspot", variant=OWN, operation=operation)})
        whole = [[row["mb_per_s"] for row in data.rows("hotspot", variant=OWN, operation=operation, seed=seed)]
                 for seed in seeds]
        means = data.rows("hotspot", variant=OWN, operation=operation)
        seen = ", ".join(f"{nodes}: {np.mean([row['mb_per_s'] for row in means if row['nodes'] == nodes]):.0f}"
                         for nodes in sorted({row["nodes"] for row in means}))
        yield within(f"{name} hotspot, 1 to 16 nodes: lowest sum of the rates, relative to the highest", "P",
                     "remarkably flat", [min(own) / max(own) for own in whole], 0.9, 1.0, form=".3f",
                     note=f"MB/s by nodes: {seen}")
        yield within(f"{name} hotspot, 2 to 16 nodes: rate of the fastest node, relative to the slowest", "P",
                     "each has one share of n",
                     [1 + max(row["unfair"] for row in means if row["seed"] == seed) for seed in seeds], 1.0, 1.02,
                     form=".4f",
                     note="one server, which takes packets in the order of their requests")
        levels[operation] = [row["mb_per_s"] for row in means if row["nodes"] == 16]
        yield beside(f"{name} hotspot, level at 16 nodes", "R", planted, levels[operation], part=0.01, unit=" MB/s",
                     printed="read and write levels differ", note="planted: the rate of PCI at the node of the block")
