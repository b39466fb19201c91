"""The verilated board at the end of a USB cable: a host controller's view of it."""

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from hypermon.hdl.layout import Geometry
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.build import Shell, library
from hypermon.sim.virtual.verilated import VerilatedBoard, declares

__all__ = ["HARNESS", "HEADERS", "USB_HZ", "Completion", "Counts", "Faults", "Status", "UsbBoard"]

#: Clocks of the bus per second.
USB_HZ = 60_000_000


_HERE = Path(__file__).parent
#: The harness that drives the pins, and its headers.
HARNESS = _HERE / "usb_board.cpp"
HEADERS = tuple(_HERE / "usb" / f"{name}.h" for name in ("usb_host", "ulpi_phy", "pads_phy"))


def _shell(phy: str) -> Shell:
    def verilog(geometry: Geometry) -> str:
        from hypermon.hdl.verilog import usb_verilog

        return usb_verilog(geometry, phy)

    return Shell("usb" if phy == "utmi" else f"usb-{phy}", HARNESS, verilog,
                 () if phy == "utmi" else ((phy.upper(), 1),), HEADERS,
                 (("luna", "luna-usb"),))


class Status(IntEnum):
    """How a transfer ended."""

    DONE = 0
    STALLED = 1
    FAILED = 2
    BABBLE = 3
    CANCELLED = 4


@dataclass(frozen=True)
class Completion:
    """A transfer that has ended; ``data`` is the received data of a transfer that reads."""

    id: int
    status: Status
    data: bytes


class Faults(ctypes.Structure):
    """Probabilities, in millionths, of faults on the bus.

    Members
    -------
    drop_ack : an acknowledgement of the host's does not arrive.
    corrupt_in, corrupt_out : a bit of a packet is wrong.
    foreign : after a dropped acknowledgement, the host addresses another device.
    """

    _fields_ = [(name, ctypes.c_uint32) for name in ("drop_ack", "corrupt_in", "corrupt_out", "foreign")]


class Counts(ctypes.Structure):
    """What has happened on the bus.

    Members
    -------
    clocks : of the bus. ``frames``: SOF packets.
    transfers_in : data packets received. ``naks``, ``stalls``: answers of these kinds.
    timeouts : tokens without an answer. ``bad``: packets with a wrong checksum.
    repeated : packets that arrived again because of a dropped acknowledgement.
    bytes : of received data. ``dropped``: those of them that were lost with a cancelled transfer.
    """

    _fields_ = [(name, ctypes.c_uint64) for name in (
        "clocks", "frames", "transfers_in", "naks", "timeouts", "bad", "repeated", "stalls", "bytes", "dropped")]


_board, _u32, _u64, _integer = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
_load = declares((
    ("usb_new", _board, _u64, _u64, _board, _board, _board, _board),
    ("usb_free", None, _board),
    ("usb_reset", _integer, _board, _integer),
    ("usb_suspend", None, _board),
    ("usb_resume", None, _board),
    ("usb_detach", None, _board),
    ("usb_faults", None, _board, ctypes.POINTER(Faults), _u64),
    ("usb_submit", None, _board, _u64, _integer, ctypes.c_char_p, ctypes.c_char_p, _u32, _u32),
    ("usb_cancel", _integer, _board, _u64),
    ("usb_run", None, _board, _u64),
    ("usb_take", _integer, _board, ctypes.POINTER(_u64), ctypes.POINTER(ctypes.c_int32),
     ctypes.POINTER(_board), ctypes.POINTER(_u64)),
    ("usb_exchange", _u64, _board, ctypes.c_char_p, _u64, ctypes.c_char_p, _u64),
    ("usb_counts", None, _board, ctypes.POINTER(Counts)),
    ("usb_edge", ctypes.c_int64, _board),
    ("usb_played", _integer, _board),
))


class UsbBoard(VerilatedBoard):
    """A board, its cable and a host controller. Time advances only inside the methods.

    Parameters
    ----------
    stimulus : what the nodes write; None: nothing.
    geometry : of the board.
    seed : of the phase between the clocks, and of faults.
    phy : its PHY's bus: ``utmi`` or ``ulpi``; ``pins``: none, D+ and D- at full speed.
    shell : the gateware in another form, with the same ports and harness; see :class:`~.build.Shell`.

    Raises
    ------
    HypermonError
        if the board cannot be built.
    """

    def __init__(self, stimulus: Stimulus | None, geometry: Geometry, seed: int = 0, phy: str = "utmi",
                 shell: Shell | None = None):
        stimulus = Stimulus.idle(geometry.nodes) if stimulus is None else stimulus
        self.seed = seed
        self._begin(_load(str(library(geometry, shell or _shell(phy)))), "usb", geometry, stimulus, seed)
        self._id = 0
        self._ended: list[Completion] = []

    def faults(self, **chances: int) -> None:
        """Sets :class:`Faults` from now on; those that are not named are 0."""
        self._dll.usb_faults(self._board, ctypes.byref(Faults(**chances)), self.seed)

    # The bus

    def reset(self, answer: bool = True) -> bool:
        """Resets the bus; returns whether it is at high speed then. Without ``answer`` the host supports full speed
        only.
        """
        return bool(self._dll.usb_reset(self._board, answer))

    def suspend(self) -> None:
        """The bus falls silent, for seven milliseconds and until :meth:`resume`."""
        self._dll.usb_suspend(self._board)

    def resume(self) -> None:
        """Wakes the device; needs a millisecond."""
        self._dll.usb_resume(self._board)

    def detach(self) -> None:
        """Unplugs the cable and plugs it in again; a reset must follow."""
        self._dll.usb_detach(self._board)

    def exchange(self, packet: bytes) -> bytes:
        """Sends one packet of the host unchanged; returns the device's answer, if any."""
        answer = ctypes.create_string_buffer(2048)
        size = self._dll.usb_exchange(self._board, packet, len(packet), answer, len(answer))
        return answer.raw[:size]

    # Transfers

    def submit(self, endpoint: int, length: int, *, setup: bytes = b"", data: bytes = b"",
               id: int | None = None) -> int:
        """Queues a transfer; returns its number. A control transfer has ``endpoint`` 0 and its ``setup``."""
        if id is None:
            id = self._id = self._id + 1
        self._dll.usb_submit(self._board, id, endpoint, setup or None, data or None, len(data), length)
        return id

    def cancel(self, id: int) -> bool:
        """Ends a transfer that has not ended; returns whether there was one."""
        return bool(self._dll.usb_cancel(self._board, id))

    def run(self, clocks: int) -> None:
        """Runs the bus for the given number of clocks, or until a transfer has ended that has not been collected."""
        self._dll.usb_run(self._board, clocks)

    def completions(self) -> list[Completion]:
        """The transfers that have ended since the last call."""
        id, status = ctypes.c_uint64(), ctypes.c_int32()
        data, size = ctypes.c_void_p(), ctypes.c_uint64()
        while self._dll.usb_take(self._board, ctypes.byref(id), ctypes.byref(status), ctypes.byref(data),
                                 ctypes.byref(size)):
            came = ctypes.string_at(data.value, size.value) if data.value else b""
            self._ended.append(Completion(id.value, Status(status.value), came))
        ended, self._ended = self._ended, []
        return ended

    def control(self, kind: int, request: int, value: int = 0, index: int = 0, length: int = 0, data: bytes = b"",
                clocks: int = USB_HZ // 20) -> Completion:
        """A control transfer; waits for its end, and cancels it after the given number of clocks.

        ``kind`` is bmRequestType. For a transfer that writes, ``length`` is that of its ``data``.
        """
        length = len(data) or length
        setup = bytes((kind, request)) + b"".join(v.to_bytes(2, "little") for v in (value, index, length))
        number = self.submit(0, length, setup=setup, data=data)
        stop = self.counts.clocks + clocks
        others = []
        while True:
            self.run(max(stop - self.counts.clocks, 0))
            for completion in self.completions():
                if completion.id == number:
                    self._ended = others
                    return completion
                others.append(completion)
            if self.counts.clocks >= stop:
                self.cancel(number)

    @property
    def counts(self) -> Counts:
        """What has happened so far."""
        counts = Counts()
        self._dll.usb_counts(self._board, ctypes.byref(counts))
        return counts

    @property
    def edge(self) -> int:
        """Clock edges of the board since time 0; 0 before."""
        return int(self._dll.usb_edge(self._board))

    @property
    def played(self) -> bool:
        """The stimulus is over."""
        return bool(self._dll.usb_played(self._board))
