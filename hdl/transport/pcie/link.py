"""PCIe as a link: completer, registers, ring and interrupts, as an adapter sees them."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...control.initiator import access_layout
from ...stream.blocker import beat_layout
from .completer import Completer
from .function_reset import FunctionReset
from .msi import Msi
from .ring import Ring
from .ring_registers import RingRegisters
from .tlp import completion_layout, request_layout, write_layout

__all__ = ["PcieLink", "connect"]


def connect(m: Module, adapter: wiring.Component, link: "PcieLink") -> None:
    """Connects the adapter of a block to the link: the seam, and what the link must know of the block."""
    wiring.connect(m, adapter.request, link.request)
    wiring.connect(m, link.completion, adapter.completion)
    wiring.connect(m, link.write, adapter.write)
    m.d.comb += [
        *(getattr(link, name).eq(getattr(adapter, name))
          for name in ("mps", "permitted", "room", "down", "stop", "flr", "msi_enabled", "msi_sent")),
        *(getattr(adapter, name).eq(getattr(link, name)) for name in ("running", "flr_done", "msi_request"))]


class PcieLink(wiring.Component):
    """Connects the parts of the link, in the clock domain of the hard block. It is not reset with the block: see
    ``down``.

    Parameters
    ----------
    ram : kind of the ring's memory, see :class:`~.ram.Ram`.
    patience : clocks for which a register access waits for the board, see :class:`~.completer.Completer`.

    Members
    -------
    beats : the stream. command, reply : register accesses of the board, see :class:`~.initiator.Initiator`.
    request, completion, write : the seam to the adapter, see :mod:`~.pcie.tlp`.
    mps, permitted, room, down : see :class:`~.ring.Ring`.
    stop : the ring is to stop after the write that has begun, as if the host had cleared its enable.
    flr, flr_done, reset, resetting : a function-level reset is asked for, and complete; the board's reset, and that the
        board is in it: ``asked``, ``done``, ``reset``, ``resetting`` of :class:`~.function_reset.FunctionReset`.
    running : writes may follow.
    msi_enabled, msi_request, msi_sent : see :class:`~.msi.Msi`.
    """

    def __init__(self, ram: str = "portable", patience: int | None = None):
        self.ram, self.patience = ram, patience
        super().__init__({
            "beats": In(stream.Signature(beat_layout())),
            "command": Out(stream.Signature(access_layout())), "reply": In(stream.Signature(32)),
            "request": In(stream.Signature(request_layout())), "completion": Out(stream.Signature(completion_layout())),
            "write": Out(stream.Signature(write_layout())), "mps": In(3), "permitted": In(1), "room": In(1, init=1),
            "down": In(1), "stop": In(1), "flr": In(1), "flr_done": Out(1), "reset": Out(1), "resetting": In(1),
            "running": Out(1), "msi_enabled": In(1), "msi_request": Out(1),
            "msi_sent": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.completer = completer = Completer(self.patience)
        m.submodules.function_reset = function_reset = FunctionReset()
        clears = ResetInserter(function_reset.clear)
        m.submodules.registers = clears(registers := RingRegisters())
        m.submodules.ring = clears(ring := Ring(ram=self.ram))
        m.submodules.msi = clears(msi := Msi())
        wiring.connect(m, wiring.flipped(self.request), completer.i)
        wiring.connect(m, completer.o, wiring.flipped(self.completion))
        wiring.connect(m, completer.command, registers.command)
        wiring.connect(m, registers.reply, completer.reply)
        wiring.connect(m, registers.board_command, wiring.flipped(self.command))
        wiring.connect(m, wiring.flipped(self.reply), registers.board_reply)
        wiring.connect(m, wiring.flipped(self.beats), function_reset.i)
        wiring.connect(m, function_reset.o, ring.i)
        wiring.connect(m, ring.o, wiring.flipped(self.write))
        wiring.connect(m, registers.settings, ring.settings)
        wiring.connect(m, ring.state, registers.state)
        m.d.comb += [
            completer.down.eq(self.down), registers.down.eq(self.down | self.stop | function_reset.closed),
            ring.down.eq(self.down), ring.mps.eq(self.mps), self.running.eq(ring.state.running),
            ring.permitted.eq(self.permitted), ring.room.eq(self.room), registers.permitted.eq(self.permitted),
            completer.own.eq(registers.own), registers.busy.eq(completer.busy),
            registers.dropped.eq(completer.dropped), registers.refused.eq(completer.refused),
            registers.timeouts.eq(completer.timeouts), registers.discarded.eq(function_reset.discarded),
            function_reset.asked.eq(self.flr), self.flr_done.eq(function_reset.done),
            function_reset.running.eq(ring.state.running), function_reset.held.eq(ring.state.held),
            function_reset.idle.eq(completer.idle), function_reset.requested.eq(completer.requested),
            completer.closed.eq(function_reset.closed),
            self.reset.eq(function_reset.reset), function_reset.resetting.eq(self.resetting),
            msi.arm.eq(registers.arm), msi.seen.eq(registers.seen), msi.told.eq(ring.state.told),
            msi.start.eq(ring.state.start), msi.enabled.eq(self.msi_enabled),
            self.msi_request.eq(msi.request), msi.sent.eq(self.msi_sent),
        ]
        return m
