"""How many bytes the compact stream takes, beside other formats, the bound and the goal.

    single   one nibble of one node at a time, random gaps
    window   all 16 nodes in one window
    events   whole events of 2 to 13 bytes, in event mode

Sizes are computed from docs/frame-format.md, and compared with the bytes of the host's encoder on a sample; that the
gateware's are the same, its own tests say.
Sizes of an item:

    items    what an item takes between others, nothing rounded
    payload  the lengths in the headers of the blocks: the first gap of a block is 0, the header's time says it.
             The beat in front of events that says the modes is a header, and in the total only
    modes    of events: payload with that beat
    total    with header, trailer and padding
    full     the same if nothing but their size closed blocks
    census   of single nibbles: the CENSUS blocks of a board whose counters change all the time

A block is closed when the next item does not fit in it or comes 1 ms or more after its first one. Goals
are measured by the larger one of items and payload. The bound is the entropy of the items: no format
takes less on average, block headers included.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import (
    BEAT_BYTES,
    BLOCK_HEADER,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_NODE,
    CENSUS_SHARE,
    CENSUS_TIMES,
    COMPACT_BEATS,
    COMPACT_HEAD,
    GAP_GROUPS,
    GROUP_BITS,
    padded,
)

Ints = npt.NDArray[np.int64]

NODES = 16
#: A block is closed so long after its first item.
FLUSH_NS = 1_000_000
#: Longer than any run: blocks are closed by their size alone.
NEVER = 1 << 60
#: Bits of payload a block holds.
CAPACITY = 8 * BEAT_BYTES * COMPACT_BEATS
#: Name of our own format.
OURS = "groups of 4 bits"

#: Single nibbles by mean gap in ticks: the goal, and figures known from elsewhere. All nine agree with blocks
#: of 512 beats, header and trailer included, that nothing but their size closes.
SINGLE_GOALS = {10: 1.76, 100: 2.26, 1000: 2.80}
SINGLE_KNOWN = {OURS: (1.75, 2.25, 2.79), "bytes": (2.01, 2.29, 2.90), "halfwords": (2.0, 2.2, 3.6)}
#: CENSUS blocks as a share of a stream of this number of bytes a second and more, at most.
CENSUS_GOAL, CENSUS_BUSY = 0.01, 2_000_000
WINDOW_GOAL = 1.25
WINDOW_GAPS = (1, 2, 5, 10, 20, 50, 100)
#: Events a second.
RATES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000)
#: Payload bytes of an event, the fewest and the most.
EVENT_BYTES = (2, 13)
#: What software records beside the payload of an event.
SOFTWARE_BYTES = 2


def event_goal(tick_ns: int, rate: int) -> float:
    """Payload of the stream as a multiple of what software records, at most."""
    if tick_ns < 800:
        return 1.3
    return 1.05 if rate >= 20_000 else 1.16


# ------------------------------------------------------------------------------------------ sizes

def bit_length(number: Ints) -> Ints:
    """Bits of each number without leading zeros; 0 has none. Numbers are below 2**53."""
    return np.frexp(number.astype(np.float64))[1].astype(np.int64)


def pieces(number: Ints, bits: int) -> Ints:
    """Pieces of this number of bits that a number takes; 0 takes one."""
    return np.maximum(-(-bit_length(number) // bits), 1)


def groups(number: Ints) -> Ints:
    """Groups of a number of the compact payload: one bit of each says whether more follow."""
    return pieces(number, GROUP_BITS - 1)


def single_groups(gap: Ints) -> Ints:
    """Bits of an item: gap, node, nibble."""
    return GROUP_BITS * (groups(gap) + 2)


def single_bytes(gap: Ints) -> Ints:
    """Gap in bytes of seven bits and one that says whether more follow (LEB128); a byte of node and nibble."""
    return 8 * (pieces(gap, 7) + 1)


def single_halfwords(gap: Ints) -> Ints:
    """A halfword of node, nibble and a gap of eight bits. 255 there means that the gap is in the halfwords
    behind it, 15 bits each and one that says whether more follow."""
    return 16 * (1 + np.where(gap < 255, 0, pieces(gap, 15)))


SINGLES: dict[str, Callable[[Ints], Ints]] = {
    OURS: single_groups, "bytes": single_bytes, "halfwords": single_halfwords}


def window_groups(gap: Ints, nodes: int, board: int = NODES) -> Ints:
    """Bits of a code WINDOW with this number of nodes: two groups of the code, gap, strobe vector, nibbles."""
    return GROUP_BITS * (2 + groups(gap) + (4 if board <= 16 else 8) + nodes)


def window_items(gap: Ints, nodes: int, board: int = NODES) -> Ints:
    """Bits of the same window as items: all but the first have gap 0."""
    node = 1 if board <= 16 else 2
    return GROUP_BITS * (groups(gap) + nodes - 1 + nodes * (node + 1))


def event_groups(gap: Ints, payload: Ints) -> Ints:
    """Bits of an event: gap, node, a group of the length, two groups a byte."""
    return GROUP_BITS * (groups(gap) + 2) + 8 * payload


def event_aligned(gap: Ints, payload: Ints) -> Ints:
    """Ours with a group of 0 behind the gap where the payload would begin within a byte."""
    return GROUP_BITS * (groups(gap) + groups(gap) % 2 + 2) + 8 * payload


def event_wide(gap: Ints, payload: Ints) -> Ints:
    """Ours with gaps whose first group has eight bits, seven of them value."""
    rest = gap >> 7
    return 8 + GROUP_BITS * (np.where(rest > 0, groups(rest), 0) + 2) + 8 * payload


def event_counted(gap: Ints, payload: Ints) -> Ints:
    """Ours with gaps whose first group has one bit of value and says in three how many groups follow."""
    return GROUP_BITS * (1 + -(-np.maximum(bit_length(gap) - 1, 0) // 4) + 2) + 8 * payload


def event_bytes(gap: Ints, payload: Ints) -> Ints:
    """Gap in bytes (LEB128), a byte of node and length, payload."""
    return 8 * (pieces(gap, 7) + 1 + payload)


EVENTS: dict[str, Callable[[Ints, Ints], Ints]] = {
    OURS: event_groups, "aligned": event_aligned, "wide": event_wide, "counted": event_counted, "bytes": event_bytes}


class Stream(NamedTuple):
    """Bytes of a stream of blocks."""

    items: float
    payload: int
    total: int
    #: Number of the item with which each block begins.
    begins: Ints

    @property
    def judged(self) -> float:
        return max(self.items, self.payload)


def stream(gap: Ints, size: Callable[[Ints], Ints], flush: int, head: int = 0) -> Stream:
    """Blocks of items of so many bits, ``size(gap)``, closed ``flush`` ticks after their first item, with so many
    bytes in front of the first."""
    bits, alone = size(gap), size(np.zeros_like(gap))
    time, end = np.cumsum(gap), np.cumsum(bits)
    # For every item: where the block would end that begins with it.
    room = CAPACITY - 8 * head - alone
    follow = np.minimum(np.searchsorted(time, time + flush), np.searchsorted(end, room + end, "right"))
    jump, begins, at = follow.tolist(), [], 0
    while at < len(gap):
        begins.append(at)
        at = jump[at]
    first = np.array(begins)
    length = -(-(alone[first] + end[follow[first] - 1] - end[first]) // 8)
    around = BLOCK_HEADER.bytes + BLOCK_TRAILER.bytes
    return Stream(end[-1] / 8, int(length.sum()), int((padded(length + head) + around).sum()), first)


def gap_entropy(mean: float) -> float:
    """Bits of a gap of 1, 2, 3 and so on ticks with a geometric distribution of this mean."""
    p = 1 / mean
    return 0.0 if p == 1 else (-p * np.log2(p) - (1 - p) * np.log2(1 - p)) / p


def gaps(mean: float, count: int, rng: np.random.Generator) -> Ints:
    """Random gaps without memory, at least one tick: a Poisson process seen by a clock, without coincidences."""
    return rng.geometric(1 / mean, count)


def flush_ticks(tick_ns: int) -> int:
    return FLUSH_NS // tick_ns


def census_bytes(nodes: int = NODES) -> int:
    """A CENSUS block, header and trailer included."""
    return BLOCK_HEADER.bytes + padded(CENSUS_BOARD.bytes + nodes * CENSUS_NODE.bytes) + BLOCK_TRAILER.bytes


def census_rate(rate: float, nodes: int = NODES) -> float:
    """Bytes a second of CENSUS blocks beside so many bytes a second of others."""
    soonest, latest, _ = CENSUS_TIMES
    return census_bytes(nodes) / min(max(CENSUS_SHARE * census_bytes(nodes) / rate, soonest), latest)


# ----------------------------------------------------------------------------------------- tables

def verdict(value: float, goal: float, unmet: list[str], what: str) -> str:
    if value <= goal:
        return f"<= {goal:<4.2f} met"
    unmet.append(f"{what}: {value:.3f}, goal {goal:.2f}")
    return f"<= {goal:<4.2f} NOT MET"


def singles(count: int, rng: np.random.Generator, unmet: list[str]) -> None:
    print("\nsingle nibbles, 16 nodes, ticks of 10 ns: bytes a nibble")
    print("mean gap  format             items  payload    total     full   census  items a block  known  bound  goal")
    for k, (mean, goal) in enumerate(SINGLE_GOALS.items()):
        gap = gaps(mean, count, rng)
        bound = (4 + 4 + gap_entropy(mean)) / 8
        for name, size in SINGLES.items():
            made, full = stream(gap, size, flush_ticks(10)), stream(gap, size, NEVER)
            judged = verdict(made.judged / count, goal, unmet, f"single nibbles, gap {mean}") if name == OURS else ""
            second = 1e8 / mean                  # items in it
            census = census_rate(made.total / count * second) / second
            busy = name == OURS and made.total / count * second >= CENSUS_BUSY
            if busy and census > CENSUS_GOAL * made.total / count:
                unmet.append(f"censuses, gap {mean}: {census / made.total * count:.2%}, goal {CENSUS_GOAL:.1%}")
            sizes = "  ".join(f"{part:7.3f}" for part in (
                *(size / count for size in (made.items, made.payload, made.total, full.total)), census))
            print(f"{mean:8}  {name:16} {sizes}  {count / len(made.begins):13.1f}"
                  f"  {SINGLE_KNOWN[name][k]:5.2f}  {bound:5.3f}  {judged}")


def windows(count: int, rng: np.random.Generator, unmet: list[str]) -> None:
    print("\nfull windows of 16 nodes, ticks of 10 ns: bytes a nibble")
    print("mean gap  format   items  payload  total  bound  goal")
    for mean in WINDOW_GAPS:
        gap = gaps(mean, count // NODES, rng)
        bound = (4 + gap_entropy(mean) / NODES) / 8
        for name, size in (("WINDOW", window_groups), ("items", window_items)):
            made = stream(gap, lambda g, size=size: size(g, NODES), flush_ticks(10))
            nibbles = NODES * len(gap)
            judged = ""
            if size == window_groups:
                judged = verdict(made.judged / nibbles, WINDOW_GOAL, unmet, f"windows, gap {mean}")
            print(f"{mean:8}  {name:7} {made.items / nibbles:6.3f}  {made.payload / nibbles:7.3f}"
                  f"  {made.total / nibbles:5.3f}  {bound:5.3f}  {judged}")


def crossover() -> None:
    print("\nnodes in one window: groups, without the gap, which both have; the bound takes all choices of nodes")
    print("alike likely")
    boards = (16, 32)
    print("       " + "   ".join(f"board of {board}: items  WINDOW  bound  shorter" for board in boards))
    zero = np.zeros(1, np.int64)
    for nodes in range(1, 17):
        row = []
        for board in boards:
            one, other = (int(size(zero, nodes, board)[0]) // GROUP_BITS - 1 for size in (window_items, window_groups))
            bound = (sum(np.log2((board - k) / (k + 1)) for k in range(nodes)) + 4 * nodes) / GROUP_BITS
            row.append(f"{one:18}  {other:6}  {bound:5.1f}  {'items ' if one <= other else 'WINDOW'} ")
        print(f"{nodes:5}  " + "   ".join(row))


def events(count: int, rng: np.random.Generator, unmet: list[str]) -> None:
    low, high = EVENT_BYTES
    payload = rng.integers(low, high + 1, count)
    software = int(payload.sum()) + SOFTWARE_BYTES * count
    content = 8 * (low + high) / 2 + np.log2(high - low + 1) + np.log2(NODES)
    print(f"\nevents of {low} to {high} bytes, 16 nodes: bytes as a multiple of what software records "
          f"({software / count:.2f} an event)")
    print(f"An event: {payload.mean():.2f} bytes of payload, 0.5 of node, 0.5 of length, and the gap.")
    for tick_ns in (800, 10):
        print(f"\nticks of {tick_ns} ns: {OURS}{'':40}others, items alone")
        print("events/s  mean gap  bytes of gap  items  payload  modes   total  bound  goal          "
              + "  ".join(f"{name:>7}" for name in EVENTS if name != OURS))
        for rate in RATES:
            mean = 1e9 / tick_ns / rate
            gap = gaps(mean, count, rng)
            made = stream(gap, lambda g: event_groups(g, payload), flush_ticks(tick_ns), COMPACT_HEAD.bytes)
            goal = event_goal(tick_ns, rate)
            what = f"events, {tick_ns} ns, {rate:,}/s"
            judged = verdict(made.judged / software, goal, unmet, what)
            if made.judged / software > goal:
                room = goal * software / count - payload.mean() - 1
                unmet[-1] += f" (a gap takes {groups(gap).mean() / 2:.2f} bytes, the goal leaves {room:.2f})"
            others = "  ".join(f"{size(gap, payload).sum() / 8 / software:7.3f}"
                               for name, size in EVENTS.items() if name != OURS)
            bound = (content + gap_entropy(mean)) / 8 * count / software
            modes = (made.payload + COMPACT_HEAD.bytes * len(made.begins)) / software
            print(f"{rate:8,}  {mean:8,.6g}  {groups(gap).mean() * GROUP_BITS / 8:12.2f}  {made.items / software:5.3f}"
                  f"  {made.payload / software:7.3f}  {modes:5.3f}"
                  f"  {made.total / software:6.3f}  {bound:5.3f}  {judged:13} {others}")
    print("\naligned  payload on a byte: a group of 0 behind gaps of an odd number of groups")
    print("wide     first group of a gap 8 bits, the others 4")
    print("counted  first group of a gap: one bit of value, three that count the groups behind it")
    print("bytes    gap in bytes of 7 bits and one, a byte of node and length, payload")


def against_encoder(count: int, rng: np.random.Generator) -> str:
    """Compares computed sizes with the bytes of ``encode`` in tests/host/compact_write.py.

    Raises
    ------
    AssertionError
        if they differ.
    """
    from hypermon.host.blocks.compact import LongItem
    from hypermon.host.blocks.item_modes import ItemModes

    sys.path.insert(0, str(Path(__file__).parents[2]))

    from tests.host.compact_write import encode, encode_items

    compared = 0

    def compare(gap: Ints, chosen: npt.NDArray[np.bool_], size: Callable[[Ints], Ints]) -> None:
        """Windows with these gaps and nodes, in blocks."""
        nonlocal compared
        made, time = stream(gap, size, flush_ticks(10)), np.cumsum(gap)
        length = 0
        for low, high in zip(made.begins, [*made.begins[1:], len(gap)], strict=True):
            window, node = np.nonzero(chosen[low:high])
            nibble = rng.integers(0, 16, len(node))
            payload = encode(zip(time[low + window].tolist(), node.tolist(), nibble.tolist(), strict=True),
                             chosen.shape[1])
            assert 8 * len(payload) <= CAPACITY
            length += len(payload)
        assert length == made.payload, (length, made.payload)
        compared += int(chosen.sum())

    def compare_events(gap: Ints, size: Ints, tick_ns: int) -> None:
        """Events of so many bytes, in blocks."""
        made = stream(gap, lambda g: event_groups(g, size), flush_ticks(tick_ns), COMPACT_HEAD.bytes)
        time, node = np.cumsum(gap).tolist(), rng.integers(0, NODES, len(gap)).tolist()
        items = [LongItem(time[k], node[k], bytes([size[k], *rng.integers(0, 16, 2 * size[k]).tolist()]))
                 for k in range(len(gap))]
        length = 0
        for low, high in zip(made.begins, [*made.begins[1:], len(gap)], strict=True):
            payload = encode_items(items[low:high], ItemModes(events=(1 << NODES) - 1), NODES)
            assert 8 * len(payload) <= CAPACITY
            length += len(payload) - COMPACT_HEAD.bytes
        assert length == made.payload, (length, made.payload)

    def choose(windows: int, nodes: int, board: int) -> npt.NDArray[np.bool_]:
        return rng.permuted(np.tile(np.arange(board) < nodes, (windows, 1)), axis=1)

    for mean in SINGLE_GOALS:
        compare(gaps(mean, count, rng), choose(count, 1, NODES), single_groups)
    for board in (16, 32):
        for nodes in range(1, board + 1):
            compare(gaps(20, count // board, rng), choose(count // board, nodes, board),
                    lambda gap, nodes=nodes, board=board: np.minimum(
                        window_items(gap, nodes, board), window_groups(gap, nodes, board)))
    for tick_ns in (800, 10):
        for rate in RATES:
            compare_events(gaps(1e9 / tick_ns / rate, count // 10, rng),
                           rng.integers(EVENT_BYTES[0], EVENT_BYTES[1] + 1, count // 10), tick_ns)
    return (f"the encoder's payloads of {compared:,} nibbles and {2 * len(RATES) * (count // 10):,} events in blocks "
            "are as long as computed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000, help="nibbles or events a row (default a million)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"{options.events:,} random nibbles or events a row, seed {options.seed}; blocks of at most "
          f"{COMPACT_BEATS} beats of payload, closed after 1 ms; a gap has {GAP_GROUPS} groups at most")
    unmet: list[str] = []
    singles(options.events, rng, unmet)
    windows(options.events, rng, unmet)
    crossover()
    events(options.events, rng, unmet)
    print("\n" + against_encoder(options.events // 50, rng))
    print("goals not met: " + ("none" if not unmet else "".join(f"\n  {line}" for line in unmet)))
    return 1 if unmet else 0


if __name__ == "__main__":
    sys.exit(main())
