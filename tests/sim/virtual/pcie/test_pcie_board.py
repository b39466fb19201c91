"""The host's PCIe link at the verilated board, by the vfio-user socket that a virtual machine would use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypermon.hdl.layout import PCIE_MAGIC, PCIE_REGISTERS, REGISTERS, Geometry, Sink
from hypermon.host.blocks.blocks import BlockScanner
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link.pcie import PcieLink
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.pcie.pcie_board import PcieBoard

from .vfio_client import CONFIG, VfioClient

GEOMETRY = Geometry(4, sinks=tuple(Sink))
AT = {name: register.offset for name, register in PCIE_REGISTERS.items()}


@contextmanager
def served(tmp_path: Path, stimulus: Stimulus | None = None) -> Iterator[tuple[PcieBoard, Path]]:
    """A board that serves clients."""
    path = tmp_path / "board"
    board, stop = PcieBoard(stimulus, GEOMETRY, path), threading.Event()
    serving = threading.Thread(target=board.serve, args=(stop,))
    serving.start()
    try:
        yield board, path
    finally:
        stop.set()
        serving.join()
        board.close()


def test_bar(tmp_path):
    with served(tmp_path) as (board, path):
        client = VfioClient(path)
        assert client.read(AT["PCIE_ID"]) == 0xffffffff         # memory is off
        client.set_config(4, 6)
        assert client.read(AT["PCIE_ID"]) == PCIE_MAGIC
        assert client.region_read(0, AT["PCIE_ID"] + 1, 2) == b"CI"
        assert client.region_read(0, AT["PCIE_ID"], 8) == b"\xff" * 8
        assert board.counts.unsupported == 1
        client.write(AT["PCIE_FLUSH"], 0x123456)
        client.region_write(0, AT["PCIE_FLUSH"] + 1, b"\xab")
        assert client.read(AT["PCIE_FLUSH"]) == 0x12ab56
        client.close()


def _run(path: Path, count: int) -> list[tuple[int, int]]:
    """Records that many nibbles: blocks' sequence numbers and types."""
    link = PcieLink("pcie:test", lambda: VfioClient(path))
    with Device(link) as device:
        device.prepare(Settings(sink=Sink.EXTENDED))
        device.start()
        scanner, blocks = BlockScanner(), []
        silent = 0
        while silent < 20:
            data = link.stream(1 << 20)
            silent = 0 if data else silent + 1
            blocks += scanner.feed(data)
    return blocks


def test_thin(tmp_path):
    with served(tmp_path) as (board, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path))
        with Device(link) as device:
            assert device.identity.nodes == 4
        c = board.counts
        assert c.malformed == c.unmapped == c.timeouts == 0
