"""Registers of the PCIe link, and its ring in the host's memory."""

from .register_map import Register

__all__ = [
    "PCIE_BASE", "PCIE_DEVICE", "PCIE_END", "PCIE_MAGIC", "PCIE_PAGE_BYTES", "PCIE_PAGES_LOG_MAX", "PCIE_REGISTERS",
    "PCIE_VENDOR",
]

#: pid.codes' identity for tests. Others use it too: PCIE_MAGIC identifies the link, and MAGIC the board.
PCIE_VENDOR = 0x1209
PCIE_DEVICE = 0x0001
#: Value of PCIE_ID: 'PCIE'.
PCIE_MAGIC = 0x45494350
#: BAR0 is the board's register map, with the link's own registers from PCIE_BASE to PCIE_END.
PCIE_BASE = 0x400
PCIE_END = 0x440
#: The ring has 2**n pages; its base is the address of a page.
PCIE_PAGE_BYTES = 4096
PCIE_PAGES_LOG_MAX = 10

PCIE_REGISTERS: dict[str, Register] = {r.name: r for r in (
    Register(0x400, "PCIE_ID", "R", 32, "0x45494350, 'PCIE'"),
    Register(0x404, "PCIE_CONTROL", "RW", 1,
             "bit 0 enable: the stream is written into the ring; every start begins at its base with PCIE_HEAD and "
             "PCIE_TAIL 0. A reset of the link clears the bit, and so does a host that does not permit writes, or "
             "a function-level reset"),
    Register(0x408, "PCIE_STATUS", "R", 6,
             "bit 0 running: writes may follow, also after enable was cleared; bit 1 the ring is full; bit 2 the host "
             "permits writes (bus master, D0); bit 3 a write to PCIE_TAIL was rejected; bit 4 a write "
             "to PCIE_RING_LOW, PCIE_RING_HIGH or PCIE_RING_PAGES was rejected; bit 5 the board is busy with an "
             "access that was not answered in time. Bits 3 and 4 are sticky until the next start"),
    Register(0x40c, "PCIE_RING_LOW", "RW", 32,
             "address of the ring, bits 31..12; rejected while the ring is running or enabled"),
    Register(0x410, "PCIE_RING_HIGH", "RW", 32, "the same, bits 63..32"),
    Register(0x414, "PCIE_RING_PAGES", "RW", 4,
             "n: the ring has 2^n pages of 4096 bytes, n from 0 to 10; one page for the head follows it. Rejected like "
             "PCIE_RING_LOW, and if n is greater than 10"),
    Register(0x418, "PCIE_HEAD", "R", 32,
             "bytes in complete writes since the start; after a stop, the head in memory becomes the same"),
    Register(0x41c, "PCIE_TAIL", "RW", 32,
             "bytes that the host has consumed since the start, a multiple of 16; rejected unless it is between "
             "the present PCIE_TAIL and PCIE_HEAD"),
    Register(0x420, "PCIE_ARM", "W", 32,
             "the head that the host has seen: one interrupt follows as soon as PCIE_HEAD differs from it"),
    Register(0x424, "PCIE_FLUSH", "RW", 24,
             "longest time that bytes wait to be written and reported, in clocks of the link; 2500 after power-up"),
    Register(0x428, "PCIE_DROPPED", "R", 32,
             "requests, modulo 65536: bits 15..0 dropped (poisoned, short, longer than 4 bytes, messages), bits 31..16 "
             "answered with Unsupported Request"),
    Register(0x42c, "PCIE_CUT", "R", 32, "beats of 16 bytes in writes that a reset of the link cut off"),
    Register(0x430, "PCIE_STARTS", "R", 16,
             "starts of the ring since power-up or a function-level reset, modulo 65536"),
    Register(0x434, "PCIE_TIMEOUTS", "R", 8,
             "accesses to the board's registers that were not answered in time, or not tried because it is busy, "
             "modulo 256"),
    Register(0x438, "PCIE_DISCARDED", "R", 32,
             "beats of 16 bytes in the link that function-level resets have discarded, modulo 2^32"),
)}
