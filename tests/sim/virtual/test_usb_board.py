"""The verilated board at a USB host: enumeration, registers, the stream, and everything that goes wrong on a bus."""

import random
import struct

import numpy as np
import pytest
from hypermon.hdl.layout import (
    LATENCY,
    REGISTERS,
    USB_STREAM,
    BlockType,
    CensusFlag,
    Control,
    Geometry,
    Sink,
    UsbRequest,
    Window,
)
from hypermon.hdl.transport.usb.descriptors import Type, descriptors, microsoft_set
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block, Torn
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger, read_census
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.usb_board import USB_HZ, Status, UsbBoard

NODES = 4
#: Both sinks.
GEOMETRY = Geometry(NODES, sinks=tuple(Sink))
_US, _MS = USB_HZ // 10**6, USB_HZ // 10**3
_SET_ADDRESS, _GET_DESCRIPTOR, _SET_CONFIGURATION, _SET_FEATURE, _CLEAR_FEATURE = 5, 6, 9, 3, 1
_FAULTS = {"drop_ack": 100_000, "corrupt_in": 20_000, "corrupt_out": 5_000, "foreign": 500_000}


def frames(count: int, every_ns: int) -> Stimulus:
    """So many frames, with one node each, from 20 us on."""
    at = (20_000 + every_ns * np.arange(count, dtype=np.int64)) * 1000
    nibble = np.arange(count) % 16
    return Stimulus(
        np.stack([at, at + 100_000], 1).reshape(-1), np.repeat(np.arange(count) % NODES, 2).astype(np.int16),
        np.stack([nibble, nibble | 16], 1).reshape(-1).astype(np.uint8), [0] * NODES)


class Host:
    """What a driver does, on the bare bus."""

    def __init__(self, stimulus: Stimulus | None = None, seed: int = 0, high: bool = True, phy: str = "utmi"):
        self.board = UsbBoard(stimulus, GEOMETRY, seed, phy)
        self.scanner, self.items = BlockScanner(), []
        self.pending: set[int] = set()
        self.plug(high)

    def plug(self, high: bool = True) -> None:
        assert self.board.reset(high) == high
        self.enumerate()

    def enumerate(self) -> None:
        self.pending.clear()
        self.done(0x00, _SET_ADDRESS, 5)
        self.done(0x00, _SET_CONFIGURATION, 1)

    def done(self, *request) -> bytes:
        completion = self.board.control(*request)
        assert completion.status is Status.DONE, request
        return completion.data

    def read(self, name: str, words: int = 1) -> int:
        return int.from_bytes(self.done(0xc0, UsbRequest.READ, 0, REGISTERS[name].offset, 4 * words), "little")

    def write(self, name: str, value: int) -> None:
        self.done(0x40, UsbRequest.WRITE, 0, REGISTERS[name].offset, 4, struct.pack("<I", value))

    def start(self) -> None:
        control = Control.WINDOW_0 * Window.CLOCK | Control.STREAM
        self.write("CONTROL", control | Control.RESET)
        self.epoch = self.read("FRAME_POS") >> 16
        self.write("CONTROL", control | Control.ENABLE)

    def stop(self) -> None:
        self.write("CONTROL", Control.WINDOW_0 * Window.CLOCK | Control.STREAM)

    def stream(self, clocks: int) -> None:
        """Takes what comes in so many clocks."""
        stop = self.board.counts.clocks + clocks
        while (left := stop - self.board.counts.clocks) > 0:
            while len(self.pending) < 4:
                self.pending.add(self.board.submit(USB_STREAM, 1 << 16))
            self.board.run(left)
            for completion in self.board.completions():
                self.pending.discard(completion.id)
                self.items += self.scanner.feed(completion.data)

    def settle(self) -> None:
        """Stops, and takes all until the board has said that this was all."""
        while not self.board.played:
            self.stream(_MS)
        self.stop()
        for _ in range(100):
            if any(CensusFlag.STOP in read_census(b).flags for b in self.blocks if b.head.type is BlockType.CENSUS):
                return
            self.stream(_MS // 2)
        raise AssertionError("the board does not say that it has stopped")

    @property
    def blocks(self) -> list[Block]:
        return [item for item in self.items if isinstance(item, Block)]

    @property
    def frames(self) -> bytes:
        return b"".join(b.payload for b in self.blocks if b.head.type is BlockType.FRAMES)

    def cancel(self) -> None:
        """Ends all transfers; what they hold has come."""
        for number in self.pending:
            self.board.cancel(number)
        for completion in self.board.completions():
            self.items += self.scanner.feed(completion.data)
        self.pending.clear()


def stamps(payload: bytes) -> list[int]:
    return np.frombuffer(payload, "<u4").reshape(-1, 4)[:, 3].tolist()


@pytest.mark.parametrize("high", [True, False], ids=["high", "full"])
def test_enumeration(high):
    host = Host(high=high)
    for (kind, index), data in descriptors("0", high).items():
        for length in (8, 255):
            assert host.done(0x80, _GET_DESCRIPTOR, kind << 8 | index, 0, length) == data[:length]
    assert host.done(0xc0, UsbRequest.MICROSOFT, 0, 7, 1000) == microsoft_set()
    assert host.done(0x80, 8, 0, 0, 1) == b"\x01"
    assert host.board.control(0x80, _GET_DESCRIPTOR, Type.STRING << 8 | 9, 0, 255).status is Status.STALLED


def test_registers_once():
    """Under errors on the bus, a reset happens once, and a frame's word is read once."""
    host = Host(frames(200, 400), seed=3)
    assert host.read("MAGIC") == int.from_bytes(b"HMON", "little")
    epoch = host.read("FRAME_POS") >> 16
    host.board.faults(**_FAULTS)
    for k in range(1, 101):
        host.write("CONTROL", Control.RESET)
        assert host.read("FRAME_POS") >> 16 == epoch + k
    host.write("CONTROL", Control.WINDOW_0 * Window.CLOCK | Control.RESET)
    host.write("CONTROL", Control.WINDOW_0 * Window.CLOCK | Control.ENABLE)
    while not host.board.played:
        host.board.run(_US)
    words = [host.read("FRAME_FIFO") for _ in range(400)]
    words += np.frombuffer(host.done(0xc0, UsbRequest.READ, 0, 0x1000, 1600), "<u4").tolist()
    counts = host.board.counts
    assert counts.repeated
    assert counts.bad
    assert counts.timeouts
    host.board.faults()
    times = np.array(words).reshape(-1, 4)[:, 3]
    assert (np.diff(times) == 40).all()
    assert host.read("RUN") == 0


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow if k else ()) for k in range(20)])
def test_malformed_requests(seed):
    """Whatever is asked, also if the host loses interest: an answer or a stall, and the next request is answered."""
    rng = random.Random(seed)
    host = Host(seed=seed)
    device = descriptors("0", True)[Type.DEVICE, 0]
    for _ in range(250):
        kind = rng.choice([0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x40, 0xc0, rng.randrange(256)])
        request = rng.choice([*range(13), rng.randrange(256)])
        value, index = (rng.choice([0, 1, 2, 0x81, 0x100, 0x200, 0x302, 0x600, rng.randrange(1 << 16)]) for _ in "vi")
        length = rng.choice([0, 1, 2, 4, 8, 18, 64, 100, 4096, rng.randrange(1 << 16)])
        if (kind, request) == (0x00, _SET_ADDRESS):
            continue
        data = b"" if kind & 0x80 else rng.randbytes(min(length, 200))
        # One that is given up in the middle, half of the time.
        clocks = rng.randrange(1, 3000) if rng.random() < 0.5 else USB_HZ // 20
        completion = host.board.control(kind, request, value, index, length, data, clocks)
        assert completion.status in (Status.DONE, Status.STALLED, Status.CANCELLED), (kind, request, value, index)
        assert len(completion.data) <= max(length, len(data))
        assert host.done(0x80, _GET_DESCRIPTOR, Type.DEVICE << 8, 0, 64) == device


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow if k else ()) for k in range(20)])
def test_malformed_packets(seed):
    """Noise between transfers: broken tokens, data that nobody announced, handshakes for nobody. The stream goes on."""
    rng = random.Random(seed)
    host = Host(frames(3000, 1000), seed=seed)
    device = descriptors("0", True)[Type.DEVICE, 0]
    host.start()
    for _ in range(150):
        kind = rng.choice([0x2d, 0xe1, 0x69, 0xc3, 0x4b, 0xd2, 0x5a, 0x1e, 0xb4, rng.randrange(256)])
        if kind != 0xa5:    # the host counts its SOF packets
            # No acknowledgement and no whole token, which would be for it: all others must not matter.
            size = rng.choice([0, 1, 3, 8, 10, 11, 64, 515, rng.randrange(1024)])
            host.board.exchange(bytes([kind]) + rng.randbytes(size) if size or kind != 0xd2 else b"\x00")
        if rng.random() < 0.3:
            host.stream(rng.randrange(20 * _US))
        if rng.random() < 0.2:
            assert host.done(0x80, _GET_DESCRIPTOR, Type.DEVICE << 8, 0, 18) == device
    host.settle()
    assert len(host.blocks) == len(host.items)
    assert len(host.frames) == 3000 * 16


def test_naks():
    """A host that asks a thousand times for nothing gets a NAK each time, and the next byte when there is one."""
    host = Host()
    host.stream(2 * _MS)
    assert host.board.counts.naks > 1000
    assert not host.items
    host.start()
    host.stream(_MS)
    assert [block.head.type for block in host.blocks] == [BlockType.CENSUS]


def test_flush():
    """A census comes at once, though no packet is full; so does what ends with a full packet, by an empty one."""
    host = Host()
    host.start()
    host.stream(_MS)
    assert [block.head.type for block in host.blocks] == [BlockType.CENSUS]
    host.stop()
    host.stream(_MS)
    assert [block.head.type for block in host.blocks] == [BlockType.CENSUS] * 2
    # 31 frames in a block of 544 bytes: 17 of them are 18 full packets and nothing behind.
    host = Host(frames(17 * 31, 500))
    host.write("FLUSH", 31 * 50)
    host.start()
    host.stream(2 * _MS)
    assert len(host.frames) == 17 * 31 * 16
    assert not host.items[0].size % 16


def test_high_speed_limit():
    """Thirteen packets in every microframe: what the protocol allows (USB 2.0, table 5-10)."""
    host = Host(frames(8000, 250))
    host.start()
    host.stream(300 * _US)
    before = host.board.counts
    host.stream(1000 * _US)
    after = host.board.counts
    assert after.transfers_in - before.transfers_in == 13 * (after.frames - before.frames)
    megabytes = (after.bytes - before.bytes) / (after.clocks - before.clocks) * USB_HZ / 1e6
    assert 53 < megabytes < 53.3
    assert len(host.blocks) == len(host.items)


def rate(host: Host, clocks: int) -> float:
    """Megabytes a second of bus time that come in so many clocks."""
    before = host.board.counts
    host.stream(clocks)
    after = host.board.counts
    return (after.bytes - before.bytes) / (after.clocks - before.clocks) * USB_HZ / 1e6


def test_extended_at_the_limit():
    """More events than the link takes: it is full of COMPACT blocks, and what the board refuses is in LOSS records."""
    count = 80_000
    at = 20_000_000 + 20_000 * np.arange(count, dtype=np.int64)
    nibble = np.random.default_rng(0).integers(0, 16, count)
    times = np.stack([at, at + 40_000], 1).reshape(-1)
    order = np.argsort(times, kind="stable")
    host = Host(Stimulus(
        times[order], np.repeat(np.arange(count) % NODES, 2).astype(np.int16)[order],
        np.stack([nibble, nibble | 16], 1).reshape(-1).astype(np.uint8)[order], [0] * NODES))
    host.write("MODE", Sink.EXTENDED)
    host.start()
    host.stream(200 * _US)
    assert 50 < rate(host, 1000 * _US) < 53.3
    host.settle()
    assert len(host.blocks) == len(host.items)
    kinds = [block.head.type for block in host.blocks]
    assert kinds.count(BlockType.COMPACT) > 10
    assert BlockType.LOSS in kinds


def test_full_speed():
    """A host that does not answer the chirp gets full speed, and its packets of 64 bytes."""
    host = Host(frames(600, 14_000), high=False)
    host.start()
    host.stream(2 * _MS)
    assert 1.0 < rate(host, 5 * _MS) < 1.22
    host.settle()
    assert len(host.frames) == 600 * 16
    assert len(host.blocks) == len(host.items)


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow if k else ()) for k in range(20)])
def test_errors_on_the_bus(seed):
    """Dropped acknowledgements, wrong sums, handshakes with other devices: not a byte is lost or repeated."""
    host = Host(frames(8000, 400), seed=seed)
    host.start()
    host.board.faults(**_FAULTS)
    host.settle()
    counts = host.board.counts
    assert counts.repeated > 10
    assert counts.bad > 1
    assert len(host.blocks) == len(host.items)
    assert (np.diff(stamps(host.frames)) == 40).all()
    assert len(host.frames) == 8000 * 16


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow if k else ()) for k in range(20)])
def test_begun_anew(seed):
    """Resets, halts and new configurations in mid-stream: blocks are missing by their numbers, and none comes twice."""
    rng = random.Random(seed)
    host = Host(frames(6000, 3000), seed=seed)
    host.start()
    host.board.faults(drop_ack=100_000)
    kinds = ["reset", "unplug", "halt", "configure", "clear"]
    rng.shuffle(kinds)
    for kind in kinds:
        host.stream(rng.randrange(200, 400) * _US)
        host.cancel()
        host.board.faults()
        if kind == "reset":
            host.plug()
        elif kind == "unplug":
            host.board.detach()
            host.plug()
        elif kind == "halt":
            host.done(0x02, _SET_FEATURE, 0, USB_STREAM)
            assert host.done(0x82, 0, 0, USB_STREAM, 2) == b"\x01\x00"
            number = host.board.submit(USB_STREAM, 1 << 16)
            host.board.run(_MS)
            assert [(c.id, c.status) for c in host.board.completions()] == [(number, Status.STALLED)]
            host.done(0x02, _CLEAR_FEATURE, 0, USB_STREAM)
            assert host.done(0x82, 0, 0, USB_STREAM, 2) == b"\x00\x00"
        elif kind == "configure":
            host.done(0x00, _SET_CONFIGURATION, 0)
            host.done(0x00, _SET_CONFIGURATION, 1)
        else:
            host.done(0x02, _CLEAR_FEATURE, 0, USB_STREAM)
        host.board.faults(drop_ack=100_000)
    host.settle()
    sequence = [block.sequence for block in host.blocks]
    missing = set(range(sequence[0], sequence[-1])) - set(sequence)
    assert sequence == sorted(set(sequence))
    assert sum(isinstance(item, Torn) for item in host.items) <= len(kinds)
    # What has not come is accounted for, to the last frame.
    ledger = Ledger(NODES, TimeScale(GEOMETRY.clock_hz, Window.CLOCK, LATENCY), host.epoch)
    for _ in ledger.event_rows(host.items):
        pass
    ledger.finish()
    assert (ledger.missing_blocks, ledger.repeated_blocks) == (len(missing), 0)
    assert ledger.events == len(host.frames) // 16
    assert ledger.events + ledger.lost == 6000


@pytest.mark.slow
@pytest.mark.parametrize("high", [True, False], ids=["high", "full"])
def test_ulpi(high):
    """The same behind a PHY on a ULPI bus."""
    host = Host(frames(2000, 1000 if high else 16_000), high=high, phy="ulpi")
    for (kind, index), data in descriptors("0", high).items():
        assert host.done(0x80, _GET_DESCRIPTOR, kind << 8 | index, 0, 255) == data
    host.start()
    host.board.faults(drop_ack=100_000, corrupt_in=20_000)
    host.settle()
    assert host.board.counts.repeated
    assert len(host.frames) == 2000 * 16
    assert len(host.blocks) == len(host.items)


def test_suspend():
    host = Host(frames(400, 30_000))
    host.start()
    host.stream(_MS)
    host.board.suspend()
    host.board.resume()
    host.settle()
    assert len(host.blocks) == len(host.items)
    assert len(host.frames) == 400 * 16
