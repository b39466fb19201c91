"""Byte items: nibbles from the bytes of a front end, and the check of events."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import EVENT_SIZE_BITS, FRONT_CRC, FRONT_CRC_INIT, PORT_BITS
from .nibble_sender import NIBBLES_MAX

__all__ = ["ABORT_CLOCKS", "AfterError", "ByteItems", "byte_items_signature", "crc_of"]

#: Clocks after which the nibbles written before have passed the framer, with any setting of the glitch filter that
#: passes them.
ABORT_CLOCKS = 48


def crc_of(state, byte):
    """The CRC of an event after one more byte: the sum of what each bit of the two contributes."""
    def after(value: int) -> int:
        for _ in range(8):
            value = (value << 1 & 0xff) ^ (FRONT_CRC if value >> 7 else 0)
        return value

    mixed = state ^ byte
    return reduce(xor, (Mux(mixed[bit], after(1 << bit), 0) for bit in range(8)))


def byte_items_signature() -> wiring.Signature:
    """Signature of a stage that makes nibbles of bytes.

    byte, valid, fault, pause : from the front end, see :class:`~.two_wire.TwoWire`.
    events : the node is in event mode.
    single : with ``events``: each byte is an item, an event of this one byte.
    expired : the framer has aborted the node's item.
    load, nibbles, count : see :class:`~.nibble_sender.NibbleSender`.
    abort : the framer is to abort the node's item, if one is open; high for one clock.
    rejected : a piece that formed no item, high for one clock: a fault, an event whose header or check was wrong or of
        which something is missing, or a byte that came between such an error and the next pause.
    begun : with ``rejected``: an item of the piece has begun.
    busy : clocks are being counted.
    """
    return wiring.Signature({
        "byte": In(8), "valid": In(1), "fault": In(1), "pause": In(1), "events": In(1), "single": In(1),
        "expired": In(1),
        "load": Out(1), "nibbles": Out(PORT_BITS * NIBBLES_MAX), "count": Out(range(NIBBLES_MAX + 1)),
        "abort": Out(1), "rejected": Out(1), "begun": Out(1), "busy": Out(1),
    })


class AfterError:
    """Common part of all stages with this signature: an error, or a change of the node's mode, ends an
    item. From the state ABORT such a stage goes to HUNT when the nibbles before have passed the framer.

    Parameters
    ----------
    m : the stage's module; outputs that are high for one clock are cleared by default.
    stage : the stage.
    settle : counts the clocks of ABORT down.
    clocks : of ABORT.

    Members
    -------
    wrong : an error, to be set in the states; it counts as rejected.
    """

    def __init__(self, m: Module, stage: wiring.Component, settle: Signal, clocks: int):
        self.stage, self.settle, self.clocks = stage, settle, clocks
        self.wrong, self.changed = (Signal(name=name) for name in ("wrong", "changed"))
        mode = Cat(stage.events, stage.single)
        was = Signal.like(mode, name="was")
        m.d.comb += self.changed.eq(was != mode)
        m.d.sync += [stage.rejected.eq(0), stage.abort.eq(0), was.eq(mode)]

    def leave(self, m: Module) -> None:
        """The end of a state: an error leads to ABORT."""
        with m.If(self.wrong | self.changed):
            m.d.sync += [self.stage.rejected.eq(self.wrong), self.settle.eq(self.clocks - 1)]
            m.next = "ABORT"

    def abort(self, m: Module) -> None:
        """Adds the state ABORT."""
        stage = self.stage
        with m.State("ABORT"):
            m.d.sync += [self.settle.eq(self.settle - 1), stage.rejected.eq(stage.valid | stage.fault)]
            with m.If(self.settle == 0):
                m.d.sync += stage.abort.eq(1)
                m.next = "HUNT"


class ByteItems(wiring.Component):
    """Each byte is two nibbles, the lower one first, unless the node is in event mode. With ``single``, each byte is
    then an event of its own: the framer gets the nibble 1, and then the two of the byte. Otherwise an event of n bytes,
    1 to 15, is sent as n + 2:

    =======  ==========================================================================
    byte     contents
    =======  ==========================================================================
    first    bits 3..0: n; bits 7..4: their complement; 0xf0 is filler, and no event
    next n   the event
    last     CRC-8 of all bytes before: polynomial 0x07, initial state 0xff, not inverted
    =======  ==========================================================================

    The framer gets the nibble n with the first byte, so the event has the time of this byte. It gets the last byte of
    the event only if the check is right; otherwise it aborts the event. Of random bytes 1 of 16 is a valid first one,
    and 1 of 256 a valid check.

    After an error, bytes are discarded until the wires have paused. A node that is in the middle of an event may pause;
    if the framer's time-out ends the event, that is an error.

    Members: see :func:`byte_items_signature`.
    """

    def __init__(self):
        super().__init__(byte_items_signature())

    def elaborate(self, platform):
        m = Module()
        low, high = self.byte[:PORT_BITS], self.byte[PORT_BITS:]
        left = Signal(EVENT_SIZE_BITS)          # bytes of the event that are still to come
        kept = Signal(8)                        # the last one that has come, ...
        keeps = Signal()                        # ... if one has
        crc = Signal(8)
        settle = Signal(range(ABORT_CLOCKS))
        begins, single, framed = Signal(), Signal(), Signal()
        one = Const(1, PORT_BITS)
        m.d.comb += [begins.eq(high == ~low), single.eq(self.events & self.single),
                     framed.eq(self.events & ~self.single)]
        error = AfterError(m, self, settle, ABORT_CLOCKS)
        wrong = error.wrong
        with m.FSM(init="HUNT") as fsm:
            m.d.sync += self.begun.eq(self.expired | fsm.ongoing("NEXT"))
            with m.State("HUNT"):
                m.d.sync += self.rejected.eq(self.valid | self.fault)
                with m.If(self.pause & ~(self.valid | self.fault)):
                    m.next = "FIRST"
            with m.State("FIRST"):
                m.d.sync += [left.eq(low), keeps.eq(0), crc.eq(crc_of(Const(FRONT_CRC_INIT, 8), self.byte))]
                m.d.comb += [
                    self.nibbles.eq(Mux(single, Cat(one, self.byte), self.byte)),
                    self.count.eq(Mux(single, 3, Mux(self.events, 1, 2))),
                    self.load.eq(self.valid & (~framed | (begins & (low != 0)))),
                    wrong.eq(self.fault | self.expired | (self.valid & framed & ~begins)),
                ]
                with m.If(self.load & framed):
                    m.next = "NEXT"
                error.leave(m)
            with m.State("NEXT"):
                with m.If(self.valid):
                    m.d.sync += [kept.eq(self.byte), keeps.eq(1), left.eq(left - 1), crc.eq(crc_of(crc, self.byte))]
                    with m.If(left == 0):
                        m.next = "FIRST"
                m.d.comb += [
                    self.nibbles.eq(kept), self.count.eq(2),
                    wrong.eq(self.fault | self.expired | (self.valid & (left == 0) & (crc != self.byte))),
                    self.load.eq(self.valid & keeps & ~wrong),
                ]
                error.leave(m)
            error.abort(m)
        m.d.comb += self.busy.eq(fsm.ongoing("ABORT") | self.rejected | self.abort)
        return m
