"""Specification of the trigger's front: which item starts and which one stops, and what enters its memory."""

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from amaranth.lib import data
from hypermon.hdl.layout import PORT_BITS, Geometry, Sink
from hypermon.hdl.trigger.trigger import Trigger, match_layout

from ...prover import Spec, exposing, opened, using
from ...standins import one_word_rams

__all__ = ["TriggerSpec"]


def _layout(nodes: int, port_bits: int) -> data.StructLayout:
    """Of a nibble what the trigger looks at."""
    return data.StructLayout({"node": 1, "nibble": port_bits, "first": 1, "begins": 1, "late": 1, "time": 2})


class TriggerSpec(Spec):
    """The start is the first item that matches; the stop is the first behind it that does, or in the absence of a start
    the first of all, but no late one from before the start's window. It is complete with the next window. What comes
    then is thrown away, but for late items of the stop's window and before; and so are late items of later windows as
    soon as there is a stop. Each item that is thrown away is told; all else enters, in the order in which it came, and
    there is room for it. The stop is said when no item is awaited any more that was when its window had ended.

    Which windows in front of the start go on is left open, but no more is read than the memory holds. Promised is that
    the settings stand for some clocks before the first nibble, and that an item is of one node, and late or not, as a
    whole; ``finish`` does not come.

    Parameters
    ----------
    port_bits : 4, or 8.
    """

    #: A nibble has been compared within six clocks, and what goes wrong shows in a few more.
    induction = 15
    #: Clocks until a nibble has been compared; nibbles that the memory holds.
    COMPARED, DEPTH = 5, 32
    #: Nibbles in it and on their way to it at most: ``ready`` falls with 16 places left, and six come all the same.
    ROOM = DEPTH - 16 + 6

    def __init__(self, trigger=Trigger, port_bits=PORT_BITS):
        super().__init__()
        trigger, self.signals = exposing(trigger)
        self.port_bits, self.rams = port_bits, one_word_rams(self, 0)
        self.trigger = using(trigger, Ram=self.rams, PRETRIGGER_MAX=3, item_layout=_layout)

    def specify(self, m: Module) -> None:
        dut = self.trigger(Geometry(2, sinks=(Sink.EXTENDED,), port_bits=self.port_bits))
        dut.depth = self.DEPTH
        m.submodules.dut = opened(dut)
        memory, n = self.rams.made[0], self.signals
        item, valid = data.View(dut.shape, self.free(dut.shape.size, "item")), self.free(1, "valid")
        start, stop = (data.View(match_layout(), self.constant(m, match_layout().size, name))
                       for name in ("start", "stop"))
        events = self.constant(m, 2, "events")
        settled = Signal(3)     # the settings have stood for so long
        m.d.sync += settled.eq(settled << 1 | 1)
        m.d.comb += [
            dut.i.valid.eq(valid & settled.all()), dut.i.p.eq(item), dut.o.ready.eq(self.free(1, "takes")),
            dut.start.eq(start), dut.stop.eq(stop), dut.events.eq(events),
            dut.before.eq(self.constant(m, 2, "so_many")),
        ]
        came = dut.i.valid & dut.i.ready

        # Each nibble as it comes, in one clock.
        since, before = Signal(2), Signal(self.port_bits)      # so many, of its item: 0, 1, 2, more
        here = Mux(item.begins, 0, since)
        is_event = events.bit_select(item.node, 1)
        decides = Mux(is_event, here == 8 // self.port_bits, item.begins)
        identity = Cat(before, item.nibble) if self.port_bits == PORT_BITS else item.nibble
        value = Mux(is_event, identity, item.nibble)

        def matches(match):
            return (match.on & decides & (match.event == is_event) & (((value ^ match.value) & match.value_mask) == 0)
                    & (((item.node ^ match.node) & match.node_mask) == 0))

        with m.If(came):
            m.d.sync += [since.eq(Mux(here == 3, 3, here + 1)), before.eq(item.nibble)]
        triggered, stopping, stopped = Signal(), Signal(), Signal()
        edge, behind_stop = Signal.like(item.time), Signal()     # the start's window, then the stop's
        late, of = Signal(), Signal.like(item.node)
        waits = start.on & ~triggered
        is_behind = Mux(item.begins, stopping & (item.time > edge), behind_stop)
        ends = Mux(item.late, is_behind, stopped | (stopping & item.first))
        triggers, stops = Signal(), Signal()
        m.d.comb += [
            Assume(~came | item.begins | ((item.late == late) & (item.node == of))),
            triggers.eq(came & waits & matches(start)),
            stops.eq(came & ~waits & matches(stop) & ~stopping & ~(item.late & (item.time < edge))),
        ]
        with m.If(triggers):
            m.d.sync += triggered.eq(1)
        with m.If(stops):
            m.d.sync += stopping.eq(1)
        with m.If(triggers | stops):
            m.d.sync += edge.eq(item.time)
        with m.If(came):
            m.d.sync += [stopped.eq(stopped | (ends & ~item.late)), behind_stop.eq(is_behind), late.eq(item.late),
                           of.eq(item.node)]

        # And what is seen of it, when it has been compared.
        def later(value, clocks, name):
            for k in range(clocks):
                last, value = value, Signal(len(value), name=f"{name}{k}")
                m.d.sync += value.eq(last)
            return value

        enters, entered = later(came & ~ends, self.COMPARED, "enters"), later(item.as_value(), self.COMPARED, "entered")
        write = Signal(range(self.DEPTH))
        m.d.sync += write.eq(write + enters)
        over = later(stopped, self.COMPARED, "over")
        awaited, owed = self.free(2, "awaited"), Signal(2)
        m.d.comb += dut.awaited.eq(awaited)
        m.d.sync += owed.eq(Mux(over, owed & awaited, awaited))
        level, coming = n["level"], sum(n["valid"])
        m.d.comb += [
            Assert(dut.triggered == later(triggered, self.COMPARED, "triggered"), "the first that matches"),
            Assert(dut.stopped == later(over & (owed == 0), 1, "stopped"), "with the window of the next that does"),
            Assert(memory.w_en == enters, "all enters but what is behind the stop"),
            Assert(~enters | ((memory.w_data == entered) & (memory.w_addr == write)), "as it came"),
            Assert(dut.thrown[0] == later(came & ends & item.begins, self.COMPARED + 1, "thrown"), "told"),
            Assert(level + coming <= self.ROOM, "room"),
            # How its numbers hang together.
            Assert(~settled[0] | (n["armed"] == start.on)),
            Assert((n["place"] == later(since, 2, "since")) & (n["nibble_before"] == later(before, 2, "before"))),
            Assert(n["write"] == write), Assert(n["stopping"] == later(stopping, self.COMPARED, "stopping")),
            Assert(n["edge"] == later(edge, self.COMPARED, "edge")), Assert(n["over"] == over),
            Assert(~later(late, self.COMPARED, "late")
                   | (n["behind_it"] == later(behind_stop, self.COMPARED, "behind_stop"))),
            Assert(n["owed"] == owed),
            Assert(~settled[0] | (n["on"] == (start.on | stop.on))),
        ]

        # Where things are in the memory, from what is read next: what is kept begins, is looked at, ends.
        def behind(name):
            return (n[name] - n["read"])[:len(n["read"])]

        going = n["going"]      # ... goes on, nothing is looked at any more
        for k in range(2):
            m.d.comb += Assert(~n["looking"][k] | ((behind("keep") <= behind(f"looked{k}"))
                                                   & (behind(f"looked{k}") < behind("seen"))))
        m.d.comb += [
            Assert(level == behind("write")), Assert(n["some"] == (level != 0)), Assert(behind("following") == 1),
            Assert(going | ((behind("keep") <= behind("seen")) & (behind("seen") <= level))),
            Assert(~n["looking"][:2].all() | (behind("looked1") < behind("looked0"))),
            Assert(going | (n["unseen"] + n["entered"] + behind("seen") == level)),
            Assert(going | (n["some_unseen"] == (n["unseen"] != 0))),
            Assert(going | n["at_keep"] | (n["read"] != n["keep"])),
            Assert(~settled.all() | ~going | (n["settled"] & ~n["waits"])),
            Assert(~settled.all() | ~n["settled"] | ~start.on | (dut.triggered & ~n["looking"].any() & ~n["found"])),
            Assert(~waits | ~(stopping | stopped)), Assert(stopping | ~(stopped | behind_stop)),
            Assert(n["stopping"] | ~n["behind_it"]),
            Assert(~n["waits"] | ~(n["stopping"] | n["over"])),
            Assert(start.on | n["settled"]), Assert(~n["found"] | dut.triggered),
            # Nothing has come at first, nor while the settings do not stand.
            Assert(settled.all() | (n["fresh"] & (n["valid"] == 0))),
            Assert(~n["fresh"] | (~dut.triggered & (Cat(
                level, *(n[name] for name in ("write", "read", "keep", "seen", "looking", "unseen"))) == 0))),
        ]
