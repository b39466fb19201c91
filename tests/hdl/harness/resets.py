"""Resets of a stage at random moments of random traffic: afterwards it does what a fresh one does, clock by clock."""

import contextlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from amaranth.hdl import Cat, ClockDomain, Const, Fragment, Module, Signal, ValueCastable
from amaranth.lib import wiring
from amaranth.sim import Simulator

__all__ = ["Traffic", "same_as_fresh"]

#: Clocks of a reset. Synchronizers, which have no reset, have the inputs of these clocks in it.
_LASTS = 4
#: Clocks that a wanted state is awaited for.
_AWAITED = 400

#: An input's value.
Drive = Callable[[random.Random], int]
#: Inputs that depend on outputs.
Player = Callable[["Traffic"], Mapping[str, int]]


class _Output(NamedTuple):
    """Where an output is in the word of all outputs; ``valid``: that of the bit without which it means nothing."""

    name: str
    at: int
    width: int
    valid: int | None

    def of(self, word: int) -> int:
        return word >> self.at & (1 << self.width) - 1


class _Stage:
    """A stage in its domain, with a signal for all inputs and one for all outputs: the simulator settles after each
    signal that is set."""

    def __init__(self, dut: wiring.Component, domain: str, meaning: Mapping[str, str]):
        self.module = m = Module()
        self.inputs: dict[str, int] = {}
        self.values: dict[str, object] = {}
        driven = []
        self.clocked = ClockDomain(domain)
        m.domains += self.clocked
        for path, member, value in dut.signature.flatten(dut):
            value = value.as_value() if isinstance(value, ValueCastable) else value
            name = ".".join(map(str, path))
            if isinstance(value, Const) or not len(value):      # a ready that always is, an empty payload
                continue
            if member.flow is wiring.Out:
                self.values[name] = value
            else:
                self.inputs[name] = len(value)
                driven.append(value)
        self.given = Signal(sum(self.inputs.values()))
        self.shown = Signal(sum(len(value) for value in self.values.values()))
        m.d.comb += [Cat(driven).eq(self.given), self.shown.eq(Cat(self.values.values()))]
        m.submodules.dut = fragment = Fragment.get(dut, None)
        self.machines = dict(_machines(fragment))
        self.outputs = list(self._outputs(meaning))

    def _outputs(self, meaning: Mapping[str, str]) -> Iterator[_Output]:
        places, at = {}, 0
        for name, value in self.values.items():
            places[name], at = at, at + len(value)
        for name, value in self.values.items():
            stream = f"{name.split('.payload')[0]}.valid" if ".payload" in name else ""
            yield _Output(name, places[name], len(value), places.get(meaning.get(name, stream)))

    def streams(self, members: Mapping[str, object]) -> list[str]:
        """Prefixes of the streams whose ``valid`` is one of these members."""
        return [name.removesuffix("valid") for name in members if name.endswith(".valid")
                and f"{name.removesuffix('valid')}ready" in {**self.inputs, **self.values}]

    def set(self, ctx, values: Mapping[str, int]) -> None:
        """Sets all inputs."""
        word = 0
        for name, width in reversed(self.inputs.items()):
            word = word << width | values[name]
        ctx.set(self.given, word)

    def different(self, one: int, two: int) -> list[str]:
        """Outputs that differ and mean something."""
        return [output.name for output in self.outputs if output.of(one) != output.of(two)
                and (output.valid is None or (one | two) >> output.valid & 1)] if one != two else []


def _machines(fragment: Fragment, path: str = "") -> Iterator[tuple[str, Signal]]:
    """State machines of a stage and of the stages in it."""
    signals = {}
    for statements in fragment.statements.values():
        for statement in statements:
            signals.update({id(signal): signal for signal in statement._lhs_signals()})
    for signal in signals.values():
        if signal.name.endswith("fsm_state"):
            yield f"{path}{signal.name}", signal
    for k, (inner, name, *_) in enumerate(fragment.subfragments):
        yield from _machines(inner, f"{path}{name or k}/")


def _states(machine: Signal) -> list[str]:
    """Names of a machine's states, by number."""
    found: list[str] = []
    with contextlib.suppress(KeyError):
        for value in range(1 << len(machine)):
            found.append(machine.decoder(value).split("/")[0])
    return found


class Traffic:
    """Random inputs of a stage. What a stream offers stays until it is taken.

    Members
    -------
    rng : of this traffic.
    values : inputs of the clock before, by name; none in a reset.
    """

    def __init__(self, stage: _Stage, rng: random.Random, drives: Mapping[str, Drive], settings: Mapping[str, Drive],
                 player: Player, calm: bool):
        self.stage, self.rng, self.drives, self.settings, self.player = stage, rng, drives, settings, player
        self.calm = calm
        self.streams = stage.streams(stage.inputs)
        self.values: dict[str, int] = {}
        self.taken: dict[str, int] = {}

    def begin(self) -> None:
        """Other settings, and another mixture: streams and single bits have rates of their own."""
        self.rates = {name: self.rng.choice((0.05, 0.3, 0.7, 1)) for name in self.stage.inputs}
        self.set = {name: drive(self.rng) for name, drive in self.settings.items()}
        if self.calm:
            self.set.update({name: self.rng.getrandbits(width) for name, width in self.stage.inputs.items()
                             if name not in {**self.drives, **self.set} and width > 1})

    def get(self, name: str) -> int:
        """An output, before this clock's inputs."""
        return self.ctx.get(self.stage.values[name])

    def _new(self, name: str, width: int) -> int:
        if name in self.set:
            return self.set[name]
        if name in self.drives:
            return self.drives[name](self.rng)
        return int(self.rng.random() < self.rates[name]) if width == 1 else self.rng.getrandbits(width)

    def step(self, ctx, offers: bool = True) -> dict[str, int]:
        """Sets the inputs of a clock; unless it ``offers``, streams have nothing."""
        self.ctx, before = ctx, self.values
        values = {name: self._new(name, width) for name, width in self.stage.inputs.items()}
        for stream in self.streams:
            if before.get(f"{stream}valid") and not self.taken[stream]:
                values.update({name: value for name, value in before.items()
                               if name.startswith(stream) and name != f"{stream}ready"})
        values.update(self.player(self))
        values.update({} if offers else {f"{stream}valid": 0 for stream in self.streams})
        self.stage.set(ctx, values)
        self.values = values
        self.taken = {stream: self.get(f"{stream}ready") if f"{stream}ready" in self.stage.values else 1
                      for stream in self.streams}
        return values


def _nobody() -> Player:
    return lambda traffic: {}


class _Episode(NamedTuple):
    """A reset, and what came after it: inputs of the reset, inputs and outputs of each clock after it."""

    states: str
    reset: list[dict[str, int]]
    clocks: list[tuple[dict[str, int], int]]


def same_as_fresh(make: Callable[[], wiring.Component], drives: Mapping[str, Drive] | None = None, *,
                  settings: Mapping[str, Drive] | None = None, player: Callable[[], Player] = _nobody,
                  calm: bool = False, domain: str = "sync", seed: int = 1, episodes: int = 20, before: int = 100,
                  after: int = 100, sweeps: int = 0, meaning: Mapping[str, str] | None = None,
                  never: Collection[str] = ()) -> None:
    """A stage has random traffic, and is reset at random moments. What it does after each reset is what a stage does
    that has never had any traffic, in every clock.

    Each state of each state machine in the stage is that of a reset at least once: the moment is chosen for it.

    Parameters
    ----------
    make : returns the stage.
    drives : inputs that are not merely random. Streams keep what they offer in any case.
    settings : inputs that change at resets only.
    player : returns what sets inputs that depend on outputs; it has the traffic of the clock.
    calm : all other inputs of more than one bit change at resets only.
    domain : of the stage.
    seed : of the traffic.
    episodes : number of resets, at least.
    before, after : most clocks of the traffic before a reset, and clocks after it.
    sweeps : clocks after a reset in which memories are cleared: outputs are not compared.
    meaning : outputs that mean something only if another output, of one bit, is set. A stream's payload is one anyway.
    never : states that random traffic does not reach.
    """
    stage = _Stage(make(), domain, meaning or {})
    names = {name: _states(machine) for name, machine in stage.machines.items()}
    wanted = {(name, state) for name, states in names.items() for state in states if state not in never}
    done: list[_Episode] = []
    replayed: list[_Episode] = []

    async def used(ctx) -> None:
        rng = random.Random(seed)
        traffic, resets = Traffic(stage, rng, drives or {}, settings or {}, player(), calm), stage.clocked.rst
        while len(done) < episodes or (wanted and len(done) < 10 * episodes):
            traffic.begin()
            # Some states are only those of a stage that has just been reset.
            ctx.set(resets, rng.getrandbits(1))
            await ctx.tick(domain)
            ctx.set(resets, 0)
            least, clocks = rng.randrange(before), 0
            while True:
                traffic.step(ctx)
                now = {(name, names[name][ctx.get(machine)]) for name, machine in stage.machines.items()}
                clocks += 1
                if (clocks > least and (not wanted or wanted & now)) or clocks > least + _AWAITED:
                    break
                await ctx.tick(domain)
            wanted.difference_update(now)
            episode = _Episode(", ".join(f"{name} {state}" for name, state in sorted(now)) or "no state", [], [])
            ctx.set(resets, 1)
            for _ in range(_LASTS):
                await ctx.tick(domain)
                traffic.values = {}
                episode.reset.append(traffic.step(ctx, False))     # the stages before it are reset, too
            ctx.set(resets, 0)
            for _ in range(sweeps + after):
                episode.clocks.append((traffic.values, ctx.get(stage.shown)))
                await ctx.tick(domain)
                traffic.step(ctx)
            done.append(episode)

    async def fresh(ctx, episode: _Episode) -> None:
        ctx.set(stage.clocked.rst, 1)
        for values in episode.reset:
            await ctx.tick(domain)
            stage.set(ctx, values)
        ctx.set(stage.clocked.rst, 0)
        for clock, (values, shown) in enumerate(episode.clocks):
            stage.set(ctx, values)
            if clock >= sweeps and (differ := stage.different(shown, ctx.get(stage.shown))):
                raise AssertionError(f"seed {seed}, {clock} clocks after a reset in {episode.states}: "
                                     f"{', '.join(differ)}")
            await ctx.tick(domain)

    async def bench(ctx) -> None:
        await (fresh(ctx, replayed[-1]) if replayed else used(ctx))

    simulator = Simulator(stage.module)
    simulator.add_clock(1e-8, domain=domain)
    simulator.add_testbench(bench)
    simulator.run()         # it ends: each wait is for some clocks
    for episode in done:
        replayed.append(episode)
        simulator.reset()
        simulator.run()
    assert not wanted, f"no reset in {sorted(wanted)}"
    _moves(stage, done)


def _moves(stage: _Stage, episodes: list[_Episode]) -> None:
    """Fails if nothing has happened after the resets."""
    words = [shown for episode in episodes for _, shown in episode.clocks]
    assert sum(one != two for one, two in pairwise(words)) > len(episodes), "nothing happens"
    at = {output.name: output.at for output in stage.outputs}
    for stream in stage.streams(stage.values):
        assert any(shown >> at[f"{stream}valid"] & values.get(f"{stream}ready", 1) & 1
                   for episode in episodes for values, shown in episode.clocks), f"nothing leaves at {stream[:-1]}"
