"""Completer: executes the reads and writes of the host's processor in BAR0."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...control.initiator import access_layout
from ...layout import PCIE_BASE, PCIE_END
from .tlp import CompletionStatus, Kind, byte_count, completion_layout, first_byte, request_layout

__all__ = ["Completer"]

#: Clocks until an access that the board does not answer is given up: 0.8 us at 250 MHz.
PATIENCE = 200
#: Registers of the link, log2.
_OWN_LOG = ((PCIE_END - PCIE_BASE) // 4).bit_length() - 1


class Completer(wiring.Component):
    """Turns each request into at most two register accesses, and each non-posted one into one completion.

    - A read of one dword returns the register. One without enabled bytes returns 0 and has no side effect.
    - A write of one dword writes the register. If some bytes are not enabled, the register is read first, and they
      are written back as they were. One without enabled bytes does nothing.
    - All other non-posted requests get a completion with status Unsupported Request.
    - Writes that are poisoned, shorter than their header states, or longer than one dword are dropped and counted.
      So are all other posted requests.
    - If the board does not answer within ``patience`` clocks, a read gets a completion with status Completer Abort. A
      write is carried out nevertheless, but late; one of some bytes, whose read is late, is dropped. Until the late
      answer has come, the board is ``busy``: its registers cannot be reached, reads of them get Completer Abort at
      once, and writes are dropped. The link's own registers can be reached at any time.

    One request at a time. While the link is ``down``, the block has forgotten its requests: no completion is sent
    for a request that came before, but its access is finished, because nobody must let go of the bus in the middle
    of one.

    Parameters
    ----------
    patience : clocks for which an access waits for the board.

    Members
    -------
    i : requests, see :func:`~.tlp.request_layout`.
    o : completions, see :func:`~.tlp.completion_layout`.
    command, reply : register accesses, see :class:`~.initiator.Initiator`. A reply is taken in the clock it comes.
    own : the reply is that of a register of the link.
    down : the link is in reset.
    closed : a function-level reset is under way: no access begins. Reads get Completer Abort, writes are dropped.
    idle : no access is under way, and the board owes no answer.
    requested : a request is offered or being handled, or its completion was not taken.
    busy : the board owes the answer to an access that was given up.
    dropped, refused, timeouts : counters, modulo their width: see register PCIE_DROPPED and PCIE_TIMEOUTS.
    """

    def __init__(self, patience: int | None = None):
        self.patience = PATIENCE if patience is None else patience
        super().__init__({
            "i": In(stream.Signature(request_layout())), "o": Out(stream.Signature(completion_layout())),
            "command": Out(stream.Signature(access_layout())), "reply": In(stream.Signature(32)), "own": In(1),
            "down": In(1), "closed": In(1), "idle": Out(1), "requested": Out(1), "busy": Out(1),
            "dropped": Out(16), "refused": Out(16), "timeouts": Out(8),
        })

    def elaborate(self, platform):
        m = Module()
        request = Signal(request_layout(), reset_less=True)     # its first beat
        bad = Signal()           # poisoned, or not exactly one dword
        void = Signal()          # the block has forgotten it
        status = Signal(CompletionStatus)
        word = Signal(32)        # that was read
        inner = Signal()         # it is for a register of the link
        answered = Signal()      # its reply is here, and not that of an access that was given up
        left = Signal(range(self.patience + 1))
        read, write, locked = (request.kind == kind for kind in (Kind.READ, Kind.WRITE, Kind.LOCKED))
        of_memory = read | locked      # others state 4 bytes at address 0 (section 2.2.9)
        one, none, all_ = request.length == 1, request.first_be == 0, request.first_be == 0xf
        merged = Cat(Mux(request.first_be[k], request.data.word_select(k, 8), word.word_select(k, 8))
                     for k in range(4))
        m.d.comb += [
            self.o.p.status.eq(status), self.o.p.dwords.eq(status == CompletionStatus.SUCCESS),
            self.o.p.bytes.eq(Mux(of_memory, byte_count(request.length, request.first_be, request.last_be), 4)),
            self.o.p.lower.eq(Mux(of_memory, Cat(first_byte(request.first_be), request.offset[:5]), 0)),
            self.o.p.requester.eq(request.requester), self.o.p.tag.eq(request.tag), self.o.p.tc.eq(request.tc),
            self.o.p.attr.eq(request.attr), self.o.p.locked.eq(locked), self.o.p.data.eq(word),
            self.reply.ready.eq(1),
            inner.eq(request.offset[_OWN_LOG:] == PCIE_BASE // (PCIE_END - PCIE_BASE)),
            answered.eq(self.reply.valid & (self.own == inner)),
        ]
        with m.If(self.command.ready):
            m.d.sync += self.command.valid.eq(0)
        with m.If(self.reply.valid & ~self.own):
            m.d.sync += self.busy.eq(0)

        def access(writes: int, state: str) -> None:
            m.d.sync += [
                self.command.valid.eq(1), self.command.p.write.eq(writes),
                self.command.p.addr.eq(request.offset << 2), self.command.p.wdata.eq(merged), left.eq(self.patience)]
            m.next = state

        def fails(drops: int = 1) -> None:
            m.d.sync += self.timeouts.eq(self.timeouts + 1)
            with m.If(read):
                m.d.sync += status.eq(CompletionStatus.ABORT)
                m.next = "COMPLETE"
            with m.Else():
                m.d.sync += self.dropped.eq(self.dropped + drops)
                m.next = "IDLE"

        def awaited(drops: int) -> None:
            m.d.sync += left.eq(left - 1)
            with m.If(~answered & (left == 0)):
                m.d.sync += self.busy.eq(1)
                fails(drops)

        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    request.eq(self.i.p), void.eq(0), word.eq(0), status.eq(CompletionStatus.SUCCESS),
                    bad.eq(self.i.p.bad | (self.i.p.dwords != 1) | ~self.i.p.last)]
                with m.If(self.i.valid & ~self.down):
                    m.next = "ACT"
                    with m.If(~self.i.p.last):
                        m.next = "SKIP"
            with m.State("SKIP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.down):
                    m.next = "IDLE"
                with m.Elif(self.i.valid & self.i.p.last):
                    m.next = "ACT"
            with m.State("ACT"):
                with m.If((write & (bad | ~one)) | (request.kind == Kind.POSTED)):
                    m.d.sync += self.dropped.eq(self.dropped + 1)
                    m.next = "IDLE"
                with m.Elif((read & ~one) | locked | (request.kind == Kind.NONPOSTED)):
                    m.d.sync += [self.refused.eq(self.refused + 1), status.eq(CompletionStatus.UNSUPPORTED)]
                    m.next = "COMPLETE"
                with m.Elif(none):
                    m.next = "IDLE"
                    with m.If(read):
                        m.next = "COMPLETE"
                with m.Elif(self.closed | (self.busy & ~inner)):
                    fails()
                with m.Elif(write & all_):
                    access(1, "WRITE")
                with m.Else():
                    access(0, "READ")
            with m.State("READ"):
                awaited(1)
                with m.If(answered):
                    m.d.sync += word.eq(self.reply.p)
                    m.next = "MERGE"
                    with m.If(read):
                        m.next = "COMPLETE"
            with m.State("MERGE"):
                access(1, "WRITE")
            with m.State("WRITE"):
                awaited(0)
                with m.If(answered):
                    m.next = "IDLE"
            with m.State("COMPLETE"):
                m.d.comb += self.o.valid.eq(~void)
                with m.If(self.o.ready | void):
                    m.next = "IDLE"
        m.d.comb += self.requested.eq(self.i.valid | ~fsm.ongoing("IDLE"))
        m.d.comb += self.idle.eq(~(self.busy | fsm.ongoing("READ") | fsm.ongoing("MERGE") | fsm.ongoing("WRITE")))
        with m.If(self.down & ~fsm.ongoing("IDLE")):
            m.d.sync += void.eq(1)
        return m
