"""Frame port: every frame leaves whole, once, by the stream or by the bus."""

import functools
from collections import deque

import cocotb
import pytest
from hypermon.hdl.layout import Geometry, frame_words
from hypermon.hdl.sinks.classic.frame_builder import frame_layout
from hypermon.hdl.sinks.classic.frame_port import FramePort

from ...benches.case import CASE, rng
from ...benches.cocotb_stage import Stage, fields, pack
from ...harness.runner import component, run, seeds


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def gives(dut):
    stage, choose = Stage(dut), rng()
    geometry = Geometry(nodes=CASE["nodes"])
    layout, words, nodes = frame_layout(geometry), frame_words(geometry.nodes), geometry.nodes

    def frame(number):
        # No word is zero, so that an empty read can be told from a word.
        rows = [number << 8 | 0x80 | k for k in range(words)]
        rows[-2] = choose.getrandbits(nodes) | 1
        return rows

    def packed(rows):
        return pack(layout, frame=sum(w << 32 * k for k, w in enumerate(rows)), high=0, wrap=0)

    await stage.start(i_valid=0, i_payload=0, stream_enable=0, hold=0, o_ready=0, read=0)
    queue, number = deque(), 1
    went, begun = [], []        # frames that have left; words of the one that the bus has begun
    shown, since_read, empty, streaming_for = 0, 99, 0, 0
    by = {"stream": 0, "bus": 0}
    streaming, held, enabled = 0, None, 0
    left = 0                    # vector of the frame that left a clock ago
    for _ in range(8000):
        if len(queue) < 3 and choose.random() < 0.05:
            queue.append(frame(number))
            number += 1
        # The bus reads what the last clock showed.
        read = since_read >= 4 and choose.random() < 0.2
        since_read = 0 if read else since_read + 1
        inputs = {"i_valid": int(bool(queue)), "i_payload": packed(queue[0]) if queue else 0,
                  "o_ready": int(streaming_for > 4 and choose.random() < 0.5), "read": int(read)}
        if choose.random() < 0.01:
            inputs["stream_enable"] = choose.getrandbits(1)
        inputs["hold"] = int(streaming and choose.random() < 0.5)
        position = stage.get("position")
        await stage.step(**inputs)
        before = streaming
        streaming = stage.get("streaming")
        if held is not None:
            assert streaming == (before if held else enabled), "the choice changes between blocks, and only there"
        held, enabled = inputs["hold"], stage.get("stream_enable")
        streaming_for = streaming_for + 1 if streaming else 0
        if streaming:
            begun.clear()
        assert stage.get("begun") == (stage.get("position") != 0)
        leaves = queue and stage.get("i_ready")
        if stage.get("o_valid"):
            assert streaming
            assert fields(layout, stage.get("o_payload"))["frame"] == fields(layout, packed(queue[0]))["frame"]
        gave = stage.get("o_valid") and inputs["o_ready"]
        if gave:
            assert leaves
            went.append(queue[0])
            by["stream"] += 1
        before = stage.get("word")
        await stage.clock()
        assert stage.get("delivered") == left
        left = queue[0][-2] if leaves else 0
        assert stage.get("freed") == bool(leaves)
        if read and not streaming:
            after = stage.get("position")
            if after != position:
                # Something was taken: it must be what was shown.
                begun.append(shown)
                if after == 0:
                    went.append(list(begun))
                    begun.clear()
                    by["bus"] += 1
            else:
                assert shown == 0, "a word was given, and stays"
                empty += 1
        shown = before
        if leaves:
            queue.popleft()
    assert [rows[0] >> 8 for rows in went] == list(range(1, len(went) + 1))
    assert all(rows == [rows[0] + k if k != words - 2 else rows[k] for k in range(words)] for rows in went)
    assert min(by.values()) > 20, by
    assert empty > 20


@functools.cache
def simulator(nodes):
    return component(FramePort(Geometry(nodes=nodes)))


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("nodes", [16, 17])
def test_gives(nodes, seed):
    run(simulator(nodes), __name__, "gives", seed, nodes=nodes)
