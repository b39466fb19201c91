"""The whole board on Verilator, see ``benches/board.py``."""

import dataclasses

import pytest
from hypermon.hdl.layout import Geometry, Window

from ..harness.runner import board, run, seeds

#: Boards of every size that matters: one node, a few, a full row, one more, two full rows; with
#: depths that are soon full, and with those of the paper.
SMALL = {"node_depth": 8, "vector_depth": 32, "frame_depth": 16}
BOARDS = {
    "1": Geometry(nodes=1, node_depth=4, vector_depth=16, frame_depth=4),
    "5": Geometry(nodes=5, **SMALL),
    "16": Geometry(nodes=16),
    "17": Geometry(nodes=17, **SMALL),
    "32": Geometry(nodes=32, node_depth=16, vector_depth=64, frame_depth=64),
}


def play(name: str, case: str, seed: int, **parameters: object) -> None:
    geometry = BOARDS[name]
    run(board(geometry), "board", case, seed, geometry=dataclasses.asdict(geometry), **parameters)


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("window", list(Window), ids=lambda w: w.name)
# One node, and more than a row of 16; the others take long to compile.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in ("1", "17") else pytest.mark.slow)
                                  for name in BOARDS])
def test_traffic(name, window, seed):
    play(name, "traffic", seed, window=window, count=700)
