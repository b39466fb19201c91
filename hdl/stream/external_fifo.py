"""External memory: a ring buffer on a burst port, for hosts that are away for seconds."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES, BLOCK_HEADER
from ..lib.fifo import StreamFifo
from .block_source import BEAT_BITS
from .blocker import beat_layout

__all__ = ["BURST", "ExternalFifo", "command_layout", "memory_signature"]

#: Beats per burst: 256 bytes.
BURST = 16
#: Bits of the header's first beat that state the length of the payload.
_LENGTH = next(slice(8 * at, 8 * at + f.bits) for at, f in BLOCK_HEADER.offsets() if f.name == "length")
assert _LENGTH.stop <= BEAT_BITS


def command_layout(bursts: int) -> data.StructLayout:
    """A command to a memory of the given number of bursts: the burst to be written or read."""
    return data.StructLayout({"write": 1, "burst": max(1, (bursts - 1).bit_length())})


def memory_signature(bursts: int) -> wiring.Signature:
    """The port of a memory of the given number of bursts, as seen from its user.

    command : bursts to be written and read. They take effect in order: a read returns the data that
        were last written before it.
    write : the beats of the bursts that are written, in the order of their commands. A beat may
        come before its command has been accepted, or any time later.
    read : the beats of the bursts that are read, in the order of their commands, any time later.
        There is no ready: the user requests only bursts that it has room for.
    """
    return wiring.Signature({
        "command": Out(stream.Signature(command_layout(bursts))),
        "write": Out(stream.Signature(BEAT_BITS)),
        "read": In(stream.Signature(BEAT_BITS, always_ready=True)),
    })


class ExternalFifo(wiring.Component):
    """FIFO of beats of whole blocks, most of it in external memory.

    It never drops and never reorders. When memory and head are full it is not ready, and every stage
    before it waits, up to the gate. As long as the link keeps up, beats pass from the head
    straight to the tail, in a few clocks, and the memory is not used. When the tail is full, whole
    bursts go to the memory, and return when there is room. Writing and reading alternate while
    both have something to do, so neither waits for the other to end. When the memory is empty again,
    beats pass directly, so no beat ever waits for a burst to fill.

    The memory does not store the bit that ends a block; it is regenerated from the block's length.

    Parameters
    ----------
    depth : beats in external memory, a power of two of at least two bursts.
    burst : beats per burst, a power of two of at least 4.
    ahead : beats in each of head and tail, a power of two of at least twice ``burst``.
    ram : kind of memory for head and tail, see :class:`~.ram.Ram`.

    Members
    -------
    i, o : beats; the first is that of a block's header, and blocks are whole.
    memory : the port, see :func:`memory_signature`.
    level : beats inside.
    high : the highest level so far, one clock ago.

    Raises
    ------
    ValueError
        for other sizes.
    """

    def __init__(self, depth: int, burst: int = BURST, ahead: int | None = None, ram: str = "portable"):
        ahead = 4 * burst if ahead is None else ahead
        for name, value, least in (("burst", burst, 4), ("ahead", ahead, 2 * burst), ("depth", depth, 2 * burst)):
            if value < least or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at least {least}, not {value!r}")
        self.depth, self.burst, self.ahead, self.ram = depth, burst, ahead, ram
        self.bursts = depth // burst
        level = range(depth + 2 * ahead + 1)
        super().__init__({
            "i": In(stream.Signature(beat_layout())), "o": Out(stream.Signature(beat_layout())),
            "memory": Out(memory_signature(self.bursts)), "level": Out(level), "high": Out(level),
        })

    def elaborate(self, platform):
        m = Module()
        burst, ahead = self.burst, self.ahead
        command = self.memory.command
        m.submodules.head = head = StreamFifo(BEAT_BITS, ahead, self.ram)
        m.submodules.tail = tail = StreamFifo(BEAT_BITS, ahead, self.ram)

        direct = Signal(init=1)                  # beats pass from head to tail
        stored = Signal(range(self.bursts + 1))  # bursts in the memory, by the commands so far
        loose = Signal(range(ahead + 1))         # beats in the head that no command has taken
        owed = Signal(range(2 * ahead))          # beats of bursts that are to be written
        some_owed = Signal()
        coming = Signal(range(2 * ahead))        # beats that are to be read
        taken = Signal(range(ahead + 1))         # beats in the tail or to be read
        came = Signal()
        passes = Signal()
        writes = Signal()
        left = Signal()
        write_now = Signal()                     # a command is issued
        read_now = Signal()
        m.d.comb += [
            head.i.valid.eq(self.i.valid), head.i.p.eq(self.i.p.data), self.i.ready.eq(head.i.ready),
            self.memory.write.valid.eq(head.o.valid & some_owed), self.memory.write.p.eq(head.o.p),
            tail.i.valid.eq(self.memory.read.valid | (direct & head.o.valid)),
            tail.i.p.eq(Mux(direct, head.o.p, self.memory.read.p)),
            head.o.ready.eq(Mux(direct, tail.i.ready, self.memory.write.ready & some_owed)),
            came.eq(self.i.valid & self.i.ready), left.eq(tail.o.valid & tail.o.ready),
            passes.eq(direct & head.o.valid & tail.i.ready),
            writes.eq(self.memory.write.valid & self.memory.write.ready),
        ]
        m.d.sync += [
            loose.eq(loose + came - passes - Mux(write_now, burst, 0)),
            owed.eq(owed + Mux(write_now, burst, 0) - writes),
            some_owed.eq(write_now | (owed != writes)),
            stored.eq(stored + write_now - read_now),
            coming.eq(coming + Mux(read_now, burst, 0) - self.memory.read.valid),
            taken.eq(taken + passes + Mux(read_now, burst, 0) - left),
        ]

        # Decisions are made in registers, which need one clock to follow a command.
        whole = Signal()      # the head has a burst
        space = Signal()      # and the memory has room for it
        some = Signal()       # the memory holds one
        room = Signal()       # and the tail has room for it; what leaves the tail is seen late
        blocked = Signal()    # the tail is as good as full
        empty = Signal()      # nothing is in the memory or on its way
        follow = Signal(init=1)
        turn = Signal()       # the last command was a read
        m.d.sync += [
            whole.eq(loose >= burst), space.eq(~stored[-1]), some.eq(stored != 0),
            room.eq(taken < ahead - burst), blocked.eq(taken >= ahead - 2),
            empty.eq((stored == 0) & (owed == 0) & (coming == 0) & ~command.valid),
            follow.eq(write_now | read_now),
        ]
        with m.If(command.ready):
            m.d.sync += command.valid.eq(0)
        write_at = Signal(range(self.bursts))
        read_at = Signal(range(self.bursts))
        with m.If(direct):
            with m.If(blocked & whole & ~follow):
                m.d.sync += [direct.eq(0), follow.eq(1)]
        with m.Elif(~follow & ~command.valid):
            with m.If(whole & space & (turn | ~(some & room))):
                m.d.comb += write_now.eq(1)
            with m.Elif(some & room):
                m.d.comb += read_now.eq(1)
            with m.Elif(empty & ~whole):
                m.d.sync += [direct.eq(1), follow.eq(1)]
        with m.If(write_now | read_now):
            m.d.sync += [
                command.valid.eq(1),
                command.p.write.eq(write_now), command.p.burst.eq(Mux(write_now, write_at, read_at)),
                turn.eq(read_now), write_at.eq(write_at + write_now), read_at.eq(read_at + read_now),
            ]

        # The end of a block, from its length.
        begins = Signal(init=1)
        to_come = Signal(range((1 << 16) // BEAT_BYTES + 4))
        ends = Signal()
        length = tail.o.p[_LENGTH][:17]
        m.d.comb += [
            self.o.valid.eq(tail.o.valid), self.o.p.data.eq(tail.o.p), self.o.p.last.eq(ends),
            tail.o.ready.eq(self.o.ready),
        ]
        with m.If(left):
            m.d.sync += [begins.eq(ends), ends.eq(~begins & ~ends & (to_come == 2)), to_come.eq(to_come - 1)]
            with m.If(begins):
                # The other half of the header, the payload, the trailer.
                m.d.sync += to_come.eq(((length + (BEAT_BYTES - 1)) >> 4) + 2)

        with m.If(came ^ left):
            m.d.sync += self.level.eq(self.level + Mux(left, -1, 1))
        with m.If(self.level > self.high):
            m.d.sync += self.high.eq(self.level)
        return m
