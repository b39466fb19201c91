"""Item time-out: when a node has fallen silent in the middle of an item."""

from itertools import pairwise

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ItemTimeout"]

#: Clocks between the look at a node and the verdict: rounds are longer.
_STAGES = 5


class ItemTimeout(wiring.Component):
    """Looks at one node a clock, in turn: when it was heard last, and how long ago that is.

    A node's item expires when a gap of more than ``limit`` clocks has passed since its last strobe;
    never earlier, and at most two rounds (see :attr:`round`) and eight clocks later. A strobe in
    between saves it. The clock it counts by is the board's own and does not skip: as long as an item
    is open, nothing else may either.

    Parameters
    ----------
    nodes : number of nodes.

    Members
    -------
    pulse : strobes, a bit a node.
    open : nodes in the middle of an item.
    limit : clocks.
    expired : for one clock, a bit a node.
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        #: Clocks in which every node is looked at once.
        self.round = max(8, 1 << (nodes - 1).bit_length())
        super().__init__({"pulse": In(nodes), "open": In(nodes), "limit": In(32), "expired": Out(nodes)})

    def elaborate(self, platform):
        m = Module()
        assert self.round > _STAGES
        m.submodules.heard = heard = memory.Memory(shape=32, depth=self.round, init=[])
        write, read = heard.write_port(), heard.read_port(domain="comb")
        clock = Signal(32)
        # The node that is looked at, in stages: who, when, how long ago, too long.
        turn = Signal(range(self.round))
        node = [Signal.like(turn, name=f"node{k}") for k in range(4)]
        fresh = Signal(self.nodes)      # heard since it was looked at
        is_fresh = Signal()
        is_open = Signal()
        silent = Signal(3)              # open and not fresh
        since = Signal(32)
        age = Signal(32)
        over = Signal()
        m.d.sync += [
            clock.eq(clock + 1), turn.eq(turn + 1),
            node[0].eq(turn), *(new.eq(old) for old, new in pairwise(node)),
            fresh.eq((fresh & ~(1 << turn)) | self.pulse),
            is_fresh.eq((fresh >> turn)[0]), is_open.eq((self.open >> turn)[0]),
            silent.eq(is_open & ~is_fresh | silent << 1),
            since.eq(read.data), age.eq(clock - since), over.eq(age > self.limit),
            self.expired.eq(Mux(over & silent[2], 1 << node[3], 0) & ~fresh & ~self.pulse),
        ]
        m.d.comb += [
            write.en.eq(is_fresh), write.addr.eq(node[0]), write.data.eq(clock), read.addr.eq(node[0]),
        ]
        return m
