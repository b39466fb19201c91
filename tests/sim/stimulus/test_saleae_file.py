"""CSV exports of Saleae Logic: exact times, unknown levels, every malformed row."""

import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.port_rule import complaints
from hypermon.sim.stimulus.stimulus import load

HEADER = "Time [s],D 0,D1,D2,D3,Strobe\n"
PORT = "0=D 0,D1,D2,D3,Strobe"


@pytest.fixture
def read(tmp_path):
    """Reads a text: level at the start, changes, lines about it."""
    def read(text, port=PORT):
        path = tmp_path / "digital.csv"
        path.write_bytes(text.encode())
        made = load([path], nodes=1, ports=[port])
        changes = list(zip(made.time_ps.tolist(), made.port.tolist(), strict=True))
        return made.initial[0], changes, [line.removeprefix(f"{path}: ") for line in complaints(made, 10**12)]
    return read


def test_changes(read):
    text = HEADER + "0.000000000,1,0,0,0,0\n0.000001000,1,0,1,0,0\n0.000002000,1,0,1,0,1\n3.000002000,1,1,1,0,0\n"
    want = (1, [(1_000_000, 5), (2_000_000, 21), (3_000_002_000_000, 7)], [])
    assert read(text) == want
    for other in (text.replace("\n", "\r\n"), "\ufeff" + text, text.replace("Time [s]", "Time[s]").replace(",", ", "),
                  text.replace("Time [s]", '"Time [s]"').replace("D 0", '"D 0"'), text.replace("0.000001000", "1E-6")):
        assert read(other) == want
    # Times below a picosecond are rounded up.
    assert read(HEADER + "0,0,0,0,0,0\n1.0000000000001,1,0,0,0,0\n")[1] == [(10**12 + 1, 1)]


def test_names(read):
    assert read('Time [s],"a,b",c\n0,0,0\n1e-6,1,0\n', "0=a\\,b,a\\,b,c,c,c")[1] == [(1_000_000, 3)]
    with pytest.raises(InputError, match=r"unknown channel D4; there are D 0, D1, D2, D3, Strobe"):
        read(HEADER, "0=D 0,D1,D2,D4,Strobe")
    with pytest.raises(InputError, match="2 channels are called x"):
        read("Time [s],x,x\n", "0=x,x,x,x,x")
    with pytest.raises(InputError, match="five channel names"):
        read(HEADER, "0=")


def test_the_first_row_before_a_trigger(read):
    assert read(HEADER + "-0.000002000,1,0,0,0,0\n-0.000000500,1,0,0,0,1\n0,1,0,0,0,0\n") == (
        1, [(1_500_000, 17), (2_000_000, 1)],
        ["its first row is 2,000,000 ps before its time 0; all its times are later by that"])


def test_unknown_levels(read):
    initial, changes, said = read(
        HEADER + "0,X,0,0,0,X\n1e-6,1,0,0,0,1\n2e-6,1,0,0,0,0\n3e-6,X,X,0,0,X\n4e-6,0,X,0,0,1\n")
    assert (initial, changes) == (17, [(2_000_000, 1), (4_000_000, 16)])
    assert said[-3].startswith("strobes whose first level is unknown: 1, at node 0")
    assert said[-2].startswith("strobes whose level becomes unknown: 1, the first at node 0, 3000.000 ns")
    assert said[-1].startswith("active edges at which some data bit is unknown: 1, the first at node 0, 4000.000 ns")


def test_a_strobe_of_no_width(read):
    said = read(HEADER + "0,0,0,0,0,0\n1e-6,0,0,0,0,1\n1e-6,0,0,0,0,0\n")[2]
    assert "levels of strobes shorter than 0.001 ns: 1, the first at node 0, 1000.000 ns" in said[0]


@pytest.mark.parametrize(("rows", "line", "reason"), [
    ("0,0,0,0,0\n", 2, "6 fields expected, not 5"), ("0,0,0,0,0,0\n\n", 3, "6 fields expected, not 0"),
    ("0,0,0,0,0,2\n", 2, "channel Strobe is not 0, 1 or X: '2'"),
    ("0,1.25,0,0,0,0\n", 2, "channel D 0 is not 0, 1 or X"),
    ("2026-01-01T00:00:00+00:00,0,0,0,0,0\n", 2, "export it without ISO 8601"), ("nan,0,0,0,0,0\n", 2, "not a number"),
    ("1,0,0,0,0,0\n0.5,0,0,0,0,0\n", 3, "time decreases: 0.5"),
    ("0,0,0,0,0,0\n-1,0,0,0,0,0\n", 3, "time decreases: -1"),
    ("9223372.036854775808,0,0,0,0,0\n", 2, "beyond 2^63 ps"), ("9" * 5000 + ",0,0,0,0,0\n", 2, "not a number")])
def test_malformed_rows(read, rows, line, reason):
    with pytest.raises(InputError) as error:
        read(HEADER + rows)
    assert error.value.line == line
    assert reason in error.value.reason
