"""Event framing against a reader that takes one nibble after the other, written from the definition."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypermon.host.decode.event_framing import EVENT_SCHEMA, TIMEOUT_PS, EventFramer, frame_events

Row = tuple[int, int, int | None, bytes, bool]


@dataclass
class Reader:
    """One node's framing as the definition tells it, a nibble at a time."""

    node: int
    timeout_ps: int
    rows: list[Row] = field(default_factory=list)
    got: list[int] = field(default_factory=list)
    begun_ps: int = 0
    last_ps: int | None = None

    def nibble(self, time_ps: int, value: int) -> None:
        if self.got and time_ps - self.last_ps > self.timeout_ps:
            self.abort()
        self.last_ps = time_ps
        if not self.got:
            if value == 0:
                return
            self.begun_ps = time_ps
        self.got.append(value)
        if len(self.got) == 1 + 2 * self.got[0]:
            self.emit(aborted=False)

    def abort(self) -> None:
        if self.got:
            self.emit(aborted=True)

    def emit(self, aborted: bool) -> None:
        pairs = self.got[1:]
        data = bytes(low | high << 4 for low, high in zip(pairs[::2], pairs[1::2], strict=False))
        self.rows.append((self.begun_ps, self.node, data[0] if data else None, data[1:], aborted))
        self.got = []


def read(time_ps, node, nibble, timeout_ps=TIMEOUT_PS) -> list[Row]:
    readers = {n: Reader(n, timeout_ps) for n in sorted(set(node))}
    for t, n, v in zip(time_ps, node, nibble, strict=True):
        readers[n].nibble(t, v)
    for reader in readers.values():
        reader.abort()
    return sorted((row for reader in readers.values() for row in reader.rows), key=lambda row: row[:2])


def rows(table: pa.Table) -> list[Row]:
    assert table.schema == EVENT_SCHEMA
    table.validate(full=True)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if len(table) else []


def nibbles(event: int, payload: bytes) -> list[int]:
    data = bytes([event]) + payload
    return [len(data)] + [half for byte in data for half in (byte & 15, byte >> 4)]


def test_one_event() -> None:
    values = nibbles(0xa5, b"\x12\xf0")
    assert values == [3, 5, 10, 2, 1, 0, 15]
    table = frame_events(np.arange(7) * 40_000 + 5, [3] * 7, values)
    assert rows(table) == [(5, 3, 0xa5, b"\x12\xf0", False)]


def test_nothing() -> None:
    assert rows(frame_events([], [], [])) == []
    assert rows(frame_events([1, 2, 3], [0, 0, 1], [0, 0, 0])) == []


@pytest.mark.parametrize("length", range(15))
def test_every_length_with_fillers_around(length: int) -> None:
    payload = bytes(range(200, 200 + length))
    values = [0, *nibbles(7, payload), 0, 0, *nibbles(8, b""), 0]
    expected = [(1, 0, 7, payload, False), (1 + 3 + 2 * length + 2, 0, 8, b"", False)]
    assert rows(frame_events(range(len(values)), [0] * len(values), values)) == expected


@pytest.mark.parametrize("length", range(1, 31))
def test_silence_aborts_at_every_nibble(length: int) -> None:
    """A silence of exactly T is none; one picosecond more ends the event, and framing starts anew."""
    values = nibbles(0x31, bytes(range(14)))
    data = bytes([0x31, *range(14)])
    for extra, aborted in ((0, False), (1, True)):
        times = np.arange(len(values), dtype=np.int64)
        times[length:] += TIMEOUT_PS - 1 + extra
        again = times[-1] + 1 + np.arange(3)
        got = rows(frame_events([*times, *again], [2] * (len(times) + 3), values + nibbles(9, b"")))
        if not aborted:
            assert got == [(0, 2, 0x31, data[1:], False), (int(again[0]), 2, 9, b"", False)]
        else:
            whole = data[:(length - 1) // 2]
            assert got[0] == (0, 2, whole[0] if whole else None, whole[1:], True)
            assert got == read([*times, *again], [2] * (len(times) + 3), values + nibbles(9, b""))


@pytest.mark.parametrize("length", range(1, 30))
def test_incomplete_at_the_end(length: int) -> None:
    values = nibbles(0x42, bytes(range(14)))[:length]
    # Another node begins where this one ends: nothing may leak across.
    got = rows(frame_events([*range(length), 100, 101, 102], [0] * length + [1] * 3,
                            [*values, *nibbles(0xff, b"")]))
    assert got[0] == (0, 0, 0x42 if length >= 3 else None, bytes(range(max((length - 3) // 2, 0))), True)
    assert got[1:] == [(100, 1, 0xff, b"", False)]


def test_ties_by_node() -> None:
    values = nibbles(1, b"")
    got = rows(frame_events([0] * 3 + [0] * 3, [5] * 3 + [4] * 3, values + values))
    assert [row[1] for row in got] == [4, 5]


@pytest.mark.parametrize("seed", range(40))
def test_random_nibbles(seed: int) -> None:
    """Noise on many nodes, silences everywhere: the same rows as one nibble after the other gives."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6000))
    nodes = int(rng.integers(1, 33))
    timeout_ps = 1000
    quiet = rng.random(count) < rng.choice([0, 0.01, 0.3])
    time = np.cumsum(np.where(quiet, rng.integers(0, 5000, count), rng.integers(0, 40, count)))
    node = rng.integers(0, nodes, count)
    node = node[np.lexsort((node, time))]
    nibble = rng.integers(0, int(rng.integers(1, 17)), count)
    args = (time.tolist(), node.tolist(), nibble.tolist())
    assert rows(frame_events(*args, timeout_ps=timeout_ps)) == read(*args, timeout_ps)


@pytest.mark.parametrize("seed", range(10))
def test_random_events_come_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sent, stream = [], []
    clock = rng.integers(0, 1000, 16)
    for _ in range(2000):
        node, event = int(rng.integers(0, 16)), int(rng.integers(0, 256))
        payload = rng.bytes(int(rng.integers(0, 15)))
        sent.append((int(clock[node]), node, event, payload, False))
        for value in nibbles(event, payload):
            stream.append((int(clock[node]), node, value))
            clock[node] += int(rng.integers(1, 50))
    stream.sort(key=lambda row: row[:2])
    sent.sort(key=lambda row: row[:2])
    assert rows(frame_events(*zip(*stream, strict=True))) == sent


def lossy(from_ps: int, to_ps: int, node: int = 0) -> pa.Table:
    return pa.table({"node": pa.array([node], pa.int16()), "lost": pa.array([5], pa.int64()),
                     "from_ps": pa.array([from_ps], pa.int64()), "to_ps": pa.array([to_ps], pa.int64())})


def test_loss_invents_no_event() -> None:
    """Behind a loss nothing is an event before the next silence, and one row says so."""
    event = nibbles(0x11, b"\x22")
    times = [0, 1, 2, 3, 4, 10, 11, 12, 13, 30, 31, 32, 33, 34, 1034, 1035, 1036, 1037, 1038]
    values = event + event[1:] + event + event
    got = rows(frame_events(times, [0] * 19, values, timeout_ps=900, loss=lossy(5, 9)))
    assert got == [(0, 0, 0x11, b"\x22", False), (10, 0, None, b"", True), (1034, 0, 0x11, b"\x22", False)]


def test_loss_cuts_the_open_event() -> None:
    values = nibbles(0x11, b"\x22\x33")
    got = rows(frame_events(range(7), [0] * 7, values, loss=lossy(4, 4)))
    assert got == [(0, 0, 0x11, b"\x22", True), (5, 0, None, b"", True)]


def test_silence_behind_the_loss_counts_from_its_last() -> None:
    event = nibbles(0x11, b"")
    times = [0, 1, 2, 2000, 2001, 2002]
    for to_ps, expected in ((1000, [(0, 0, 0x11, b"", False), (2000, 0, 0x11, b"", False)]),
                            (1099, [(0, 0, 0x11, b"", False), (2000, 0, 0x11, b"", False)]),
                            (1100, [(0, 0, 0x11, b"", False), (2000, 0, None, b"", True)]),
                            (1500, [(0, 0, 0x11, b"", False), (2000, 0, None, b"", True)])):
        got = rows(frame_events(times, [0] * 6, event * 2, timeout_ps=900, loss=lossy(500, to_ps)))
        assert got == expected


def test_silence_inside_an_outage_ends_nothing() -> None:
    """An outage that grew over several losses has nibbles, and silences, in its midst: still one row."""
    event = nibbles(0x11, b"")
    times = [0, 1, 2, 2000, 2001, 2002, 8000, 8001, 8002]
    got = rows(frame_events(times, [0] * 9, event * 3, timeout_ps=900, loss=lossy(500, 3000)))
    assert got == [(0, 0, 0x11, b"", False), (2000, 0, None, b"", True), (8000, 0, 0x11, b"", False)]
    got = rows(frame_events(times, [0] * 9, event * 3, timeout_ps=900, loss=lossy(1, 3000)))
    assert got == [(0, 0, None, b"", True), (2, 0, None, b"", True), (8000, 0, 0x11, b"", False)]


@pytest.mark.parametrize("node", [0, 1])
def test_loss_of_one_node_is_not_the_others(node: int) -> None:
    event = nibbles(0x11, b"")
    got = rows(frame_events([0, 2, 4, 1, 3, 5], [0, 0, 0, 1, 1, 1], event * 2, loss=lossy(-1, 0, node)))
    expected = [(0, 0, 0x11, b"", False), (1, 1, 0x11, b"", False)]
    expected[node] = (node, node, None, b"", True)
    assert got == expected


@pytest.mark.parametrize("seed", range(20))
def test_random_loss_is_never_a_wrong_event(seed: int) -> None:
    """Nibbles are taken out of a true stream: what is still called an event was one."""
    rng = np.random.default_rng(seed)
    times, values, true = [], [], set()
    clock = 0
    for _ in range(400):
        clock += int(rng.choice([10, 5000]))
        event, payload = int(rng.integers(1, 256)), rng.bytes(int(rng.integers(0, 15)))
        true.add((clock, 0, event, payload, False))
        for value in nibbles(event, payload):
            times.append(clock)
            values.append(value)
            clock += 10
    lost, outages, at = np.zeros(len(times), bool), [], 0
    while (at := at + int(rng.integers(30, 600))) < len(times):
        upto = min(at + int(rng.integers(1, 60)), len(times) - 1)
        lost[at:upto + 1] = True
        outages.append({"node": 0, "lost": upto + 1 - at, "from_ps": times[at], "to_ps": times[upto]})
        at = upto + 1
    keep = ~lost
    table = frame_events(np.array(times)[keep], np.zeros(keep.sum(), np.int16), np.array(values)[keep],
                         timeout_ps=1000, loss=pa.Table.from_pylist(outages))
    whole = {row for row in rows(table) if not row[4]}
    assert whole <= true
    assert len(whole) > 20


def test_refuses() -> None:
    with pytest.raises(ValueError, match="16 is no nibble"):
        frame_events([0], [0], [16])
    with pytest.raises(ValueError, match="2 times, 1 nodes and 2 nibbles"):
        frame_events([0, 1], [0], [1, 1])
    with pytest.raises(ValueError, match="node 3: 5 ps comes after 6 ps"):
        frame_events([0, 6, 5], [2, 3, 3], [1, 1, 1])


@pytest.mark.parametrize("seed", range(9))
def test_pieces_are_as_the_whole(seed: int) -> None:
    """Wherever the nibbles are cut, with losses and silences anywhere; and little is held."""
    rng = np.random.default_rng(seed)
    count, nodes = 1500, 4
    times = np.cumsum(rng.choice([0, 1, 5, 400, 2500], count, p=[0.3, 0.4, 0.2, 0.09, 0.01]))
    node, values = rng.integers(0, nodes, count), rng.choice([0, 1, 2, 3, 15], count)
    outages = [{"node": int(rng.integers(nodes)), "from_ps": int(at), "to_ps": int(at + rng.integers(0, 3000))}
               for at in rng.integers(0, times[-1], 6 * (seed % 3))]
    loss = pa.Table.from_pylist(outages) if outages else lossy(-10, -10)
    whole = rows(frame_events(times, node, values, timeout_ps=900, loss=loss))
    framer, got, held = EventFramer(900, loss), [], 0
    cuts = [0, *np.sort(rng.integers(0, count, int(rng.choice([3, 60, 200])))).tolist(), count]
    for low, high in pairwise(cuts):
        got += rows(framer.add(times[low:high], node[low:high], values[low:high]))
        held = max(held, len(framer._waiting) - (high - low))
    got += rows(framer.finish())
    assert sorted(got, key=str) == sorted(whole, key=str)
    assert [row[:2] for row in got] == [row[:2] for row in whole]
    assert held < 400


def test_a_node_that_falls_silent_holds_nothing_up() -> None:
    """Its event is aborted as soon as nothing of it can come any more."""
    framer = EventFramer(900)
    assert framer.add([0], [0], [3]).num_rows == 0
    event = nibbles(0x11, b"")
    for begin in range(1, 3002, 100):
        got = rows(framer.add([begin, begin + 1, begin + 2], [1] * 3, event))
        assert bool(got) == (begin > 900), begin
        if begin == 901:
            assert got[0] == (0, 0, None, b"", True)
