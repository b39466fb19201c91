"""Two boards, each recorded on its own, of which one follows with its own clock: their run, and what a check finds."""

import json
import os
import shutil
import threading
from dataclasses import asdict

import numpy as np
import pytest
from hypermon.hdl.layout import Extra, Geometry, Sink, Window
from hypermon.host.analysis.causality import causality
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.record.excerpt import trim
from hypermon.host.record.recorder import record
from hypermon.host.record.several_boards import run_info
from hypermon.host.recording.segments import write_json
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import Oscillator, VirtualLink

GEOMETRY = Geometry(1, node_depth=16, vector_depth=64, frame_depth=16, sinks=(Sink.EXTENDED,), extras=(Extra.DRIFT,))
DELAY_PS, COUNT, CLOCK_PS = 180_000, 6000, 10_000
DICTIONARY = """
[send]
id = 0x10
send = "message"
key = "number"
fields = { number = "u16" }

[received]
id = 0x13
receive = "message"
key = "number"
fields = { number = "u16" }
"""


def events(identity: int) -> Stimulus:
    """Events with a number each, at the same times whatever their id."""
    rng = np.random.default_rng(8)
    begins = 3_000_000 + np.cumsum(rng.integers(1_500_000, 2_200_000, COUNT))
    nibbles = np.array([[3, identity & 15, identity >> 4, *(n >> shift & 15 for shift in (0, 4, 8, 12))]
                        for n in range(COUNT)])
    times = (begins[:, None] + 100_000 * np.arange(7)).ravel()
    levels = 16 * (1 + np.arange(times.size)) % 32 | nibbles.ravel()
    return Stimulus(times, np.zeros(times.size, np.int16), levels.astype(np.uint16), [0], edge=[Edge.BOTH])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run of two boards with the delay of the wire as an echo would have measured it."""
    run = tmp_path_factory.mktemp("own") / "run"
    run.mkdir()
    read, write = os.pipe()
    links = [VirtualLink(events(identity), GEOMETRY, oscillator=Oscillator(ppm), seed=seed, name=f"board{seed}")
             for identity, ppm, seed in ((0x10, 31.0, 1), (0x13, -42.0, 2))]
    links[0].lead_file(write)
    links[1].follow_file(read, DELAY_PS)
    modes = ItemModes.of([ItemMode.EVENT])

    def play(number: int) -> None:
        settings = Settings(window=Window.CLOCK, sink=Sink.EXTENDED, modes=modes, follow=number == 1, flush_ms=0.2)
        record(Device(links[number]), run / f"board-{number}", settings)

    follower = threading.Thread(target=play, args=(1,))
    follower.start()
    while not (run / "board-1" / "clock.json").exists():
        follower.join(0.05)
    play(0)
    links[0].close()
    os.close(write)
    follower.join(300)
    assert not follower.is_alive()
    os.close(read)
    info = run_info(run, ["board-0", "board-1"])
    info.wires = [None, {"follows": 0, "delay_ps": DELAY_PS, "uncertainty_ps": 2500}]
    info.end = {"how": "done", "proper": True, "duration_ps": None}
    write_json(run / "recording.json", asdict(info))
    dictionary = run.parent / "events.toml"
    dictionary.write_text(DICTIONARY)
    keep_dictionary(Run(run), dictionary)
    return run


def test_times_agree(recorded):
    """To the phase of two clocks, and what is printed covers it."""
    run = Run(recorded)
    first, second = run.stats()["boards"]
    assert (first["how"], second["how"], second["hops"]) == ("first", "wire", 1)
    assert abs(second["drift_ppm"] - 73) < 0.1
    assert 12 <= second["uncertainty_ns"] <= 16
    assert 2 <= len(second["bends"]) < 50
    assert run.info.configuration.get("own_clock") is None
    assert Run(recorded / "board-1").info.configuration["own_clock"]
    assert run.decode()["marks"]["sync_missing"] == 0
    assert run.decode()["marks"]["sync"] > 5
    times = [run.events(nodes=[node]).column("time_ps").to_numpy() for node in (0, 1)]
    assert [len(own) for own in times] == [COUNT, COUNT]
    assert np.abs(times[1] - times[0]).max() <= 1000 * second["uncertainty_ns"]
    assert abs((times[1] - times[0]).mean()) < CLOCK_PS / 5
    # Whole 32nds of a clock.
    assert ((times[1] * 32 + 31) % CLOCK_PS < 32).all()


def test_messages_between_boards(recorded, tmp_path):
    """None was received before it was sent, beyond what is printed; a board that is three clocks off is found."""
    found = causality(Run(recorded))
    assert (found.matched, found.beyond) == (COUNT, 0)
    assert found.backwards > COUNT // 10
    for off in (-3, 3):
        copy = tmp_path / f"off{off}"
        shutil.copytree(recorded, copy, ignore=shutil.ignore_patterns("events", "loss", "*.parquet", "decode.json",
                                                                      "partition.json", "messages*", ".*"))
        info = json.loads((copy / "recording.json").read_text())
        del info["check"]
        info["wires"][1]["delay_ps"] += off * CLOCK_PS
        (copy / "recording.json").write_text(json.dumps(info))
        assert (causality(Run(copy)).beyond > 0) == (off < 0)


def test_an_excerpt_is_aligned_as_before(recorded, tmp_path):
    run = Run(recorded)
    begin = run.events(nodes=[1]).column("time_ps").to_numpy()[2000]
    trim(run, tmp_path / "part", Selection(None, int(begin), int(begin) + 10**9))
    part = Run(tmp_path / "part")
    whole = run.events(nodes=[1], from_ps=int(begin), to_ps=int(begin) + 10**9).column("time_ps").to_pylist()
    kept = part.events(nodes=[1]).column("time_ps").to_pylist()
    assert kept == whole
    assert len(kept) > 100


def test_without_its_marks_it_is_not_aligned(recorded, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(recorded, copy, ignore=shutil.ignore_patterns("events", "loss", "*.parquet", "decode.json",
                                                                  "partition.json", ".*"))
    (copy / "board-1" / "drift.bin").unlink()
    run = Run(copy)
    assert run.stats()["boards"][1]["uncertainty_ns"] is None
    assert not run.stats()["boards"][1]["bends"]
