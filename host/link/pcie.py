"""A board in a PCIe slot: ``pcie:0000:01:00.0``, through the kernel's VFIO.

Registers are dwords of BAR0. The stream arrives in a ring in this process's memory, see docs/pcie.md.
"""

import ctypes
import datetime
import errno
import mmap
import os
import select
import sys
import time
from collections.abc import Callable
from typing import Protocol

from hypermon.hdl.layout import PCIE_MAGIC, PCIE_PAGE_BYTES, PCIE_REGISTERS, PCIE_VENDOR, Geometry
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import Found, Link, Outage
from hypermon.host.link.pcie_functions import forbidden, functions, hindrance, one_function

__all__ = ["Function", "PcieLink", "find_boards", "open_board"]

#: Pages of the ring, log2: 4 MiB.
_PAGES_LOG = 10
#: Seconds that :meth:`PcieLink.stream` waits for data, and between two checks for a board that is gone.
_PATIENCE_S, _LOOK_S = 0.02, 0.25
#: Seconds until a ring has stopped, and for which data that an earlier run may have left is discarded.
_STOP_S, _DISCARD_S = 2.0, 5.0
#: Seconds within which a board answers.
_LATE_S = 1.0
#: Configuration space: register COMMAND, and its bits.
_COMMAND, _MEMORY, _MASTER = 0x04, 1 << 1, 1 << 2
#: What a read returns that nothing answers.
_ONES = 0xffffffff
_RUNNING, _RING_REFUSED, _BUSY = 1 << 0, 1 << 4, 1 << 5
_POSITION = (1 << 32) - 1
_AT = {name: register.offset for name, register in PCIE_REGISTERS.items()}


class Function(Protocol):
    """A function of a PCIe device, as the link uses it. All methods raise OSError if it cannot be reached.

    Members
    -------
    interrupt : a file descriptor that becomes readable with each interrupt; None: the device has none.
    """

    interrupt: int | None

    def read(self, offset: int) -> int:
        """The dword at a byte offset in BAR0."""

    def write(self, offset: int, value: int) -> None:
        """Sets the dword at a byte offset in BAR0."""

    def config(self, offset: int) -> int:
        """The 16 bits at a byte offset in the configuration space."""

    def set_config(self, offset: int, value: int) -> None:
        """Sets 16 bits in the configuration space."""

    def memory(self, size: int) -> tuple[mmap.mmap, int]:
        """Memory of ``size`` bytes, zeroed, and the address at which the device finds it. It lasts until the end."""

    def close(self) -> None:
        """Releases the function; the device cannot reach any memory after that."""


def open_board(uri: str, geometry: Geometry | None = None) -> Link:
    """Opens the board of ``pcie:`` or ``pcie:BDF``, which has its own ``geometry``; see :class:`PcieLink`."""
    name = uri.partition(":")[2]
    if not sys.platform.startswith("linux"):
        raise HypermonError(f"{uri}: a board in a PCIe slot needs Linux")
    bdf = one_function(name).bdf
    return PcieLink(f"pcie:{bdf}", lambda: _opened(bdf))


def find_boards() -> list[Found]:
    """The boards in PCIe slots. Nothing is read from them."""
    return [Found(f"pcie:{function.bdf}", f"HYPERMON in a PCIe slot, driver {function.driver or 'none'}, "
                                          f"IOMMU group {function.group or 'none'}", hindrance(function))
            for function in functions()]


def _opened(bdf: str) -> Function:
    """Opens a function. Raises HypermonError with what helps."""
    function = one_function(bdf)
    if problem := hindrance(function):
        raise HypermonError(f"pcie:{bdf}: {problem}")
    try:
        if sys.platform == "linux":
            from hypermon.host.link.vfio import VfioFunction

            return VfioFunction(bdf)
        raise HypermonError(f"pcie:{bdf}: a board in a PCIe slot needs Linux")
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise HypermonError(f"pcie:{bdf}: {forbidden(function)}") from None
        if error.errno == errno.EBUSY:
            raise HypermonError(f"pcie:{bdf}: the board, or another device of its IOMMU group, is in use by another "
                                "program or driver") from None
        raise HypermonError(f"pcie:{bdf}: the board cannot be opened ({error.strerror})") from None


class PcieLink:
    """A link to a board in a PCIe slot; see :class:`hypermon.host.link.Link`.

    Every read of ones is checked in the configuration space: if that reads as ones too, the board is gone, and the link
    is away until it is back. A reset of the link, by whomever, is an outage as well.

    Parameters
    ----------
    uri : its name.
    opener : opens the function; raises HypermonError if it cannot be opened now.
    pages_log : pages of the ring, log2.

    Raises
    ------
    HypermonError
        if the function cannot be opened, or is no board.
    """

    slow = False
    ended = False
    slowness = 1.0
    board_ps = None
    played = None

    def __init__(self, uri: str, opener: Callable[[], Function], pages_log: int = _PAGES_LOG):
        self.uri, self._opener, self._pages_log = uri, opener, pages_log
        self._ring_bytes = PCIE_PAGE_BYTES << pages_log
        self.outages: list[Outage] = []
        self._function: Function | None = None
        self._since = ""            # of the outage
        self._looked = self._checked = 0.0
        self._tail = 0
        self._rest = b""            # bytes that were taken from the ring, but not wanted yet
        try:
            self._start(opener())
        except (OSError, LinkError) as error:
            raise HypermonError(f"{uri}: the board does not answer ({error})") from None

    # ------------------------------------------------------------------------------ the function

    def _start(self, function: Function) -> None:
        """Takes a function and starts its ring; closes it if that fails."""
        try:
            function.set_config(_COMMAND, function.config(_COMMAND) | _MEMORY | _MASTER)
            magic = function.read(_AT["PCIE_ID"])
            if magic == _ONES:
                raise LinkError("its registers read as ones")
            if magic != PCIE_MAGIC:
                raise HypermonError(f"{self.uri} is not a HYPERMON board (its PCIE_ID is {magic:#010x}, not "
                                    f"{PCIE_MAGIC:#010x}); load gateware with a PCIe link")
            self._stop(function)
            self._ring, address = self._memory(function)
            self._report = (ctypes.c_uint32 * 2).from_buffer(self._ring, self._ring_bytes)
            for name, value in (("PCIE_RING_LOW", address & _ONES), ("PCIE_RING_HIGH", address >> 32),
                                ("PCIE_RING_PAGES", self._pages_log), ("PCIE_CONTROL", 1)):
                function.write(_AT[name], value)
            status = function.read(_AT["PCIE_STATUS"])
            if status == _ONES or not status & _RUNNING or status & _RING_REFUSED:
                raise LinkError(f"its ring does not start, PCIE_STATUS is {status:#x}")
            self._number, self._timeouts = (function.read(_AT[name]) for name in ("PCIE_STARTS", "PCIE_TIMEOUTS"))
        except BaseException:
            function.close()
            raise
        self._tail = 0
        self._function = function

    def _memory(self, function: Function) -> tuple[mmap.mmap, int]:
        try:
            return function.memory(self._ring_bytes + PCIE_PAGE_BYTES)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise HypermonError(f"{self.uri}: this user may not keep {self._ring_bytes >> 20} MiB in memory; before "
                                f"the command: ulimit -l {2 * self._ring_bytes >> 10}") from None

    @staticmethod
    def _stop(function: Function) -> None:
        """Stops the ring and waits until nothing is written any more."""
        function.write(_AT["PCIE_CONTROL"], 0)
        deadline = time.monotonic() + _STOP_S
        while (status := function.read(_AT["PCIE_STATUS"])) & _RUNNING and status != _ONES:
            if time.monotonic() > deadline:
                raise LinkError("its ring does not stop")
            time.sleep(0.001)

    def _leave(self) -> None:
        """The board is gone. What it has written remains."""
        function, self._function = self._function, None
        self._since = _now()
        if function is not None:
            function.close()
            self._rest += self._arrived()

    def _look(self) -> None:
        """Opens the board again, if it is back."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        try:
            self._start(self._opener())
        except (HypermonError, OSError):
            return
        self.outages.append(Outage(self._since, _now()))

    @property
    def away(self) -> bool:
        """The board is gone, or was found gone at the last access."""
        return self._function is None

    def _present(self) -> Function:
        if self._function is None:
            self._look()
        if self._function is None:
            raise self._gone()
        return self._function

    def _gone(self) -> LinkError:
        return LinkError(f"{self.uri}: the board is gone; hypermon devices says why")

    def _answers(self, function: Function) -> bool:
        try:
            return function.config(0) == PCIE_VENDOR
        except OSError:
            return False

    # --------------------------------------------------------------------------- the registers

    # A board may be late, after a reset for example. The link then gives the access up and says in PCIE_STATUS that the
    # board is busy; a read is answered with ones. The board carries the access out nevertheless. Meanwhile only the
    # link's own registers can be reached: a write to another one would be dropped.

    def read(self, address: int) -> int:
        """The register at a byte address."""
        function = self._present()
        try:
            value = function.read(address)
            if value == _ONES and self._late(function):
                self._wait_for_board(function)
                value = function.read(address)
        except OSError:
            value = _ONES
        if value == _ONES and not self._answers(function):
            self._leave()
            raise self._gone()
        return value

    def write(self, address: int, value: int) -> None:
        """Sets the register at a byte address, and waits until the board has done so."""
        function = self._present()
        try:
            function.write(address, value)
            self._wait_for_board(function)
        except OSError:
            self._leave()
            raise self._gone() from None

    def _own(self, function: Function, name: str) -> int:
        """One of the link's registers, which are never ones. Raises OSError if the board is gone."""
        value = function.read(_AT[name])
        if value == _ONES:
            raise OSError(errno.ENODEV, "no answer")
        return value

    def _late(self, function: Function) -> bool:
        """The board did not answer an access in time, since the last call. Raises OSError if it is gone."""
        before, self._timeouts = self._timeouts, self._own(function, "PCIE_TIMEOUTS")
        return self._timeouts != before

    def _wait_for_board(self, function: Function) -> None:
        """Waits until the board has carried out all accesses."""
        deadline = time.monotonic() + _LATE_S
        while self._own(function, "PCIE_STATUS") & _BUSY:
            if time.monotonic() > deadline:
                raise LinkError(f"{self.uri}: the board does not answer; switch it off and on")

    def read_burst(self, address: int, words: int) -> bytes:
        """The given number of consecutive registers, as 32-bit little-endian words."""
        return b"".join(self.read(address + 4 * k).to_bytes(4, "little") for k in range(words))

    # ------------------------------------------------------------------------------ the stream

    def stream(self, limit: int) -> bytes:
        """Up to ``limit`` bytes of the stream; none if none arrived in time, or the board is away."""
        if self._function is None:
            self._look()
        function = self._function
        if self._rest:
            pass                    # it does not fit the last answer, or remains of a board that is gone
        elif function is None:
            time.sleep(_PATIENCE_S)
        else:
            try:
                self._fetch(function)
            except OSError:
                self._leave()
        taken, self._rest = self._rest[:limit], self._rest[limit:]
        return taken

    def _head(self) -> int:
        """Bytes that have arrived since the start, as far as they were reported. Only reports of this start count."""
        head, number = self._report
        return int(head) if number == self._number else 0

    def _wait(self, function: Function) -> None:
        """Waits for an interrupt, or until the patience is over."""
        function.write(_AT["PCIE_ARM"], self._tail)
        if function.interrupt is None:
            time.sleep(_PATIENCE_S / 10)
        elif select.select([function.interrupt], [], [], _PATIENCE_S)[0]:
            os.read(function.interrupt, 8)

    def _fetch(self, function: Function) -> None:
        """Takes what has arrived; its place in the ring is free afterwards."""
        if self._head() == self._tail:
            self._wait(function)
        self._rest = self._arrived()
        if self._rest:
            function.write(_AT["PCIE_TAIL"], self._tail)
        else:
            self._check(function)

    def _arrived(self) -> bytes:
        """All bytes that have arrived; moves the tail."""
        count = self._head() - self._tail & _POSITION
        if not count:
            return b""
        if count > self._ring_bytes:
            raise LinkError(f"{self.uri} reports {count:,} bytes in a ring of {self._ring_bytes:,}; switch the machine "
                            "off and on")
        at = self._tail & self._ring_bytes - 1
        first = min(count, self._ring_bytes - at)
        data = bytes(self._ring[at:at + first]) + bytes(self._ring[:count - first])
        self._tail = self._tail + count & _POSITION
        return data

    def _check(self, function: Function) -> None:
        """In silence: is the board still there, and is this still its ring?"""
        now = time.monotonic()
        if now - self._checked < _LOOK_S:
            return
        self._checked = now
        status = function.read(_AT["PCIE_STATUS"])
        if status == _ONES or not status & _RUNNING or function.read(_AT["PCIE_STARTS"]) != self._number:
            self._leave()

    def discard(self) -> None:
        """Discards data that has arrived, and data that arrives until there is silence."""
        stop = time.monotonic() + _DISCARD_S
        while self.stream(1 << 20) and time.monotonic() < stop:
            pass
        self._rest = b""

    def close(self) -> None:
        """Releases the board; data still in transit is lost. May be called again."""
        function, self._function = self._function, None
        if function is None:
            return
        try:
            self._stop(function)
        except (OSError, LinkError):
            pass                    # it is gone, and so is its memory's owner
        finally:
            function.close()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
