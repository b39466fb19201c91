"""Workloads: what tables and runs say, and what is refused."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypermon.host.errors import InputError
from hypermon.sim.emulate.workload import Item, Kind, load_workload


def test_a_table_of_nibbles(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("time_ps,node,nibble\n5000,3,15\n-20,1,2\n5000,0,7\n")
    workload = load_workload(path)
    assert workload.items == (Item(0, 1, Kind.NIBBLE, b"\x02"), Item(5000, 0, Kind.NIBBLE, b"\x07"),
                              Item(5000, 3, Kind.NIBBLE, b"\x0f"))
    assert workload.nodes == [0, 1, 3]
    assert workload.of(3) == [workload.items[2]]
    with pytest.raises(InputError, match="node 2 has no items in it; nodes that have: 0, 1, 3"):
        workload.of(2)


def test_a_table_of_events(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("time_ps,node,event,payload_hex\n1,0,255,\n2,0,16,00ff\n")
    assert load_workload(path).items == (Item(1, 0, Kind.EVENT, b"\xff"), Item(2, 0, Kind.EVENT, b"\x10\x00\xff"))


@pytest.mark.parametrize(("text", "reason"), [
    ("time_ps,node,nibble\n" + 200_000 * "1", "w.csv:2: field larger than field limit"),
    ("time,node\n", "w.csv:1: the header time_ps,node,nibble or time_ps,node,event,payload_hex is missing"),
    ("", "w.csv:1: the header"),
    ("time_ps,node,nibble\n1,2\n", "w.csv:2: 3 fields expected, not 2"),
    ("time_ps,node,nibble\n1,2,3\n1,2,16\n", "w.csv:3: nibble 16 is not in 0..15"),
    ("time_ps,node,nibble\n1,-2,3\n", "w.csv:2: node -2 is negative"),
    ("time_ps,node,nibble\nx,2,3\n", "w.csv:2: invalid literal"),
    ("time_ps,node,event,payload_hex\n1,2,256,\n", "w.csv:2: an event has an id 0..255"),
    ("time_ps,node,event,payload_hex\n1,2,3,abc\n", "w.csv:2: non-hexadecimal|w.csv:2: fromhex"),
    ("time_ps,node,event,payload_hex\n1,2,3," + 15 * "ab" + "\n", "w.csv:2: an event has")])
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, reason):
    path = tmp_path / "w.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        load_workload(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_workload(tmp_path / "none.csv")


def of_run(monkeypatch, tmp_path, port_bits=4, asked=None, **columns):
    """The workload of a run with these columns, for ports of so many bits as asked."""
    run = SimpleNamespace(info=SimpleNamespace(port_bits=port_bits), events=lambda: pa.table(columns))
    monkeypatch.setattr("hypermon.host.open_run", lambda path: run)
    workload = load_workload(tmp_path, asked)
    assert workload.port_bits == (asked or port_bits)
    return workload.items


def test_a_run_of_all_kinds(monkeypatch, tmp_path):
    items = of_run(monkeypatch, tmp_path, time_ps=[-5, 10, 20, 30], node=[0, 1, 2, 2], nibble=[7, None, None, None],
                   word=[None, 0x12345678, None, None], event=[None, None, 17, 18],
                   payload=[None, None, b"ab", b""], aborted=[None, None, False, True])
    assert items == (Item(0, 0, Kind.NIBBLE, b"\x07"), Item(10, 1, Kind.WORD, b"\x78\x56\x34\x12"),
                     Item(20, 2, Kind.EVENT, b"\x11ab"))


def test_a_run_of_wider_ports(monkeypatch, tmp_path):
    columns = {"time_ps": [0], "node": [0], "nibble": [200]}
    assert of_run(monkeypatch, tmp_path, 8, **columns) == (Item(0, 0, Kind.NIBBLE, b"\xc8"),)
    with pytest.raises(InputError, match="wrote bytes, to ports of 8 bits: --port-bits 8"):
        of_run(monkeypatch, tmp_path, 8, 4, **columns)
    # Events and words are the same, whatever the ports are that say them; and a nibble is a small byte.
    words = {"time_ps": [0], "node": [0], "word": [1]}
    assert of_run(monkeypatch, tmp_path, 8, 4, **words) == of_run(monkeypatch, tmp_path, 4, 8, **words)
    assert of_run(monkeypatch, tmp_path, 4, 8, time_ps=[0], node=[0], nibble=[9]) == (Item(0, 0, Kind.NIBBLE, b"\x09"),)


def test_a_table_of_bytes(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("time_ps,node,nibble\n1,0,255\n2,0,256\n")
    with pytest.raises(InputError, match=r"w.csv:2: nibble 255 is not in 0\.\.15"):
        load_workload(path)
    with pytest.raises(InputError, match=r"w.csv:3: byte 256 is not in 0\.\.255"):
        load_workload(path, 8)
