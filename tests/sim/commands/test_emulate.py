"""hypermon emulate: workloads played as nodes would, to the virtual board, to pins, into firmware."""

import errno
import fcntl
import os
import struct
import threading
import time

import pyarrow.parquet as pq
import pytest
from hypermon.host import cli, open_run
from hypermon.host.events import FRAMED, framed_events
from hypermon.sim.emulate.firmware import uf2
from hypermon.sim.emulate.player import HOLD_NS, VirtualPort, emulate, stimulus_of
from hypermon.sim.emulate.workload import load_workload
from hypermon.sim.pins import data_of_event

from tests.host.external.readers import needs

EVENTS = [(1_000_000_000, 0, 17, b""), (1_500_000_000, 5, 255, bytes(range(14))), (2_000_000_000, 0, 18, b"ab")]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "work.csv"
    path.write_text("time_ps,node,event,payload_hex\n" + "".join(
        f"{at},{node},{event},{payload.hex()}\n" for at, node, event, payload in EVENTS))
    return path


def run(*words) -> int:
    return cli._run(["emulate", *map(str, words)])


def complaint(capsys, *words) -> str:
    assert run(*words) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


# ------------------------------------------------------------------------------------ virtual ports

def test_threads_write_at_their_times(table):
    workload = load_workload(table)
    ports = {node: VirtualPort() for node in workload.nodes}
    begin = emulate(workload, ports)
    for node, port in ports.items():
        mine = [row for row in EVENTS if row[1] == node]
        nibbles = [value for _, _, event, payload in mine for value in data_of_event(event, payload)]
        assert [value for _, value in port.writes] == [row for n in nibbles for row in (n, n | 16)]
        first = port.writes[0][0] - begin
        assert first >= mine[0][0] // 1000, "never early"
        assert min(b[0] - a[0] for a, b in zip(port.writes, port.writes[1:], strict=False)) >= HOLD_NS
    stimulus = stimulus_of(ports, begin, 16)
    assert len(stimulus) == sum(len(port.writes) for port in ports.values())
    assert (stimulus.time_ps[1:] >= stimulus.time_ps[:-1]).all()
    assert stimulus.time_ps[0] >= 1_000_000_000


def test_a_torn_item_is_written_again(monkeypatch):
    now = iter([*range(100, 1100, 100), *range(6_000_000, 9_000_000, 100)])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(now))
    port = VirtualPort()
    port.event(0x21)           # six looks at the clock
    port.event(0x43)           # in the middle of which it stands still for 6 ms
    assert port.torn == 1
    assert [value & 15 for _, value in port.writes[1::2]] == [1, 1, 2, 1, 3, 4]
    assert port.writes[5][0] < 1000 < 6_000_000 < port.writes[6][0]


def test_a_fault_of_a_port_ends_all_threads(table):
    class Broken(VirtualPort):
        def write(self, value: int) -> None:
            raise OSError(5, "broken")

    with pytest.raises(OSError, match="broken"):
        emulate(load_workload(table), {0: Broken(), 5: VirtualPort()})
    assert [t for t in threading.enumerate() if t.name.startswith("node ")] == []


def test_it_ends_when_told(table):
    stop, ports = threading.Event(), {0: VirtualPort()}
    stop.set()
    emulate(load_workload(table), ports, stop=stop)
    assert ports[0].writes == []


# ----------------------------------------------------------------------------------------- commands

def test_to_the_virtual_board(table, tmp_path, capsys):
    out = tmp_path / "run"
    assert run(table, "-o", out) == 0
    assert "0 lost" in capsys.readouterr().out
    framed_events(open_run(out))
    rows = pq.read_table(out / FRAMED)
    came = zip(*(rows[name].to_pylist() for name in ("node", "event", "payload", "aborted")), strict=True)
    assert sorted(came) == sorted((node, event, payload, False) for _, node, event, payload in EVENTS)
    assert "exists" in complaint(capsys, table, "-o", out)


class Lines:
    """Lines of a GPIO chip: the kernel's part."""

    def __init__(self):
        self.asked: list[tuple[int, ...]] = []
        self.values: dict[int, list[int]] = {}

    def ioctl(self, file: int, what: int, argument) -> int:
        if what == 0xC250B407:
            self.asked.append(struct.unpack_from(f"={argument[560]}I", argument))
            lines = os.open(os.devnull, os.O_RDWR)
            self.values[lines] = []
            argument[588:592] = struct.pack("=i", lines)
        else:
            self.values[file].append(struct.unpack("=QQ", argument)[0])
        return 0


def test_out_of_pins(table, tmp_path, monkeypatch, capsys):
    kernel, chip = Lines(), tmp_path / "chip"
    chip.touch()
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    assert run(table, "--gpio", chip, "--lines", "0=1,2,3,4,5", "--lines", "5=11,12,13,14,15") == 0
    assert capsys.readouterr().out == f"{chip}: 3 items of 2 nodes written\n"
    assert kernel.asked == [(1, 2, 3, 4, 5), (11, 12, 13, 14, 15)]
    sent = {node: [n for _, who, event, payload in EVENTS if who == node for n in data_of_event(event, payload)]
            for node in (0, 5)}
    assert [values[1::2] for values in kernel.values.values()] == [[n | 16 for n in sent[node]] for node in (0, 5)]


def test_pins_that_fail(table, tmp_path, monkeypatch, capsys):
    """The chip is pulled out while it is written to."""
    kernel, chip = Lines(), tmp_path / "chip"
    chip.touch()

    def ioctl(file, what, argument):
        if what != 0xC250B407:
            raise OSError(errno.ENODEV, "No such device")
        return kernel.ioctl(file, what, argument)

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    lines = "0=1,2,3,4,5", "--lines", "5=11,12,13,14,15"
    assert complaint(capsys, table, "--gpio", chip, "--lines", *lines) == f"hypermon: {chip}: No such device"


def test_bytes_out_of_pins(table, tmp_path, monkeypatch):
    kernel, chip = Lines(), tmp_path / "chip"
    chip.touch()
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    assert run(table, "--gpio", chip, "--port-bits", 8, "--lines", "5=1,2,3,4,5,6,7,8,11") == 0
    assert kernel.asked == [(1, 2, 3, 4, 5, 6, 7, 8, 11)]
    [values] = kernel.values.values()
    assert values[1::2] == [256 | byte for byte in (15, 255, *range(14))]


def test_into_a_pico_of_bytes(table, tmp_path, capsys):
    needs("arm-none-eabi-gcc")
    out = tmp_path / "node.uf2"
    assert run(table, "--uf2", out, "--node", 0, "--port-bits", 8, "--pin", 21) == 0
    assert "data on GP21 to GP28, strobe on GP29" in capsys.readouterr().out


def test_into_a_pico(table, tmp_path, capsys):
    needs("arm-none-eabi-gcc")
    out = tmp_path / "node.uf2"
    assert run(table, "--uf2", out, "--node", 5, "--pin", 7, "--edges", 2) == 0
    assert capsys.readouterr().out == f"{out}: node 5, 1 item in 0.002 s, data on GP7 to GP10, strobe on GP11\n"
    data = out.read_bytes()
    assert len(data) % 512 == 0
    assert bytes(range(14)) in data
    elf = out.with_suffix(".elf")
    assert run(table, "--uf2", elf, "--node", 5, "--pin", 7, "--edges", 2) == 0
    assert elf.read_bytes()[:4] == b"\x7fELF"
    assert uf2(elf.read_bytes()) == data


@pytest.mark.parametrize(("words", "reason"), [
    ([], "give exactly one of -o RUN"),
    (["-o", "x", "--uf2", "y"], "give exactly one of -o RUN"),
    (["--gpio", "/dev/nowhere"], "--gpio needs --lines"),
    (["--gpio", "/dev/nowhere", "--lines", "0=1,2,3,4,5"], "/dev/nowhere: No such file"),
    (["--gpio", "/dev/nowhere", "--lines", "1,2,3,4,5"], "--lines 1,2,3,4,5: expected NODE="),
    (["--gpio", "/dev/nowhere", "--lines", "0=1,2,3"], "--lines 0=1,2,3: expected NODE="),
    (["--gpio", "/dev/nowhere", "--lines", "7=1,2,3,4,5"], "node 7 has no items in it"),
    (["--gpio", "/dev/nowhere", "--lines", "0=1,2,3,4,5", "--port-bits", "8"],
     "--lines 0=1,2,3,4,5: expected NODE=D0,D1,D2,D3,D4,D5,D6,D7,STROBE"),
    (["-o", "x", "--port-bits", "8"], "ports of 8 bits need --config extended"),
    (["--uf2", "x", "--node", "0", "--port-bits", "8", "--pin", "22"], "begin at GP21 at most, not at GP22"),
    (["--uf2", "x", "--node", "0", "--port-bits", "8", "--pio"], "rising edges and 4 bits"),
    (["--uf2", "x"], "choose the node that the Pico plays with --node N; there are 0, 5"),
    (["--uf2", "x", "--node", "1"], "node 1 has no items in it")])
def test_what_is_refused(table, capsys, words, reason):
    assert reason in complaint(capsys, table, *words)
