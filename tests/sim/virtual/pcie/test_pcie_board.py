"""The host's PCIe link at the verilated board, by the vfio-user socket that a virtual machine would use."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypermon.hdl.layout import PCIE_MAGIC, PCIE_REGISTERS, REGISTERS, BlockType, CensusFlag, Geometry, Sink
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.cli import cli
from hypermon.host.decode.ledger import Ledger, read_census
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import LinkError
from hypermon.host.link import pcie
from hypermon.host.link.pcie import PcieLink
from hypermon.sim.stimulus.stimulus import Stimulus, load
from hypermon.sim.virtual.pcie.pcie_board import PcieBoard

from tests.patience import in_time

from .vfio_client import CONFIG, VfioClient

GEOMETRY = Geometry(4, sinks=tuple(Sink))
AT = {name: register.offset for name, register in PCIE_REGISTERS.items()}


def nibbles(count: int, every_ns: int) -> Stimulus:
    """So many nibbles, of one node after the other, from 20 us on."""
    at = (20_000 + every_ns * np.arange(count, dtype=np.int64)) * 1000
    value = np.arange(count) % 16
    return Stimulus(
        np.stack([at, at + 100_000], 1).reshape(-1), np.repeat(np.arange(count) % 4, 2).astype(np.int16),
        np.stack([value, value | 16], 1).reshape(-1).astype(np.uint8), [0] * 4)


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


class Recording:
    """A recording of a board in this process.

    Parameters
    ----------
    link : to it.
    meanwhile : is called with every piece of the stream.
    """

    def __init__(self, link: PcieLink, board: PcieBoard, meanwhile: Callable[[bytes], None] = lambda piece: None):
        scanner, items = BlockScanner(), []
        with Device(link) as device:
            device.prepare(Settings())
            device.start()
            stopped, began = False, time.monotonic()
            while not any(isinstance(i, Block) and i.head.type is BlockType.CENSUS
                          and CensusFlag.STOP in read_census(i).flags for i in items[-50:]):
                in_time(began, 60)
                piece = link.stream(1 << 20)
                items += scanner.feed(piece)
                meanwhile(piece)
                if board.played and not stopped:
                    with suppress(LinkError):       # an outage: once more
                        device.stop()
                        stopped = True
            self.ledger = Ledger(4, device.scale, device.epoch)
        self.items = items + scanner.finish()
        for _ in self.ledger.event_rows(self.items):
            pass
        self.ledger.finish()


def sound(board: PcieBoard) -> bool:
    """The board did nothing that it may not do."""
    counts = board.counts
    return counts.malformed == counts.unmapped == counts.timeouts == 0


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


def test_recorded_as_simulated(tmp_path, monkeypatch):
    """The unmodified command records what the virtual board makes of the same stimulus."""
    rows = ["time_ns,node,port"]
    for k in range(3000):
        rows += [f"{50_000 + 900 * k},{k % 4},{k % 16}", f"{50_200 + 900 * k},{k % 4},{k % 16 | 16}"]
    (stimulus := tmp_path / "stimulus.csv").write_text("\n".join(rows) + "\n")
    with served(tmp_path, load([str(stimulus)], nodes=4, clock_hz=GEOMETRY.clock_hz)) as (board, path):
        monkeypatch.setattr(pcie, "open_board", lambda uri, geometry=None: PcieLink(uri, lambda: VfioClient(path)))
        made = []
        for name, *arguments in (("recorded", "record", "-b", "pcie:", "--events", "3000"),
                                 ("simulated", "sim", str(stimulus), "--nodes", "4")):
            run, csv = tmp_path / name, tmp_path / f"{name}.csv"
            cli.main(args=[*arguments, "-o", str(run)], standalone_mode=False)
            cli.main(args=["export", str(run), "--to", "csv", str(csv)], standalone_mode=False)
            made.append(csv.read_bytes())
        assert made[0] == made[1]
        assert made[0].count(b"\n") == 3001
        assert sound(board)
        assert board.counts.interrupts > 0


@pytest.mark.parametrize("msi", [True, False], ids=["msi", "polled"])
def test_wrap(tmp_path, msi):
    """A ring of one page, many times over: all of it arrives, once."""
    with served(tmp_path, nibbles(3000, 2000)) as (board, path):
        made = Recording(PcieLink("pcie:test", lambda: VfioClient(path, msi), pages_log=0), board)
        assert made.ledger.events == 3000
        assert (made.ledger.lost, made.ledger.torn, made.ledger.missing_blocks) == (0, 0, 0)
        assert board.counts.bytes > 5 * 4096
        assert sound(board)


def test_stall(tmp_path):
    """A host that does not read: the board refuses what has no room, and says when."""
    with served(tmp_path, nibbles(6000, 500)) as (board, path):
        stalled = []

        def stall(piece: bytes) -> None:
            if piece and not stalled:
                stalled.append(True)
                while not board.played:
                    time.sleep(0.01)

        made = Recording(PcieLink("pcie:test", lambda: VfioClient(path), pages_log=0), board, stall)
        assert made.ledger.lost > 1000
        assert made.ledger.events + made.ledger.lost == 6000
        assert (sum(made.ledger.link_lost), made.ledger.torn, made.ledger.missing_blocks) == (0, 0, 0)
        assert sound(board)


FAULTS = {
    "hot reset": lambda link: link._function.reset(),
    "cable": lambda link: link._function._peer.close(),
    "ring stopped": lambda link: link._function.write(AT["PCIE_CONTROL"], 0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_outage(tmp_path, fault):
    """The link is away, and comes back; what is missing is known to the last nibble."""
    with served(tmp_path, nibbles(6000, 1500)) as (board, path):
        link, done = PcieLink("pcie:test", lambda: VfioClient(path)), []

        def strike(piece: bytes) -> None:
            if piece and not done:
                done.append(True)
                FAULTS[fault](link)

        made = Recording(link, board, strike)
        assert len(link.outages) == 1
        assert made.ledger.events + made.ledger.lost == 6000
        assert board.counts.malformed == 0


def test_function_level_reset(tmp_path):
    """The next owner finds a board after power-up: its registers, nothing of the stream, and a run of its own."""
    with served(tmp_path, nibbles(6000, 300)) as (board, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path), pages_log=0)
        device = Device(link)
        device.prepare(Settings())
        device.start()
        link.write(REGISTERS["EDGE_RISING"].offset, 5)
        while not board.played:
            time.sleep(0.01)
        link._function.region_write(CONFIG, 0x68, b"\0\x80")
        link._leave()
        link._rest = b""
        link._looked = 0.0
        assert link.read(AT["PCIE_DISCARDED"]) > 0, "the store was full behind a full ring"
        assert link.read(REGISTERS["EDGE_RISING"].offset) == 0xf, "as after power-up"
        assert not device.same_run()
        assert [link.stream(1 << 20) for _ in range(5)] == [b""] * 5
        link.close()
        made = Recording(PcieLink("pcie:test", lambda: VfioClient(path)), board)
        assert made.ledger.events + made.ledger.lost == 6000
        assert board.counts.flrs == 1
        assert sound(board)


def test_what_had_arrived_is_kept(tmp_path):
    """The board disappears while everything waits in the ring."""
    with served(tmp_path, nibbles(3000, 500)) as (board, path):
        link, done = PcieLink("pcie:test", lambda: VfioClient(path)), []

        def strike(piece: bytes) -> None:
            if piece and not done:
                done.append(True)
                while not board.played:
                    time.sleep(0.01)
                flushed = board.counts.clocks + 50_000
                while board.counts.clocks < flushed:
                    time.sleep(0.01)
                link._function._peer.close()

        made = Recording(link, board, strike)
        assert len(link.outages) == 1
        assert made.ledger.events == 3000


def test_a_board_that_answers_late(tmp_path):
    """The board's reset takes longer than the link waits. The host waits for its end: no access is dropped, and no read
    gets a completion without data."""
    with served(tmp_path) as (board, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path))
        for value in (3, 5):
            link.write(REGISTERS["CONTROL"].offset, 1)
            link.write(REGISTERS["EDGE_RISING"].offset, value)
            assert link.read(REGISTERS["EDGE_RISING"].offset) == value
        assert link.read(AT["PCIE_TIMEOUTS"]) == 2, "the two resets"
        assert link.read(AT["PCIE_DROPPED"]) == 0
        assert board.counts.unsupported == 0
        link.close()


def test_a_report_of_another_start(tmp_path):
    with served(tmp_path) as (_, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path))
        link._report[0], link._report[1] = 64, link._number
        assert link._head() == 64
        link._report[1] = link._number - 1
        assert link._head() == 0
        link.close()


def test_gone(tmp_path):
    """The other end disappears: reads of ones are not taken for values."""
    with served(tmp_path) as (_, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path))
        assert link.read(AT["PCIE_ID"]) == PCIE_MAGIC
    with pytest.raises(LinkError, match="gone"):
        link.read(AT["PCIE_ID"])
    assert link.away
    assert link.stream(100) == b""
    with pytest.raises(LinkError, match="gone"):
        link.write(AT["PCIE_FLUSH"], 1)
    link.close()


def test_ones_are_a_value_while_the_function_is_there(tmp_path):
    with served(tmp_path) as (_, path):
        link = PcieLink("pcie:test", lambda: VfioClient(path))
        read = link._function.read
        link._function.read = lambda offset: 0xffffffff if offset == 0x1c else read(offset)
        assert link.read(0x1c) == 0xffffffff
        assert not link.away
        link.close()
