"""SDRAMs with 16 data pins from their data sheets: geometry, and timing parameters in time units and in clocks."""

from dataclasses import dataclass

__all__ = ["MT48LC16M16A2_75", "AS4C16M16SA_7", "SLOWEST_16M16", "WORD_BYTES", "Clocks", "SdramPart"]

#: Width of the data bus.
WORD_BYTES = 2
_PS = 10**12


@dataclass(frozen=True)
class Clocks:
    """A part's times at a given clock, in whole clocks; names are those of the data sheets.

    ``cl`` : CAS latency. ``interval`` : from one refresh to the next. ``pause`` : after power-up. ``wr`` : from the
    last word written to the precharge.
    """

    cl: int
    rcd: int
    rp: int
    ras: int
    rc: int
    rfc: int
    mrd: int
    wr: int
    interval: int
    pause: int


@dataclass(frozen=True)
class SdramPart:
    """A single-data-rate SDRAM. Times are in picoseconds.

    Parameters
    ----------
    name : name of the part and its speed grade.
    bank_bits, row_bits, column_bits : bits of an address.
    ck2, ck3 : shortest clock periods with a CAS latency of 2 and 3 (tCK).
    rcd : row activate to read or write (tRCD).
    rp : precharge to activate or refresh (tRP).
    ras, ras_max : activate to precharge (tRAS).
    rc : activate to activate in one bank (tRC).
    rrd : activate to activate in two banks (tRRD).
    rfc : refresh to refresh or activate (tRFC, in some data sheets tRC).
    mrd, mrd_clocks : mode register set to any command (tMRD): the longer one.
    wr : last word written to precharge (tWR, tDPL, tRDL).
    ac2, ac3 : clock to valid data with a CAS latency of 2 and 3 (tAC).
    oh : how long data are held after the next clock (tOH).
    hz : until the outputs are released after the last clock (tHZ).
    su, hd : set-up and hold of all inputs (tIS, tIH; tCMS, tAS, tDS and so on).
    refresh_window, refreshes : number of refreshes required in that time (tREF).
    pause : time with a stable clock before the first command.
    """

    name: str
    bank_bits: int
    row_bits: int
    column_bits: int
    ck2: int
    ck3: int
    rcd: int
    rp: int
    ras: int
    ras_max: int
    rc: int
    rrd: int
    rfc: int
    mrd: int
    mrd_clocks: int
    wr: int
    ac2: int
    ac3: int
    oh: int
    hz: int
    su: int
    hd: int
    refresh_window: int = 64_000_000_000
    refreshes: int = 8192
    pause: int = 200_000_000

    @property
    def bytes(self) -> int:
        """Capacity of the part."""
        return WORD_BYTES << (self.bank_bits + self.row_bits + self.column_bits)

    def round_trip(self, clock_hz: int) -> tuple[int, int]:
        """Picoseconds from an FPGA's clock to its pads plus from its pads to the next clock: the minimum and the
        maximum for which the FPGA samples a word at the second of its clock edges after that of the memory, whose clock
        is the inverse.
        """
        half = _PS // (2 * clock_hz)
        return half - self.oh, 3 * half - (self.ac2 if self.clocks(clock_hz).cl == 2 else self.ac3)

    def clocks(self, clock_hz: int) -> Clocks:
        """The part's times at ``clock_hz``, rounded to the safe side.

        The refresh interval is one clock shorter than it may be. Over 8192 refreshes that leaves 8192 clocks for waits
        for the end of a beat.

        Raises
        ------
        ValueError
            for a clock that is too fast for the part.
        """
        def up(ps: int) -> int:
            return max(1, -(-ps * clock_hz // _PS))

        if clock_hz * self.ck3 > _PS:
            raise ValueError(f"{self.name} takes {_PS / self.ck3 / 1e6:g} MHz at most, not {clock_hz!r} Hz")
        return Clocks(
            cl=2 if clock_hz * self.ck2 <= _PS else 3, rcd=up(self.rcd), rp=up(self.rp), ras=up(self.ras),
            rc=up(self.rc), rfc=up(self.rfc), mrd=max(self.mrd_clocks, up(self.mrd)), wr=up(self.wr),
            interval=self.refresh_window * clock_hz // (_PS * self.refreshes) - 1, pause=up(self.pause))


#: Alliance AS4C16M16SA data sheet, rev. 3.0: table 16 on page 19, speed grade -7; power-up in note 11.
AS4C16M16SA_7 = SdramPart(
    "AS4C16M16SA-7", bank_bits=2, row_bits=13, column_bits=9, ck2=10_000, ck3=7_000, rcd=21_000, rp=21_000,
    ras=42_000, ras_max=120_000_000, rc=63_000, rrd=14_000, rfc=63_000, mrd=14_000, mrd_clocks=2, wr=14_000,
    ac2=6_000, ac3=5_400, oh=2_500, hz=5_400, su=1_500, hd=800)

#: Micron MT48LC16M16A2 data sheet: table "Electrical Characteristics and Recommended AC Operating Conditions", speed
#: grade -75. Its tWR is a clock and 7.5 ns, or 15 ns: the longer one at 133 MHz and less is up to 15 ns and a clock.
MT48LC16M16A2_75 = SdramPart(
    "MT48LC16M16A2-75", bank_bits=2, row_bits=13, column_bits=9, ck2=10_000, ck3=7_500, rcd=20_000, rp=20_000,
    ras=44_000, ras_max=120_000_000, rc=66_000, rrd=15_000, rfc=66_000, mrd=15_000, mrd_clocks=2, wr=15_000,
    ac2=6_000, ac3=5_400, oh=2_700, hz=6_000, su=1_500, hd=800, pause=100_000_000)


def _slowest(name: str, *parts: SdramPart) -> SdramPart:
    """The safe value for each of several parts of one geometry."""
    least = {"oh", "ras_max", "refresh_window"}
    same = {"bank_bits", "row_bits", "column_bits", "refreshes"}
    values = {}
    for field in SdramPart.__dataclass_fields__:
        every = [getattr(part, field) for part in parts]
        if field in same and len(set(every)) != 1:
            raise ValueError(f"{field} differs: {every!r}")
        values[field] = min(every) if field in least else max(every)
    return SdramPart(**values | {"name": name})


#: A 16M x 16 part of unknown manufacturer, as boards have it.
SLOWEST_16M16 = _slowest("SDRAM 16M x 16", AS4C16M16SA_7, MT48LC16M16A2_75)
