"""How fast the host decodes, on one core: millions of events a second.

    payload  of COMPACT blocks: to columns in memory
    arrays   stream to columns in memory: blocks found and proven, accounts kept, events taken out
    parquet  recorded run to RUN/events, on disk

Frames of one event are the most bytes an event, full ones the least. The board writes short blocks
when the host keeps up, and long ones when it does not. The COMPACT blocks are as long as they get, with
one event in a window at random gaps of so many windows, or full windows; or words, or events of 2 to 13
bytes, some of them late. Those rates, but parquet, are of processor time.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypermon.hdl.layout import BEAT_BYTES, COMPACT_BEATS, LATENCY, BlockFlag, BlockType, Geometry, Window, frame_words
from hypermon.host.decode.decode import decode_run
from hypermon.host.decode.ledger import Ledger
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run
from hypermon.host.wire.blocks import PAYLOAD_MAX, Block, BlockScanner, build_block
from hypermon.host.wire.compact import LongItem, decode, decode_items, encode, encode_items
from hypermon.host.wire.item_modes import ALL_NIBBLES, ItemModes
from hypermon.host.wire.times import TimeScale

#: The goal for frames of one event and for full ones.
GOALS = {1: 15, 16: 50, 32: 50}
#: The goal for COMPACT payloads.
COMPACT_GOAL = 50
#: COMPACT blocks that differ; a stream has them again and again.
DIFFERENT = 64
PIECE = 1 << 22
CLOCK_HZ = 100_000_000


def stream(nodes: int, events: int, frames: int, block: int, rng: np.random.Generator) -> bytes:
    """Frames of so many events each, in blocks of so many frames."""
    words = np.zeros((frames, frame_words(nodes)), "<u4")
    chosen = rng.permuted(np.tile(np.arange(nodes) < events, (frames, 1)), axis=1)
    nibbles = rng.integers(0, 16, (frames, nodes), np.uint32) * chosen
    for node in range(nodes):
        words[:, len(words[0]) - 3 - node // 8] |= nibbles[:, node] << np.uint32(4 * (node % 8))
    words[:, -2] = chosen @ (1 << np.arange(nodes, dtype=np.int64))
    words[:, -1] = np.cumsum(rng.integers(1, 100, frames))
    geometry = Geometry(nodes=nodes, clock_hz=CLOCK_HZ)
    return b"".join(
        build_block(BlockType.FRAMES, words[at:at + block].tobytes(), geometry=geometry, window=Window.NS800, epoch=1,
                    sequence=k, time=int(words[at, -1])) for k, at in enumerate(range(0, frames, block)))


def compact_stream(nodes: int, gap: int, full: bool, blocks: int, rng: np.random.Generator) -> tuple[bytes, int]:
    """COMPACT blocks, and the events in them."""
    longest = COMPACT_BEATS * BEAT_BYTES
    made = []
    for _ in range(min(blocks, DIFFERENT)):
        windows = np.cumsum(np.maximum(1, np.rint(rng.exponential(gap, longest)))).astype(int).tolist()
        nibbles = rng.integers(0, 16, (longest, nodes)).tolist()
        chosen = rng.integers(0, nodes, longest).tolist()
        items = [[(window - windows[0], node, row[node]) for node in (range(nodes) if full else (node,))]
                 for window, node, row in zip(windows, chosen, nibbles, strict=True)]
        low, high = 1, longest
        while low < high:  # the most windows that fit
            middle = (low + high + 1) // 2
            fits = len(encode((item for row in items[:middle] for item in row), nodes)) <= longest
            low, high = (middle, high) if fits else (low, middle - 1)
        payload = encode((item for row in items[:low] for item in row), nodes)
        made.append((payload, windows[low] - windows[0], low * (nodes if full else 1)))
    geometry = Geometry(nodes=nodes, clock_hz=CLOCK_HZ)
    time, events, data = 0, 0, []
    for k in range(blocks):
        payload, span, count = made[k % len(made)]
        data.append(build_block(BlockType.COMPACT, payload, geometry=geometry, window=Window.NS800, epoch=1, sequence=k,
                                time=time, flags=BlockFlag.EXTENDED))
        time += span
        events += count
    return b"".join(data), events


def item_stream(nodes: int, gap: int, modes: ItemModes, blocks: int, rng: np.random.Generator) -> tuple[bytes, int]:
    """COMPACT blocks of words or events, one in fifty of them late, and the items in them."""
    longest = COMPACT_BEATS * BEAT_BYTES
    made = []
    for _ in range(min(blocks, DIFFERENT)):
        items, window, low, high = [], 0, 1, longest // 4
        for k in range(high):
            node, size = int(rng.integers(nodes)), int(rng.integers(2, 14))
            first = size if modes.events else int(rng.integers(16))
            rest = rng.integers(0, 16, 2 * size if modes.events else 7).tolist()
            late = k > 0 and rng.random() < 0.02
            age = int(rng.integers(min(window, 1000) + 1)) if late else 0
            items.append(LongItem(window - age, node, bytes([first, *rest]), 0, late))
            window += 0 if late else max(1, round(rng.exponential(gap)))
        items = [item for k, item in enumerate(items) if item.late or k == 0 or item.window > 0]
        while low < high:
            middle = (low + high + 1) // 2
            fits = len(encode_items(items[:middle], modes, nodes)) <= longest
            low, high = (middle, high) if fits else (low, middle - 1)
        made.append((encode_items(items[:low], modes, nodes), window, low))
    geometry = Geometry(nodes=nodes, clock_hz=CLOCK_HZ)
    time, count, data = 0, 0, []
    for k in range(blocks):
        payload, span, items_in = made[k % len(made)]
        data.append(build_block(BlockType.COMPACT, payload, geometry=geometry, window=Window.NS800, epoch=1, sequence=k,
                                time=time, flags=BlockFlag.EXTENDED | BlockFlag.ITEMS))
        time, count = time + span, count + items_in
    return b"".join(data), count


def of_payloads(data: bytes, nodes: int, count: int, modes: ItemModes = ALL_NIBBLES) -> float:
    """Seconds for the payloads alone, a thousand at a time."""
    blocks = [item for item in BlockScanner().feed(data) if isinstance(item, Block)]
    batches = [blocks[at:at + 1000] for at in range(0, len(blocks), 1000)]
    begin, found = time.process_time(), 0
    for batch in batches:
        payloads, times = [b.payload for b in batch], [b.time for b in batch]
        decoded = decode_items(payloads, times, nodes, modes) if modes.longer else decode(payloads, times, nodes)
        found += sum(map(len, decoded.parts))
    assert found == count
    return time.process_time() - begin


def to_arrays(data: bytes, nodes: int, modes: ItemModes = ALL_NIBBLES) -> int:
    scanner = BlockScanner(join=True)
    ledger = Ledger(nodes, TimeScale(CLOCK_HZ, Window.NS800, LATENCY), 1, modes=modes)
    count = sum(len(rows.events(ledger.scale)) for at in range(0, len(data), PIECE)
                for rows in ledger.event_rows(scanner.feed(data[at:at + PIECE])))
    return count + sum(len(rows.events(ledger.scale)) for rows in ledger.finish())


def to_parquet(data: bytes, nodes: int, modes: ItemModes = ALL_NIBBLES) -> float:
    names = [modes[node].name.lower() for node in range(nodes)] if modes.longer else []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "run")
        with RunWriter(path, RunInfo("bench", nodes, CLOCK_HZ, "800", LATENCY, 1, modes=names)) as writer:
            writer.append(data)
            writer.close(how="made")
        begin = time.perf_counter()
        decode_run(Run(path))
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1 << 19, help="frames in each stream")
    parser.add_argument("--blocks", type=int, default=1 << 11, help="COMPACT blocks in each stream")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng = np.random.default_rng(options.seed)
    print(f"decode on one core, M events/s ({options.frames:,} frames or {options.blocks:,} COMPACT blocks each, "
          f"seed {options.seed}, best of 3)")
    print("nodes  events a frame  frames a block  arrays  parquet   goal (arrays)")
    for nodes in (16, 32):
        longest = PAYLOAD_MAX // (4 * frame_words(nodes))
        for events in (1, 4, nodes):
            for block in (64, longest):
                data = stream(nodes, events, options.frames, block, rng)
                count, best = options.frames * events, 1e9
                for _ in range(3):
                    begin = time.perf_counter()
                    assert to_arrays(data, nodes) == count
                    best = min(best, time.perf_counter() - begin)
                goal = f">= {GOALS[events]}" if events in GOALS else ""
                print(f"{nodes:5}  {events:14}  {block:14}  {count / best / 1e6:6.1f}  "
                      f"{count / to_parquet(data, nodes) / 1e6:7.1f}   {goal}", flush=True)
    print("nodes  COMPACT     bytes an event  payload  arrays  parquet   goal (payload)")
    for nodes in (16, 32):
        every = (1 << nodes) - 1
        kinds = [*((f"gap {gap}", ALL_NIBBLES, compact_stream(nodes, gap, False, options.blocks, rng))
                   for gap in (10, 100, 1000)),
                 ("full", ALL_NIBBLES, compact_stream(nodes, 100, True, options.blocks, rng)),
                 *((kind, modes, item_stream(nodes, 100, modes, options.blocks, rng))
                   for kind, modes in (("words", ItemModes(words=every)), ("events", ItemModes(events=every))))]
        for kind, modes, (data, count) in kinds:
            size = sum(len(item.payload) for item in BlockScanner().feed(data) if isinstance(item, Block))
            alone, best = 1e9, 1e9
            for _ in range(3):
                alone = min(alone, of_payloads(data, nodes, count, modes))
                begin = time.process_time()
                assert to_arrays(data, nodes, modes) == count
                best = min(best, time.process_time() - begin)
            goal = f">= {COMPACT_GOAL}" if nodes == 16 and not modes.longer else ""
            print(f"{nodes:5}  {kind:10}  {size / count:14.3f}  {count / alone / 1e6:7.1f}  {count / best / 1e6:6.1f}  "
                  f"{count / to_parquet(data, nodes, modes) / 1e6:7.1f}   {goal}", flush=True)


if __name__ == "__main__":
    main()
