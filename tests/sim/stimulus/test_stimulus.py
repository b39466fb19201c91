"""Options, kinds of files, several at once, and runs as stimuli."""

import random
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.port_mapping import Edge, Sample, parse_ports, parse_setting
from hypermon.sim.stimulus.port_rule import complaints
from hypermon.sim.stimulus.run_file import replayed
from hypermon.sim.stimulus.stimulus import Stimulus, load

from tests.sim.stimulus.test_sr_file import NAMES, session

FILES = ["a.sr", "b#1=x.vcd", "b"]


def parsed(text, files=("a.sr",), nodes=16):
    (mapping,) = parse_ports([text], files, nodes)
    return mapping.file, mapping.node, mapping.channels, mapping.edge, mapping.sample


def test_ports():
    channels = ("D0", "D1", "D2", "D3", "E")
    assert parsed("3=D0,D1,D2,D3,E") == ("a.sr", 3, channels, None, None)
    assert parsed("a.sr#15=D0, D1,D2 ,D3,E,falling") == ("a.sr", 15, channels, Edge.FALLING, None)
    assert parsed("0=D0,D1,D2,D3,E,after") == ("a.sr", 0, channels, None, Sample.AFTER)
    assert parsed("0=D0,D1,D2,D3,E,both,before")[3:] == (Edge.BOTH, Sample.BEFORE)
    assert parsed("0=D0,D1,D2,D3,E,before,rising")[3:] == (Edge.RISING, Sample.BEFORE)
    # Names with the option's own signs.
    assert parsed("b#1=x.vcd#2=a#,b=,c,d,e#1=f", FILES)[:3] == ("b#1=x.vcd", 2, ("a#", "b=", "c", "d", "e#1=f"))
    assert parsed("b#1=x,b,c,d,e", FILES)[:3] == ("b", 1, ("x", "b", "c", "d", "e"))


@pytest.mark.parametrize(("text", "reason"), [
    ("", "not [FILE#]NODE="), ("D0,D1,D2,D3,E", "not [FILE#]NODE="), ("x=D0,D1,D2,D3,E", "not [FILE#]NODE="),
    ("-1=D0,D1,D2,D3,E", "not [FILE#]NODE="), ("0=", "five channel names"), ("0=a,b,c,d", "five channel names"),
    ("0=a,b,c,,e", "five channel names"), ("0=a,b,c,d,e,", "five channel names"),
    ("16=a,b,c,d,e", "node 16 is not in 0..15"),
    ("0=a,b,c,d,e,up", "'up' is not one edge"), ("0=a,b,c,d,e,rising,falling", "'falling' is not one edge"),
    ("0=a,b,c,d,e,before,before", "'before' is not one"),
    ("c.sr#0=a,b,c,d,e", "there is no input with channels called 'c.sr'")])
def test_malformed_ports(text, reason):
    with pytest.raises(InputError) as error:
        parsed(text)
    assert reason in error.value.reason
    assert str(error.value).startswith(f"--port {text}: ")


def test_ports_of_8_bits():
    names = "a,b,c,d,e,f,g,h,s"
    (mapping,) = parse_ports([f"1={names},both"], ["a.sr"], 16, 8)
    assert (mapping.channels, mapping.edge) == (tuple(names.split(",")), Edge.BOTH)
    with pytest.raises(InputError, match="nine channel names expected: D0,D1,D2,D3,D4,D5,D6,D7,STROBE"):
        parse_ports(["1=a,b,c,d,e"], ["a.sr"], 16, 8)


def test_ports_and_files():
    with pytest.raises(InputError, match="which file"):
        parsed("0=a,b,c,d,e", FILES)
    with pytest.raises(InputError, match="no input file has channels"):
        parsed("0=a,b,c,d,e", [])
    with pytest.raises(InputError, match="node 1 has a port already"):
        parse_ports(["1=a,b,c,d,e", "1=a,b,c,d,f"], ["a.sr"], 16)


def test_settings():
    assert parse_setting("--edge", [], Edge, 16) == (None, {})
    assert parse_setting("--edge", ["both", "3=falling", "15=rising", "3=both"], Edge, 16) == (
        Edge.BOTH, {3: Edge.BOTH, 15: Edge.RISING})
    assert parse_setting("--sample", ["before", "after"], Sample, 16) == (Sample.AFTER, {})
    for text, reason in (("up", "'up' is not rising, falling, both"), ("16=both", r"node 16 is not in 0\.\.15"),
                         ("x=both", "node x is not"), ("=both", "node  is not"), ("3=", "'' is not")):
        with pytest.raises(InputError, match=reason) as error:
            parse_setting("--edge", [text], Edge, 16)
        assert str(error.value).startswith(f"--edge {text}: ")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.csv").write_text("time_ns,node,port\n0,0,1\n2000,3,2\n2000,3,3\n3000,0,4\n")
    (tmp_path / "b.csv").write_text("time_ns,node,port\n1000,5,7\n2000,3,9\n")
    session(tmp_path / "c.sr", [1, 17, 1])
    (tmp_path / "d.vcd").write_text(
        "$timescale 1us $end " + "".join(f"$var wire 1 {n} {n} $end " for n in NAMES)
        + "$enddefinitions $end #0 0D0 1D1 0D2 0D3 1E #1 0E #3 1E")
    return tmp_path


def rows(stimulus):
    return list(zip(stimulus.time_ps.tolist(), stimulus.node.tolist(), stimulus.port.tolist(), strict=True))


def test_files_are_merged_by_time(files):
    ports = [f"{files / 'c.sr'}#1={','.join(NAMES)},falling", f"{files / 'd.vcd'}#2={','.join(NAMES)},both"]
    stimulus = load([files / n for n in ("a.csv", "b.csv", "c.sr", "d.vcd")], ports=ports,
                    edges=["rising", "1=both", "7=both"], samples=["8=after", "2=before"])
    us = 1_000_000
    assert rows(stimulus) == [
        (0, 0, 1), (us, 1, 17), (us, 2, 2), (us, 5, 7), (2 * us, 1, 1), (2 * us, 3, 9), (3 * us, 0, 4), (3 * us, 2, 18)]
    assert stimulus.initial == [0, 1, 18] + [0] * 13
    # The mapping says more than --edge; both edges are sampled after them unless told otherwise.
    assert (stimulus.rising, stimulus.falling, stimulus.after) == (0xffff & ~2, 0b1000_0110, 0b1_1000_0000)


def test_the_later_file_counts(files):
    assert (2_000_000, 3, 9) in rows(load([files / "a.csv", files / "b.csv"]))
    assert (2_000_000, 3, 3) in rows(load([files / "b.csv", files / "a.csv"]))


def test_defaults(files):
    stimulus = load([files / "a.csv"], nodes=4)
    assert (stimulus.rising, stimulus.falling, stimulus.after) == (15, 0, 0)
    stimulus = load([files / "a.csv"], nodes=4, edges=["both"])
    assert (stimulus.rising, stimulus.falling, stimulus.after) == (15, 15, 15)
    stimulus = load([files / "a.csv"], nodes=4, edges=["both"], samples=["before", "1=after"])
    assert stimulus.after == 2
    assert len(Stimulus.idle(32)) == 0
    assert Stimulus.idle(32).rising == 2**32 - 1


def test_channels_without_a_port(files):
    with pytest.raises(InputError, match=r"c\.sr: no --port maps its channels: D0, D1, D2, D3, E"):
        load([files / "c.sr"])
    with pytest.raises(InputError, match=r"d\.vcd: no --port maps its channels: D0, D1, D2, D3, E"):
        load([files / "d.vcd"])
    with pytest.raises(InputError, match="no input file has channels"):
        load([files / "a.csv"], ports=["0=D0,D1,D2,D3,E"])


def test_kinds_without_a_suffix(files):
    port = "4=" + ",".join(NAMES)
    for name, options in (("a.csv", {}), ("c.sr", {"ports": [port]}), ("d.vcd", {"ports": [port]})):
        bare = files / "bare"
        bare.write_bytes((files / name).read_bytes())
        assert rows(load([bare], **options)) == rows(load([files / name], **options))


def played(track):
    """Nibbles of a track whose strobe rises, or whose strobe changes at all: (time, nibble before)."""
    level, out = track[0].initial, []
    for time, port in zip(track[0].time.tolist(), track[0].port.tolist(), strict=True):
        change = (port ^ level) & 16
        if change and (track[1] is Edge.BOTH or port & 16):
            out.append((time, level & 15))
        level = port
    return out


@pytest.mark.parametrize("clock", [5_000_000, 30_000_000, 100_000_000, 200_000_000])
@pytest.mark.parametrize("clocks", [1, 2, 3, 4, 5, 1000])
def test_replay_keeps_times_and_holds(clock, clocks):
    """Every nibble is set a clock before its strobe changes, and the strobe holds each level a clock."""
    rng = random.Random(clocks)
    period = 10**12 // clock
    edges = np.cumsum([rng.randrange(3)] + [rng.randrange(clocks, 2 * clocks) for _ in range(99)])
    times = np.array([k * 10**12 // clock for k in edges.tolist()])
    nibbles = np.array([rng.randrange(16) for _ in times], np.uint8)
    track = replayed(times, np.full(100, 3, np.int16), nibbles, clock)[3]
    assert track[1] is (Edge.BOTH if clocks < 4 else Edge.RISING) or clocks == 4
    assert track[2] is Sample.BEFORE
    assert played(track) == list(zip(times.tolist(), nibbles.tolist(), strict=True))
    port = track[0]
    assert (port.time >= 0).all()
    assert (np.diff(port.time) >= 0).all()
    strobe = [t for t, a, b in zip(port.time.tolist(), [port.initial, *port.port[:-1]], port.port, strict=True)
              if (int(a) ^ int(b)) & 16]
    assert all(b - a >= period for a, b in pairwise(strobe))


@pytest.mark.parametrize("clocks", [1, 2, 3, 4])
def test_a_replay_keeps_the_rule(run, clocks):
    """With one nibble per clock, its data have to change at the previous edge; only random delays can tear them."""
    path = run(time_ps=pa.array([10_000 * clocks * k for k in range(5, 50)]), node=pa.array([2] * 45, pa.int16()),
               nibble=pa.array([k * 7 % 16 for k in range(45)], pa.uint8()))
    stimulus = load([path])
    assert complaints(stimulus, 100_000_000) == []
    assert (complaints(stimulus, 100_000_000, aperture_ps=1000) == []) == (clocks > 1)


def test_delays(files):
    """Of all nodes or one; in a row that changes both, one of the two comes later. Times are rounded up."""
    def delayed(*delays, names=("a.csv",)):
        return rows(load([files / name for name in names], delays=delays))

    (files / "a.csv").write_text("time_ns,node,port\n1,0,17\n2,0,2\n2,1,31\n")
    assert delayed("data,0") == delayed("2=data,7") == [(1000, 0, 17), (2000, 0, 2), (2000, 1, 31)]
    assert delayed("0=data,0.5") == [(1000, 0, 16), (1500, 0, 17), (2000, 0, 1), (2000, 1, 31), (2500, 0, 2)]
    assert delayed("strobe,0.4999") == [
        (1000, 0, 1), (1500, 0, 17), (2000, 0, 18), (2000, 1, 15), (2500, 0, 2), (2500, 1, 31)]
    assert delayed("data,7", "strobe,1", "0=data,1", "1=data,1") == [
        (2000, 0, 17), (3000, 0, 2), (3000, 1, 31)]
    assert delayed("strobe,5") == [
        (1000, 0, 1), (2000, 0, 2), (2000, 1, 15), (6000, 0, 18), (7000, 0, 2), (7000, 1, 31)]
    for text in ("5", "data", "data,", "data,x", "data,-1", "clock,5", "data,nan", "data,inf",
                 "data,9223372036854775.808", "=data,5", "16=data,5", "x=data,5"):
        with pytest.raises(InputError) as error:
            delayed(text)
        assert error.value.file == f"--delay {text}"
    with pytest.raises(InputError, match="the last change of node 0 is then beyond 2\\^63 ps"):
        delayed("data,9223372036854775.807")


def test_start_at_first(files):
    """The first change is at the stated time; all others, and those that another one replaces, move with it."""
    def moved(start, text="9000000000000000,1,16\n9000000000000000,1,0\n9000000000000050,0,5\n"):
        (files / "a.csv").write_text("time_ns,node,port\n" + text)
        stimulus = load([files / "a.csv"], start_at=start)
        return rows(stimulus), complaints(stimulus, 1_000_000)

    said = "--start-at first: all times are 8,999,999,999,999,999,000 ps earlier than in the stimulus"
    short = ("a board of 1 MHz may miss or misread items; levels of strobes shorter than 1000 ns: 1, the first at node "
             "1, {} ns, in " + str(files / "a.csv"))
    assert moved("first") == ([(1_000_000, 1, 0), (1_050_000, 0, 5)], [
        "--start-at first: all times are 8,999,999,999,999,000,000 ps earlier than in the stimulus",
        short.format("1000.000")])
    assert moved("first,0.9995") == ([(1000, 1, 0), (51_000, 0, 5)], [said, short.format("1.000")])
    assert moved("first,5", "1,0,5\n2,0,6\n") == ([(5000, 0, 5), (6000, 0, 6)], [
        "--start-at first: all times are 4,000 ps later than in the stimulus"])
    assert moved("first", "") == ([], [])
    assert moved(None)[1][0] == (
        "the stimulus lasts 9,000,000 s, and the board sends its counters once per second; its first change is at "
        "9,000,000 s (`hypermon sim --start-at first` leaves out the time before)")
    assert moved(None, "3599999999999,0,5\n")[1] == []
    # The option is named if it shortens the stimulus; it does not shorten a silence between two changes.
    lasts = "the stimulus lasts {:,} s, and the board sends its counters once per second; "
    pause = "its longest time without a change is {:,} s, from {:,} s on"
    remedy = "its first change is at {:,} s (`hypermon sim --start-at first` leaves out the time before)"
    assert moved(None, "0,0,5\n5000000000,0,6\n1000000000000000,0,5\n")[1][0] == (
        lasts.format(1_000_000) + pause.format(999_995, 5))
    assert moved(None, "7200000000000,0,5\n19800000000000,0,6\n")[1][0] == (
        lasts.format(19_800) + remedy.format(7200) + "; " + pause.format(12_600, 7200))
    assert moved("first", "7200000000000,0,5\n19800000000000,0,6\n")[1] == [
        "--start-at first: all times are 7,199,999,999,000,000 ps earlier than in the stimulus",
        lasts.format(12_600) + pause.format(12_600, 0)]
    for text in ("last", "first,", "first,x", "first,-1", "", "first,9223372036854775.808"):
        with pytest.raises(InputError, match=f"--start-at {text}: not first or first,NS"):
            moved(text)
    with pytest.raises(InputError, match=r"the last change is then beyond 2\^63 ps"):
        moved("first,9223372036854775.807")


def test_replay_of_negative_times_and_several_nodes():
    tracks = replayed(np.array([-50_000, -50_000, 750_000]), np.array([0, 1, 0]), np.array([5, 6, 7]), 100_000_000)
    assert sorted(tracks) == [0, 1]
    assert played(tracks[0]) == [(0, 5), (750_000, 7)]
    assert played(tracks[1]) == [(0, 6)]
    assert tracks[0][0].initial == 5


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run directory with the given events, of ports of 4 bits or so many."""
    def run(port_bits=4, **columns):
        monkeypatch.setattr("hypermon.host.open_run", lambda path: SimpleNamespace(
            events=lambda: pa.table(columns), info=SimpleNamespace(port_bits=port_bits)))
        return tmp_path
    return run


def test_a_run_is_a_stimulus(run):
    path = run(time_ps=pa.array([800_000, 1_600_000]), node=pa.array([2, 2], pa.int16()),
               nibble=pa.array([9, 4], pa.uint8()))
    stimulus = load([path])
    assert rows(stimulus) == [(780_000, 2, 9), (800_000, 2, 25), (1_580_000, 2, 4), (1_600_000, 2, 20)]
    with pytest.raises(InputError, match=r"it has a node 2; the board has 0\.\.1"):
        load([path], nodes=2)


def test_a_run_that_begins_before_time_0(run):
    """Of windows of one clock: what is at different times before it stays so. One event is simply at 0."""
    path = run(time_ps=pa.array([-40_000, -10_000, 20_000, 20_000]), node=pa.array([2, 2, 2, 1], pa.int16()),
               nibble=pa.array([9, 4, 5, 6], pa.uint8()))
    times = {node: [time for time, n, port in rows(load([path])) if n == node] for node in (1, 2)}
    assert times[1][-1] == 60_000
    assert sorted({0, 30_000, 60_000} - set(times[2])) == []
    path = run(time_ps=pa.array([-40_000, 10_000]), node=pa.array([2, 2], pa.int16()),
               nibble=pa.array([9, 4], pa.uint8()))
    assert {0, 10_000} <= {time for time, *_ in rows(load([path]))}


def test_a_run_of_bytes(run):
    """It is played by ports of 8 bits, slowly or at two clocks a byte, and by no others."""
    columns = {"time_ps": pa.array([800_000, 1_600_000]), "node": pa.array([2, 2], pa.int16()),
               "nibble": pa.array([0x9a, 4], pa.uint8())}
    path = run(port_bits=8, **columns)
    stimulus = load([path], port_bits=8)
    assert rows(stimulus) == [(780_000, 2, 0x9a), (800_000, 2, 0x19a), (1_580_000, 2, 4), (1_600_000, 2, 0x104)]
    with pytest.raises(InputError, match="its ports have 8 bits, and the board's 4: --port-bits 8"):
        load([path])
    with pytest.raises(InputError, match="its ports have 4 bits, and the board's 8: --port-bits 4"):
        load([run(**columns)], port_bits=8)
    quick = run(port_bits=8, time_ps=pa.array([100_000, 120_000, 140_000]), node=pa.array([0, 0, 0], pa.int16()),
                nibble=pa.array([255, 0, 255], pa.uint8()))
    assert rows(load([quick], port_bits=8)) == [
        (80_000, 0, 0xff), (100_000, 0, 0x1ff), (104_500, 0, 0x100), (120_000, 0, 0), (124_500, 0, 0xff),
        (140_000, 0, 0x1ff)]


def test_an_empty_run(run):
    path = run(time_ps=pa.array([], pa.int64()), node=pa.array([], pa.int16()), nibble=pa.array([], pa.uint8()))
    assert len(load([path])) == 0


def test_a_run_of_events(run):
    with pytest.raises(InputError, match="only nibbles can be played again"):
        load([run(time_ps=[1], node=[1], event=[1])])


def test_a_node_of_a_run_and_of_a_capture(run, files):
    path = run(time_ps=pa.array([0]), node=pa.array([4], pa.int16()), nibble=pa.array([1], pa.uint8()))
    with pytest.raises(InputError, match="node 4 has a port already, in"):
        load([path, files / "c.sr"], ports=["4=" + ",".join(NAMES)])
