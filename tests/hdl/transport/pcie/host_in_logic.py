"""A host as logic, which judges the ring in every clock: fast enough for millions of writes.

Source, posted queue, memory and consumer draw from one generator of random numbers. The posted queue is that of the PCI
Express ordering rules: a write waits for those before it, unless it has the attribute Relaxed Ordering.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.layout import PCIE_PAGES_LOG_MAX
from hypermon.hdl.lib.fifo import StreamFifo
from hypermon.hdl.transport.pcie.ring import Ring
from hypermon.hdl.transport.pcie.tlp import mps_beats
from hypermon.hdl.transport.pcie.ultrascale_plus import UltrascalePlus

__all__ = ["ERRORS", "HostInLogic"]

#: Page of the ring, and beats of 16 bytes in a page, log2.
PAGE, PAGE_LOG = 0x5_6789a, 8
#: Bits of ``errors``.
ERRORS = (
    "the head is before its data", "the head does not grow", "outside the ring or not the next address",
    "over what was not consumed", "a line of 4 KiB is crossed", "longer than the maximum payload", "other data",
    "the head of another start", "not strictly ordered",
)


def _beat(number):
    """Data of a beat."""
    return Cat(number, ~number, number ^ 0x5a5aa5a5, number[16:], number[:16])


class HostInLogic(wiring.Component):
    """Ring and UltraScale+ adapter between a source and a host.

    Parameters
    ----------
    pages_log : of the largest ring that has a memory; of a larger one, data are compared when they reach memory.
    ring, adapter : classes of these.

    Members
    -------
    seed : of the generator, not 0; taken while in reset.
    Chances of 256 in a clock, that: ``comes`` a beat comes; ``ends`` it ends a block; ``taken`` the block is ready;
    ``waits`` a write that has begun to reach memory waits, then 4 to 67 clocks; ``lacks`` the block says that it has no
    room; ``drains`` the host consumes a beat; ``tells`` it writes the tail.
    every : clocks from a beat to the next one at the earliest. pages, mps, flush : see Ring.
    offered, delivered : beats. written, reported : writes and reports that reached memory. blocked : clocks in which a
    beat was not accepted. errors : see ERRORS; sticky.
    """

    def __init__(self, pages_log: int = 2, ring=Ring, adapter=UltrascalePlus):
        self.pages_log, self.ring, self.adapter = pages_log, ring, adapter
        super().__init__({
            "seed": In(64), "comes": In(9), "ends": In(9), "taken": In(9), "waits": In(9), "lacks": In(9),
            "drains": In(9), "tells": In(9), "every": In(16), "pages": In(4), "mps": In(2), "flush": In(24),
            "offered": Out(32), "delivered": Out(32), "written": Out(32), "reported": Out(32), "blocked": Out(32),
            "errors": Out(len(ERRORS)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = self.ring()
        m.submodules.adapter = adapter = self.adapter()
        wiring.connect(m, ring.o, adapter.write)
        state = Signal(64)
        one, two = Signal(64), Signal(64)
        m.d.comb += [one.eq(state ^ (state << 13)), two.eq(one ^ (one >> 7))]
        m.d.sync += state.eq(Mux(state == 0, self.seed, two ^ (two << 17)))
        draw = [state[8 * k:8 * k + 8] for k in range(8)]
        tail = Signal(28)
        m.d.comb += [
            ring.settings.enable.eq(1), ring.settings.page.eq(PAGE), ring.settings.pages.eq(self.pages),
            ring.settings.tail.eq(tail), ring.settings.flush.eq(self.flush), ring.mps.eq(self.mps),
            ring.permitted.eq(1), ring.room.eq(draw[7] >= self.lacks)]
        self._source(m, ring.i, draw)
        size = Signal(28)
        m.d.comb += size.eq(1 << (self.pages + PAGE_LOG))
        queue, passes = self._block(m, adapter, draw)
        position = self._memory(m, queue, passes, size, draw, ring.state.starts)
        with m.If(draw[6] < self.tells):
            m.d.sync += tail.eq(self.delivered)
        with m.If(position - tail > size):
            m.d.sync += self.errors[3].eq(1)
        return m

    def _source(self, m, i, draw) -> None:
        pause = Signal(16)
        m.d.comb += [i.p.data.eq(_beat(self.offered))]
        with m.If(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        with m.If(i.valid & i.ready):
            m.d.sync += [self.offered.eq(self.offered + 1), i.valid.eq(0), pause.eq(self.every)]
        m.d.sync += self.blocked.eq(self.blocked + (i.valid & ~i.ready))
        with m.If((~i.valid | i.ready) & (draw[0] < self.comes) & Mux(i.valid, self.every == 0, pause == 0)):
            m.d.sync += [i.valid.eq(1), i.p.last.eq(draw[1] < self.ends)]

    def _block(self, m, adapter, draw):
        """Reads descriptors; returns the queue of beats (address, data, last), and the report that may pass it."""
        m.submodules.queue = queue = StreamFifo(data.StructLayout({"address": 60, "data": 128, "last": 1}), 128)
        within, address, relaxed = Signal(), Signal(60), Signal()
        word, takes = adapter.s_axis_rq_tdata, Signal()
        beats = word[66:75]
        m.d.comb += [
            adapter.s_axis_rq_tready.eq((draw[2] < self.taken) & queue.i.ready),
            takes.eq(adapter.s_axis_rq_tvalid & adapter.s_axis_rq_tready),
            queue.i.valid.eq(takes & within & ~relaxed), queue.i.p.address.eq(address), queue.i.p.data.eq(word),
            queue.i.p.last.eq(adapter.s_axis_rq_tlast)]
        with m.If(takes & ~within):
            m.d.sync += [within.eq(1), address.eq(word[4:64]), relaxed.eq(word[125])]
            with m.If(word[124:127] != 0):
                m.d.sync += self.errors[8].eq(1)
            with m.If(word[4:4 + PAGE_LOG] + beats > 1 << PAGE_LOG):
                m.d.sync += self.errors[4].eq(1)
            with m.If((beats > mps_beats(self.mps)) | (beats == 0)):
                m.d.sync += self.errors[5].eq(1)
        with m.Elif(takes):
            m.d.sync += [within.eq(~adapter.s_axis_rq_tlast), address.eq(address + 1)]
        return queue.o, (takes & within & relaxed, word)

    def _memory(self, m, queue, passes, size, draw, starts):
        """Carries out what leaves the queue; the host consumes up to the head."""
        m.submodules.memory = memory_ = memory.Memory(
            shape=128, depth=1 << (PAGE_LOG + self.pages_log), init=[])
        write, read, newest = memory_.write_port(), memory_.read_port(domain="comb"), memory_.read_port(domain="comb")
        position, head, wait, first = Signal(28), Signal(28), Signal(7), Signal(init=1)
        base = Const(PAGE << PAGE_LOG, 60)
        report, goes, tells, word = Signal(), Signal(), Signal(), Signal(128)
        mask, kept = (size - 1)[:PAGE_LOG + PCIE_PAGES_LOG_MAX], Signal()
        m.d.comb += kept.eq(self.pages <= self.pages_log)
        m.d.comb += [
            report.eq(queue.p.address == base + size), queue.ready.eq(wait == 0), goes.eq(queue.valid & queue.ready),
            write.en.eq(goes & ~report), write.addr.eq(queue.p.address - base), write.data.eq(queue.p.data),
            tells.eq((goes & report) | passes[0]), word.eq(Mux(passes[0], passes[1], queue.p.data)),
        ]
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.If(goes):
            m.d.sync += first.eq(queue.p.last)
            with m.If(queue.p.last):
                m.d.sync += self.written.eq(self.written + 1)
                with m.If(draw[3] < self.waits):
                    m.d.sync += wait.eq(draw[4][:6] + 4)
        with m.If(goes & ~report):
            m.d.sync += position.eq(position + 1)
            with m.If(queue.p.address != base + (position & mask)):
                m.d.sync += self.errors[2].eq(1)
            with m.If(queue.p.data != _beat(Cat(position, Const(0, 4)))[:128]):
                m.d.sync += self.errors[6].eq(1)
        told = word[4:32]
        with m.If(tells):
            m.d.sync += [head.eq(told), self.reported.eq(self.reported + 1)]
            with m.If((told - position)[:28].as_signed() > 0):
                m.d.sync += self.errors[0].eq(1)
            with m.If((told - head)[:28].as_signed() <= 0):
                m.d.sync += self.errors[1].eq(1)
            with m.If(word[32:48] != starts):
                m.d.sync += self.errors[7].eq(1)
        # What the newest head covers is there, and what is consumed is what was offered.
        shown, known = Signal(), Signal(28)
        m.d.sync += [shown.eq(tells), known.eq(told - 1)]
        m.d.comb += [newest.addr.eq(known & mask), read.addr.eq(self.delivered & mask)]
        with m.If(kept & shown & (newest.data[:28] != known)):
            m.d.sync += self.errors[0].eq(1)
        with m.If((draw[5] < self.drains) & (head != self.delivered[:28])):
            m.d.sync += self.delivered.eq(self.delivered + 1)
            with m.If(kept & (read.data != _beat(self.delivered)[:128])):
                m.d.sync += self.errors[6].eq(1)
        return position
