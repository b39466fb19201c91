"""Trigger: items pass from a start to a stop, with what came just before the start."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .expander import item_layout
from .fifo import SmallFifo
from .layout import PORT_BITS, PRETRIGGER_MAX, Geometry
from .ram import Ram

__all__ = ["Trigger", "match_layout"]

#: Nibbles that are read ahead.
_AHEAD = 8
#: Places that are kept free for nibbles on their way.
_MARGIN = 8


def match_layout() -> data.StructLayout:
    """What an item must be, as registers START and STOP say it: the bits of its value and of its node
    that are set in the masks must be as they are here. The value is the event id with ``event``, of
    nodes in event mode only, else the first nibble, of other nodes only. Nothing matches unless ``on``."""
    return data.StructLayout({
        "value": 8, "value_mask": 8, "node": 5, "zero_0": 3, "node_mask": 5, "zero_1": 1, "event": 1, "on": 1})


class Trigger(wiring.Component):
    """Lets nibbles of items pass, or throws whole windows away.

    With a start, it waits: it keeps the last nibbles in a memory, and throws away windows that end
    more than ``before`` nibbles before the next one that comes. At the first item that matches, all
    that is kept goes on, and all that comes: the window that holds the nibble so many before the
    matching one (the third of an event, its id's upper half; with ports of 8 bits the second) is the first.
    With a stop, the window of the first item that matches, the start not counted, is the last. On a board
    with half clocks they stand for windows here when they are what stamps count.

    Parameters
    ----------
    geometry : of the board.
    ram : kind of memory, see :class:`~.ram.Ram`.

    Members
    -------
    i, o : nibbles of items, windows in order; ten clocks from one to the other at least.
    events : nodes in event mode.
    start, stop : see :func:`match_layout`. These three do not change while capture goes on.
    before : nibbles before the start, up to :data:`~.layout.PRETRIGGER_MAX`; likewise.
    finish : nothing will come any more: what waits for a start is thrown away.
    triggered, stopped : a start has been found; a stop has been found, and its window is complete.
    thrown : an item was thrown away in front of the memory, and one behind it, two clocks ago at most.
    busy : something is on its way.
    holds : something is inside, be it only because it waits for a start.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        self.shape = item_layout(geometry.nodes, geometry.port_bits)
        # Room for what is to be kept and the longest window.
        self.depth = 1024 if geometry.nodes <= 16 else 2048
        super().__init__({
            "i": In(stream.Signature(self.shape)), "o": Out(stream.Signature(self.shape)),
            "events": In(geometry.nodes), "start": In(match_layout()), "stop": In(match_layout()),
            "before": In(range(PRETRIGGER_MAX + 1)), "finish": In(1),
            "triggered": Out(1), "stopped": Out(1), "thrown": Out(2),
            "busy": Out(1), "holds": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        depth = self.depth
        bits = (depth - 1).bit_length()
        m.submodules.items = items = Ram(self.shape.size, depth, self.ram)
        m.submodules.firsts = firsts = Ram(1, depth, self.ram)
        m.submodules.landing = landing = SmallFifo(self.shape, _AHEAD)
        wiring.connect(m, landing.o, wiring.flipped(self.o))

        # A nibble as it comes; is it of an event; what of it is to be compared; each part compared; all of them.
        stages = [Signal(self.shape, name=f"item{k}", reset_less=True) for k in range(5)]
        valid = Signal(5)
        came = self.i.valid & self.i.ready
        m.d.sync += [
            valid.eq(Cat(came, valid)), stages[0].eq(self.i.p),
            *(new.eq(old) for old, new in pairwise(stages)),
        ]
        of_event = Signal()
        place = Signal(2)           # within its item: 0, 1, 2, more
        nibble_before = Signal(self.geometry.port_bits)
        value = Signal(8)
        is_value = Signal()
        is_event = Signal()
        m.d.sync += of_event.eq(self.events.bit_select(stages[0].node, 1))
        with m.If(valid[1]):
            m.d.sync += [
                nibble_before.eq(stages[1].nibble), place.eq(Mux(stages[1].begins, 1, place + ~place.all()))]
        # An event's id: its second byte, or the two nibbles behind its first.
        id_place, event_id = 2, Cat(nibble_before, stages[1].nibble)
        if self.geometry.port_bits != PORT_BITS:
            id_place, event_id = 1, stages[1].nibble
        m.d.sync += [
            is_event.eq(of_event),
            is_value.eq(Mux(of_event, (place == id_place) & ~stages[1].begins, stages[1].begins)),
            value.eq(Mux(of_event, event_id, stages[1].nibble)),
        ]
        matches = []
        for wanted, name in ((self.start, "start"), (self.stop, "stop")):
            parts = Signal(4, name=f"{name}_differs")
            hit = Signal(name=f"{name}_hit")
            differs = (value ^ wanted.value) & wanted.value_mask
            node = (stages[2].node ^ wanted.node) & wanted.node_mask
            m.d.sync += [
                parts.eq(Cat(differs[:4].any(), differs[4:].any(), node.any(),
                             ~(wanted.on & is_value & (is_event == wanted.event)))),
                hit.eq(valid[3] & ~parts.any()),
            ]
            matches.append(hit)
        starts, stops = matches
        item = stages[4]

        # In: all that may be needed. Behind the window of a stop, nothing.
        level = Signal(range(depth + 1))
        write = Signal(bits)
        armed = Signal()
        waits = Signal()        # for a start
        triggers = Signal()
        stopping = Signal()
        dropped = Signal()      # ... is what has come
        enters = Signal()
        m.d.sync += [armed.eq(self.start.on), self.i.ready.eq(level < depth - _MARGIN - 8)]
        m.d.comb += [
            waits.eq(armed & ~self.triggered), triggers.eq(valid[4] & waits & starts),
            dropped.eq(valid[4] & (self.stopped | (stopping & item.first))), enters.eq(valid[4] & ~dropped),
            items.w_en.eq(enters), items.w_addr.eq(write), items.w_data.eq(item),
            firsts.w_en.eq(enters), firsts.w_addr.eq(write), firsts.w_data.eq(item.first),
        ]
        with m.If(enters):
            m.d.sync += write.eq(write + 1)
        with m.If(triggers):
            m.d.sync += self.triggered.eq(1)
        with m.Elif(valid[4] & stops & ~waits & ~dropped):
            m.d.sync += stopping.eq(1)
        with m.If(dropped):
            m.d.sync += self.stopped.eq(1)

        # While it waits, `seen` follows so far behind: the window that begins last before it is the first
        # that is kept. `due` says how many there are to be seen, less one. What enters counts a clock later.
        seen = Signal(bits)
        due = Signal(range(-PRETRIGGER_MAX - 1, depth + 1))
        unseen = Signal(range(depth + 1))
        some_unseen = Signal()
        entered = Signal()
        counted = Signal()          # ... one that makes another due
        found = Signal()            # the start has been, a clock ago
        settled = Signal(init=1)    # `keep` stands, the start has been found
        looks = Signal()
        looking = Signal(3)
        looked = [Signal(bits, name=f"looked{k}") for k in range(2)]
        keep = Signal(bits)
        fresh = Signal(init=1)      # nothing has come
        abandon = Signal()
        m.d.comb += [
            looks.eq(some_unseen & ~due[-1] & (waits | ~settled)),
            firsts.r_en.eq(1), firsts.r_next.eq(1), firsts.r_addr.eq(seen), abandon.eq(self.finish & waits),
        ]
        m.d.sync += [
            looking.eq(Cat(looks, looking)), looked[0].eq(seen), looked[1].eq(looked[0]), entered.eq(enters),
            counted.eq(enters & waits & ~starts), found.eq(triggers),
        ]
        with m.If(looks):
            m.d.sync += seen.eq(seen + 1)
        with m.If(looking[1] & firsts.r_data):
            m.d.sync += keep.eq(looked[1])
        with m.If(fresh):
            m.d.sync += [due.eq(-self.before), settled.eq(~armed | self.triggered)]
        with m.Elif(counted ^ looks):
            m.d.sync += due.eq(due + Mux(looks, -1, 1))
        with m.If(entered ^ looks):
            m.d.sync += [unseen.eq(unseen + Mux(looks, -1, 1)), some_unseen.eq(entered | (unseen != 1))]
        with m.If(enters):
            m.d.sync += fresh.eq(0)
        with m.If(triggers):
            m.d.sync += settled.eq(0)
        with m.Elif(self.triggered & ~found & ~looks & ~looking.any() & (due[-1] | ~some_unseen)):
            m.d.sync += settled.eq(1)
        with m.If(abandon):
            m.d.sync += [seen.eq(write), unseen.eq(0), some_unseen.eq(0), looking.eq(0), keep.eq(write), fresh.eq(1)]

        # Out: what is not kept is read and thrown away.
        read = Signal(bits)
        following = Signal(bits, init=1)
        at_keep = Signal(init=1)
        some = Signal()         # level != 0
        left = Signal()
        ahead = Signal(range(_AHEAD + 1))
        fetches = Signal()
        passes = Signal()       # ... what goes on
        fetching = Signal(2)
        passing = Signal(2)
        out = Signal(self.shape)
        going = Signal()        # what was not kept has been thrown away
        throws = Signal()
        m.d.comb += [
            throws.eq(~going & ~at_keep), passes.eq(going & some & ~ahead[-1]),
            fetches.eq(throws | passes), items.r_en.eq(1), items.r_next.eq(1), items.r_addr.eq(read),
            out.eq(items.r_data), landing.i.valid.eq(fetching[1] & passing[1]), landing.i.p.eq(out),
        ]
        m.d.sync += [
            fetching.eq(Cat(fetches, fetching)), passing.eq(Cat(passes, passing)),
            left.eq(self.o.valid & self.o.ready),
            going.eq(~waits & ~triggers & settled & (going | at_keep | ~armed)),
            at_keep.eq(Mux(throws, following, read) == keep),
        ]
        with m.If(fetches):
            m.d.sync += [read.eq(following), following.eq(following + 1)]
        with m.If(enters ^ fetches):
            m.d.sync += [level.eq(level + Mux(fetches, -1, 1)), some.eq(enters | (level != 1))]
        with m.If(passes ^ left):
            m.d.sync += ahead.eq(ahead + Mux(left, -1, 1))

        m.d.sync += self.thrown.eq(Cat(dropped & item.begins, fetching[1] & ~passing[1] & out.begins))
        m.d.sync += self.holds.eq(some | fetching.any() | (landing.level != 0) | valid.any() | came)
        m.d.sync += self.busy.eq(
            came | valid.any() | entered | fetching.any() | looks | looking.any() | throws | (landing.level != 0)
            | self.thrown.any() | (~waits & some))
        return m
