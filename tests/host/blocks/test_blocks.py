"""Blocks that are built are read as what they were built from."""

import random

import pytest
from hypermon.hdl.layout import BlockFlag, BlockType, Geometry, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import PAYLOAD_MAX, build_block
from hypothesis import given
from hypothesis import strategies as st

from tests.host.fake_board import block


@given(st.sampled_from(BlockType), st.data())
def test_round_trip(kind, data):
    nodes = data.draw(st.integers(1, 32))
    unit = {BlockType.FRAMES: 16 if nodes <= 16 else 24, BlockType.LOSS: 32, BlockType.COMPACT: 1}.get(kind)
    count = data.draw(st.integers(0, PAYLOAD_MAX // unit)) if unit else 0
    size = count * unit if unit else 32 + 64 * nodes
    payload = random.Random(size).randbytes(size)
    fields = {"sequence": st.integers(0, 2**32 - 1), "time": st.integers(0, 2**64 - 1), "epoch": st.integers(0, 65535),
              "window": st.sampled_from(Window), "cut": st.booleans(), "flags": st.sampled_from(list(BlockFlag)),
              "latency": st.integers(0, 255)}
    values = data.draw(st.fixed_dictionaries(fields))
    geometry = Geometry(nodes=nodes, clock_hz=5_000_000 * data.draw(st.integers(1, 200)))
    made = build_block(kind, payload, geometry=geometry, **values)
    assert made == block(kind, payload, nodes=nodes, clock_hz=geometry.clock_hz, **values)
    scanner = BlockScanner()
    [item] = scanner.feed(made) + scanner.finish()
    head = item.head
    assert (bytes(item.payload), item.sequence, item.time, item.cut, item.offset, item.size) == \
        (payload, values["sequence"], values["time"], values["cut"], 0, len(made))
    assert (head.type, head.epoch, head.nodes, head.window, head.latency, head.clock_hz) == \
        (kind, values["epoch"], nodes, values["window"], values["latency"], geometry.clock_hz)
    assert (head.by_host, head.extended) == (values["flags"] is BlockFlag.HOST, values["flags"] is BlockFlag.EXTENDED)


def test_too_much_payload_is_refused():
    with pytest.raises(ValueError, match=f"{PAYLOAD_MAX + 1} bytes do not fit"):
        build_block(BlockType.FRAMES, bytes(PAYLOAD_MAX + 1), geometry=Geometry(), window=Window.NS800, epoch=0,
                    sequence=0, time=0)
