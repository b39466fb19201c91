"""Ports of 8 bits on the virtual board: a write is a byte, in every mode."""

import numpy as np
import pytest
from hypermon.hdl.layout import REGISTERS, BlockFlag, Geometry, Sink, Window
from hypermon.host import cli
from hypermon.sim.commands import sim
from hypermon.sim.emulate.workload import Kind, load_workload
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import read, write
from tests.sim.writers import EVENT, NIBBLE, WORD, accounted, came, expected, go, writers


def test_every_value_from_every_port(byte_wide):
    rng = np.random.default_rng(1)
    nodes = writers(byte_wide, [NIBBLE])
    for n, node in enumerate(nodes):
        for k in range(256):
            begin = len(node.rows)
            node.write(rng, [(k + n) % 256], after=int(rng.integers(20, 40)))
            node.items.append((node.rows[begin + 1][0], bytes([(k + n) % 256]), 0))
    run = go(nodes, byte_wide)
    assert not run.lost
    assert came(run) == expected(nodes, byte_wide)
    assert BlockFlag.BYTES in BlockFlag(min(run.flags))
    accounted(run, nodes, byte_wide)


@pytest.mark.parametrize("window", list(Window))
def test_every_mode_at_once(byte_wide, window):
    rng = np.random.default_rng(window)
    clocks = byte_wide.window_clocks(window)
    nodes = writers(byte_wide)
    for node in nodes:
        for _ in range(40):
            node.item(rng, gap=int(rng.integers(4, 12)), after=int(rng.integers(clocks + 4, 5 * clocks + 300)))
    run = go(nodes, byte_wide, window)
    assert not run.lost
    assert came(run) == expected(nodes, byte_wide, window)
    assert run.flags == {BlockFlag.EXTENDED | BlockFlag.ITEMS | BlockFlag.BYTES
                         | (BlockFlag.HALF if byte_wide.phases == 2 and window is Window.CLOCK else 0)}
    accounted(run, nodes, byte_wide, window)


def test_lengths_and_filler(byte_wide):
    """Events of every length, whatever the upper half of their first byte; others with a lower half of 0 between."""
    rng = np.random.default_rng(1)
    nodes = writers(byte_wide, [EVENT, NIBBLE])
    for size in range(1, 16):
        nodes[0].item(rng, size=size, after=30)     # two of the longest do not fit its FIFO
        nodes[0].write(rng, [16 * int(rng.integers(16)) for _ in range(int(rng.integers(3)))])
    run = go(nodes, byte_wide)
    assert not run.lost
    assert came(run) == expected(nodes, byte_wide)
    assert {len(item.nibbles) for item in run.items} == set(range(2, 17))
    accounted(run, nodes, byte_wide)


def test_late_items(byte_wide):
    rng = np.random.default_rng(2)
    nodes = writers(byte_wide, [EVENT, EVENT, NIBBLE])
    for _ in range(8):
        nodes[0].item(rng, gap=400, size=13)
    for node in nodes[1:4]:
        while node.clock < nodes[0].clock:
            node.item(rng, size=2, after=20)
    run = go(nodes, byte_wide, drain_rate=50_000_000)
    assert came(run) == expected(nodes, byte_wide)
    assert sum(item.late for item in run.items) > 3
    accounted(run, nodes, byte_wide)


@pytest.mark.parametrize("mode", [WORD, EVENT])
def test_time_out(byte_wide, mode):
    rng = np.random.default_rng(4)
    nodes = writers(byte_wide, [mode, NIBBLE])
    for keep in (1, 2, 3):
        nodes[0].item(rng, size=4)
        nodes[0].cut(rng, keep, after=3060)
    nodes[0].item(rng)
    nodes[2].cut(rng, 1, after=3060)    # nothing follows it
    while nodes[1].clock < nodes[0].clock:
        nodes[1].item(rng, after=50)
    run = go(nodes, byte_wide, timeout=3000)
    assert came(run) == expected(nodes, byte_wide)
    assert {item.missing for item in run.items if item.node == 0} > {0}
    accounted(run, nodes, byte_wide)


@pytest.mark.parametrize("options", [{"drain_rate": 2_000_000}, {"stalls": [(0.1, 0.7)]}])
def test_overrun_refuses_whole_items(byte_wide, options):
    rng = np.random.default_rng(5)
    nodes = writers(byte_wide)
    for node in nodes:
        while node.clock < 100_000:
            node.item(rng, after=int(rng.integers(4, 60)))
            if node.mode != NIBBLE and rng.random() < 0.02:
                node.cut(rng, 1, after=2000)
    run = go(nodes, byte_wide, timeout=1000, **options)
    assert run.lost
    accounted(run, nodes, byte_wide)


def test_skipping_changes_nothing(byte_wide):
    rng = np.random.default_rng(7)
    nodes = writers(byte_wide)
    for node in nodes:
        for _ in range(3):
            node.item(rng, after=int(rng.integers(1000, 60_000)))
    kept = [go(nodes, byte_wide, skip=skip).stream for skip in (True, False)]
    assert kept[0] == kept[1]


def test_what_the_board_says_of_itself(byte_wide):
    """There is no classic sink, and no mask of values."""
    with VirtualLink(None, byte_wide) as link:
        geometry = read(link, "GEOMETRY")
        assert geometry >> 8 & 0xff == 8
        assert geometry >> 16 & 0x7f == 1 << Sink.EXTENDED
        assert read(link, "MODE") == Sink.EXTENDED
        write(link, "MODE", Sink.CLASSIC)
        link.write(REGISTERS["CONTROL"].offset, 1)
        assert read(link, "MODE") == Sink.EXTENDED
        write(link, "NIBBLE_MASK", 1)
        assert read(link, "NIBBLE_MASK") == 0xffff
        assert read(link, "FRAME_DEPTH") == read(link, "FRAME_FIFO") == read(link, "RUN") == 0


def test_by_the_command(byte_wide, tmp_path, monkeypatch, capsys):
    """From rows to rows, to half a clock; and that run once more."""
    monkeypatch.setattr(sim, "virtual_geometry", lambda *_: byte_wide)
    monkeypatch.setattr(sim, "_with_buffers", lambda geometry, *_: geometry)
    options = ["--config", "extended", "--nodes", "5", "--half-clock", "--port-bits", "8"]
    rows = [(2002, 3, 0xa5), (2007, 0, 255), (3000, 4, 16), (3001, 1, 0)]
    (tmp_path / "in.csv").write_text("time_ns,node,port\n" + "".join(
        f"{time},{node},{port}\n" for time, node, port in sorted(
            row for time, node, value in rows
            for row in ((time - 40, node, value), (time, node, 256 | value), (time + 40, node, value)))))
    wanted = ["time_ps,node,nibble", "2005000,3,165", "2010000,0,255", "3000000,4,16", "3005000,1,0"]
    for source, run in (("in.csv", "first"), ("first", "second")):
        assert cli._run(["sim", str(tmp_path / source), "-o", str(tmp_path / run), *options]) == 0
        assert "4 items, 0 lost" in capsys.readouterr().out
        assert cli._run(["export", str(tmp_path / run), "--to", "csv", "-"]) == 0
        assert capsys.readouterr().out.split() == wanted
    refused = ["sim", str(tmp_path / "in.csv"), "-o", str(tmp_path / "third"), *options]
    for more, reason in ((["--mask", "nibbles=1"], "ports of 8 bits; a mask of values needs ports of 4"),
                         (["--start", "nibble=3"], "byte=V is the form for it")):
        assert cli._run([*refused, *more]) == 2
        assert reason in capsys.readouterr().err
    assert not (tmp_path / "third").exists()


def test_emulated_nodes_write_bytes(byte_wide, tmp_path, monkeypatch, capsys):
    """Threads at ports of 8 bits; what the board records of them can be played again, by either kind of port."""
    monkeypatch.setattr(Geometry, "extended", staticmethod(lambda *_, **__: byte_wide))
    table, run = tmp_path / "in.csv", tmp_path / "run"
    table.write_text("time_ps,node,nibble\n100000000000,0,255\n300000000000,3,7\n500000000000,0,130\n")
    assert cli._run(["emulate", str(table), "-o", str(run), "--config", "extended", "--port-bits", "8"]) == 0
    assert "3 items, 0 lost" in capsys.readouterr().out
    again = load_workload(run)
    assert again.port_bits == 8
    assert [(item.node, item.data) for item in again.items] == [(0, b"\xff"), (3, b"\7"), (0, b"\x82")]
    table.write_text("time_ps,node,event,payload_hex\n1000000000,1,255,\n1500000000,1,17,00ff10\n")
    words = ["--config", "extended", "--port-bits", "8"]
    assert cli._run(["emulate", str(table), "-o", str(tmp_path / "events"), *words]) == 0
    for port_bits in (4, 8):
        assert [(item.kind, item.data) for item in load_workload(tmp_path / "events", port_bits).items] == [
            (Kind.EVENT, b"\xff"), (Kind.EVENT, b"\x11\0\xff\x10")]
