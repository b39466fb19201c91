"""Resets of a stage at random moments of random traffic: afterwards it does what a fresh one does, clock by clock."""

import contextlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping

from amaranth.hdl import Cat, ClockDomain, Const, DomainRenamer, Fragment, Module, Signal, ValueCastable
from amaranth.lib import wiring

from .stage import run

__all__ = ["Traffic", "same_as_fresh"]

#: Clocks of a reset. In them both stages have the same inputs, so that synchronizers, which have no reset, agree.
_LASTS = 4
#: Clocks that a wanted state is awaited for.
_AWAITED = 400

#: An input's value.
Drive = Callable[[random.Random], int]


class _Copy:
    """One of two copies of a stage, in a domain of its own."""

    def __init__(self, m: Module, name: str, dut: wiring.Component, domain: str):
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, object] = {}
        driven = []
        self.clocked = ClockDomain(name)
        m.domains += self.clocked
        for path, member, value in dut.signature.flatten(dut):
            value = value.as_value() if isinstance(value, ValueCastable) else value
            told = ".".join(map(str, path))
            if isinstance(value, Const):        # a ready that always is
                continue
            if member.flow is wiring.Out:
                self.outputs[told] = value
            elif len(value):
                self.inputs[told] = len(value)
                driven.append(value)
        # One signal for all: the simulator settles after each that is set.
        self.given = Signal(sum(self.inputs.values()), name=f"{name}_given")
        m.d.comb += Cat(driven).eq(self.given)
        fragment = Fragment.get(dut, None)
        self.machines = dict(_machines(fragment))
        m.submodules[name] = DomainRenamer({domain: name})(fragment)

    def streams(self, members: Mapping[str, object]) -> list[str]:
        """Prefixes of the streams whose ``valid`` is one of these members."""
        return [name.removesuffix("valid") for name in members if name.endswith(".valid")
                and f"{name.removesuffix('valid')}ready" in {**self.inputs, **self.outputs}]


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


Player = Callable[["Traffic"], Mapping[str, int]]


def _nobody() -> Player:
    return lambda traffic: {}


class Traffic:
    """Random inputs of a copy. What a stream offers stays until it is taken.

    Members
    -------
    rng : of this traffic.
    values : inputs of the clock before, by name.
    """

    def __init__(self, copy: _Copy, rng: random.Random, drives: Mapping[str, Drive], settings: Mapping[str, Drive],
                 player: Player, calm: bool):
        self.copy, self.rng, self.drives, self.settings, self.player = copy, rng, drives, settings, player
        self.calm = calm
        self.streams = copy.streams(copy.inputs)
        self.values: dict[str, int] = {}
        self.taken: dict[str, int] = {}

    def begin(self) -> None:
        """Other settings, and another mixture: streams and single bits have rates of their own."""
        self.rates = {name: self.rng.choice((0.05, 0.3, 0.7, 1)) for name in self.copy.inputs}
        self.set = {name: drive(self.rng) for name, drive in self.settings.items()}
        if self.calm:
            self.set.update({name: self.rng.getrandbits(width) for name, width in self.copy.inputs.items()
                             if name not in {**self.drives, **self.set} and width > 1})

    def get(self, name: str) -> int:
        """An output, before this clock's inputs."""
        return self.ctx.get(self.copy.outputs[name])

    def _new(self, name: str, width: int) -> int:
        if name in self.set:
            return self.set[name]
        if name in self.drives:
            return self.drives[name](self.rng)
        return int(self.rng.random() < self.rates[name]) if width == 1 else self.rng.getrandbits(width)

    def step(self, ctx, same: Mapping[str, int] | None = None) -> dict[str, int]:
        """Sets the inputs of a clock: new ones, or those of the other copy."""
        self.ctx, before = ctx, self.values
        if same is None:
            values = {name: self._new(name, width) for name, width in self.copy.inputs.items()}
            for stream in self.streams:
                if before.get(f"{stream}valid") and not self.taken.get(stream, 1):
                    values.update({name: value for name, value in before.items()
                                   if name.startswith(stream) and name != f"{stream}ready"})
            values.update(self.player(self))
        else:
            values = dict(same)
        given = 0
        for name, width in reversed(self.copy.inputs.items()):
            given = given << width | values[name]
        ctx.set(self.copy.given, given)
        self.values = values
        self.taken = {stream: self.get(f"{stream}ready") if f"{stream}ready" in self.copy.outputs else 1
                      for stream in self.streams} if same is None else {}
        return values


def _differing(m: Module, one: _Copy, two: _Copy, meaning: Mapping[str, str]) -> dict[str, Signal]:
    """By output: it differs, and means something."""
    found = {}
    for name, value in one.outputs.items():
        stream = name.split(".payload")[0] + ".valid" if ".payload" in name else ""
        valid = meaning.get(name, stream if stream in one.outputs else "")
        found[name] = Signal(name=f"differs_{name}")
        means = one.outputs[valid] if valid else 1
        m.d.comb += found[name].eq((value != two.outputs[name]) & means)
    return found


def same_as_fresh(make: Callable[[], wiring.Component], drives: Mapping[str, Drive] | None = None, *,
                  settings: Mapping[str, Drive] | None = None, player: Callable[[], Player] = _nobody,
                  calm: bool = False, domain: str = "sync", seed: int = 1, episodes: int = 20, before: int = 100,
                  after: int = 100, meaning: Mapping[str, str] | None = None,
                  never: Collection[str] = ()) -> None:
    """One copy of a stage has random traffic, and is reset at a random moment; another one has been in reset with other
    traffic. From then on both have the same inputs, and must have the same outputs in every clock.

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
    meaning : outputs that mean something only if another output is not 0. A stream's payload is one by itself.
    never : states that random traffic does not reach.
    """
    rng, m = random.Random(seed), Module()
    one, two = (_Copy(m, name, make(), domain) for name in ("used", "fresh"))
    differing = _differing(m, one, two, meaning or {})
    differs = Signal()
    m.d.comb += differs.eq(Cat(differing.values()).any())
    m.domains.sync = ClockDomain()
    names = {name: _states(machine) for name, machine in one.machines.items()}
    wanted = {(name, state) for name, states in names.items() for state in states if state not in never}
    outputs = Signal(sum(len(value) for value in one.outputs.values()))
    m.d.comb += outputs.eq(Cat(one.outputs.values()))
    carried, changes = dict.fromkeys(one.streams(one.outputs), 0), 0

    async def bench(ctx):
        nonlocal changes
        used, fresh = (Traffic(copy, rng, drives or {}, settings or {}, player(), calm) for copy in (one, two))
        done = tries = 0
        while done < episodes or (wanted and tries < 10 * episodes):
            tries += 1
            for traffic in (used, fresh):
                traffic.begin()
            ctx.set(two.clocked.rst, 1)
            # Some states are only those of a stage that has just been reset.
            ctx.set(one.clocked.rst, rng.getrandbits(1))
            await ctx.tick()
            ctx.set(one.clocked.rst, 0)
            least, clocks, now = rng.randrange(before), 0, set()
            while True:
                used.step(ctx)
                fresh.step(ctx)
                now = {(name, names[name][ctx.get(machine)]) for name, machine in one.machines.items()}
                clocks += 1
                if (clocks > least and (not wanted or wanted & now)) or clocks > least + _AWAITED:
                    break
                await ctx.tick()
            wanted.difference_update(now)
            ctx.set(one.clocked.rst, 1)
            for _ in range(_LASTS):
                await ctx.tick()
                used.values, fresh.values = {}, {}
                fresh.step(ctx, used.step(ctx))
            ctx.set(one.clocked.rst, 0)
            ctx.set(two.clocked.rst, 0)
            last = ctx.get(outputs)
            for clock in range(after):
                if ctx.get(differs):
                    told = [name for name, signal in differing.items() if ctx.get(signal)]
                    states = ", ".join(f"{name} {state}" for name, state in sorted(now)) or "no state"
                    raise AssertionError(
                        f"seed {seed}, {clock} clocks after reset {tries} in {states}: {', '.join(told)}")
                for stream in carried:
                    carried[stream] += ctx.get(one.outputs[f"{stream}valid"]) & used.values.get(f"{stream}ready", 1)
                changes += ctx.get(outputs) != last
                last = ctx.get(outputs)
                await ctx.tick()
                fresh.step(ctx, used.step(ctx))
            done += 1

    run(m, bench, clocks=20 * episodes * (before + after + _AWAITED), domains=("used", "fresh"))
    assert not wanted, f"no reset in {sorted(wanted)}"
    assert changes > episodes, "nothing happens"
    assert all(carried.values()), carried
