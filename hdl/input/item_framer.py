"""Framer: groups nibbles into items, the units that are admitted or refused whole and stamped once.

Section 6 of the paper ("Lessons Learned") wishes for "time stamps produced only when directed by the
software" and for bigger units. Here every nibble of a node is an item of its own, or items are words of eight
nibbles, or they are events that state their own length.
"""

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import EVENT_SIZE_BITS, PORT_BITS, word_writes
from ..lib.bit_sliced import gathered, planes, spread

__all__ = ["ItemFramer"]


class ItemFramer(wiring.Component):
    """Finds where the items of every node begin and end, whether they are admitted or not.

    ===========  ====================================================================================
    mode         an item is
    ===========  ====================================================================================
    nibble       every nibble
    word         eight nibbles
    event        a nibble that states how many bytes follow, 1 to 15, and two nibbles for each of them;
                 a 0 between events is filler and no item
    ===========  ====================================================================================

    Parsing continues through an item that the gate refuses, and through one that began while capture was
    disabled: the next item is therefore whole. An item is aborted (``expired``) if its node falls silent in the
    middle of it. The part that was admitted is closed with a nibble of 0 that is marked ``cut``, and the next
    strobe begins a new item; a strobe in the same clock as ``expired`` still belongs to the old one. A change
    of mode restarts the framing of its node.

    With 8-bit ports every write carries a byte. An item is one byte, or four bytes that form a word, or an event
    whose first byte states in its lower four bits how many bytes follow. Everything said here of nibbles then
    applies to bytes, except that ``need`` is not halved.

    A regeneration board reports for each nibble whether it begins an item. A nibble that continues an item is discarded
    if none is open, because nibbles before it were lost.

    Parameters
    ----------
    nodes : number of nodes.
    port_bits : data bits of a port.
    linked : number of nodes that may be connected to a regeneration board; they are the first ones.

    Members
    -------
    pulse, data : from the synchronizer, one bit and one nibble per node.
    words, events : nodes in word mode; nodes in event mode, which takes precedence.
    expired : nodes whose item is aborted, if one is open.
    further : with ``pulse``: the nibble does not begin an item; without effect in nibble mode. Only with ``linked``.
    clear : a reset: nothing more of the open items is admitted.
    need : with ``pulse``: half the number of nibbles that follow this one if it begins an item,
        rounded up.
    start, nibble : an item begins with this nibble, one clock after its pulse.
    admit : from the gate, with ``start``.
    push : a nibble enters the node FIFO; ``admit``, or a further nibble of an admitted item, ``goes``.
    cut : the nibble ends an aborted item.
    ends : the nibble ends an item.
    open : nodes in the middle of an item, admitted or not.
    """

    def __init__(self, nodes: int, port_bits: int = PORT_BITS, linked: int = 0):
        self.nodes, self.port_bits, self.linked = nodes, port_bits, linked
        super().__init__({
            "pulse": In(nodes), "data": In(port_bits * nodes), "words": In(nodes), "events": In(nodes),
            "expired": In(nodes), "clear": In(1), "need": Out(nodes).array(EVENT_SIZE_BITS),
            "start": Out(nodes), "nibble": Out(port_bits * nodes), "admit": In(nodes),
            "push": Out(nodes), "goes": Out(nodes), "cut": Out(nodes), "ends": Out(nodes), "open": Out(nodes),
            **({"further": In(linked)} if linked else {}),
        })

    def elaborate(self, platform):
        m = Module()
        nodes, port_bits = self.nodes, self.port_bits
        digit = [Signal(nodes, name=f"digit{b}") for b in range(EVENT_SIZE_BITS)]
        m.d.comb += [plane.eq(gathered(self.data, port_bits, b)) for b, plane in enumerate(digit)]
        words = Signal(nodes)
        events = Signal(nodes)
        restart = Signal(nodes)
        m.d.sync += [words.eq(self.words & ~self.events), events.eq(self.events)]
        m.d.comb += restart.eq((events ^ self.events) | (words ^ (self.words & ~self.events)))

        def behind(length: int, event: list) -> list:
            """Bit planes of the number of nibbles to come: ``length`` in a word, ``event`` in an event."""
            return [(words if length >> b & 1 else 0) | (events & plane) for b, plane in enumerate(event)]

        byte_writes = 8 // port_bits
        word_left = word_writes(port_bits) - 1
        m.d.comb += [n.eq(plane) for n, plane in zip(
            self.need, behind(-(-word_left // byte_writes), digit), strict=True)]

        # Number of nibbles of an item that are still to come.
        by_two = [0] * (byte_writes - 1)
        left = planes(EVENT_SIZE_BITS + len(by_two), nodes, "left")
        begins = Signal(nodes)
        goes_on = Signal(nodes)
        aborted = Signal(nodes)
        final = Signal(nodes)
        keeps = Signal(nodes)
        stray = (words | events) & self.further if self.linked else Const(0, nodes)
        m.d.comb += [
            begins.eq(self.pulse & ~self.open & ~(events & ~reduce(or_, digit)) & ~stray),
            goes_on.eq(self.pulse & self.open), aborted.eq(self.expired & self.open & ~self.pulse),
            final.eq(reduce(and_, (~plane for plane in left[1:]), left[0])), keeps.eq(~(aborted | restart)),
        ]
        down = goes_on
        for plane, new in zip(left, behind(word_left, [*by_two, *digit]), strict=True):
            m.d.sync += plane.eq(((plane ^ down) | (begins & new)) & keeps)
            down = down & ~plane
        m.d.sync += self.open.eq(keeps & ((self.open & ~(goes_on & final)) | (begins & (words | events))))

        # The gate decides one clock later, and the nibbles after an item's first one follow its decision.
        more = Signal(nodes)
        taken = Signal(nodes)   # the open item was admitted
        m.d.sync += [
            self.start.eq(begins), more.eq(goes_on | aborted), self.cut.eq(aborted),
            self.ends.eq((begins & ~(words | events)) | (goes_on & final) | aborted),
            self.nibble.eq(self.data & ~spread(aborted, port_bits)),
            taken.eq(((taken & ~self.start) | self.admit) & ~restart & ~self.clear.replicate(nodes)),
        ]
        m.d.comb += [self.goes.eq(more & taken), self.push.eq(self.admit | self.goes)]
        return m
