"""COMPACT payloads of boards with ports of 8 bits: two groups a write, in every form, for every reader."""

import random

import pytest
from hypermon.host.blocks import compact, compact_plain
from hypermon.host.blocks.compact import Fault, LongItem, Span
from hypermon.host.blocks.compact_plain import read
from hypermon.host.blocks.item_modes import ItemModes

from tests.host.blocks.test_compact import made_up, pack, unpack
from tests.host.compact_write import encode, encode_items, explain
from tests.host.items import as_rows, made_up_items, made_up_modes, of_rows

#: Node 1 in word mode, node 2 in event mode, the others single bytes.
MIXED = ItemModes(words=0b010, events=0b100)
HEAD = [2, *[0] * 7, 4, *[0] * 7, *[0] * 16]


def decode(payloads, times, nodes, modes=None):
    """Items of all legal payloads, and faults, by all ways there are, which must agree."""
    items, spans, faults = [], [], []
    for k, (payload, time) in enumerate(zip(payloads, times, strict=True)):
        found = []
        try:
            found = read(payload, time, nodes, modes is not None, 8)
        except compact_plain.IllegalError as fault:
            faults.append(Fault(k, *fault.args))
        items += found
        regular = [item[:2] for item in found if not item.late]
        spans.append(Span(regular[0], regular[-1]) if found else None)
    native = compact.NATIVE
    try:
        for way in (native, None):
            compact.NATIVE = way
            if modes is None:
                decoded = compact.decode(payloads, times, nodes, 8)
                rows = [row for part in decoded.parts for row in zip(
                    part.windows.tolist(), part.node.tolist(), part.nibble.tolist(), strict=True)]
                assert rows == [(item.window, item.node, item.nibbles[0]) for item in items]
            else:
                decoded = compact.decode_items(payloads, times, nodes, modes, 8)
                assert of_rows(decoded.parts) == as_rows(items, modes, 8)
            assert (decoded.spans, decoded.faults) == (spans, faults)
    finally:
        compact.NATIVE = native
    return items, faults


def test_single_bytes():
    """Gap, node, low half, high half; and a window of many."""
    groups = [0, 3, 0xb, 0xa, 9, 1, 2, 0xf, 0x7]            # 0: node 3, 0xab; 9 later: node 2, 0x7f
    groups += [8, 0, 1, 0xb, 0, 0, 0, 1, 2, 3, 4, 5, 6]     # 1 later: nodes 0, 1, 3
    payload = pack(*groups)
    items, faults = decode([payload], [100], 4)
    assert not faults
    assert [(item.window, item.node, item.nibbles[0]) for item in items] == [
        (100, 3, 0xab), (109, 2, 0x7f), (110, 0, 0x21), (110, 1, 0x43), (110, 3, 0x65)]


def test_words_and_events():
    """Four bytes of a word, low one first; the upper half of an event's first byte means nothing."""
    groups = [*HEAD, 0, 1, 4, 3, 2, 1, 8, 7, 6, 5]              # node 1: 0x56781234
    groups += [1, 2, 3, 9, 1, 2, 0, 4, 6, 5]                    # node 2: 0x93: 3 bytes, id 0x21, 0x40 0x56
    groups += [1, 2, 2, 0, 7, 7, 0, 0, 8 | 1, 0, 1, 0]          # 2 bytes, id 0x77, the last one missing
    groups += [8 | 2, 0, 1, 1, 1, 0, 2, 0, 0, 0, 0, 0, 8 | 1, 0, 2, 0]  # one window ago: node 1, two of four missing
    (items, faults) = decode([pack(*groups)], [50], 3, MIXED)
    assert not faults
    assert as_rows(items, MIXED, 8) == [
        (50, 1, 1, 0x56781234, b"", False), (51, 2, 2, 0x21, b"\x40\x56", False), (52, 2, 2, 0x77, b"", True),
        (51, 1, 1, 0x201, b"", True)]


@pytest.mark.parametrize(("groups", "modes"), [
    ([0, 0, 1, 2, 1, 1], None),                                 # nothing written
    ([8, 0, 0, 3, 0, 0, 0, 1, 2, 3], None),                     # a window of two with a byte and a half
    ([*HEAD, 0, 2, 0, 9], MIXED),                               # an event of no bytes
    ([*HEAD, 0, 2, 2, 0, 7, 7, 0, 0, 8 | 1, 0, 3, 0], MIXED),   # three of two are missing
    ([*HEAD, 0, 2, 2, 0, 7, 7, 0, 1, 8 | 1, 0, 1, 0], MIXED),   # what is missing is not zero
    ([*HEAD, 0, 1, 4, 3, 2, 1, 8, 7], MIXED),                   # a word that is cut short
])
def test_what_no_board_writes_is_a_fault(groups, modes):
    items, faults = decode([pack(*groups)], [7], 4 if modes is None else 3, modes)
    assert len(faults) == 1
    assert not items


@pytest.mark.parametrize("nodes", [3, 16, 21, 32])
def test_what_is_written_is_read(nodes):
    rng = random.Random(nodes)
    payloads, times, wanted = [], [], []
    for _ in range(40):
        items = [(w, n, rng.randrange(256)) for w, n, _ in made_up(rng, rng.randrange(1, 300), nodes, full=0.4)]
        payloads.append(encode(items, nodes, 8))
        times.append(items[0][0])
        wanted += items
    found, faults = decode(payloads, times, nodes)
    assert not faults
    assert [(item.window, item.node, item.nibbles[0]) for item in found] == wanted


@pytest.mark.parametrize("nodes", [3, 16, 30])
def test_items_that_are_written_are_read(nodes):
    rng = random.Random(nodes)
    modes = made_up_modes(rng, nodes)
    given = [made_up_items(rng, rng.randrange(1, 60), nodes, modes, bits=8) for _ in range(30)]
    given = [items for items in given if not items[0].late]
    found, faults = decode([encode_items(items, modes, nodes, 8) for items in given],
                           [items[0].window for items in given], nodes, modes)
    assert not faults
    assert found == [item for items in given for item in items]


@pytest.mark.parametrize("long", [False, True])
def test_noise_is_the_same_to_all_readers(long):
    """Payloads that are cut, changed or made up: no reader says anything else than another."""
    rng = random.Random(long)
    nodes, modes = 19, made_up_modes(random.Random(5), 19) if long else None
    payloads, times = [], []
    for _ in range(600):
        if long:
            items = made_up_items(rng, rng.randrange(1, 20), nodes, modes, bits=8)
            payload = bytearray(encode_items([i for i in items if not i.late or i is not items[0]], modes, nodes, 8))
        else:
            single = [(w, n, rng.randrange(256)) for w, n, _ in made_up(rng, rng.randrange(1, 40), nodes, full=0.4)]
            items = [LongItem(w, n, bytes([v])) for w, n, v in single]
            payload = bytearray(encode(single, nodes, 8))
        if rng.random() < 0.7:
            at = rng.randrange(16 if long else 0, len(payload))
            payload[at] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del payload[rng.randrange(16 if long else 0, len(payload)):]
        payloads.append(bytes(payload))
        times.append(items[0].window)
    items, faults = decode(payloads, times, nodes, modes)
    assert items
    assert len(faults) > 100


def test_values_that_a_port_cannot_have():
    with pytest.raises(ValueError, match="256"):
        encode([(0, 0, 256)], 4, 8)
    with pytest.raises(ValueError, match="16"):
        encode([(0, 0, 16)], 4)
    assert explain(pack(0, 0, 5, 0), 4, port_bits=8) is None
    assert unpack(encode([(0, 0, 5)], 4, 8)) == [0, 0, 5, 0]
