"""A whole board in a cocotb bench: clock, reset, host bus, stream, nodes, and the host's recorder."""

import csv
import random
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.task import Task, bridge
from cocotb.triggers import ClockCycles, First, RisingEdge
from hypermon.host import Run, open_run
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.record.recorder import record

from .bench_link import BENCH_URI, BenchLink
from .cocotb_models import PbxMaster, StreamSink, now_ps
from .node import Node, PortPins
from .stalls import stalls
from .waves import save_groups

__all__ = ["BenchBoard"]

_BUS = ("pbx_req", "pbx_write", "pbx_addr", "pbx_wdata", "pbx_ack", "pbx_rdata")
_STREAM = ("stream_valid", "stream_ready", "stream_data", "stream_last")


def _signals(dut: Any, prefix: str, names: tuple[str, ...], clock: Any) -> SimpleNamespace:
    """The named signals of a design. Raises HypermonError if one is missing."""
    found = {}
    for name in names:
        handle = getattr(dut, prefix + name, None)
        if handle is None:
            raise HypermonError(f"{dut._name} has no signal {prefix}{name}: the bench needs the board's ports "
                                f"{', '.join((*_BUS, *_STREAM, 'running'))} at the top, each with the same prefix")
        found[name] = handle
    return SimpleNamespace(clk=clock, **found)


def _free(path: Path) -> Path:
    """Makes room for a RUN: removes the one of an earlier bench, and nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and open_run(path).info.board == BENCH_URI:
        shutil.rmtree(path)
    return path


class BenchBoard:
    """The board of a bench. :meth:`start` makes one.

    Members
    -------
    device : the board as the host sees it; its ``identity`` says what was built.
    clock_ps : period of the capture clock.
    nodes : those that :meth:`node` has made, by number.
    sink : of the stream; ``sink.paused = True`` is a host that stops reading.
    """

    def __init__(self, link: BenchLink, device: Device, sink: StreamSink, pins: PortPins | None, clock_ps: int,
                 seed: int, running: Any):
        self.device, self.sink, self.clock_ps = device, sink, clock_ps
        self.nodes: dict[int, Node] = {}
        self._link, self._pins, self._seed, self._running = link, pins, seed, running
        self._recording: Task[Any] | None = None
        self._path = Path()

    @classmethod
    async def start(cls, dut: Any, *, clock_hz: int = 100_000_000, prefix: str = "", own_clock: bool = False,
                    seed: int = 0, ready: float = 0.9) -> "BenchBoard":
        """Starts clock and reset, and identifies the board by its registers.

        Parameters
        ----------
        dut : the module `hypermon`, or a design around it that has the board's bus and stream among its ports.
        clock_hz : the frequency at which the board was built.
        prefix : before the names of the board's ports in ``dut``.
        own_clock : the bench itself drives `clk` and `rst`; the reset is over.
        seed : of all delays and stalls.
        ready : share of time in which the stream is read; the rest is back-pressure at random.

        Raises
        ------
        HypermonError
            if a port is missing, or the board does not answer as one.
        """
        period = round(1e12 / clock_hz)
        ports = _signals(dut, prefix, (*_BUS, *_STREAM, "running"), dut.clk)
        delays = random.Random(f"{seed}/bus")
        bus = PbxMaster(ports, lambda: delays.randint(0, period))
        sink = StreamSink(ports, stalls(random.Random(f"{seed}/stream"), ready))
        strobe, data = getattr(dut, prefix + "strobe", None), getattr(dut, prefix + "data", None)
        pins = None if strobe is None or data is None else PortPins(strobe, data, len(data) // len(strobe))
        for name in ("advance", "pbx_more"):
            if (idle := getattr(dut, prefix + name, None)) is not None:
                idle.value = 0
        if not own_clock:
            dut.rst.value = 1
            Clock(dut.clk, period, "step").start(start_high=False)
            await ClockCycles(dut.clk, 3)
            dut.rst.value = 0
        link = BenchLink(bus, sink, ports.running, period)
        device = await bridge(Device)(link)
        save_groups(dut, prefix, device.identity.nodes, device.identity.data_bits)
        if device.identity.clock_hz != clock_hz:
            raise HypermonError(f"the board was built for {device.identity.clock_hz} Hz, and the bench has {clock_hz}")
        return cls(link, device, sink, pins, period, seed, ports.running)

    def node(self, number: int, **port: Any) -> Node:
        """Makes the driver of a node.

        Parameters
        ----------
        number : of the node.
        port : ``cycle_ps``, ``ppm``, ``skew_ps``, ``toggling`` of :class:`.node.Node`.

        Raises
        ------
        HypermonError
            if the design has no ports `strobe` and `data`, or the node exists already.
        ValueError
            if the board has no such node, or could not read such a port.
        """
        if self._pins is None:
            raise HypermonError("the design has no ports strobe and data at the top: nothing for a node to write")
        if not 0 <= number < self.device.identity.nodes:
            raise ValueError(f"node {number}: the board has nodes 0 to {self.device.identity.nodes - 1}")
        if number in self.nodes:
            raise HypermonError(f"node {number} exists already")
        made = Node(self._pins, number, clock_ps=self.clock_ps, seed=self._seed, **port)
        self.nodes[number] = made
        return made

    async def record(self, path: str | Path, settings: Settings | None = None, **options: Any) -> None:
        """Starts a recording. The board captures when this returns.

        Edges and sample points that ``settings`` leave out are those of the nodes made so far.

        Parameters
        ----------
        path : of the new RUN. One that an earlier bench left there is replaced.
        settings : see :class:`hypermon.host.device.device.Settings`.
        options : of :func:`hypermon.host.record.recorder.record`.

        Raises
        ------
        HypermonError
            if the board rejects the settings, or something else is at ``path``.
        """
        settings = settings or Settings()
        toggling = sum(1 << n for n, node in self.nodes.items() if node.toggling)
        every = (1 << self.device.identity.nodes) - 1
        settings = replace(
            settings, rising=every if settings.rising is None else settings.rising,
            falling=toggling if settings.falling is None else settings.falling,
            after=toggling if settings.after is None else settings.after)
        self._path = _free(Path(path))
        self._link.ended, self._link.zero_ps = False, None
        self._link.enabled.clear()
        began = cocotb.start_soon(self._time_zero())
        self._recording = cocotb.start_soon(bridge(record)(self.device, self._path, settings, **options))
        await First(self._recording.complete, self._link.enabled.wait())
        if self._recording.done():
            began.cancel()
            self._recording.result()    # raises what was wrong

    async def _time_zero(self) -> None:
        """Time 0 is the first rising clock edge at which ``running`` is high."""
        await RisingEdge(self._running)
        self._link.zero_ps = now_ps() + self.clock_ps

    async def stop(self) -> Run:
        """Stops the capture, drains the rest, and opens the run.

        Raises
        ------
        HypermonError
            if nothing is being recorded.
        CutShortError
            if the recording did not end as it should; what came before is in the RUN.
        """
        if self._recording is None:
            raise HypermonError("nothing is being recorded: await record() first")
        self._link.ended = True
        task, self._recording = self._recording, None
        await task
        return open_run(self._path)

    @property
    def zero_ps(self) -> int:
        """Simulation time of the board's time 0. Raises HypermonError before the first recording."""
        if self._link.zero_ps is None:
            raise HypermonError("the board's time has not begun: await record() first")
        return self._link.zero_ps

    def save_stimulus(self, path: str | Path) -> None:
        """Writes what the nodes did to their ports since time 0, as a stimulus that ``hypermon sim`` plays.

        Raises
        ------
        HypermonError
            if the design has no ports `strobe` and `data`, or a node wrote before time 0.
        """
        if self._pins is None:
            raise HypermonError("the design has no ports strobe and data at the top: nothing was written to them")
        zero = self.zero_ps
        early = next((w for w in self._pins.writes if w[0] < zero), None)
        if early is not None:
            raise HypermonError(f"node {early[1]} wrote before the recording began: a stimulus starts with all ports 0")
        with Path(path).open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("time_ns", "node", "port"))
            for ps, node, value in self._pins.writes:
                whole, rest = divmod(ps - zero, 1000)
                rows.writerow((f"{whole}.{rest:03}", node, value))
