"""Item time-out: detects a node that has fallen silent in the middle of an item."""

from itertools import pairwise

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ItemTimeout"]

#: Clocks between the examination of a node and the verdict: rounds are longer.
_STAGES = 5


class ItemTimeout(wiring.Component):
    """Examines one node per clock, in turn: when its last strobe came, and how long ago that is.

    A node's item expires when more than ``limit`` clocks have passed since its last strobe;
    never earlier, and at most two rounds (see :attr:`round`) and eight clocks later. A strobe in
    between prevents that. The time-out counts the board's own clocks, which a simulation must not skip
    as long as an item is open.

    Parameters
    ----------
    nodes : number of nodes.

    Members
    -------
    pulse : strobes, one bit per node.
    open : nodes in the middle of an item.
    limit : clocks.
    expired : high for one clock, one bit per node.
    slip : clocks that a simulation skips in addition to this one, modulo 256; only while no item is open.
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        #: Clocks in which every node is examined once.
        self.round = max(8, 1 << (nodes - 1).bit_length())
        super().__init__({
            "pulse": In(nodes), "open": In(nodes), "limit": In(32), "expired": Out(nodes),
            "slip": In(8)})

    def elaborate(self, platform):
        m = Module()
        assert self.round > _STAGES
        m.submodules.heard = heard = memory.Memory(shape=32, depth=self.round, init=[])
        write, read = heard.write_port(), heard.read_port(domain="comb")
        clock = Signal(32)
        # The node under examination, in stages: which node, time of its last strobe, age, too old.
        turn = Signal(range(self.round))
        node = [Signal.like(turn, name=f"node{k}") for k in range(4)]
        fresh = Signal(self.nodes)      # a strobe came since the last examination
        is_fresh = Signal()
        is_open = Signal()
        silent = Signal(3)              # open and not fresh
        since = Signal(32)
        age = Signal(32)
        over = Signal()
        m.d.sync += [
            clock.eq(clock + 1 + self.slip), turn.eq(turn + 1 + self.slip),
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
