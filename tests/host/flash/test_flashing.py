import struct
import zlib

import pytest
from hypermon.boards.registry import BOARDS
from hypermon.host.errors import HypermonError
from hypermon.host.flash.flashing import dfu_suffixed, loading


def tool(path):
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    for variable in ("OPENFPGALOADER", "DFU_UTIL", "APOLLO"):
        monkeypatch.setenv(variable, tool(tmp_path / variable.lower()))
    return tmp_path


def test_the_suffix_is_what_the_standard_says():
    made = dfu_suffixed(b"bitstream", 0x1209, 0x5AF0)
    assert made[:9] == b"bitstream"
    assert made[9:21] == bytes.fromhex("ffff f05a 0912 0001") + b"UFD\x10"
    # The standard's CRC is that of Ethernet without the last inversion.
    assert struct.unpack("<I", made[21:])[0] == ~zlib.crc32(made[:21]) & 0xFFFFFFFF


@pytest.mark.parametrize(("name", "keep", "says"), [
    ("ulx3s-85f", False, ["openfpgaloader", "-b", "ulx3s", "it.bit"]),
    ("ulx3s-85f", True, ["openfpgaloader", "-b", "ulx3s", "-f", "it.bit"]),
    ("icebreaker", False, ["openfpgaloader", "-b", "ice40_generic", "-f", "it.bit"]),
    ("orangecrab-85f", True, ["dfu_util", "-d", "1209:5af0", "-a", "0", "-D", "scratch/it.dfu"]),
    ("cynthion", False, ["apollo", "configure", "it.bit"]), ("cynthion", True, ["apollo", "flash", "it.bit"]),
])
def test_commands(tools, name, keep, says):
    (tools / "it.bit").write_bytes(b"bits")
    tools.joinpath("scratch").mkdir()
    said = loading(BOARDS[name], tools / "it.bit", keep, tools / "scratch")
    assert [part.removeprefix(f"{tools}/") for part in said] == says
    if BOARDS[name].dfu:
        assert (tools / "scratch" / "it.dfu").read_bytes() == dfu_suffixed(b"bits", 0x1209, 0x5AF0)


@pytest.mark.parametrize(("name", "hint"), [
    ("ulx3s-85f", "openFPGALoader not found: apt install openfpgaloader"),
    ("butterstick", "dfu-util not found: apt install dfu-util"), ("cynthion", "apollo not found: pip install apollo"),
])
def test_a_missing_program_says_where_to_get_it(tmp_path, monkeypatch, name, hint):
    for variable in ("OPENFPGALOADER", "DFU_UTIL", "APOLLO"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("hypermon.host.flash.flashing.shutil.which", lambda name: None)
    with pytest.raises(HypermonError, match=hint):
        loading(BOARDS[name], tmp_path / "it.bit", False, tmp_path)
