"""Link accounts: totals and LOSS records of the items that regeneration boards refused, or that were lost on lines."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import (
    COUNTER_BITS,
    LINK_FRAME_CLOCKS,
    LINK_NODES,
    LINK_REPLAY_CLOCKS,
    LOSS_RECORD,
    Cause,
    Geometry,
    Window,
)
from ..regeneration.links import LINK_TIME_BITS, link_account
from ..stream.block_source import block_source

__all__ = ["LinkAccounts"]

#: Counts of a link: refused and lost items of each node.
_COUNTS = 2 * LINK_NODES
#: By how much an item's stamp can follow the frame that reported its loss: the replay, and the frame itself.
_LATE = LINK_REPLAY_CLOCKS + 2 * LINK_FRAME_CLOCKS
#: Clocks after a disable until every count that is then reported includes all items of the run: the frames of one count
#: beside that.
_SETTLES = 2 * LINK_REPLAY_CLOCKS
#: Clocks after which a link that has not reported all its counts is given up: fourteen times as many as it needs, and
#: a power of two.
_PATIENCE = 16 * 256 * LINK_FRAME_CLOCKS
#: Clocks in which losses that have been reported are taken.
_TAIL = 63
_RECORD = data.StructLayout({"lost": COUNTER_BITS, "first": 64, "last": 64})


class LinkAccounts(wiring.Component):
    """Keeps for each node what its link lost, by cause, in total and since its last LOSS record.

    The memory of the records is their queue: while no block can leave, a record includes the losses that follow. No
    loss is dropped. A loss counts if its node is captured and capture is enabled when it is reported, or was until the
    counts of the links had *settled*: after a disable, each link that was seen since the reset has to report all its
    counts once more. Then the totals include everything that was lost in the run. A link that does not do so within
    5.2 ms (at 100 MHz) is *unsure*. So is a link whose regeneration board was restarted, and one of which some count
    had not been reported when capture was enabled.

    A reset of the domain forgets everything.

    Parameters
    ----------
    geometry : the board's geometry.

    Members
    -------
    account : the account of each link, see :func:`~..regeneration.links.link_account`. Losses of a link come at least
        2048 clocks apart, and each is taken within a few clocks times the number of links, also while no beat can
        leave.
    now, window : time, and the window in force.
    live, enable : nodes that are captured; capture is enabled.
    source : LOSS blocks.
    open : a record has not left yet, or the counts have not settled after a disable.
    locked, unsure, absent, restarted : one bit per link: frames come; more may be lost than is counted; no frame has
        come since the reset; its regeneration board was restarted or exchanged since the reset. The last three only if
        some of its nodes are captured.
    row : a node. ``refused``, ``lost``: its totals, combinational.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        links, nodes = geometry.links, geometry.linked_nodes
        super().__init__({
            **{f"account{k}": In(link_account()) for k in range(links)},
            "now": In(64), "window": In(2), "live": In(nodes), "enable": In(1),
            "source": Out(block_source()), "open": Out(1), "locked": Out(links), "unsure": Out(links),
            "absent": Out(links), "restarted": Out(links),
            "row": In(range(nodes)), "refused": Out(COUNTER_BITS), "lost": Out(COUNTER_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        links = [getattr(self, f"account{k}") for k in range(self.geometry.links)]
        mask = Signal.like(self.live)       # the last one of the run
        settling = self._settle(m, links, mask)
        with m.If(self.enable):
            m.d.sync += mask.eq(self.live)
        entries = _COUNTS * len(links)
        pending = Signal(entries)           # records with something in them
        level = Signal(range(entries + 1))  # how many they are
        owed = Signal.like(level)
        entry = Signal(range(entries))      # node, line, link
        m.submodules.records = records = memory.Memory(
            shape=_RECORD, depth=entries, init=[], attrs={"ram_style": "distributed"})
        read, write = records.read_port(domain="comb"), records.write_port()
        row = Signal(_RECORD)
        taken = Signal(data.StructLayout({"lost": len(links[0].losses.p.lost), "first": 64, "last": 64}))
        has, sends, sending = (Signal(name=name) for name in ("has", "sends", "sending"))
        m.d.comb += [
            read.addr.eq(entry), write.addr.eq(entry), write.data.eq(row), has.eq(pending.bit_select(entry, 1)),
            self.source.length.eq(level * LOSS_RECORD.bytes), self.source.time.eq(self.now),
            self.open.eq(settling | (level != 0) | sending),
        ]
        adds = self._totals(m, entry, taken.lost)
        m.d.sync += self.source.request.eq((level != 0) & (owed == 0) & ~sending & ~self.source.grant)
        with m.If(self.source.grant):
            m.d.sync += owed.eq(level)
        with m.FSM():
            with m.State("IDLE"):
                self._take(m, links, settling, mask, entry, taken, (owed != 0) & ~sending, pending)
            with m.State("ADD"):
                m.d.sync += [
                    row.lost.eq(Mux(has, read.data.lost, 0) + taken.lost),
                    row.first.eq(Mux(has, read.data.first, taken.first)), row.last.eq(taken.last),
                ]
                m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [write.en.eq(1), adds.eq(1)]
                m.d.sync += [pending.bit_select(entry, 1).eq(1), level.eq(level + ~has)]
                m.next = "IDLE"
            with m.State("FETCH"):
                m.d.comb += sends.eq(1)
                m.d.sync += [pending.bit_select(entry, 1).eq(0), level.eq(level - 1), owed.eq(owed - 1)]
                m.next = "IDLE"
        self._send(m, sends, sending, entry, read.data)
        return m

    def _send(self, m: Module, sends, sending, entry, record) -> None:
        """Two beats of a record, from a register: losses are taken while they wait for the link."""
        beats = self.source.beats
        row, node, cause = Signal(_RECORD, name="sent"), Signal(8), Signal(8)
        with m.If(sends):
            m.d.sync += [
                row.eq(record), node.eq(Cat(entry[:3], entry[4:])), sending.eq(1),
                cause.eq(Mux(entry[3], int(Cause.REGENERATION_LINE), int(Cause.REGENERATION_GATE))),
            ]
        second = Signal()
        m.d.comb += [
            beats.valid.eq(sending),
            beats.p.eq(Mux(second, Cat(row.first, row.last), Cat(node, cause, Const(0, 48), row.lost))),
        ]
        with m.If(sending & beats.ready):
            m.d.sync += [second.eq(~second), sending.eq(~second)]

    def _take(self, m: Module, links, settling, mask, entry, taken, may_send, pending) -> None:
        """A loss, or else the lowest record of the block that is under way, becomes the entry."""
        geometry = self.geometry
        late = Array(Const(-(-_LATE // geometry.window_clocks(w)) + 1, 13) for w in Window)[self.window]
        for k, link in reversed(list(enumerate(links))):
            loss, first, last = link.losses.p, Signal(64, name=f"first{k}"), Signal(64, name=f"last{k}")
            m.d.comb += [full.eq(Cat(low, self.now[LINK_TIME_BITS:] - (low > self.now[:LINK_TIME_BITS])))
                         for full, low in ((first, loss.first), (last, loss.last))]
            with m.If(link.losses.valid):
                m.d.comb += [other.losses.ready.eq(other is link) for other in links]
                m.d.sync += [
                    entry.eq(Cat(loss.node, loss.line, Const(k, max(len(entry) - 4, 0)))),
                    taken.lost.eq(loss.lost), taken.first.eq(first), taken.last.eq(last + late),
                ]
                with m.If((self.enable | settling) & mask.bit_select(Cat(loss.node, Const(k, 2)), 1)):
                    m.next = "ADD"
        with m.If(may_send & ~Cat(link.losses.valid for link in links).any()):
            lowest = pending & -pending
            m.d.sync += entry.eq(reduce(or_, (Mux(lowest[n], n, 0) for n in range(len(pending)))))
            m.next = "FETCH"

    def _totals(self, m: Module, entry, more) -> Signal:
        """Totals, in one memory for each cause. Returns whether to write the sum of the clock before."""
        adds = Signal()
        node, line = Cat(entry[:3], entry[4:]), entry[3]
        for k, shown in enumerate((self.refused, self.lost)):
            m.submodules[shown.name] = totals = memory.Memory(
                shape=COUNTER_BITS, depth=self.geometry.linked_nodes, init=[], attrs={"ram_style": "distributed"})
            mine, read, write = (totals.read_port(domain="comb"), totals.read_port(domain="comb"), totals.write_port())
            counted = Signal(self.geometry.linked_nodes, name=f"counted{k}")
            new = Signal(COUNTER_BITS, name=f"new{k}")
            m.d.comb += [
                mine.addr.eq(node), read.addr.eq(self.row), write.addr.eq(node), write.data.eq(new),
                write.en.eq(adds & (line == k)), shown.eq(Mux(counted.bit_select(self.row, 1), read.data, 0)),
            ]
            m.d.sync += new.eq(Mux(counted.bit_select(node, 1), mine.data, 0) + more)
            with m.If(write.en):
                m.d.sync += counted.bit_select(node, 1).eq(1)
        return adds

    def _settle(self, m: Module, links, mask) -> Signal:
        """Whether some link still has to tell counts of a run that has been stopped."""
        since = Signal(range(_PATIENCE + 1))    # clocks since the disable
        lasting = Signal(len(links))
        with m.If(self.enable):
            m.d.sync += since.eq(0)
        with m.Elif(~since[-1]):
            m.d.sync += since.eq(since + 1)
        ran = Signal()                          # capture was enabled since the reset
        m.d.sync += ran.eq(ran | self.enable)
        for k, link in enumerate(links):
            left = Signal(_COUNTS, init=-1, name=f"left{k}")
            seen, anew, begun = (Signal(name=f"{name}{k}") for name in ("seen", "anew", "begun"))
            m.d.sync += [seen.eq(seen | link.locked), anew.eq(anew | link.anew | (self.enable & ~link.based)),
                         begun.eq(begun | link.anew)]
            with m.If(self.enable):
                m.d.sync += left.eq(-1)
            with m.Elif(link.judged & (since >= _SETTLES)):
                m.d.sync += left.bit_select(link.which, 1).eq(0)
            wanted = mask.word_select(k, LINK_NODES).any()
            m.d.comb += [
                lasting[k].eq(ran & ~self.enable & seen & left.any()), self.locked[k].eq(link.locked),
                self.absent[k].eq(~seen & wanted),
                self.restarted[k].eq(begun & wanted),
                self.unsure[k].eq(((anew & seen) | (lasting[k] & since[-1])) & wanted),
            ]
        # The loss of the last count follows it, and may wait for those of other links.
        settling, tail = Signal(), Signal(range(_TAIL + 1))
        with m.If(lasting.any() & ~since[-1]):
            m.d.sync += tail.eq(_TAIL)
        with m.Elif(tail != 0):
            m.d.sync += tail.eq(tail - 1)
        m.d.comb += settling.eq((lasting.any() & ~since[-1]) | (tail != 0))
        return settling
