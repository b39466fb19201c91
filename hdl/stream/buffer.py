"""Buffer: the blocker's beats for the link, at full width, and in a store if the board has one."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import Geometry
from .beats_to_16 import BeatsTo16
from .blocker import beat_layout
from .store import Store

__all__ = ["Buffer"]


class Buffer(wiring.Component):
    """Packs beats of 4 bytes into beats of 16, and keeps whole blocks in a :class:`~.store.Store` until the link takes
    them. It never drops and never reorders: when it is full, it is not ready. Without a store, a beat that is not
    packed passes in the same clock.

    Parameters
    ----------
    geometry : the board's geometry; of it ``beat_bytes`` and ``store_depth``.
    ram : kind of memory, see :class:`~..lib.ram.Ram`.

    Members
    -------
    i : beats of ``geometry.beat_bytes``.
    o : beats of ``geometry.stream_bytes``.
    clear : restarts the high-water mark.
    level, high : beats in the store, and the highest level since ``clear``, one clock ago; 0 without a store.
    moves : a beat was packed or left the store one clock ago. Beats that only pass are not included.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        levels = range(geometry.store_depth + 1)
        super().__init__({
            "i": In(stream.Signature(beat_layout(geometry.beat_bytes))),
            "o": Out(stream.Signature(beat_layout(geometry.stream_bytes))),
            "clear": In(1), "level": Out(levels), "high": Out(levels), "moves": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        beats, moving = wiring.flipped(self.i), []
        if self.geometry.slim:
            m.submodules.to_16 = to_16 = BeatsTo16(self.geometry.beat_bytes)
            wiring.connect(m, beats, to_16.i)
            beats = to_16.o
            moving.append(to_16.o)
        if self.geometry.store_depth:
            m.submodules.store = store = Store(self.geometry.store_depth, self.ram)
            wiring.connect(m, beats, store.i)
            beats = store.o
            moving.append(store.o)
            m.d.comb += [store.clear.eq(self.clear), self.level.eq(store.level), self.high.eq(store.high)]
        wiring.connect(m, beats, wiring.flipped(self.o))
        if moving:
            m.d.sync += self.moves.eq(Cat(side.valid & side.ready for side in moving).any())
        return m
