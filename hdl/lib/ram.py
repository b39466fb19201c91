"""Simple dual-port memory with a read latency of two clocks.

The platform selects one of several implementations with the same behaviour:

- ``"portable"``: an inferred memory and a row of flip-flops.
- ``"ecp5"``: a row of block RAMs with their output registers on (DP16KD; up to 512 words PDPW16KD, the same
  block with one write port, one read port and twice the width). The output registers take a FIFO from 130 MHz to
  180 MHz: without them a block RAM answers 5.8 ns after the clock, and Yosys does not infer them.
- ``"gowin"``: a row of Gowin block RAMs (SDPX9B) followed by a row of flip-flops. That saves two of three
  flip-flops of an inferred memory, which Yosys adds to return the old word of an address that is written at the
  same edge; no user of this memory needs that.
- ``"ice40"``: a row of block RAMs of 256 words of 16 bits (SB_RAM40_4K), for the same reason.

``tests/hdl`` proves all of them equal.

Small memories that return a word in the clock of its address use distributed memory. An iCE40 has none: see
:func:`at_once`.
"""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RAM_KINDS", "Ram", "at_once", "style"]

RAM_KINDS = ("portable", "ecp5", "gowin", "ice40")

#: Largest number of words for which an inferred memory is requested as distributed memory.
_DISTRIBUTED = 64
#: Words of 36 bits that a PDPW16KD holds (Lattice FPGA-TN-02204, table "PDPW16KD").
_PDPW16KD_DEPTH, _PDPW16KD_WIDTH = 512, 36
# Same note, table "DP16KD": depth: (data width, lowest address bit in use).
_DP16KD = {1024: (18, 4), 2048: (9, 3), 4096: (4, 2), 8192: (2, 1), 16384: (1, 0)}
# Gowin UG285, "Gowin BSRAM & SSRAM User Guide", table of SDPX9B's addresses: same meaning.
_SDPX9B = {512: (36, 5), 1024: (18, 4), 2048: (9, 3)}
# Lattice FPGA-TN-02002, "Memory Usage Guide for iCE40 Devices": words of a SB_RAM40_4K, bits per word.
_RAM40_DEPTH, _RAM40_WIDTH = 256, 16
_DEPTHS = {"portable": 1 << 32, "ecp5": max(_DP16KD), "gowin": max(_SDPX9B), "ice40": _RAM40_DEPTH}


def style(kind: str) -> dict[str, str]:
    """Attributes of a small memory. On an iCE40 it is never built from flip-flops, which would cost too much."""
    return {"ram_style": "block"} if kind == "ice40" else {}


def at_once(m: Module, kind: str) -> str:
    """Clock domain of those read ports of a small memory that return a word in the clock of its address.

    On an iCE40 such a memory is a block RAM that is read at the falling edge: the address comes from flip-flops, and
    the word is valid in the second half of the clock. It is written at the rising edge, so both kinds return the
    same words.
    """
    if kind != "ice40":
        return "comb"
    m.domains.falling = falling = ClockDomain(local=True, reset_less=True, clk_edge="neg")
    m.d.comb += falling.clk.eq(ClockSignal())
    return "falling"


class Ram(wiring.Component):
    """Memory of ``depth`` words of ``width`` bits, with one write port, one read port and one clock.

    Parameters
    ----------
    width, depth : bits per word and number of words; ``depth`` is a power of two.
    kind : ``"portable"``, ``"ecp5"``, ``"gowin"`` or ``"ice40"``.
    register : False, only on an iCE40: ``r_data`` is the latch itself, and ``r_next`` has no effect.

    Members
    -------
    w_en, w_addr, w_data : a word is written at the clock edge at which ``w_en`` is high.
    r_addr, r_en : at an edge with ``r_en``, the word is read into the memory's latch. A word
        that is written at the same edge is not yet visible.
    r_next, r_data : at an edge with ``r_next``, the latch is copied to the output register ``r_data``.

    Raises
    ------
    ValueError
        if the kind does not exist; if the depth is not a power of two or exceeds 16384 on ECP5, 2048 on Gowin or
        256 on iCE40; if any kind but ``"ice40"`` is requested without the register.
    """

    def __init__(self, width: int, depth: int, kind: str = "portable", register: bool = True):
        if kind not in RAM_KINDS:
            raise ValueError(f"memory kind must be one of {', '.join(RAM_KINDS)}, not {kind!r}")
        if depth < 2 or depth & (depth - 1) or depth > _DEPTHS[kind]:
            raise ValueError(
                f"memory depth must be a power of two (ECP5: up to 16384, Gowin: up to 2048, iCE40: up to 256), "
                f"not {depth!r}")
        if not register and kind != "ice40":
            raise ValueError(f"memory without a register must be of kind 'ice40', not {kind!r}")
        self.width, self.depth, self.kind, self.register = width, depth, kind, register
        bits = (depth - 1).bit_length()
        super().__init__({
            "w_en": In(1), "w_addr": In(bits), "w_data": In(width),
            "r_en": In(1), "r_addr": In(bits), "r_next": In(1), "r_data": Out(width),
        })

    def elaborate(self, platform):
        m = Module()
        if self.kind == "ecp5":
            self._block_rams(m)
        elif self.kind == "gowin":
            self._gowin_block_rams(m)
        elif self.kind == "ice40":
            self._ice40_block_rams(m)
        else:
            self._portable(m)
        return m

    def _portable(self, m):
        # A few words are not worth a block RAM.
        style = {"ram_style": "distributed"} if self.depth <= _DISTRIBUTED else {}
        m.submodules.memory = mem = memory.Memory(shape=self.width, depth=self.depth, init=[], attrs=style)
        write, read = mem.write_port(), mem.read_port(domain="sync")
        output = Signal(self.width, reset_less=True)
        m.d.comb += [
            write.en.eq(self.w_en), write.addr.eq(self.w_addr), write.data.eq(self.w_data),
            read.en.eq(self.r_en), read.addr.eq(self.r_addr), self.r_data.eq(output),
        ]
        with m.If(self.r_next):
            m.d.sync += output.eq(read.data)

    def _block_rams(self, m):
        if self.depth <= _PDPW16KD_DEPTH:
            self._wide_block_rams(m)
        else:
            self._deep_block_rams(m)

    def _wide_block_rams(self, m):
        width = _PDPW16KD_WIDTH
        for k in range(-(-self.width // width)):
            d_in = Signal(width, name=f"di{k}")
            d_out = Signal(width, name=f"do{k}")
            w_addr = Signal(9, name=f"adw{k}")
            r_addr = Signal(14, name=f"adr{k}")    # address of a bit, of 32 without the parity bits
            high = min(self.width, (k + 1) * width)
            m.d.comb += [
                d_in.eq(self.w_data[k * width:high]), self.r_data[k * width:high].eq(d_out),
                w_addr.eq(self.w_addr), r_addr.eq(Cat(Const(0, 5), self.r_addr)),
            ]
            ports = {}
            for i in range(width):
                ports |= {f"i_DI{i}": d_in[i], f"o_DO{i}": d_out[i]}
            for i in range(9):
                ports |= {f"i_ADW{i}": w_addr[i]}
            for i in range(14):
                ports |= {f"i_ADR{i}": r_addr[i]}
            for i in range(4):
                ports |= {f"i_BE{i}": Const(1)}
            for i in range(3):
                ports |= {f"i_CSW{i}": Const(0), f"i_CSR{i}": Const(0)}
            m.submodules[f"block{k}"] = Instance(
                "PDPW16KD",
                p_DATA_WIDTH_W=width, p_DATA_WIDTH_R=width, p_REGMODE="OUTREG", p_RESETMODE="SYNC", p_GSR="DISABLED",
                i_CLKW=ClockSignal(), i_CEW=self.w_en,
                i_CLKR=ClockSignal(), i_CER=self.r_en, i_OCER=self.r_next, i_RST=Const(0), **ports)

    def _deep_block_rams(self, m):
        width, low = next(v for d, v in _DP16KD.items() if self.depth <= d)
        for k in range(-(-self.width // width)):
            d_in = Signal(18, name=f"di{k}")
            d_out = Signal(18, name=f"do{k}")
            high = min(self.width, (k + 1) * width)
            m.d.comb += [d_in.eq(self.w_data[k * width:high]), self.r_data[k * width:high].eq(d_out)]
            # The lowest address bits are byte enables at 18 bits and one enable at 9 bits (same note, 5.4).
            enables = Const({18: 0b0011, 9: 0b001}.get(width, 0), low)
            a = Signal(14, name=f"aa{k}")
            b = Signal(14, name=f"ab{k}")
            m.d.comb += [a.eq(Cat(enables, self.w_addr)), b.eq(Cat(Const(0, low), self.r_addr))]
            ports = {}
            for i in range(18):
                ports |= {f"i_DIA{i}": d_in[i], f"i_DIB{i}": Const(0), f"o_DOB{i}": d_out[i]}
            for i in range(14):
                ports |= {f"i_ADA{i}": a[i], f"i_ADB{i}": b[i]}
            for i in range(3):
                ports |= {f"i_CSA{i}": Const(0), f"i_CSB{i}": Const(0)}
            m.submodules[f"block{k}"] = Instance(
                "DP16KD",
                p_DATA_WIDTH_A=width, p_DATA_WIDTH_B=width, p_REGMODE_A="NOREG", p_REGMODE_B="OUTREG",
                p_RESETMODE="SYNC", p_WRITEMODE_A="NORMAL", p_WRITEMODE_B="NORMAL", p_GSR="DISABLED",
                i_CLKA=ClockSignal(), i_CEA=self.w_en, i_WEA=self.w_en, i_OCEA=Const(0), i_RSTA=Const(0),
                i_CLKB=ClockSignal(), i_CEB=self.r_en, i_WEB=Const(0), i_OCEB=self.r_next, i_RSTB=Const(0),
                **ports)

    def _gowin_block_rams(self, m):
        # The block also has an output register, but on the parts that the open tools support best it does not work
        # correctly, and nextpnr uses flip-flops instead (its flag NEED_BSRAM_OUTREG_FIX).
        width, low = next(v for d, v in _SDPX9B.items() if self.depth <= d)
        output = Signal(self.width, reset_less=True)
        m.d.comb += self.r_data.eq(output)
        # The lowest bits of a write address are byte enables.
        enables = Const({36: 0b1111, 18: 0b11}.get(width, 0), low)
        for k in range(-(-self.width // width)):
            d_in = Signal(36, name=f"di{k}")
            latch = Signal(36, name=f"do{k}")
            a = Signal(14, name=f"ada{k}")
            b = Signal(14, name=f"adb{k}")
            high = min(self.width, (k + 1) * width)
            m.d.comb += [
                d_in.eq(self.w_data[k * width:high]),
                a.eq(Cat(enables, self.w_addr)), b.eq(Cat(Const(0, low), self.r_addr)),
            ]
            with m.If(self.r_next):
                m.d.sync += output[k * width:high].eq(latch)
            m.submodules[f"block{k}"] = Instance(
                "SDPX9B",
                p_BIT_WIDTH_0=width, p_BIT_WIDTH_1=width, p_READ_MODE=Const(0, 1), p_RESET_MODE="SYNC",
                p_BLK_SEL_0=Const(0, 3), p_BLK_SEL_1=Const(0, 3), i_BLKSELA=Const(0, 3), i_BLKSELB=Const(0, 3),
                i_CLKA=ClockSignal(), i_CEA=self.w_en, i_RESETA=Const(0), i_ADA=a, i_DI=d_in,
                i_CLKB=ClockSignal(), i_CEB=self.r_en, i_RESETB=Const(0), i_ADB=b, i_OCE=Const(1), o_DO=latch)

    def _ice40_block_rams(self, m):
        width = _RAM40_WIDTH
        latch = Signal(-(-self.width // width) * width)
        for k in range(len(latch) // width):
            d_in = Signal(width, name=f"di{k}")
            m.d.comb += d_in.eq(self.w_data[k * width:(k + 1) * width])
            m.submodules[f"block{k}"] = Instance(
                "SB_RAM40_4K", p_READ_MODE=0, p_WRITE_MODE=0,
                i_WCLK=ClockSignal(), i_WCLKE=self.w_en, i_WE=Const(1), i_WADDR=Cat(self.w_addr, Const(0, 11))[:11],
                i_WDATA=d_in, i_MASK=Const(0, width),
                i_RCLK=ClockSignal(), i_RCLKE=self.r_en, i_RE=Const(1), i_RADDR=Cat(self.r_addr, Const(0, 11))[:11],
                o_RDATA=latch[k * width:(k + 1) * width])
        if not self.register:
            m.d.comb += self.r_data.eq(latch)
            return
        with m.If(self.r_next):
            m.d.sync += self.r_data.eq(latch)
