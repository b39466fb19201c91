"""The cost of software on a node: the first of the emulator's three plug-ins."""

from dataclasses import dataclass

__all__ = ["Cpu"]


@dataclass(frozen=True)
class Cpu:
    """A processor's clock, and the cycles that instrumentation uses; by default an 80386 at 16 MHz.

    Parameters
    ----------
    hz : its clock.
    write : one write to the port: "approximately six cycles" (3.1).
    nibble : a nibble with its two writes, extraction, loop and call, without a delay; 113,000 of them a second (5.1).
    iteration : of the null loop between two nibbles; 0.81 us, within the 0.78 to 0.86 us that Table 2 gives.
    event : cost of an event before its first nibble, in the kernel. Table 2, one node: 26.1 us per nibble in all.
    record : software recording in the bandwidth test, an event of four bytes: 3.9 us (5.1).
    record_byte : software recording in the kernel, per byte: 3.2 us (Table 2).
    """

    hz: int = 16_000_000
    write: float = 6
    nibble: float = 141.6
    iteration: float = 13
    event: float = 300
    record: float = 62.4
    record_byte: float = 51.2

    def us(self, cycles: float) -> float:
        """Cycles as microseconds."""
        return cycles * 1e6 / self.hz

    def period_us(self, delay: int) -> float:
        """From one nibble to the next, with the given number of iterations of the null loop between them."""
        return self.us(self.nibble + delay * self.iteration)
