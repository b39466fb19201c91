"""sigrok sessions: bits, chunks, sample rates, everything that can be wrong with them."""

import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypermon.host.errors import InputError
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.port_mapping import Mapping
from hypermon.sim.stimulus.sr_file import read_sr

NAMES = ("D0", "D1", "D2", "D3", "E")


def session(path, samples, *, rate="1 MHz", unit=1, names=NAMES, places=None, chunk=None, metadata=None):
    """Writes 5-bit samples as a session, each bit at its place."""
    places = places or range(len(names))
    data = b""
    for sample in samples:
        data += sum((sample >> i & 1) << place for i, place in enumerate(places)).to_bytes(unit, "little")
    if metadata is None:
        metadata = (f"[global]\nsigrok version=0.6.0\n\n[device 1]\ncapturefile=logic-1\ntotal probes={8 * unit}\n"
                    f"samplerate={rate}\ntotal analog=0\nunitsize={unit}\n")
        metadata += "".join(f"probe{place + 1}={n}\n" for n, place in zip(names, places, strict=True))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("version", "2")
        archive.writestr("metadata", metadata)
        if chunk is None:
            archive.writestr("logic-1", data)
        else:
            for k, at in enumerate(range(0, len(data), chunk)):
                archive.writestr(f"logic-1-{k + 1}", data[at:at + chunk])
    return str(path)


def mapping(path, channels=NAMES, node=0):
    return Mapping("", path, node, channels, None, None)


def track(path, channels=NAMES):
    (one,) = read_sr(InputFile(str(path)), [mapping(path, channels)])
    return one.initial, list(zip(one.time.tolist(), one.port.tolist(), strict=True))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.sr"


def test_the_first_sample_is_a_level(file):
    assert track(session(file, [0x1f, 0x1f, 0x0f, 0x0f, 0x1f])) == (0x1f, [(2_000_000, 0x0f), (4_000_000, 0x1f)])
    assert track(session(file, [0x15])) == (0x15, [])


def test_ports_of_8_bits(file):
    names = (*(f"D{bit}" for bit in range(8)), "E")
    path = session(file, [0x0a5, 0x1a5, 0x15a], unit=2, names=names)
    assert track(path, names) == (0xa5, [(1_000_000, 0x1a5), (2_000_000, 0x15a)])


def test_changes_of_other_channels_are_none(file):
    path = session(file, [0, 0x80, 0x01, 0x81, 0x01], places=range(8), names=(*NAMES, "x", "y", "z"))
    assert track(path) == (0, [(2_000_000, 1)])


@pytest.mark.parametrize("unit", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("chunk", [None, 1, 7, 64, 1000])
def test_units_and_chunks(file, unit, chunk):
    """Samples of any width, cut into files anywhere, more than nine of them too."""
    rng = np.random.default_rng(unit)
    places = rng.choice(8 * unit, 5, replace=False).tolist()
    samples = rng.integers(0, 32, 60).tolist()
    path = session(file, samples, unit=unit, places=places, chunk=chunk)
    expected = [(i * 1_000_000, v) for i, v in enumerate(samples) if i and v != samples[i - 1]]
    assert track(path) == (samples[0], expected)


@pytest.mark.parametrize(("rate", "times"), [
    ("1 MHz", (1_000_000, 2_000_000, 3_000_000)), ("500 kHz", (2_000_000, 4_000_000, 6_000_000)),
    ("24 MHz", (41_667, 83_334, 125_000)), ("1 GHz", (1000, 2000, 3000)), ("12.5 MHz", (80_000, 160_000, 240_000)),
    ("200000", (5_000_000, 10_000_000, 15_000_000)), ("3 Hz", (333_333_333_334, 666_666_666_667, 10**12)),
    ("100MHz", (10_000, 20_000, 30_000)), ("2000000 kHz", (500, 1000, 1500))])
def test_rates_are_exact_and_rounded_up(file, rate, times):
    assert [t for t, _ in track(session(file, [0, 1, 2, 3], rate=rate))[1]] == list(times)


def test_several_ports_of_one_file(file):
    names = tuple(f"c{i}" for i in range(10))
    path = session(file, [0, 0b00001_00010, 0b10001_00011], unit=2, names=names)
    tracks = read_sr(InputFile(str(path)), [mapping(path, names[:5]), mapping(path, names[5:])])
    assert [t.port.tolist() for t in tracks] == [[2, 3], [1, 17]]


def test_a_channel_may_have_a_strange_name(file):
    names = ("LAD0", "LAD1", "LAD%2", "é", "LFRAME#")
    assert track(session(file, [0, 31], names=names), names) == (0, [(1_000_000, 31)])


META = "[device 1]\ncapturefile=logic-1\nsamplerate=1 MHz\nunitsize=1\n" + "".join(
    f"probe{i + 1}={n}\n" for i, n in enumerate(NAMES))


@pytest.mark.parametrize(("change", "reason"), [
    (("1 MHz", "fast"), "samplerate is 'fast': a frequency above 0 is expected, such as 1 MHz"),
    (("1 MHz", "0"), "samplerate is '0': a frequency above 0"), (("1 MHz", "-5 kHz"), "samplerate is '-5 kHz': "),
    (("1 MHz", ""), "samplerate is '': "),
    (("samplerate=1 MHz\n", ""), "no samplerate"),
    (("unitsize=1", "unitsize=0"), "unitsize is '0': a number of bytes from 1 to 4096 is expected"),
    (("unitsize=1", "unitsize=x"), "unitsize is 'x': "), (("unitsize=1", "unitsize=-1"), "unitsize is '-1': "),
    (("unitsize=1\n", ""), "no unitsize"), (("capturefile=logic-1\n", ""), "no logic samples"),
    (("capturefile=logic-1", "capturefile=other"), "no logic samples"),
    (("[device 1]\n", ""), "metadata cannot be read"), (("probe5=E", "probe5=CLK"), "unknown channel E; there are D0"),
    (("probe5=E", "probe5=E\nprobe6=E"), "two channels are called E"), (("probe5=E", "probe99=E"), "has no place"),
    (("probe5=E", "probe0=E"), "has no place")])
def test_malformed_metadata(file, change, reason):
    with pytest.raises(InputError, match=reason) as error:
        track(session(file, [0], metadata=META.replace(*change)))
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)


def test_not_a_session(file, tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        track(str(file))
    file.write_bytes(b"PK, but no zip")
    with pytest.raises(InputError, match="not a sigrok session file"):
        track(str(file))
    with pytest.raises(InputError, match="cannot be read"):
        track(str(tmp_path))
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("version", "2")
    with pytest.raises(InputError, match="it has no metadata"):
        track(str(file))


def test_cut_and_damaged(file):
    path = session(file, range(32), unit=2, chunk=63)
    whole = file.read_bytes()
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("logic-1-3", b"x")
    with pytest.raises(InputError, match="last sample is cut short: 1 of 2 bytes"):
        track(path)
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at])
        with pytest.raises(InputError):
            track(path)
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
        # What the damage does not touch may be read; nothing but one clear line is raised.
        with suppress(InputError):
            track(path)


def test_no_samples(file):
    with pytest.raises(InputError, match="no logic samples"):
        track(session(file, []))


def test_a_small_file_with_billions_of_changes(file, monkeypatch):
    """It is refused before the memory is full; the same of a larger file, or with fewer changes, is read."""
    monkeypatch.setattr("hypermon.sim.stimulus.sr_file._CHANGES", 1000)
    monkeypatch.setattr("hypermon.sim.stimulus.sr_file._CHANGES_A_BYTE", 0)
    assert len(track(session(file, [0, 31] * 500))[1]) == 999
    path = session(file, [0, 31] * 501)
    with pytest.raises(InputError, match=r"x\.sr: more than 1,000 changes of its lines"):
        read_sr(InputFile(str(path)), [mapping(path)])
    monkeypatch.setattr("hypermon.sim.stimulus.sr_file._CHANGES_A_BYTE", 1)
    assert len(track(path)[1]) == 1001


def test_memory_while_dense_samples_are_read(file):
    """It does not grow with the samples, only with the changes."""
    path = str(file)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", "[device 1]\ncapturefile=logic-1\nsamplerate=1 MHz\nunitsize=1\n"
                         + "".join(f"probe{k}={name}\n" for k, name in enumerate(NAMES, 1)))
        with archive.open("logic-1", "w") as out:
            for _ in range(16):
                out.write(bytes(1 << 23))
    tracemalloc.start()
    try:
        assert track(path) == (0, [])
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("key", "value", "reason"), [
    ("unitsize", "9" * 5000, f"its unitsize is '{'9' * 59}: a number"),
    ("unitsize", "5000", "its unitsize is '5000': a number of bytes from 1 to 4096"),
    ("samplerate", "9" * 5000, f"its samplerate is '{'9' * 59}: a frequency"),
    ("probe" + "9" * 5000, "x", "unknown channel")])
def test_metadata_of_somebody_else(file, key, value, reason):
    metadata = {"capturefile": "logic-1", "samplerate": "1 MHz", "unitsize": "1"} | {key: value}
    path = session(file, [1], metadata="[device 1]\n" + "".join(f"{k}={v}\n" for k, v in metadata.items()))
    with pytest.raises(InputError, match=reason):
        read_sr(InputFile(str(path)), [mapping(path)])


def test_an_indented_key_does_not_continue_the_one_before(file):
    """Early versions of sigrok wrote a channel's trigger below it."""
    written = META.replace("probe5=E\n", "probe5=E\n trigger5=0\n")
    assert written != META
    assert track(session(file, [0, 16, 0], metadata=written)) == (0, [(1_000_000, 16), (2_000_000, 0)])


def test_metadata_that_fill_the_memory(file):
    path = session(file, [1], metadata="[device 1]\n" + " " * (1 << 20))
    with pytest.raises(InputError, match=r"its metadata are longer than 1,048,576 bytes"):
        read_sr(InputFile(str(path)), [mapping(path)])


@pytest.mark.parametrize(("members", "reason"), [
    (("logic-1-1", "logic-1-3"), "logic-1-3 follows, and logic-1-2 is missing"),
    (("logic-1-2", "logic-1-3"), "logic-1-2 follows, and logic-1-1 is missing"),
    (("logic-1-1", "logic-1-2", "logic-1-02"), "logic-1-2 is there twice"),
    (("logic-1-1", "logic-1-2"), None), (("logic-1",), None), (("logic-1", "logic-1-1"), None)])
def test_a_part_of_the_samples_is_missing(file, members, reason):
    """All later samples would have wrong times."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata", META)
        for member in members:
            archive.writestr(member, bytes([0, 31]))
    if reason is None:
        assert track(str(file))[1][0] == (1_000_000, 31)
    else:
        with pytest.raises(InputError, match=reason):
            track(str(file))


def test_samples_of_two_devices(file):
    """Those of the second are not read, and this is announced."""
    second = META.replace("device 1", "device 2").replace("logic-1", "logic-2")
    for metadata, notes in ((META, 0), (META + second, 1)):
        path = session(file, [0, 31], metadata=metadata)
        (one,) = read_sr(InputFile(str(path)), [mapping(path)])
        assert len(one.notes) == notes
    assert one.notes == (f"{file}: it has logic samples of 2 devices; only those of the first, device 1, are read",)
