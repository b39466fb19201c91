"""Runs on disk, made of a fake board's stream."""

from pathlib import Path

import pytest
from hypermon.hdl.layout import FRAME_WINDOW, LATENCY
from hypermon.host.recording import Run, RunInfo, RunWriter


@pytest.fixture
def make_run(tmp_path):
    """``make_run(board, data=None, name="run")``: a RUN of the board's stream, or of other bytes."""

    def make(board, data=None, name="run", end=True, **info) -> Run:
        path: Path = tmp_path / name
        window = next(k for k, w in FRAME_WINDOW.items() if w is board.window)
        values = RunInfo("fake:", board.nodes, board.clock_hz, window, LATENCY, board.epoch,
                         sink=board.sink.name.lower(), drain="registers" if board.host else "stream")
        for key, value in info.items():
            setattr(values, key, value)
        with RunWriter(path, values) as writer:
            writer.append(board.data if data is None else data)
            if end:
                writer.close(how="test", duration_ps=12345)
        return Run(path)

    return make
