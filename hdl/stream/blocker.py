"""Blocker: wraps the data of the sources into blocks, the one container of every link."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import (
    BEAT_BYTES,
    BLOCK_BYTES_MAX,
    BLOCK_HEADER,
    BLOCK_MAGIC,
    BLOCK_TRAILER,
    FORMAT_VERSION,
    LATENCY,
    BlockType,
    Geometry,
)
from ..lib.fifo import SmallFifo
from .block_source import block_source
from .crc32 import Crc32

__all__ = ["Blocker", "beat_layout"]


def beat_layout(beat_bytes: int = BEAT_BYTES) -> data.StructLayout:
    """A beat of the stream: the given number of bytes, byte 0 lowest, and whether it ends a block."""
    return data.StructLayout({"data": 8 * beat_bytes, "last": 1})


class _Header:
    """Contents of the header and of the trailer, and which of their beats is next."""

    def __init__(self, geometry: Geometry, pairs: int):
        bits = 8 * geometry.beat_bytes
        self.header = Signal(data.StructLayout({
            "type": 8, "length": 16, "epoch": 16, "window": 8, "extended": 1, "items": 1, "latency": 8}
            | ({"half": 1} if geometry.halvings else {})
            | ({"bytes": 1} if geometry.port_bits == 8 else {})), reset_less=True)
        self.sequence = Signal(32)
        self.times = [Signal(64, name=f"time{k}", reset_less=True) for k in range(pairs)]   # one is not zero
        self.cut = Signal()
        # A beat of the header, or of the trailer: one bit each, because the FSM's state is far away.
        self.heads = Signal(BLOCK_HEADER.bits // bits)
        self.tails = Signal(BLOCK_TRAILER.bits // bits)


class _Served:
    """Whose block is under way, and how much of it is left.

    One bit per source, so that no decoder is between a block and its beats.
    """

    def __init__(self, geometry: Geometry, sources: int):
        self.requests = Signal(sources)
        self.wanted = Signal()
        self.chosen = Signal(sources)
        self.grants = Signal(sources)
        self.granting = Signal()    # the FSM is at GRANT; a register of its own, for the header's many bits wait for it
        self.serving = Signal(sources + 1)      # whose payload is under way; the last one supplies zeros
        self.serves = Signal()      # serving != 0
        self.begun = Signal()       # header promised, payload not complete one clock ago
        self.moves = Signal()       # a beat of payload
        self.ended = Signal()       # the last beat of payload has come
        self.left = Signal(range(BLOCK_BYTES_MAX // geometry.beat_bytes + 1))   # beats of payload


class _Beat:
    """A beat on its way to the FIFO: it enters two clocks after its state."""

    def __init__(self):
        # Sources and framing are far apart: two registers with different contents remain two.
        self.room = Signal()
        self.frame_room = Signal()
        self.from_payload = Signal()
        self.from_framing = Signal()
        self.trails = Signal()      # it is of the trailer
        self.starts = Signal(2)
        self.ends = Signal(2)
        self.valid = Signal()
        self.finish = Signal()      # the payload's last beat is on its way: the checksum follows


class Blocker(wiring.Component):
    """Writes header, payload and trailer of each block, one beat of ``geometry.beat_bytes`` per clock.

    Only whole blocks leave, whatever happens: when a reset (``clear``) comes while a block is under
    way, the rest of its payload is zero and its trailer has the flag CUT. If several sources request a block, the
    lowest one is served first. Downstream the blocker buffers only the few beats that keep the pace; when they cannot
    leave, the sources wait.

    Parameters
    ----------
    geometry : the board's geometry.
    types : type of each source's blocks, most urgent first.
    ram : kind of its small memory, see :func:`~.ram.at_once`.

    Members
    -------
    source : the sources.
    epoch, window, extended : for the header.
    items : for the header of COMPACT blocks.
    half : for the header, only with several samples per clock: stamps of COMPACT blocks count the intervals between
        samples.
    latency : for the header, only on a board whose latency may change.
    clear : reset in progress.
    o : beats.
    busy : a block is requested or under way, or beats wait to leave.
    moving : the blocker is busy, and does not only wait for beats to leave.
    """

    def __init__(self, geometry: Geometry, types: tuple[BlockType, ...], ram: str = "portable"):
        self.geometry, self.types, self.ram = geometry, types, ram
        super().__init__({
            **{f"source{k}": In(block_source(geometry.beat_bytes)) for k in range(len(types))},
            "epoch": In(16), "window": In(2), "extended": In(1), "items": In(1), "clear": In(1),
            "o": Out(stream.Signature(beat_layout(geometry.beat_bytes))),
            "busy": Out(1), "moving": Out(1),
            **({"latency": In(8)} if geometry.guarded or geometry.synced else {}),
            **({"half": In(1)} if geometry.halvings else {}),
        })

    def elaborate(self, platform):
        m = Module()
        beat_bytes = self.geometry.beat_bytes
        m.submodules.crc = crc = Crc32(beat_bytes)
        m.submodules.fifo = fifo = SmallFifo(beat_layout(beat_bytes), 16, self.ram)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        sources = [getattr(self, f"source{k}") for k in range(len(self.types))]
        # Registers for the payload and for the header's time, one for every two sources (one for all if there are few
        # bits); all but one of them are zero.
        some = len(sources) if self.geometry.narrow else 2
        pairs = [range(len(sources))[k:k + some] for k in range(0, len(sources), some)]
        header, served, beat = _Header(self.geometry, len(pairs)), _Served(self.geometry, len(sources)), _Beat()

        # A beat enters the FIFO two clocks after its state: room is reserved for those.
        m.d.sync += [beat.room.eq(fifo.level < 10), beat.frame_room.eq(fifo.level < 9)]
        framing = Signal(8 * beat_bytes, reset_less=True)
        self._merge(m, sources, pairs, served, beat, framing, fifo, crc)
        self._frame(m, header, framing, crc)
        self._count(m, header, served, beat)
        self._grant(m, sources, pairs, header, served)
        idle, waits = self._sequence(m, header, served, beat)
        m.d.comb += [
            self.busy.eq(
                served.requests.any() | ~idle | beat.from_framing | beat.valid | (fifo.level != 0)),
            self.moving.eq(
                (self.o.valid & self.o.ready) | beat.from_framing | beat.valid
                | Mux(idle, served.requests.any(), ~waits)),
        ]
        return m

    def _merge(self, m, sources, pairs, served, beat, framing, fifo, crc):
        """Beats of the source that is served, or of the framing, go to the FIFO and to the CRC.

        The OR of registers, of which all but one are zero: one for each of ``pairs``, and ``framing``.
        """
        room, serving, ended, moves = beat.room, served.serving, served.ended, served.moves
        m.d.comb += [
            *(s.beats.ready.eq(room & serving[k] & ~ended) for k, s in enumerate(sources)),
            *(s.grant.eq(served.grants[k]) for k, s in enumerate(sources)),
            moves.eq(room & ~ended & (Cat(*(s.beats.valid for s in sources), 1) & serving).any()),
        ]
        bits = len(framing)
        payloads = [Signal(bits, name=f"payload{k}", reset_less=True) for k, _ in enumerate(pairs)]
        merged = Signal(bits, reset_less=True, name="beat")
        starts, ends, valid = beat.starts, beat.ends, beat.valid
        feed = Signal()
        m.d.sync += [
            beat.from_payload.eq(moves), beat.from_framing.eq(0), beat.trails.eq(0),
            starts.eq(starts << 1), ends.eq(ends << 1),
            *(payload.eq(reduce(or_, (Mux(serving[k], sources[k].beats.p, 0) for k in pair)))
              for payload, pair in zip(payloads, pairs, strict=True)),
            merged.eq(reduce(or_, payloads, framing)),
            valid.eq(beat.from_payload | beat.from_framing),
            feed.eq((beat.from_payload | beat.from_framing) & ~beat.trails),
        ]
        m.d.comb += [
            fifo.i.valid.eq(valid), fifo.i.p.data.eq(merged), fifo.i.p.last.eq(ends[1]),
            crc.valid.eq(feed), crc.first.eq(starts[1]), crc.data.eq(merged), crc.finish.eq(beat.finish),
        ]

    def _frame(self, m, state, framing, crc):
        """The beat of the header or of the trailer that ``heads`` or ``tails`` selects."""
        geometry, header, bits = self.geometry, state.header, len(framing)
        m.d.comb += crc.cut.eq(state.cut)
        half = header.half if geometry.phases == 2 else Const(0, 1)
        is_bytes = header.bytes if geometry.port_bits == 8 else Const(0, 1)
        rest = Const(0, 5)      # of the flags
        if geometry.phases == 4:
            rest = Cat(half, is_bytes, header.half, Const(0, 2))
        elif geometry.halvings or geometry.port_bits == 8:
            rest = Cat(half, is_bytes, Const(0, 3))
        opening = Cat(
            Const(BLOCK_MAGIC, 32), Const(FORMAT_VERSION, 8), header.type, header.epoch, state.sequence, header.length,
            Const(0, 16), reduce(or_, state.times), Const(geometry.nodes, 8), header.window, header.latency,
            header.extended, Const(0, 1), header.items, rest, Const(geometry.clock_hz, 32))
        closing = Cat(state.cut, Const(0, 95), crc.crc)
        m.d.sync += framing.eq(reduce(or_, (
            Mux(which[k], record[k * bits:(k + 1) * bits], 0)
            for which, record in ((state.heads, opening), (state.tails, closing)) for k in range(len(which)))))

    def _count(self, m, state, served, beat):
        """Counts the payload down, to the clock after its last beat. After a reset, zeros make up the rest."""
        heads, cut = state.heads, state.cut
        serving, serves, begun, ended = served.serving, served.serves, served.begun, served.ended
        moves, left, from_payload = served.moves, served.left, beat.from_payload
        is_left = {k: Signal(name=f"is_left{k}") for k in (1, 2, 3)}    # left == k
        final = Signal()
        zeros = 1 << len(self.types)
        cleared = Signal()
        m.d.sync += cleared.eq(self.clear)
        with m.If(ended):
            m.d.sync += [begun.eq(0), serves.eq(0), serving.eq(0)]
        with m.Elif(self.clear & begun):
            m.d.sync += cut.eq(1)
        # ... one clock later, when the sources have been reset: the host's reset has a long way to them.
        with m.If(cleared & serves & ~ended):
            m.d.sync += serving.eq(zeros)
        # The last beat of the header leaves: heads alone shows that, because the FSM is then at HEADER.
        with m.If(heads[-1] & beat.frame_room):
            m.d.sync += [
                serves.eq(1), serving.eq(Mux(cut, zeros, served.chosen)), state.sequence.eq(state.sequence + 1)]
        m.d.sync += ended.eq(moves & final)
        with m.If(from_payload):
            m.d.sync += left.eq(left - 1)
        m.d.sync += [flag.eq(Mux(from_payload, left == k + 1, left == k)) for k, flag in is_left.items()]
        # The last beat of payload is next. left is updated one clock late; before the first one none moves.
        m.d.sync += final.eq(Mux(moves, Mux(from_payload, is_left[3], is_left[2]), Mux(
            serves, Mux(from_payload, is_left[2], is_left[1]), left == 1)))

    def _grant(self, m, sources, pairs, state, served):
        """Requests, and the header of the source that has been granted its block."""
        geometry, header, chosen = self.geometry, state.header, served.chosen

        def of_type(wanted_type):
            return Cat(chosen[k] for k, t in enumerate(self.types) if t is wanted_type).any()

        def of_chosen(name):
            return reduce(or_, (Mux(chosen[k], getattr(s, name), 0) for k, s in enumerate(sources)))

        # Requests are held until they are granted, so they may be read late.
        m.d.sync += [
            served.requests.eq(Cat(s.request for s in sources)),
            served.wanted.eq(served.requests.any() & ~self.clear),
        ]
        m.d.sync += served.granting.eq(0)
        with m.If(served.granting):
            m.d.sync += [
                header.type.eq(reduce(or_, (Mux(chosen[k], Const(t, 8), 0) for k, t in enumerate(self.types)))),
                header.length.eq(of_chosen("length")),
                *(time.eq(reduce(or_, (Mux(chosen[k], sources[k].time, 0) for k in pair)))
                  for time, pair in zip(state.times, pairs, strict=True)),
                header.epoch.eq(self.epoch), header.window.eq(self.window),
                header.extended.eq(self.extended), header.items.eq(self.items & of_type(BlockType.COMPACT)),
                header.latency.eq(self.latency if geometry.guarded or geometry.synced else LATENCY),
            ]
            if geometry.halvings:
                m.d.sync += header.half.eq(self.half & of_type(BlockType.COMPACT))
            if geometry.port_bits == 8:
                m.d.sync += header.bytes.eq(of_type(BlockType.COMPACT))

    def _sequence(self, m, state, served, beat):
        """A block: grant, header, payload, checksum, trailer. Returns whether none is under way, and whether one waits
        for beats to leave.
        """
        header, heads, tails, cut = state.header, state.heads, state.tails, state.cut
        chosen, grants, begun, ended = served.chosen, served.grants, served.begun, served.ended
        frame_room, from_framing, starts, ends = beat.frame_room, beat.from_framing, beat.starts, beat.ends
        count = Signal(3)
        summed = Signal()
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += [cut.eq(0), chosen.eq(served.requests & -served.requests)]
                with m.If(served.wanted):
                    m.next = "CHOSEN"
            with m.State("CHOSEN"):
                m.d.sync += [grants.eq(chosen), served.granting.eq(1)]
                m.next = "GRANT"
                with m.If(self.clear):
                    m.d.sync += grants.eq(0)
                    m.next = "IDLE"
            with m.State("GRANT"):
                m.d.sync += [grants.eq(0), begun.eq(1), heads.eq(1)]
                m.next = "FIRST"
                # A reset between request and grant: there is nothing left to send.
                with m.If(self.clear):
                    m.d.sync += [begun.eq(0), heads.eq(0)]
                    m.next = "IDLE"
            with m.State("FIRST"):
                with m.If(frame_room):
                    m.d.sync += [
                        heads.eq(heads << 1), from_framing.eq(1), starts[0].eq(1),
                        served.left.eq(((header.length + 15) >> 4) * (BEAT_BYTES // self.geometry.beat_bytes)),
                    ]
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.sync += [count.eq(0), summed.eq(0)]
                with m.If(frame_room):
                    m.d.sync += [heads.eq(heads << 1), from_framing.eq(1)]
                    with m.If(heads[-1]):
                        m.next = "PAYLOAD"
            with m.State("PAYLOAD"):
                with m.If(ended):
                    m.next = "SUM"
            with m.State("SUM"):
                # The last beat is on its way to the FIFO; the CRC is there seven clocks later.
                m.d.sync += [count.eq(count + 1), beat.finish.eq(count == 0), summed.eq(count == 4), tails.eq(1)]
                with m.If(summed):
                    m.next = "TRAILER"
            with m.State("TRAILER"):
                with m.If(frame_room):
                    m.d.sync += [tails.eq(tails << 1), from_framing.eq(1), beat.trails.eq(1), ends[0].eq(tails[-1])]
                    with m.If(tails[-1]):
                        m.next = "IDLE"
        waits = Signal()
        m.d.comb += waits.eq(
            (~frame_room & (fsm.ongoing("FIRST") | fsm.ongoing("HEADER") | fsm.ongoing("TRAILER")))
            | (~beat.room & ~ended & fsm.ongoing("PAYLOAD")))
        return fsm.ongoing("IDLE"), waits
