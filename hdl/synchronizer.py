"""Strobe synchronizer: raw port levels in, one pulse and one nibble a strobe out.

Section 3.2.1: "only the event strobe signals need be sampled relative to the internal ECB clock".
Here data are sampled with them, through the same two flip-flops, so that no clock but the board's
own exists.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from .layout import PORT_BITS

__all__ = ["Synchronizer"]


class Synchronizer(wiring.Component):
    """Finds the active edges of all strobes.

    The edge that is first sampled at clock edge k gives its pulse after edge k + 3. The nibble is
    that of sample k - 1 (*before*) or k + 1 (*after*).

    What a port must keep, in board clocks; "aperture" is the flip-flop's set-up and hold, in which
    a change may be seen one clock later:

    ===========  =============================================  ================================
    sample       data stable                                    strobe
    ===========  =============================================  ================================
    before       from one clock + skew + aperture before the    each level for one clock +
                 edge, until the edge                           aperture
    after        from one clock - skew after the edge at        the same
                 latest, until two clocks + aperture after it
    ===========  =============================================  ================================

    *Before* is what a FIFO clocked by the strobe would take, the last sample on the set-up side;
    *after* is for ports whose data and strobe change in one write, where up to a clock of skew has
    settled by then.

    Parameters
    ----------
    nodes : number of ports.
    pad_stage : False if the first flip-flop stands in the I/O cells, outside.

    Members
    -------
    strobe, data : raw levels, a bit and a nibble a node.
    rising, falling : active edges, a bit a node; both may be set.
    after : sample point, a bit a node.
    pulse : one clock for every active edge, a bit a node.
    nibble : valid with ``pulse``, a nibble a node.
    """

    def __init__(self, nodes: int, pad_stage: bool = True):
        self.nodes, self.pad_stage = nodes, pad_stage
        super().__init__({
            "strobe": In(nodes), "data": In(PORT_BITS * nodes),
            "rising": In(nodes), "falling": In(nodes), "after": In(nodes),
            "pulse": Out(nodes), "nibble": Out(PORT_BITS * nodes),
        })

    def elaborate(self, platform):
        m = Module()
        wide = PORT_BITS * self.nodes
        strobe = [Signal(self.nodes, name=f"strobe{k}") for k in range(3)]
        data = [Signal(wide, name=f"data{k}", reset_less=True) for k in range(3)]
        if self.pad_stage:
            m.submodules.strobe_sync = FFSynchronizer(self.strobe, strobe[0], stages=2)
            m.submodules.data_sync = FFSynchronizer(self.data, data[0], stages=2)
        else:
            m.d.sync += [strobe[0].eq(self.strobe), data[0].eq(self.data)]
        # The setting, spread to a bit a data bit when it changes.
        spread = Signal(self.nodes)
        changed = Signal()
        after = Signal(wide)
        m.d.sync += changed.eq(spread != self.after)
        with m.If(changed):
            m.d.sync += [
                spread.eq(self.after),
                after.eq(Cat(self.after[i].replicate(PORT_BITS) for i in range(self.nodes))),
            ]
        m.d.sync += [
            strobe[1].eq(strobe[0]), strobe[2].eq(strobe[1]),
            data[1].eq(data[0]), data[2].eq(data[1]),
            self.pulse.eq((strobe[1] & ~strobe[2] & self.rising) | (~strobe[1] & strobe[2] & self.falling)),
            self.nibble.eq((data[0] & after) | (data[2] & ~after)),
        ]
        return m
