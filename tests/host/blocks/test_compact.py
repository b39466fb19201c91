"""COMPACT payloads: what is written is read, and what no board can have written is said and makes no event."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypermon.hdl.layout import GAP_GROUPS, LATENCY, Window
from hypermon.host.blocks import compact, compact_c, compact_plain
from hypermon.host.blocks.compact import Fault, Span
from hypermon.host.blocks.times import TimeScale
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.compact_write import encode, explain

#: Where a number takes a group more.
EDGES = [1, 7, 8, 63, 64, 511, 512, 4095, 4096, 32767, 32768, 2**18 - 1, 2**18, 2**21 - 1]


def pack(*groups):
    """Bytes of groups, with a group of 0 behind an odd number of them."""
    groups = [*groups, *[0] * (len(groups) % 2)]
    return bytes(low | high << 4 for low, high in zip(groups[::2], groups[1::2], strict=True))


def unpack(payload):
    return [group for byte in payload for group in (byte & 15, byte >> 4)]


def by_reading(payloads, times, nodes):
    """What decode() is to give, from the reader that takes a group at a time."""
    items, spans, faults = [], [], []
    for k, (payload, time) in enumerate(zip(payloads, times, strict=True)):
        found = []
        try:
            found = [(item.window, item.node, item.nibbles[0]) for item in compact_plain.read(payload, time, nodes)]
        except compact_plain.IllegalError as fault:
            faults.append(Fault(k, *fault.args))
        items += found
        spans.append(Span(found[0][:2], found[-1][:2]) if found else None)
    return items, spans, faults


def decode(payloads, times, nodes):
    """By all ways there are, which must agree."""
    wanted = by_reading(payloads, times, nodes)
    native = compact.NATIVE
    try:
        for way in (native, None):
            compact.NATIVE = way
            decoded = compact.decode(payloads, times, nodes)
            assert (items_of(decoded), decoded.spans, decoded.faults) == wanted
            assert all(len(rows) for rows in decoded.parts)
    finally:
        compact.NATIVE = native
    return decoded


def items_of(decoded):
    return [item for rows in decoded.parts
            for item in zip(rows.windows.tolist(), rows.node.tolist(), rows.nibble.tolist(), strict=True)]


def made_up(rng, count, nodes, full=0.0, edges=EDGES):
    """Items of so many windows; that share of them with many nodes."""
    window, items = rng.randrange(1 << 40), []
    for _ in range(count):
        size = rng.randint(1, nodes) if rng.random() < full else 1
        items += [(window, node, rng.randrange(16)) for node in sorted(rng.sample(range(nodes), size))]
        window += rng.choice(edges) if rng.random() < 0.3 else rng.randint(1, rng.choice(edges))
    return items


def plain(payload, time, nodes):
    """The payload read group by group, from the page alone: items; None if it is not legal."""
    groups, at = unpack(payload), 0
    wide = 2 if nodes > 16 else 1
    items, window = [], time
    while len(groups) - at > 1:
        many = groups[at] & 8 and groups[at + 1] == 0
        if many:
            if groups[at] != 8:
                return None
            at += 2
        size = next((k + 1 for k, group in enumerate(groups[at:at + 7]) if group < 8), None)
        if size is None or (size > 1 and groups[at + size - 1] == 0):
            return None
        window += sum((group & 7) << 3 * k for k, group in enumerate(groups[at:at + size]))
        if not items and window != time:
            return None
        at += size
        field = groups[at:at + (4 * wide if many else wide)]
        value = sum(group << 4 * k for k, group in enumerate(field))
        at += 4 * wide if many else wide
        found = [node for node in range(32) if value >> node & 1] if many else [value]
        if not found or found[-1] >= nodes or len(groups) < at + len(found):
            return None
        items += [(window, node, groups[at + k]) for k, node in enumerate(found)]
        at += len(found)
    in_order = all(a[:2] < b[:2] for a, b in pairwise(items))
    return items if groups[at:] in ([], [0]) and in_order else None


def check(payloads, times, nodes):
    """Decodes them and compares with the plain reader; how many were legal."""
    expected = [plain(payload, time, nodes) for payload, time in zip(payloads, times, strict=True)]
    decoded = decode(payloads, times, nodes)
    assert items_of(decoded) == [item for items in expected if items for item in items]
    assert [fault.which for fault in decoded.faults] == [k for k, items in enumerate(expected) if items is None]
    assert decoded.spans == [Span(items[0][:2], items[-1][:2]) if items else None for items in expected]
    for fault in decoded.faults:
        assert explain(payloads[fault.which], nodes) == (fault.position, fault.reason)
        assert 0 <= fault.position <= 2 * len(payloads[fault.which])
    # What was read is written and read again.
    good = [items for items in expected if items]
    again = decode([encode(items, nodes) for items in good], [items[0][0] for items in good], nodes)
    assert items_of(again) == items_of(decoded)
    return len(good)


# ------------------------------------------------------------------------------------------- the format

@pytest.mark.parametrize(("nodes", "items", "groups"), [
    (16, [(5, 3, 9)], [0, 3, 9]),
    (16, [(5, 3, 9), (12, 0, 0)], [0, 3, 9, 7, 0, 0]),
    (16, [(5, 3, 9), (13, 15, 15)], [0, 3, 9, 8, 1, 15, 15]),
    (16, [(5, 3, 9), (105, 1, 2)], [0, 3, 9, 8 | 4, 8 | 4, 1, 1, 2]),
    (16, [(0, 3, 9), (2**21 - 1, 1, 2)], [0, 3, 9, 15, 15, 15, 15, 15, 15, 7, 1, 2]),
    (16, [(5, 1, 9), (5, 2, 8), (5, 3, 7)], [0, 1, 9, 0, 2, 8, 0, 3, 7]),
    (16, [(5, n, n) for n in (1, 2, 3, 9)], [8, 0, 0, 0b1110, 0, 0b0010, 0, 1, 2, 3, 9]),
    (4, [(5, n, n) for n in range(4)], [8, 0, 0, 15, 0, 0, 0, 0, 1, 2, 3]),
    (17, [(5, 3, 9), (6, 16, 1)], [0, 3, 0, 9, 1, 0, 1, 1]),
    (32, [(5, 31, 9)] + [(13, n, 1) for n in (0, 4, 30, 31)],
     [0, 15, 1, 9, 8, 0, 8, 1, 1, 1, 0, 0, 0, 0, 0, 12, 1, 1, 1, 1]),
])
def test_group_by_group(nodes, items, groups):
    assert encode(items, nodes) == pack(*groups)
    decoded = decode([pack(*groups)], [items[0][0]], nodes)
    assert (items_of(decoded), decoded.faults) == (items, [])
    assert decoded.spans == [Span(items[0][:2], items[-1][:2])]


def test_windows_of_many_nodes_need_not_be_written_as_such():
    """The shorter form is the board's business; and singles may go on behind a vector."""
    groups = [0, 1, 9, 0, 2, 8, 0, 3, 7, 0, 4, 6, 0, 5, 5]
    assert [node for _, node, _ in items_of(decode([pack(*groups)], [5], 16))] == [1, 2, 3, 4, 5]
    groups = [8, 0, 0, 2, 0, 0, 0, 7, 0, 4, 6, 8, 0, 0, 0, 0, 1, 0, 5]
    assert items_of(decode([pack(*groups)], [5], 16)) == [(5, 1, 7), (5, 4, 6), (5, 8, 5)]


@pytest.mark.parametrize(("items", "reason"), [
    ([(5, 16, 1)], "node 16 of 16"), ([(5, -1, 1)], "node -1"), ([(5, 0, 16)], "nibble 16"),
    ([(5, 1, 1), (5, 1, 2)], "follows one of"), ([(5, 1, 1), (4, 1, 2)], "follows one of"),
    ([(5, 1, 1), (5 + 2**21, 1, 2)], "begins another block")])
def test_what_no_payload_holds(items, reason):
    with pytest.raises(ValueError, match=reason):
        encode(items, 16)


def test_the_decoder_in_c_is_there():
    """It is compiled when the package is installed, if there is a C compiler; tests need one anyway."""
    assert compact.NATIVE is not None, "install the package anew: make setup"


def test_nothing():
    decoded = decode([], [], 16)
    assert (decoded.parts, decoded.spans, decoded.faults) == ([], [], [])
    decoded = decode([b"", encode([(3, 1, 2)], 16), b""], [9, 3, 9], 16)
    assert items_of(decoded) == [(3, 1, 2)]
    assert decoded.spans == [None, Span((3, 1), (3, 1)), None]


# ----------------------------------------------------------------------------------------- round trips

@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 32), st.sampled_from([0.0, 0.1, 1.0]), st.sampled_from([1, 3, 40]))
def test_round_trip(seed, nodes, full, count):
    """Few payloads and many: they are read in different ways."""
    rng = random.Random(seed)
    made = [made_up(rng, rng.randint(1, 30), nodes, full) for _ in range(count)]
    assert check([encode(items, nodes) for items in made], [items[0][0] for items in made], nodes) == count


@pytest.mark.parametrize("nodes", [1, 4, 16, 17, 32])
@pytest.mark.parametrize("count", [1, 20])
def test_every_length_of_a_gap(nodes, count):
    items = [(0, 0, 5)]
    for gap in EDGES:
        items.append((items[-1][0] + gap, nodes - 1, gap & 15))
    items += [(items[-1][0] + 3, node, node & 15) for node in range(nodes)]
    for gap in EDGES:
        items += [(items[-1][0] + gap, node, gap & 15) for node in range(nodes)]
    payload = encode(items, nodes)
    decoded = decode([payload] * count, [7] * count, nodes)
    assert items_of(decoded) == [(window + 7, node, nibble) for window, node, nibble in items] * count


@pytest.mark.parametrize("nodes", [16, 32])
def test_full_windows(nodes):
    items = [(window * 9, node, (window + node) & 15) for window in range(400) for node in range(nodes)]
    payload = encode(items, nodes)
    assert len(payload) <= 1.25 * len(items)
    assert items_of(decode([payload] * 30, [0] * 30, nodes)) == items * 30


@pytest.mark.parametrize("full", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("chunk", [512, 8192])
def test_payloads_that_are_taken_in_pieces(monkeypatch, chunk, full):
    """Long payloads and short ones, those of 64 KiB too, wherever a piece ends."""
    monkeypatch.setattr(compact_c, "_CHUNK", chunk // 2)
    rng = random.Random(chunk)
    made = [made_up(rng, rng.choice([1, 2, 50, 1500]), 16, full) for _ in range(20)]
    made.append([(k * 3, k % 16, k & 15) for k in range(43_000)])
    rng.shuffle(made)
    assert check([encode(items, 16) for items in made], [items[0][0] for items in made], 16) == 21


@pytest.mark.parametrize("window", Window)
def test_as_events(window):
    scale = TimeScale(35_000_000, window, LATENCY)
    items = made_up(random.Random(2), 500, 20, 0.2)
    [rows] = decode([encode(items, 20)], [items[0][0]], 20).parts
    events = rows.events(scale)
    assert events.time_ps.tolist() == [scale.start_ps(window) for window, _, _ in items]
    assert (events.node.tolist(), events.nibble.tolist()) == ([i[1] for i in items], [i[2] for i in items])
    assert [c.dtype for c in (events.time_ps, events.node, events.nibble)] == [np.int64, np.int16, np.uint8]
    assert rows.per_node(20).tolist() == [sum(i[1] == node for i in items) for node in range(20)]


# -------------------------------------------------------------------------------------- illegal payloads

START = [0, 3, 9]
ILLEGAL = [
    (16, [*START, 9, 0, 1, 2, 3], 3, "unknown code 1"),
    (16, [*START, 15, 0, 1, 2, 3], 3, "unknown code 7"),
    (16, [*START, *[8 | 1] * 7, 1, 1, 2], 9, f"a number of more than {GAP_GROUPS} groups"),
    (16, [*START, *[8 | 1] * 8, 1, 1, 2], 9, f"a number of more than {GAP_GROUPS} groups"),
    (16, [8, 0, 0, 1, 0, 0, 0, 5, 8, 0, *[8 | 1] * 7, 1, 1, 0, 0, 0, 5], 16, "a number of more than"),
    (16, [*START, 9, 9, 0, 1, 2], 5, "a number that ends in a group of 0"),
    (16, [*START, 9, 9, 9, 9, 0, 1, 2], 7, "a number that ends in a group of 0"),
    (16, [*START, 9, 9, 9, 9, 9, 9, 0, 1, 2], 9, "a number that ends in a group of 0"),
    (16, [*START, 8, 0, 9, 0, 1, 0, 0, 0, 2], 6, "a number that ends in a group of 0"),
    (15, [*START, 1, 15, 2], 3, "a node that the board does not have"),
    (15, [*START, 9, 9, 9, 9, 1, 15, 2], 3, "a node that the board does not have"),
    (3, [0, 3, 9], 0, "a node that the board does not have"),
    (20, [0, 4, 1, 9], 0, "a node that the board does not have"),
    (32, [0, 0, 2, 9], 0, "a node that the board does not have"),
    (16, [*START, *[9] * 4, 1, 1, 2, 1, 3, 4, 8, 0, 1, 0, 0, 0, 0], 13, "an empty strobe vector"),
    (15, [8, 0, 0, 0, 0, 0, 8, 1], 0, "strobes of nodes that the board does not have"),
    (20, [8, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1], 0, "strobes of nodes that the board does not have"),
    (16, [1, 3, 9], 0, "a first item that is not in the first window"),
    (16, [8, 0, 1, 1, 0, 0, 0, 9], 0, "a first item that is not in the first window"),
    (16, [*START, 0, 3, 9], 3, "items of one window that are not in the order"),
    (16, [*START, 0, 2, 9], 3, "items of one window that are not in the order"),
    (16, [*START, 8, 0, 0, 8, 0, 0, 0, 9], 3, "items of one window that are not in the order"),
    (16, [8, 0, 0, 8, 0, 0, 0, 9, 0, 3, 1], 8, "items of one window that are not in the order"),
    (16, [*START, 1], 3, "something after the last item that is not an item"),
    (16, [*START, 0, 0, 0, 0, 0], 3, "items of one window that are not in the order"),
    (16, [*START, 9, 1, 5], 6, "an item that is cut short"),
    (16, [0, 0], 2, "an item that is cut short"),
    (16, [*START, 9, 9, 9], 6, "an item that is cut short"),
    (16, [*START, 8, 0, 1], 6, "an item that is cut short"),
    (16, [8, 0, 0, 3, 0, 0, 0, 9], 8, "an item that is cut short"),
]


@pytest.mark.parametrize(("nodes", "groups", "position", "reason"), ILLEGAL)
@pytest.mark.parametrize("around", [0, 30])
def test_illegal(nodes, groups, position, reason, around):
    """Its neighbours are read, and none of its items is, not even those before the fault."""
    payload = pack(*groups)
    [before, behind] = [[(5, 0, 1), (9, 1, 2), (2000, 2, 3)], [(10, n, n & 15) for n in range(min(nodes, 7))]]
    payloads = [encode(before, nodes)] * around + [payload] + [encode(behind, nodes)] * around
    decoded = decode(payloads, [5] * (around + 1) + [10] * around, nodes)
    [fault] = decoded.faults
    assert isinstance(fault, Fault)
    assert (fault.which, fault.position) == (around, position)
    assert reason in fault.reason
    assert items_of(decoded) == before * around + behind * around
    assert [span is None for span in decoded.spans] == [k == around for k in range(2 * around + 1)]


@pytest.mark.parametrize("nodes", [16, 32])
def test_cut_at_every_byte(nodes):
    """Legal just where an item ends, or a group of 0 behind one."""
    items = made_up(random.Random(nodes), 60, nodes, 0.3)
    payload = encode(items, nodes)
    pieces = [payload[:size] for size in range(len(payload) + 1)]
    check(pieces, [items[0][0]] * len(pieces), nodes)
    ends = {len(items_of(decode([piece], [items[0][0]], nodes))) for piece in pieces}
    assert ends <= set(range(len(items) + 1))
    assert len(ends) > 10


@pytest.mark.parametrize("nodes", [16, 32])
def test_cut_at_every_group(nodes):
    """With the rest zero, as in no payload of a board."""
    items = made_up(random.Random(nodes), 60, nodes, 0.3)
    groups = unpack(encode(items, nodes))
    pieces = [pack(*groups[:size]) for size in range(len(groups) + 1)]
    check(pieces, [items[0][0]] * len(pieces), nodes)
    pieces = [pack(*groups[:size], *[0] * (len(groups) - size)) for size in range(len(groups) + 1)]
    assert check(pieces, [items[0][0]] * len(pieces), nodes) < 20


# -------------------------------------------------------------------------------------------------- fuzz

def fuzz(rng, size):
    """So many bytes of noise and of payloads with faults; how many payloads were legal."""
    done = legal = 0
    while done < size:
        nodes = rng.choice([1, 3, 16, 17, 32, rng.randint(1, 32)])
        payloads = []
        for _ in range(rng.choice([1, 5, 100, 300])):
            if rng.random() < 0.3:
                payload = rng.randbytes(rng.randint(0, 30))
            else:
                data = bytearray(encode(made_up(rng, rng.randint(1, 20), nodes, rng.random() ** 2), nodes))
                for _ in range(rng.choice([0, 1, 1, 2])):
                    data[rng.randrange(len(data))] ^= rng.choice([1 << rng.randrange(8), rng.randint(1, 255)])
                if rng.random() < 0.2:
                    data = data[:rng.randrange(len(data) + 1)]
                payload = bytes(data)
            payloads.append(payload)
            done += len(payload)
        legal += check(payloads, [rng.randrange(1 << 40) for _ in payloads], nodes)
    return legal


@pytest.mark.parametrize("seed", range(4))
def test_fuzz(seed):
    assert fuzz(random.Random(seed), 100_000) > 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_fuzz_ten_million_bytes(seed):
    assert fuzz(random.Random(seed), 1_000_000) > 5000
