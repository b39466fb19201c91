"""Models for cocotb benches: nodes, host bus, stream, and a board that the host's own recorder reads.

A bench imports :class:`BenchBoard` and :func:`check`, and :func:`~.runner.simulate` runs it: see `docs/cocotb.md`.

Flow: stalls, port_models, cocotb_models, node, bench_link, board, scoreboard, waves, runner
"""

from .board import BenchBoard
from .cocotb_models import Pads, PbxMaster, StreamSink
from .node import Node, PortPins, Sent
from .scoreboard import check

__all__ = ["BenchBoard", "Node", "Pads", "PbxMaster", "PortPins", "Sent", "StreamSink", "check"]
