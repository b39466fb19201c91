"""Bindings of registers to members: what each register shows, and which setting a write of it changes."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Const, Module, Signal, ValueLike
from amaranth.lib import wiring

from ..layout import (
    ABSENT_SHIFT,
    FORMAT_VERSION,
    FRONT_REGISTERS,
    GATE_CAUSES,
    IDENTITY_MAGIC,
    PORT_BITS,
    REGISTER_VERSION,
    REGISTERS,
    Extra,
    Geometry,
    Option,
    Sink,
    Window,
)

__all__ = ["Binding", "bindings", "present"]


@dataclass(frozen=True)
class Binding:
    """What a register shows, and what a write of it sets; None: on this board, a write has no effect."""

    shows: ValueLike
    sets: ValueLike | None = None


def _set(setting: ValueLike, there: bool = True) -> Binding:
    """A setting that is shown as it was written; without effect if it is not ``there``."""
    return Binding(setting, setting if there else None)


def present(geometry: Geometry) -> list[str]:
    """The registers that this board has: those of few boards are no part of others, which keep their netlist."""
    has = {"LINKS": geometry.links, "PHASES": geometry.phases == 4,
           "TRIGGER_OUT": Extra.TRIGGER_OUT in geometry.extras,
           **dict.fromkeys(FRONT_REGISTERS, bool(geometry.fronts))}
    return [name for name in REGISTERS if has.get(name, True)]


def bindings(registers: wiring.Component, m: Module, host: dict[str, Signal], flush: Signal,
             index: Signal) -> dict[str, Binding]:
    """Each register that can be read, by name: a table for each settings signature, and one of the board.

    Parameters
    ----------
    registers : the :class:`~.registers.Registers` whose members are bound.
    host : by register, what the host has set and takes effect at the next reset.
    flush, index : the host's values of FLUSH and REDUCTION_INDEX.
    """
    bound = {**_of_intake(registers, host), **_of_time(registers, host), **_of_sinks(registers, host, flush, index),
             **_of_accounts(registers, m), **_of_board(registers)}
    names = present(registers.geometry)
    missing = {name for name in names if "R" in REGISTERS[name].access} - set(bound) - {"FRAME_FIFO"}
    assert not missing, missing
    return {name: bound[name] for name in names if name in bound}


def _of_intake(registers: wiring.Component, host: dict[str, Signal]) -> dict[str, Binding]:
    """Registers of :func:`~.intake.intake_settings`."""
    geometry, intake, emulator = registers.geometry, registers.intake, registers.intake.emulator
    framed, guarded = Sink.EXTENDED in geometry.sinks, geometry.guarded
    bound = {
        "EDGE_RISING": _set(intake.rising), "EDGE_FALLING": _set(intake.falling), "SAMPLE_AFTER": _set(intake.after),
        "ITEM_TIMEOUT": _set(intake.timeout, framed),
        "EMULATOR": _set(Cat(emulator.run, emulator.pattern), geometry.emulated),
        "EMULATOR_PERIOD": _set(emulator.period, geometry.emulated),
        "EMULATOR_COUNT": _set(emulator.count, geometry.emulated),
        "GLITCH": _set(host["GLITCH"], guarded),
        "RATE_LIMIT": _set(host["RATE_LIMIT"], guarded and geometry.has(Option.RATE_LIMIT)),
        "NIBBLE_MASK": _set(intake.mask, guarded and geometry.port_bits == PORT_BITS),
    }
    if geometry.fronts:
        kinds = Const(sum(front << 4 * node for node, front in enumerate(geometry.fronts)), 128)
        front = intake.front
        values = [front.span, front.uart, front.swo, front.lowest, *(kinds.word_select(k, 32) for k in range(4))]
        bound |= {name: _set(value, "W" in REGISTERS[name].access)
                  for name, value in zip(FRONT_REGISTERS, values, strict=True)}
    return bound


def _of_time(registers: wiring.Component, host: dict[str, Signal]) -> dict[str, Binding]:
    """Registers of :func:`~.board_time.time_settings`."""
    geometry, time = registers.geometry, registers.time
    own = [host["own"]] if Extra.DRIFT in geometry.extras else []
    follows = _set(Cat(host["SYNC"], *own), geometry.synced)
    pin = time.pin if Extra.TRIGGER_IN in geometry.extras else Const(0, 2)
    return {
        "NODE_MASK": _set(time.mask),
        "SYNC": Binding(Cat(host["SYNC"], time.waits, time.missing, *own), follows.sets),
        "SYNC_STEPS": Binding(Cat(time.longer_count, time.shorter_count)),
        "SYNC_ECHO": Binding(time.echo if Extra.ECHO in geometry.extras else Const(0, 32)),
        "TRIGGER_PIN": _set(pin, Extra.TRIGGER_IN in geometry.extras),
    }


def _of_sinks(registers: wiring.Component, host: dict[str, Signal], flush: Signal, index: Signal) -> dict[str, Binding]:
    """Registers of :func:`~.sinks.sink_settings`."""
    geometry, sinks, shown = registers.geometry, registers.sinks, registers.sinks.frames
    framed = Sink.EXTENDED in geometry.sinks
    bound = {
        "MODE": _set(host["MODE"], framed and len(geometry.sinks) > 1),
        "WORD_NODES": _set(host["WORD_NODES"], framed), "EVENT_NODES": _set(host["EVENT_NODES"], framed),
        "FLUSH": Binding(sinks.flush, flush),
        "TRIGGER_START": _set(sinks.start, framed), "TRIGGER_STOP": _set(sinks.stop, framed),
        "PRETRIGGER": _set(sinks.before, framed),
        "REDUCTION_INDEX": _set(index, framed and geometry.has(Option.REDUCTION)),
        "FRAME_COUNT": Binding(shown.generated[:12]),
        "FRAME_POS": Binding(Cat(shown.position, Const(0, 13), registers.epoch)),
        "LEVEL": Binding(Cat(shown.level, registers.vector_level)), "RUN": Binding(shown.run),
        "FRAME_HIGH": Binding(shown.high),
        "DISCARDED_LOW": Binding(sinks.discarded[:32]), "DISCARDED_HIGH": Binding(sinks.discarded[32:]),
    }
    if Extra.TRIGGER_OUT in geometry.extras:
        bound["TRIGGER_OUT"] = Binding(Cat(sinks.out_done, sinks.out_late))
    if geometry.phases == 4:
        bound["PHASES"] = _set(host["PHASES"])
    return bound


def _of_accounts(registers: wiring.Component, m: Module) -> dict[str, Binding]:
    """Registers of :func:`~.accounts.account_settings`."""
    geometry, accounts, sinks = registers.geometry, registers.accounts, registers.sinks
    sticky = Signal(len(GATE_CAUSES))
    m.d.sync += sticky.eq(sticky | accounts.refused)
    m.d.comb += accounts.status.eq(Cat(sticky, sinks.frames.ready))
    frames, now = Signal(64), Signal(64)
    with m.If(accounts.latch):
        m.d.sync += [frames.eq(sinks.frames.generated), now.eq(registers.now)]
    # One clock late, because `clear` has a long way to everything else.
    cleared = Signal()
    m.d.sync += cleared.eq(registers.clear)
    with m.If(cleared):
        m.d.sync += [sticky.eq(0), frames.eq(0), now.eq(0)]
    if Sink.EXTENDED in geometry.sinks:
        m.d.sync += accounts.trigger.eq(Cat(sinks.start[31] & ~sinks.triggered, sinks.triggered, sinks.stopped))
    bound = {
        "STATUS": Binding(accounts.status), "CENSUS": _set(accounts.slow),
        "TRIGGER_STATE": Binding(accounts.trigger),
        "TIME_LOW": Binding(now[:32]), "TIME_HIGH": Binding(now[32:]),
        "FRAMES_LOW": Binding(frames[:32]), "FRAMES_HIGH": Binding(frames[32:]),
    }
    if geometry.links:
        bound["LINKS"] = Binding(Cat(Const(geometry.links, 8), accounts.links))
    return bound


def _of_board(registers: wiring.Component) -> dict[str, Binding]:
    """Registers without a setting: the identity, which is constant but for the latency, the window and levels."""
    geometry = registers.geometry
    sinks = sum(1 << sink for sink in geometry.sinks)
    absent = sum(1 << option for option in geometry.absent)
    external = max(geometry.external_depth.bit_length() - 1, 0)
    shown: dict[str, ValueLike] = {
        "MAGIC": Const(IDENTITY_MAGIC, 32),
        "VERSION": Const(REGISTER_VERSION << 8 | FORMAT_VERSION, 16),
        "BUILD": Const(registers.build, 32),
        "GEOMETRY": Cat(Const(
            geometry.nodes | geometry.port_bits << 8 | sinks << 16 | absent << ABSENT_SHIFT
            | (geometry.phases > 1) << 23 | (geometry.phases > 2) << 22, 24), registers.latency),
        "CLOCK_HZ": Const(geometry.clock_hz, 32),
        "NODE_DEPTH": Const(geometry.node_depth, 16),
        "VECTOR_DEPTH": Const(geometry.vector_depth, 16),
        "FRAME_DEPTH": Const(geometry.frame_depth if Sink.CLASSIC in geometry.sinks else 0, 16),
        "STORE_DEPTH": Const(geometry.store_depth | external << 16, 32),
        "WINDOW": Array(Const(geometry.window_clocks(w), 16) for w in Window)[registers.window],
        "EXTRAS": Const(sum(1 << extra for extra in geometry.extras), 8),
        "STORE_LEVEL": Cat(registers.store_level, registers.store_high),
        "EXTERNAL_LEVEL": registers.external_level, "EXTERNAL_HIGH": registers.external_high,
    }
    return {name: Binding(value) for name, value in shown.items()}
