"""Captures of UARTs, SWO and serial clocks, played by ``hypermon sim --port``: exact bytes at their first edges."""

import csv
import json
import random
from fractions import Fraction

import pytest
from hypermon.host.cli import _run
from hypermon.host.run import Run

from tests.hdl.harness.senders import Wires, framed, itm_bytes, spi, uart
from tests.sim.dump import dump

CLOCK_PS = 10_000
#: Of a UART at 115,200 baud and SWO at 2 Mbaud, in ns.
UART_BIT, SWO_BIT = Fraction(10**9, 115_200), Fraction(500)
BOARD = ["--nodes", "5", "--port", "0=TX,uart,115200", "--port", "1=SWO,swo,2000000", "--port", "2=AC,AD,serial",
         "--port", "3=BC,BD,BS,serial,falling,lsb"]


class Nodes:
    """Wires of the four nodes, and what is to come of them: (first edge in ps, node, value), and packets."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.wires = [Wires([1, 0, 0]), Wires([1, 0, 0]), Wires([0, 0, 0]), Wires([0, 0, 1])]
        self.at = [Fraction(self.rng.randrange(1, 3_000)) for _ in range(4)]
        self.bytes, self.packets = [], []

    def send(self, node, count=None, gap=300):
        rng = self.rng
        data = bytes(rng.getrandbits(8) for _ in range(count or rng.randrange(1, 6)))
        if node == 1:
            port, data = rng.randrange(32), data[:1] if len(data) < 2 else data[:4] if len(data) > 3 else data[:2]
            begins, self.at[1] = uart(self.wires[1], self.at[1], SWO_BIT, itm_bytes(port, data))
            self.packets.append((int(1000 * begins[0]), port, data.hex()))
        elif node == 0:
            begins, self.at[0] = uart(self.wires[0], self.at[0], UART_BIT, data)
        else:
            begins, self.at[node] = spi(self.wires[node], self.at[node], 400 * node, data, 0 if node == 2 else 1,
                                        select=node == 3, lowest=node == 3)
            gap = max(gap, 40_000)
        if node != 1:
            self.bytes += [(int(1000 * begin), node, byte) for begin, byte in zip(begins, data, strict=True)]
        self.at[node] += rng.randrange(gap, 20 * gap)

    def dump(self, path):
        named = {"TX": (0, 0), "SWO": (1, 0), "AC": (2, 0), "AD": (2, 1), "BC": (3, 0), "BD": (3, 1), "BS": (3, 2)}
        return dump(path, {name: (self.wires[node].initial[wire], [
            (int(1000 * time), level) for time, own, level in self.wires[node].changes if own == wire])
            for name, (node, wire) in named.items()})


def printed(run, form, tmp_path):
    path = tmp_path / f"{form}.csv"
    assert _run(["export", str(run), "--to", form, str(path)]) == 0
    with open(path, newline="") as file:
        _, *rows = csv.reader(file)
    return rows


@pytest.mark.parametrize("seed", [None, 3])
def test_bytes_and_packets_at_their_first_edges(tools, tmp_path, seed, capsys):
    """The rate of the serial clocks, 2.5 and 0.83 MHz, is found in the stimulus; the other node has none."""
    nodes = Nodes(seed)
    for _ in range(60):
        for node in range(4):
            nodes.send(node)
    run = tmp_path / "run"
    more = [] if seed is None else ["--seed", str(seed)]
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(run), *BOARD, *more]) == 0
    said = capsys.readouterr().err
    assert "node 2, 3: --front-rate spi=" in said
    figures = Run(run).stats()
    assert (figures["lost"], figures["aborted"], figures["rejected"]) == (0, 0, 0)
    assert figures["events_per_node"][4] == 0
    bytes_of = {node: [(time, value) for time, own, value in sorted(nodes.bytes) if own == node] for node in (0, 2, 3)}
    rows = [tuple(map(int, row)) for row in printed(run, "csv", tmp_path)]
    assert rows == sorted(rows, key=lambda row: row[:2])
    for node, expected in bytes_of.items():
        mine = [(time, value) for time, own, value in rows if own == node]
        assert [value for _, value in mine] == [value for _, value in expected]
        late = [time - edge for (time, _), (edge, _) in zip(mine, expected, strict=True)]
        assert min(late) >= 0
        assert max(late) < CLOCK_PS * (1 if seed is None else 2)
    packets = [(int(time), int(port), payload) for time, node, port, payload in printed(run, "events", tmp_path)
               if node == "1"]
    assert [packet[1:] for packet in packets] == [packet[1:] for packet in nodes.packets]
    assert all(0 <= packet[0] - own[0] < 2 * CLOCK_PS for packet, own in zip(packets, nodes.packets, strict=True))
    info = json.loads((run / "recording.json").read_text())
    assert info["modes"] == ["byte", "event", "byte", "byte", "nibble"]


def test_what_is_lost_has_a_place(tools, tmp_path):
    """A slow host: of each node offered = accepted + lost, and each missing item lies in one of its intervals."""
    nodes = Nodes(7)
    for _ in range(700):
        nodes.send(1)
        nodes.send(2, 5)
    run = tmp_path / "run"
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(run), *BOARD, "--stall", "0,60",
                 "--store-kib", "1"]) == 0
    recorded = Run(run)
    figures = recorded.stats()
    losses = [(row["node"], row["from_ps"], row["to_ps"], row["lost"]) for row in recorded.loss().to_pylist()]
    offered = {1: [time for time, *_ in nodes.packets], 2: [time for time, node, _ in nodes.bytes if node == 2]}
    times = recorded.events().to_pydict()
    for node, edges in offered.items():
        came = {time for time, own in zip(times["time_ps"], times["node"], strict=True) if own == node}
        assert len(edges) == figures["events_per_node"][node] + figures["lost_per_node"][node]
        missing = [edge for edge in edges if not any(edge + k in came for k in range(CLOCK_PS))]
        assert len(missing) == figures["lost_per_node"][node] > 0
        for edge in missing:
            assert any(own == node and begin <= edge <= end for own, begin, end, _ in losses)


def test_an_overflow_packet_is_a_loss_of_the_node(tools, tmp_path, capsys):
    """At least one packet, between the packet before it and itself; before the first packet, since the beginning."""
    nodes, overflows = Nodes(11), []
    for number in range(12):
        if number % 3 == 0:
            [begin], nodes.at[1] = uart(nodes.wires[1], nodes.at[1], SWO_BIT, [0x70])
            overflows.append((nodes.packets[-1][0] if nodes.packets else 0, int(1000 * begin)))
        nodes.send(1)
    run = tmp_path / "run"
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(run), *BOARD]) == 0
    recorded = Run(run)
    figures = recorded.stats()
    assert (figures["lost_per_node"], figures["causes"]["node"]) == ([0, 4, 0, 0, 0], 4)
    assert (figures["events_per_node"][1], figures["rejected"], figures["complete"]) == (12, 0, False)
    losses = recorded.loss().to_pylist()
    assert [(row["node"], row["lost"]) for row in losses] == [(1, 1)] * 4
    for row, (before, own) in zip(losses, overflows, strict=True):
        assert row["from_ps"] <= before <= own <= row["to_ps"]
        assert row["to_ps"] - own <= 2 * CLOCK_PS
        assert before - row["from_ps"] <= 4 * CLOCK_PS or before == 0
    assert [packet[2:] for packet in printed(run, "events", tmp_path)] == [
        [str(port), payload] for _, port, payload in nodes.packets]
    assert _run(["stats", str(run)]) == 0
    assert "lost by the node itself, at least: 4" in capsys.readouterr().out


def test_wrong_bytes_are_rejected_and_counted(tools, tmp_path):
    """A stop bit that is low, a line that stays low, a byte of seven bits: counted once each, at their node alone."""
    nodes = Nodes(9)
    for node in range(4):
        for _ in range(4):
            nodes.send(node)
    _, nodes.at[0] = uart(nodes.wires[0], nodes.at[0], UART_BIT, [0x55], stop=0)
    nodes.at[0] += 15 * UART_BIT
    nodes.send(0)
    nodes.wires[0].set(nodes.at[0] + 400_000, 0, 0)
    nodes.at[0] += 2_000_000
    nodes.wires[0].set(nodes.at[0], 0, 1)
    nodes.at[0] += 15 * UART_BIT
    nodes.send(0)
    _, nodes.at[3] = spi(nodes.wires[3], nodes.at[3], 1200, [0x0f], 1, select=True, bits=7)
    nodes.at[3] += 50_000
    nodes.send(3)
    run = tmp_path / "run"
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(run), *BOARD]) == 0
    figures = Run(run).stats()
    assert figures["rejected_per_node"] == [2, 0, 0, 1, 0]
    assert sorted((int(node), int(value)) for _, node, value in printed(run, "csv", tmp_path)) == sorted(
        (node, value) for _, node, value in nodes.bytes)


@pytest.mark.parametrize(("more", "reason"), [
    (["--port", "4=TX,uart,9600"], "--port 4=TX,uart,9600: another node with UART has 115200 baud; a board has one"),
    (["--mode", "0=nibble"], "--mode 0=nibble: node 0 has a UART; its modes are word, event, byte"),
    (["--config", "classic"], "only nodes of an extended board"),
    (["--window", "800"], "with windows of one clock only: --window 1"),
    (["--front", "0=swo"], "--port 0=TX,uart,115200: node 0 is swo by --front"),
])
def test_what_no_board_receives(tools, tmp_path, capsys, more, reason):
    nodes = Nodes(1)
    for node in range(4):
        nodes.send(node)
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(tmp_path / "run"), *BOARD, *more]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("more", "reason"), [
    (["--port", "4=TX,uart,9600"], "another node with UART has 115200 baud; a board has one rate"),
    (["--port", "4=SWO,swo,60000000"], "--port 4=SWO,swo,60000000: "),
    (["--front-rate", "uart=9600"], "another node with UART has 9600 baud"),
    (["--mode", "0=nibble"], "--mode 0=nibble: node 0 has a UART"),
    (["--edge", "2=both"], "--edge 2=both: "),
])
def test_a_setting_is_refused_before_a_board_is_built(tools, tmp_path, monkeypatch, capsys, more, reason):
    """A build takes half a minute, or longer."""
    def built(*_):
        raise AssertionError("a board is built")

    monkeypatch.setattr("hypermon.sim.virtual.link.library", built)
    nodes = Nodes(1)
    for node in range(4):
        nodes.send(node)
    played = ["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(tmp_path / "run"), *BOARD]
    assert _run([*played, *more]) == 2
    assert reason in capsys.readouterr().err
    with pytest.raises(AssertionError, match="a board is built"):
        _run(played)


@pytest.mark.parametrize(("form", "rate", "reason"), [
    (None, "115200", "bits are 0.0576 times as long as the rate says, about 2000000 baud"),
    (1, "2000000", "the trace port's formatter seems to be on"),
])
def test_much_that_is_rejected_is_said_with_its_cause(tools, tmp_path, capsys, form, rate, reason):
    """By the command that plays the stimulus; of the run alone only what is likely. A node whose bytes come says
    nothing."""
    rng = random.Random(13)
    packets = b"".join(itm_bytes(rng.randrange(32), rng.randbytes(2)) for _ in range(300))
    nodes, run = Nodes(13), tmp_path / "run"
    uart(nodes.wires[1], nodes.at[1], SWO_BIT, packets if form is None else framed([(form, packets)], rng))
    for node in (0, 2, 3) * 10:
        nodes.send(node)
    ports = [option.replace("swo,2000000", f"swo,{rate}") for option in BOARD]
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(run), *ports]) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if "bytes rejected" in line]
    assert f"{run}: node 1 (swo): " in line
    assert reason in line
    assert _run(["decode", str(run)]) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if "bytes rejected" in line]
    assert "likely a wrong rate (--front-rate)" in line


#: Clocks by which a line delays all stamps (docs/regeneration.md).
LATE = 4109


@pytest.mark.parametrize("config", ["classic", "extended"])
def test_nodes_on_a_line_are_later_twins_of_wired_ones(tools, tmp_path, config):
    """The same nibbles of nodes 0 to 7, over a line, and of nodes 8 to 15, which are wired directly."""
    rng, rows, at = random.Random(5), [], 3_000
    for k in range(600):
        node, nibble = rng.randrange(8), rng.getrandbits(4)
        for twin in (node, node + 8):
            rows += [(at, twin, nibble), (at + 200, twin, 16 | nibble), (at + 400, twin, nibble)]
        at += rng.choice((430, 1_000, 90_000 if k % 50 == 0 else 2_000))
    path, run = tmp_path / "x.csv", tmp_path / "run"
    path.write_text("time_ns,node,port\n" + "".join(f"{t},{n},{p}\n" for t, n, p in sorted(rows)))
    assert _run(["sim", str(path), "-o", str(run), "--port", "0-7=line", "--window", "1", "--config", config]) == 0
    came = [[(int(time), int(node) % 8, int(nibble)) for time, node, nibble in printed(run, "csv", tmp_path)
             if (int(node) < 8) is linked] for linked in (True, False)]
    assert len(came[1]) == 600
    assert [(time - LATE * CLOCK_PS, *rest) for time, *rest in sorted(came[0])] == sorted(came[1])
    figures = Run(run).stats()
    assert (figures["lost"], figures["complete"]) == (0, True)


@pytest.mark.parametrize(("ports", "said"), [
    (["0-6=line"], "a line has eight nodes: 0-7=line, 8-15=line"), (["1-8=line"], "a line has eight nodes"),
    (["0=line"], "a line has eight nodes"), (["7-0=line"], "a line has eight nodes"),
    (["0-23=line"], "a line has eight nodes"), (["FILE#0-7=line"], "a line has eight nodes"),
    (["0-7=line", "0-15=line"], "some of these nodes are on a line already"),
    (["8-15=line"], "--port 8-15=line: lines come first: nodes 0 and up are not on one"),
    (["0-7=line", "3=TX,uart,115200"], "not on a line"),
])
def test_lines_that_no_board_has(tools, tmp_path, capsys, ports, said):
    nodes = Nodes(1)
    nodes.send(0)
    options = [word for port in ports for word in ("--port", port)]
    assert _run(["sim", nodes.dump(tmp_path / "a.vcd"), "-o", str(tmp_path / "run"), *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
