"""Event framing: nibbles a second on one core, for events of one, five and fifteen bytes and for fillers alone."""

import time

import numpy as np
from hypermon.host.decode.event_framing import frame_events

NIBBLES = 10_000_000
NODES = 16


def main() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 5, 15, 0):
        each = 1 + 2 * size
        events = rng.integers(0, 16, (NIBBLES // each // NODES, NODES, each), dtype=np.uint8)
        events[:, :, 0] = size
        # Nodes take turns nibble by nibble, so none of their events is in one piece.
        nibble = events.swapaxes(1, 2).reshape(-1)
        node = np.tile(np.arange(NODES, dtype=np.int16), len(nibble) // NODES)
        time_ps = np.arange(len(nibble), dtype=np.int64) * 10_000
        best = 0.0
        for _ in range(3):
            begin = time.perf_counter()
            table = frame_events(time_ps, node, nibble)
            best = max(best, len(nibble) / (time.perf_counter() - begin))
        assert table.num_rows == (events.shape[0] * NODES if size else 0)
        what = f"events of {size:2} bytes" if size else "fillers alone    "
        print(f"{what}  {best / 1e6:6.1f} M nibbles/s  {best / each / 1e6 if size else 0:5.1f} M events/s")


if __name__ == "__main__":
    main()
