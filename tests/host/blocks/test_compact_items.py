"""COMPACT payloads with items of several nibbles: what is written is read, by every reader alike."""

import random
from itertools import pairwise

import pytest
from hypermon.hdl.layout import COMPACT_HEAD
from hypermon.host.blocks import compact, compact_plain
from hypermon.host.blocks.compact import Fault, LongItem, Span
from hypermon.host.blocks.compact_plain import read
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.blocks.test_compact import pack, unpack
from tests.host.compact_write import encode, encode_items, head_modes
from tests.host.items import as_rows, made_up_items, made_up_modes, of_rows

#: Node 1 in word mode, node 2 in event mode, the others in nibble mode.
MIXED = ItemModes(words=0b010, events=0b100)


def by_reading(payloads, times, nodes, modes):
    """Items of the legal payloads, their spans, and faults, by the reader that takes a group at a time."""
    items, spans, faults = [], [], []
    for k, (payload, time) in enumerate(zip(payloads, times, strict=True)):
        found = []
        if head_modes(payload, nodes) not in (None, modes.in_stream(nodes)):
            faults.append(Fault(k, 0, "other item modes than the run's"))
        else:
            try:
                found = read(payload, time, nodes, True)
            except compact_plain.IllegalError as fault:
                faults.append(Fault(k, *fault.args))
        items += found
        regular = [item[:2] for item in found if not item.late]
        spans.append(Span(regular[0], regular[-1]) if found else None)
    return items, spans, faults


def decode(payloads, times, nodes, modes):
    """By all ways there are, which must agree: the items of legal payloads, spans, faults."""
    items, spans, faults = by_reading(payloads, times, nodes, modes)
    native = compact.NATIVE
    try:
        for way in (native, None):
            compact.NATIVE = way
            decoded = compact.decode_items(payloads, times, nodes, modes)
            assert of_rows(decoded.parts) == as_rows(items, modes)
            assert (decoded.spans, decoded.faults) == (spans, faults)
            assert all(len(rows) for rows in decoded.parts)
    finally:
        compact.NATIVE = native
    return items, spans, faults


def plain(payload, time, nodes):
    """The payload read from the page alone: (window, node, nibbles, filler, late); None if it is not legal."""
    if len(payload) < 16 or any(payload[8:16]):
        return None
    words, events = int.from_bytes(payload[:4], "little"), int.from_bytes(payload[4:8], "little")
    groups = unpack(payload[16:])
    wide, items, window, order, open_item = 2 if nodes > 16 else 1, [], time, [], False

    def number():
        value = 0
        for k in range(7):
            group = groups.pop(0)
            value += (group % 8) * 8**k
            if group < 8:
                return value if group or not k else -1
        return -1

    def item():
        node = sum(groups.pop(0) * 16**k for k in range(wide))
        first = groups.pop(0)
        if node >= nodes or (events >> node & 1 and not first):
            return None
        more = 2 * first if events >> node & 1 else 7 if words >> node & 1 else 0
        return node, bytes([first, *(groups.pop(0) for _ in range(more))])

    try:
        while len(groups) > 1:
            code = groups[0] - 8 if groups[0] >= 8 and not groups[1] else None
            if code is not None:
                del groups[:2]
            if code == 1:
                filler = groups.pop(0) + 16 * groups.pop(0)
                if not open_item or not 0 < filler < len(items[-1][2]) or any(items[-1][2][-filler:]):
                    return None
                items[-1] = (*items[-1][:3], filler, items[-1][4])
                open_item = False
            elif code == 2:
                age = number()
                found = item()
                if not items or age < 0 or not found or not (words | events) >> found[0] & 1:
                    return None
                at = window - (age - 2**21 if age >= 2**20 else age)
                if at < 0:
                    return None
                items.append((at, *found, 0, True))
                open_item = True
            elif code is None or code == 0:
                gap = number()
                if gap < 0 or (not items and gap):
                    return None
                window += gap
                if code is None:
                    row = [item()]
                else:
                    vector = sum(groups.pop(0) * 16**k for k in range(4 * wide))
                    if not vector or vector >> nodes or vector & (words | events):
                        return None
                    row = [(node, bytes([groups.pop(0)])) for node in range(nodes) if vector >> node & 1]
                if None in row:
                    return None
                items += [(window, *one, 0, False) for one in row]
                order += [(window, one[0]) for one in row]
                open_item = (words | events) >> row[-1][0] & 1
            else:
                return None
    except IndexError:
        return None
    return items if groups in ([], [0]) and all(a < b for a, b in pairwise(order)) else None


def check(payloads, times, nodes, modes):
    """Decodes them, compares with the plain reader, writes what was read and reads it again; how many were legal."""
    items, _, faults = decode(payloads, times, nodes, modes)
    ours = [head_modes(payload, nodes) in (None, modes.in_stream(nodes)) for payload in payloads]
    wanted = [plain(payload, time, nodes) if own else None
              for payload, time, own in zip(payloads, times, ours, strict=True)]
    assert [tuple(item) for item in items] == [item for found in wanted if found for item in found]
    assert [fault.which for fault in faults] == [k for k, found in enumerate(wanted) if found is None]
    again = [[LongItem(*item) for item in found] for found in wanted if found]
    written = [encode_items(found, modes, nodes) for found in again]
    assert decode(written, [found[0].window for found in again], nodes, modes)[0] == items
    return len(payloads) - len(faults)


def payload(*groups, modes=MIXED):
    return COMPACT_HEAD.pack(words=modes.words, events=modes.events) + pack(*groups)


# ------------------------------------------------------------------------------------------- the format

W = bytes(range(1, 9))
E = bytes([2, 7, 1, 5, 0])  # id 0x17, payload 05


@pytest.mark.parametrize(("items", "groups"), [
    ([LongItem(5, 0, b"\x09")], [0, 0, 9]),
    ([LongItem(5, 1, W)], [0, 1, *W]),
    ([LongItem(5, 2, E)], [0, 2, *E]),
    ([LongItem(5, 2, E), LongItem(13, 1, W)], [0, 2, *E, 8, 1, 1, *W]),
    ([LongItem(5, 1, bytes([5, 6, 0, 0, 0, 0, 0, 0]), 6)], [0, 1, 5, 6, 0, 0, 0, 0, 0, 0, 9, 0, 6, 0]),
    ([LongItem(5, 2, bytes([15, 1, *[0] * 29]), 29)], [0, 2, 15, 1, *[0] * 29, 9, 0, 13, 1]),
    ([LongItem(5, 0, b"\x01"), LongItem(2, 2, E, 0, True), LongItem(5, 1, W)],
     [0, 0, 1, 10, 0, 3, 2, *E, 0, 1, *W]),
    ([LongItem(5, 0, b"\x01"), LongItem(6, 2, E, 0, True)], [0, 0, 1, 10, 0, *[15] * 6, 7, 2, *E]),
    ([LongItem(5, 0, b"\x01"), LongItem(2, 2, bytes([1, 0, 0]), 2, True), LongItem(6, 0, b"\x02")],
     [0, 0, 1, 10, 0, 3, 2, 1, 0, 0, 9, 0, 2, 0, 1, 0, 2]),
])
def test_group_by_group(items, groups):
    assert encode_items(items, MIXED, 3) == payload(*groups)
    found, spans, faults = decode([payload(*groups)], [5], 3, MIXED)
    assert (found, faults) == (items, [])
    regular = [item[:2] for item in items if not item.late]
    assert spans == [Span(regular[0], regular[-1])]


def test_windows_of_single_nibbles_are_written_as_ever():
    modes = ItemModes(words=1 << 5)
    items = [LongItem(5, node, bytes([node])) for node in range(5)]
    written = encode_items([*items, LongItem(6, 5, W)], modes, 16)
    assert written[16:][:8] == encode([(5, node, node) for node in range(5)], 16)[:6] + pack(1, 5, *W)[:2]
    # With another node in it, a window has items.
    written = encode_items([*items, LongItem(5, 5, W)], modes, 16)
    assert unpack(written[16:])[:3] == [0, 0, 0]


def test_what_the_rows_say():
    items = [LongItem(5, 0, b"\x09"), LongItem(5, 1, W), LongItem(5, 2, E), LongItem(7, 2, bytes([2, 7, 1, 0, 0]), 1),
             LongItem(8, 2, bytes([2, 7, 0, 0, 0]), 3), LongItem(9, 1, bytes([3, *[0] * 7]), 7)]
    [rows] = compact.decode_items([encode_items(items, MIXED, 3)], [5], 3, MIXED).parts
    assert of_rows([rows]) == [
        (5, 0, ItemMode.NIBBLE, 9, b"", False), (5, 1, ItemMode.WORD, 0x87654321, b"", False),
        (5, 2, ItemMode.EVENT, 0x17, b"\x05", False), (7, 2, ItemMode.EVENT, 0x17, b"", True),
        (8, 2, ItemMode.EVENT, None, b"", True), (9, 1, ItemMode.WORD, 3, b"", True)]
    assert [column.tolist() for column in rows.per_node(4)] == [[1, 1, 1, 0], [0, 1, 2, 0]]


@pytest.mark.parametrize(("items", "reason"), [
    ([LongItem(5, 3, b"\x01")], "node 3 of 3"), ([LongItem(5, 0, b"\x10")], "has the nibbles 10"),
    ([LongItem(5, 1, E)], "has the nibbles"), ([LongItem(5, 2, W)], "has the nibbles"),
    ([LongItem(5, 2, b"\0")], "has the nibbles 00"), ([LongItem(5, 0, b"")], "has the nibbles"),
    ([LongItem(5, 1, W, 1)], "no filler"), ([LongItem(5, 1, bytes(8), 8)], "no filler"),
    ([LongItem(5, 2, E, 0, True)], "begins another block"),
    ([LongItem(2**20, 0, b"\x01"), LongItem(0, 2, E, 0, True)], "begins another block"),
    ([LongItem(5, 0, b"\x01"), LongItem(6 + 2**20, 2, E, 0, True)], "begins another block"),
    ([LongItem(5, 0, b"\x01"), LongItem(5 + 2**21, 2, E)], "begins another block"),
    ([LongItem(5, 1, W), LongItem(5, 0, b"\x01")], "follows one of")])
def test_what_no_payload_holds(items, reason):
    with pytest.raises(ValueError, match=reason):
        encode_items(items, MIXED, 3)


START = [0, 0, 9]
AT = 32  # where groups begin
ILLEGAL = [
    ([0, 2, 0], 0, "an event of no bytes"),
    ([0, 1, *W[:6]], 8, "an item that is cut short"),
    ([0, 2, 15, *[1] * 29], 32, "an item that is cut short"),
    ([8, 0, 0, 3, 0, 0, 0, 1, 2], 0, "a strobe vector with nodes that are not in nibble mode"),
    ([*START, 9, 0, 1, 0], 3, "an abort without an item"),
    ([9, 0, 1, 0], 0, "an abort without an item"),
    ([0, 1, *[1] * 7, 0, 9, 0, 1, 0, 9, 0, 1, 0], 14, "an abort without an item"),
    ([0, 1, *[1] * 7, 0, 9, 0, 0, 0], 10, "an abort of more nibbles than there are"),
    ([0, 1, *[0] * 8, 9, 0, 8, 0], 10, "an abort of more nibbles than there are"),
    ([0, 1, *[0] * 8, 9, 0, 0, 1], 10, "an abort of more nibbles than there are"),
    ([0, 1, *[1] * 8, 9, 0, 1, 0], 10, "filler that is not zero"),
    ([0, 1, *[1] * 7, 0, 9, 0], 12, "an item that is cut short"),
    ([10, 0, 0, 1, *W], 0, "a late item in front"),
    ([*START, 10, 0, 1, 0, 1], 3, "a late item of one nibble"),
    ([*START, 10, 0, 1, 3, 1], 3, "a node that the board does not have"),
    ([*START, 10, 0, 1, 2, 0], 3, "an event of no bytes"),
    ([*START, 10, 0, 6, 1, *W], 3, "a window before time 0"),
    ([*START, 10, 0, 9, 0, 1, *W], 6, "a number that ends in a group of 0"),
    ([*START, 10, 0, *[9] * 7, 1, *W], 11, "a number of more than"),
    ([*START, 10, 0, 6, 1, *W[:7]], 14, "an item that is cut short"),
    ([*START, 11, 0, 1, 2, 3], 3, "unknown code 3"),
    ([*START, 15, 0, 1, 2, 3], 3, "unknown code 7"),
    ([*START, 0, 3, 1], 3, "a node that the board does not have"),
    ([1, 0, 9], 0, "a first item that is not in the first window"),
    ([0, 1, *W, 0, 0, 9], 10, "items of one window that are not in the order"),
    # A late item does not make room in its window.
    ([0, 1, *W, 10, 0, 0, 2, *E, 0, 0, 9], 19, "items of one window that are not in the order"),
    ([*START, 1], 3, "something after the last item that is not an item"),
]


@pytest.mark.parametrize(("groups", "position", "reason"), ILLEGAL)
@pytest.mark.parametrize("around", [0, 3])
def test_illegal(groups, position, reason, around):
    """Its neighbours are read, and none of its items is."""
    good = [LongItem(5, 1, W), LongItem(2, 2, E, 0, True), LongItem(9, 0, b"\x02"), LongItem(9, 2, E)]
    written = encode_items(good, MIXED, 3)
    payloads = [written] * around + [payload(*groups)] + [written] * around
    items, spans, faults = decode(payloads, [5] * len(payloads), 3, MIXED)
    [fault] = faults
    assert (fault.which, fault.position) == (around, AT + position)
    assert reason in fault.reason
    assert items == good * (2 * around)
    assert [span is None for span in spans] == [k == around for k in range(2 * around + 1)]


@pytest.mark.parametrize(("data", "position", "reason"), [
    (b"", 0, "a head that is cut short"), (bytes(15), 30, "a head that is cut short"),
    (COMPACT_HEAD.pack(words=2, events=4, zero=1 << 60) + pack(0, 0, 1), 16, "a head that makes no sense"),
    (COMPACT_HEAD.pack(words=2) + pack(0, 0, 1), 0, "other item modes"),
    (COMPACT_HEAD.pack() + pack(0, 0, 1), 0, "other item modes")])
def test_heads(data, position, reason):
    _, _, [fault] = decode([data], [5], 3, MIXED)
    assert fault.position == position
    assert reason in fault.reason


def test_heads_that_say_the_same():
    """Event mode goes before word mode, and nodes that are not there mean nothing."""
    data = COMPACT_HEAD.pack(words=0b110 | 1 << 9, events=0b100 | 1 << 31) + pack(0, 2, *E)
    assert decode([data], [5], 3, MIXED) == ([LongItem(5, 2, E)], [Span((5, 2), (5, 2))], [])
    assert decode([COMPACT_HEAD.pack(words=2, events=4)], [5], 3, MIXED) == ([], [None], [])


# ----------------------------------------------------------------------------------------- round trips

@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 32), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([1, 5, 40]))
def test_round_trip(seed, nodes, full, count):
    rng = random.Random(seed)
    modes = made_up_modes(rng, nodes)
    made = [made_up_items(rng, rng.randint(1, 8), nodes, modes, full=full) for _ in range(count)]
    payloads = [encode_items(items, modes, nodes) for items in made]
    assert check(payloads, [items[0].window for items in made], nodes, modes) == count


@pytest.mark.parametrize("nodes", [16, 32])
def test_cut_at_every_byte(nodes):
    rng = random.Random(nodes)
    modes = made_up_modes(rng, nodes)
    items = made_up_items(rng, 20, nodes, modes)
    data = encode_items(items, modes, nodes)
    pieces = [data[:size] for size in range(len(data) + 1)]
    assert 5 < check(pieces, [items[0].window] * len(pieces), nodes, modes) < len(pieces) // 2


# -------------------------------------------------------------------------------------------------- fuzz

def mutated(rng, nodes, modes):
    """A payload of noise behind a head, or a legal one, with faults or without."""
    if rng.random() < 0.3:
        return COMPACT_HEAD.pack(words=modes.words, events=modes.events) + rng.randbytes(rng.randint(0, 60))
    items = made_up_items(rng, rng.randint(1, 8), nodes, modes, full=rng.random() ** 2, late=0.3, aborts=0.3)
    data = bytearray(encode_items(items, modes, nodes))
    for _ in range(rng.choice([0, 1, 1, 2])):
        data[rng.randrange(len(data)) if rng.random() < 0.1 else rng.randrange(16, len(data))] ^= (
            rng.choice([1 << rng.randrange(8), rng.randint(1, 255)]))
    return bytes(data[:rng.randrange(len(data) + 1)] if rng.random() < 0.2 else data)


def fuzz(rng, size):
    """So many bytes; how many payloads were legal."""
    done = legal = 0
    while done < size:
        nodes = rng.choice([1, 3, 16, 17, 32, rng.randint(1, 32)])
        modes = made_up_modes(rng, nodes)
        payloads = [mutated(rng, nodes, modes) for _ in range(rng.choice([1, 5, 100, 300]))]
        done += sum(map(len, payloads))
        legal += check(payloads, [rng.randrange(1 << 22) for _ in payloads], nodes, modes)
    return legal


@pytest.mark.parametrize("seed", range(3))
def test_fuzz(seed):
    assert fuzz(random.Random(seed), 100_000) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_fuzz_ten_million_bytes(seed):
    assert fuzz(random.Random(seed), 1_000_000) > 1000
