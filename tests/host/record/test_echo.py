"""Echoes: the delay of a wire, how sure it is, and files that are of other boards."""

import json

import pytest
from hypermon.hdl.layout import ECHOES
from hypermon.host.errors import InputError
from hypermon.host.record.echo import echo_file, load_echoes, wire_of

BOARDS = ["usb:A", "usb:B"]


@pytest.mark.parametrize(("clocks", "moved", "delay_ps", "unsure_ps"), [
    ((5.0, 5.0), 50, 0, 2500), ((55.0, 55.0), 3, 250_000, 2500), ((25.0, 25.0), 2, 100_000, 5000),
    ((25.25, 25.25), 0, 101_250, 5000), ((10.0, 11.0), 9, 27_500, 6250)])
def test_the_delay_of_a_wire(clocks, moved, delay_ps, unsure_ps):
    """Half of what an echo takes beyond the lag of both boards. A mean is not finer than half a clock if the phases
    stood still, and sets that differ are unsure."""
    wire = wire_of([round(own * ECHOES) for own in clocks], moved, 0, 100_000_000)
    assert (wire["delay_ps"], wire["uncertainty_ps"]) == (delay_ps, unsure_ps)
    assert (wire["follows"], wire["echoes"]) == (0, len(clocks) * ECHOES)


def test_a_file_is_of_its_boards_and_wires(tmp_path):
    path = tmp_path / "echo.json"
    wires = [None, wire_of([1280], 5, 0, 100_000_000)]
    path.write_bytes(echo_file(BOARDS, wires))
    assert load_echoes(path, BOARDS, [None, 0]) == wires
    for boards, parents, why in ((["usb:B", "usb:A"], [None, 0], "it was measured of usb:A, usb:B, not of usb:B"),
                                 (BOARDS, [None, 1], "it was measured with other wires")):
        with pytest.raises(InputError, match=why):
            load_echoes(path, boards, parents)
    with pytest.raises(InputError, match="no such file; hypermon echo writes it"):
        load_echoes(tmp_path / "none.json", BOARDS, [None, 0])


@pytest.mark.parametrize("change", [{"format": 2}, {"boards": ["a"]}, {"wires": [None, {"follows": 0}]}, {"wires": 3}])
def test_a_damaged_file(tmp_path, change):
    path = tmp_path / "echo.json"
    path.write_bytes(echo_file(BOARDS, [None, wire_of([1280], 5, 0, 100_000_000)]))
    said = json.loads(path.read_text()) | change
    said.pop("check", None)
    path.write_text(json.dumps(said))
    with pytest.raises(InputError):
        load_echoes(path, BOARDS, [None, 0])
