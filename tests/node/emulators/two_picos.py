"""Prints what the ports of two Picos do that run examples/two_picos/main.py side by side: a stimulus.

    python tests/node/emulators/two_picos.py THROWS > picos.csv

The programs are the example's own. Instead of MicroPython's `machine` and `rp2`, they use those of this module, in
which each call takes a fixed time.
"""

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

ROOT = Path(__file__).parents[3]
#: Nanoseconds of a call in MicroPython; of a level that the PIO program writes for a board of 15 MHz.
_CALL_NS, _LEVEL_NS = 5_000, 72
#: Seconds that one Pico waits for the other.
_PATIENCE_S = 60


class _Bench:
    """Two Picos in one time: the one whose time is earlier runs until it has spent some."""

    def __init__(self) -> None:
        self.turn = threading.Condition()
        self.now = [0.0, 0.0]
        self.hands = [0, 0]
        #: Time, node, levels of the port.
        self.rows: list[tuple[float, int, int]] = []

    def spend(self, node: int, ns: float) -> None:
        with self.turn:
            self.now[node] += ns
            self.turn.notify_all()
            if not self.turn.wait_for(lambda: self.now[node] <= self.now[1 - node], _PATIENCE_S):
                raise TimeoutError("the other Pico does not go on")

    def write(self, node: int, word: int) -> None:
        """An event of one word, as the PIO program writes it."""
        for at in range(1 + 2 * (word & 15)):
            nibble, begin = word >> 4 * at & 15, self.now[node] + 2 * at * _LEVEL_NS
            self.rows += [(begin, node, nibble), (begin + _LEVEL_NS, node, nibble | 16)]

    def run(self, node: int, play: object, throws: int) -> None:
        try:
            play(throws)
        finally:
            with self.turn:
                self.now[node] = float("inf")
                self.turn.notify_all()


def _modules(bench: _Bench, node: int) -> dict[str, ModuleType]:
    """`machine`, `rp2` and `time` of a Pico."""
    from emulators import micropython

    class Pin:
        IN, OUT, PULL_UP, PULL_DOWN = 0, 1, 1, 2

        def __init__(self, number: int, mode: int | None = None, pull: int = 0, *, value: int | None = None) -> None:
            self.number = number

        def value(self, level: int | None = None) -> int | None:
            bench.spend(node, _CALL_NS)
            if level is None:
                # GP16 of node 0 is at ground.
                return bench.hands[1 - node] if self.number == 15 else node
            bench.hands[node] = level
            return None

    class StateMachine(micropython.rp2.StateMachine):
        def put(self, word: int) -> None:
            bench.spend(node, _CALL_NS)
            bench.write(node, word)

    found = {name: ModuleType(name) for name in ("machine", "rp2", "time")}
    found["machine"].Pin, found["machine"].freq = Pin, lambda: 125_000_000
    found["rp2"].StateMachine = StateMachine
    found["rp2"].PIO, found["rp2"].asm_pio = micropython.rp2.PIO, micropython.rp2.asm_pio
    found["time"].sleep_us = lambda us: bench.spend(node, 1000 * us)
    return found


def _loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stimulus(throws: int) -> str:
    """A stimulus file of the two ports, until the ball was thrown so many times."""
    bench, threads = _Bench(), []
    for node in range(2):
        with patch.dict(sys.modules, _modules(bench, node)):
            sys.modules["hypermon_port"] = _loaded("hypermon_port", ROOT / "node/micropython/hypermon_port.py")
            program = _loaded("two_picos_main", ROOT / "examples/two_picos/main.py")
        threads.append(threading.Thread(target=bench.run, args=(node, program.play, throws), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _PATIENCE_S)
        if thread.is_alive():
            raise TimeoutError("a Pico does not end")
    rows = "".join(f"{time:.0f},{node},{port}\n" for time, node, port in sorted(bench.rows))
    return f"time_ns,node,port\n{rows}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    print(stimulus(int(sys.argv[1])), end="")
