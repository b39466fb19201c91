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


def nibbles(count: int, every_ns: int) -> Stimulus:
    """So many nibbles, of one node after the other, from 20 us on."""
    at = (20_000 + every_ns * np.arange(count, dtype=np.int64)) * 1000
    value = np.arange(count) % 16
    return Stimulus(
        np.stack([at, at + 100_000], 1).reshape(-1), np.repeat(np.arange(count) % 4, 2).astype(np.int16),
        np.stack([value, value | 16], 1).reshape(-1).astype(np.uint8), [0] * 4)


def test_stream(tmp_path):
    """All of it arrives, once, in whole blocks."""
    with served(tmp_path, nibbles(20_000, 500)) as (board, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path))
        with Device(link) as device:
            device.prepare(Settings(sink=Sink.EXTENDED))
            device.start()
            scanner, blocks, silent = BlockScanner(), [], 0
            import time
            t = time.time()
            while time.time() - t < 10:
                data = link.stream(1 << 20)
                blocks += list(scanner.feed(data) or [])
            print(blocks[:5], len(blocks), link._tail, [(n, hex(link.read(a))) for n, a in AT.items()], {n: getattr(board.counts, n) for n, _ in board.counts._fields_}, board.edge, board.played)
            print(list(link._report), link._number)
            print(device.read("STATUS"), device.read("FRAME_COUNT"))
            assert 0
