"""Node emulator: generates the nodes' writes where no node is attached, for a board's self-test.

It is inserted after the last flip-flop that brings the ports into the clock domain; from there on its
levels follow the same path as theirs.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import PORT_BITS, EmulatorPattern

__all__ = ["NodeEmulator", "REPLAY_DEPTH", "emulator_settings", "replay_layout"]

#: Writes that the replay memory holds.
REPLAY_DEPTH = 64
#: Minimum number of clocks from one write of a node to its next.
_WRITE = 4


def replay_layout(port_bits: int = PORT_BITS) -> data.StructLayout:
    """A write of the replay memory: clocks since the previous one (at least 4), nibble, node, with 8-bit ports the
    upper half of the byte, and whether it is the last one."""
    upper = port_bits - PORT_BITS
    return data.StructLayout({"wait": 16, "nibble": 4, "node": 5, **({"upper": upper} if upper else {}),
                              "zero": 6 - upper, "last": 1})


def emulator_settings() -> wiring.Signature:
    """Settings of the emulator: see the members of :class:`NodeEmulator`."""
    return wiring.Signature({
        "run": Out(1), "pattern": Out(2), "period": Out(16), "count": Out(32), "load": Out(1), "entry": Out(32),
    })


class NodeEmulator(wiring.Component):
    """Writes nibbles as a node does: the nibble with strobe 0, then with strobe 1 (section 3.1).

    =========  =====================================================================================
    pattern    write k, counted from 0
    =========  =====================================================================================
    ``ALL``    all nodes at once, node i its nibble k + i, every ``period`` clocks
    ``TURNS``  node k mod nodes alone, its nibble k // nodes + its number, every ``period`` clocks
    ``REPLAY`` the writes in memory, over and over
    =========  =====================================================================================

    Parameters
    ----------
    nodes : number of nodes.
    port_bits : data bits of a port; with 8, everything said of nibbles applies to bytes.

    Members
    -------
    settings.run : the emulator starts when it rises, and stops at once when it falls. While it is low, ``.load``
        appends ``.entry`` to the replay memory, starting at its beginning; it holds :data:`REPLAY_DEPTH` entries.
    settings.pattern, .period, .count : see above, ``period`` at least 4; total number of writes.
    strobe, data : port levels, one bit and one nibble per node.
    busy : writes are in progress or still to come.
    """

    def __init__(self, nodes: int, port_bits: int = PORT_BITS):
        self.nodes, self.port_bits = nodes, port_bits
        super().__init__({
            "settings": In(emulator_settings()),
            "strobe": Out(nodes), "data": Out(port_bits * nodes), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes = self.nodes
        settings = self.settings
        m.submodules.replay = replay = memory.Memory(
            shape=replay_layout(self.port_bits), depth=REPLAY_DEPTH, init=[], attrs={"ram_style": "distributed"})
        write, read = replay.write_port(), replay.read_port(domain="sync")
        played = read.data      # two clocks after its address
        left = Signal(32)
        some = Signal()         # left != 0
        row = Signal(self.port_bits)
        base = Signal(self.port_bits)   # written by node 0
        turn = Signal(nodes, init=1)
        since = Signal(16, init=3)      # clocks from the last write to the one that `due` belongs to
        alike = Signal(4)               # ... they equal the awaited number, four bits at a time
        due = Signal()
        started = Signal()
        under_way = Signal(_WRITE)
        chosen = Signal(nodes)
        is_replay = Signal()
        is_all = Signal()
        replayed = played.nibble if self.port_bits == PORT_BITS else Cat(played.nibble, played.upper)
        unlike = since ^ Mux(is_replay, played.wait, settings.period)
        m.d.comb += [
            self.busy.eq(settings.run & (~started | some | under_way.any())),
            write.data.eq(settings.entry), write.en.eq(settings.load),
        ]
        m.d.sync += [
            is_replay.eq(settings.pattern == EmulatorPattern.REPLAY),
            is_all.eq(settings.pattern == EmulatorPattern.ALL),
            since.eq(since + 1), due.eq(settings.run & started & some & alike.all()),
            *(alike[k].eq(~unlike[4 * k:4 * k + 4].any()) for k in range(len(alike))),
            under_way.eq(Mux(settings.run, Cat(due, under_way), 0)), started.eq(settings.run),
            base.eq(Mux(is_replay, replayed - played.node, row)),
        ]
        with m.If(started):
            m.d.sync += write.addr.eq(0)
        with m.Elif(settings.load):
            m.d.sync += write.addr.eq(write.addr + 1)
        with m.If(~started):
            m.d.sync += [
                left.eq(settings.count), some.eq(settings.count != 0), row.eq(0), turn.eq(1), since.eq(since.init),
                read.addr.eq(0),
            ]
        with m.Elif(due):
            m.d.sync += [left.eq(left - 1), some.eq(left != 1), turn.eq(Cat(turn[-1], turn)), since.eq(since.init)]
            with m.If(is_all | turn[-1]):
                m.d.sync += row.eq(row + 1)
            with m.If(is_replay):
                m.d.sync += read.addr.eq(Mux(played.last, 0, read.addr + 1))
        # The nibble with strobe 0, then with strobe 1, for two clocks.
        with m.If(due):
            m.d.sync += [
                chosen.eq(Mux(is_replay, 1 << played.node, Mux(is_all, -1, turn))),
                *(self.data.word_select(n, self.port_bits).eq(base + n) for n in range(nodes)),
            ]
        m.d.sync += self.strobe.eq(Mux(settings.run & under_way[:2].any(), chosen, 0))
        return m
