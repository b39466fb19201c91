"""Items that arrive late, put in order: in C and with NumPy as by plain sorting."""

import random

import numpy as np
import pytest
from hypermon.host.blocks import counts, item_merge
from hypermon.host.blocks.compact_rows import ItemRows
from hypermon.host.blocks.counts import WindowCount, per_node
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.tables import item_order
from hypermon.host.tables.item_order import ItemOrder

NODES = 5
C = ["C", "NumPy"]


@pytest.fixture(params=C)
def way(request, monkeypatch):
    if request.param == "NumPy":
        for module, name in ((item_merge, "_BEHIND"), (item_merge, "_MERGE"), (counts, "_PER_NODE"),
                             (counts, "_WINDOWS")):
            monkeypatch.setattr(module, name, None)
    elif item_merge._MERGE is None:
        pytest.skip("installed without a C compiler")


def rows_of(items):
    """Of (window, node, value, state, payload)."""
    data = b"".join(item[4] for item in items)
    return ItemRows(np.array([item[0] for item in items], np.int64), np.array([item[1] for item in items], np.uint8),
                    np.array([item[2] for item in items], np.uint32), np.array([item[3] for item in items], np.uint8),
                    np.cumsum([len(item[4]) for item in items]).astype(np.int32), np.frombuffer(data, np.uint8),
                    ItemModes(events=(1 << NODES) - 1))


def items_of(rows):
    data, ends = rows.data.tobytes(), [0, *rows.ends.tolist()]
    return [(*row, data[ends[k]:ends[k + 1]]) for k, row in enumerate(zip(
        rows.windows.tolist(), rows.node.tolist(), rows.value.tolist(), rows.state.tolist(), strict=True))]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(30))
def test_as_by_sorting(monkeypatch, seed):
    rng = random.Random(seed)
    hold, late = rng.choice((0, 5, 40, 10_000)), rng.choice((0, 0.02, 0.5, 1))
    monkeypatch.setattr(item_order, "_BATCH", rng.choice((1, 20, 500)))
    order, arrived, found, window, newest = ItemOrder(NODES, hold), [], [], 0, 0
    for _ in range(40):
        batch = []
        for _ in range(rng.choice((0, 1, 7, 60))):
            window += rng.choice((0, 0, 1, 3))
            age = rng.randint(0, min(window, hold)) if rng.random() < late else 0
            batch.append((window - age, rng.randrange(NODES), len(arrived) + len(batch), rng.randrange(3),
                          rng.randbytes(rng.randint(0, 14))))
        newest = max([newest, *(item[0] for item in batch)])
        arrived += batch
        assert order.add(rows_of(batch)) == 0
        for table in order.take(newest):
            assert len(table)
            found += items_of(table.items)
    for table in order.finish():
        found += items_of(table.items)
    assert found == sorted(arrived, key=lambda item: item[:2])
    assert order.late_rows() is None


@pytest.mark.usefixtures("way")
def test_items_that_come_too_late_are_set_aside(monkeypatch):
    monkeypatch.setattr(item_order, "_BATCH", 1)
    order = ItemOrder(NODES, 2)
    assert order.add(rows_of([(10, 1, 0, 0, b"a"), (20, 0, 1, 0, b"b")])) == 0
    assert [items_of(table.items) for table in order.take(20)] == [[(10, 1, 0, 0, b"a")]]
    assert order.add(rows_of([(17, 3, 2, 0, b"cc"), (18, 0, 3, 0, b""), (17, 2, 4, 1, b"d")])) == 2
    assert [item for table in order.finish() for item in items_of(table.items)] == [(18, 0, 3, 0, b""),
                                                                                    (20, 0, 1, 0, b"b")]
    assert items_of(order.late_rows().items) == [(17, 2, 4, 1, b"d"), (17, 3, 2, 0, b"cc")]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(5))
def test_counts(seed):
    rng = random.Random(seed)
    windows = sorted(rng.choices(range(60), k=80))
    states = [rng.choice((0, 0, 0, 1, 2)) for _ in windows]
    nodes = [rng.randrange(NODES) for _ in windows]
    count = WindowCount()
    at = 0
    while at < len(windows):
        size = rng.choice((0, 1, 2, 30))
        count.add(np.array(windows[at:at + size], np.int64), np.array(states[at:at + size], np.uint8))
        at += size
    assert count.windows == len(set(windows))
    assert count.shared == sum(state == 0 and windows.count(window) > 1
                               for window, state in zip(windows, states, strict=True))
    whole, cut = per_node(np.array(nodes, np.uint8), np.array(states, np.uint8), NODES)
    assert whole.tolist() == [sum(n == node and not s for n, s in zip(nodes, states, strict=True))
                              for node in range(NODES)]
    assert (whole + cut).tolist() == [nodes.count(node) for node in range(NODES)]
    assert per_node(np.array(nodes, np.uint8), None, NODES)[0].tolist() == (whole + cut).tolist()
