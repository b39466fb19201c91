"""One stage by itself on the bench, clock by clock."""

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

__all__ = ["Stage", "fields", "pack"]

_PERIOD = 10_000


class Stage:
    """A stage whose members are ports of the design (see :func:`..runner.component`).

    A clock goes: :meth:`put` inputs, :meth:`settle`, :meth:`get` outputs, :meth:`clock`. ``now``
    counts the clock edges since the reset.
    """

    def __init__(self, dut):
        self.dut = dut
        self.now = 0
        self._put: dict[str, int] = {}
        self._handles = {}

    def _handle(self, name: str):
        if name not in self._handles:
            self._handles[name] = getattr(self.dut, name)
        return self._handles[name]

    async def start(self, **inputs: int) -> None:
        """Start the clock and reset; all inputs are to be named with their first values."""
        self.dut.rst.value = 1
        self.put(**inputs)
        Clock(self.dut.clk, _PERIOD, "step").start(start_high=False)
        for _ in range(3):
            await FallingEdge(self.dut.clk)
        self.dut.rst.value = 0

    def put(self, **inputs: int) -> None:
        """Set inputs; the others keep their values."""
        for name, value in inputs.items():
            if self._put.get(name) != value:
                self._put[name] = value
                self._handle(name).value = value

    def get(self, name: str) -> int:
        """An output, or what an input has been set to."""
        return self._put[name] if name in self._put else int(self._handle(name).value)

    async def settle(self) -> None:
        """Let the inputs reach the outputs that depend on them at once."""
        await Timer(_PERIOD // 1000, "step")

    async def clock(self) -> None:
        """Past the next clock edge."""
        await FallingEdge(self.dut.clk)
        self.now += 1

    async def step(self, **inputs: int) -> None:
        """Put, settle."""
        self.put(**inputs)
        await self.settle()


def fields(layout, value: int) -> dict[str, int]:
    """The fields of an Amaranth layout in a port's value."""
    return {name: value >> f.offset & (1 << f.width) - 1 for name, f in layout}


def pack(layout, **values: int) -> int:
    """The port's value of an Amaranth layout; AssertionError if a field does not fit."""
    result = 0
    for name, value in values.items():
        f = layout[name]
        assert 0 <= value < 1 << f.width, (name, value)
        result |= value << f.offset
    return result
