"""The nibble mask on the virtual board: what it keeps out is counted, the rest is as it would be."""

import numpy as np
import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.cli import _run
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import play, write
from tests.sim.virtual.test_link import MS, dense, sparse, stimulus


def masked(played, geometry, mask, window=Window.CLOCK, **options):
    with VirtualLink(played, geometry, **options) as link:
        write(link, "NIBBLE_MASK", mask)
        return play(link, played, window, sink=Sink.EXTENDED)


@pytest.mark.parametrize("mask", [0xffff, 0x8001, 0x00f0, 0x55a5, 0])
def test_keeps_what_it_says(extended, mask):
    """Each node writes every value."""
    played = stimulus([(200_000 * k + at, k % extended.nodes, k // extended.nodes | strobe)
                       for k in range(1, 16 * extended.nodes) for at, strobe in ((0, 0), (60_000, 16), (120_000, 0))])
    every, kept = masked(played, extended, 0xffff), masked(played, extended, mask)
    assert len(every.events) == 16 * extended.nodes - 1
    assert kept.events == [event for event in every.events if mask >> event[2] & 1]
    for n, node in enumerate(kept.census):
        assert node["accepted"] == node["delivered"] == len(kept.nibbles(n))
        assert node["rejected"] == len(every.nibbles(n)) - len(kept.nibbles(n))


def test_it_makes_room(extended):
    """What is kept out does not fill anything: a link that is too slow for all of it is fast enough for the rest."""
    played = stimulus(dense(extended, MS, 400_000))
    slow = {"drain_rate": 20_000_000}
    assert masked(played, extended, 0xffff, **slow).lost
    kept = masked(played, extended, 1 << 3, **slow)
    assert not kept.lost
    assert kept.events
    assert all(nibble == 3 for _, _, nibble in kept.events)


def test_skipping_changes_nothing(extended):
    played = stimulus(sparse(np.random.default_rng(3), extended, 60, MS))
    streams = [masked(played, extended, 0x0ff0, skip=skip).stream for skip in (True, False)]
    assert streams[0] == streams[1]


def test_option(extended, tmp_path, capsys):
    """`hypermon sim --mask`: of nodes and of nibbles; what makes no sense is one line."""
    path = tmp_path / "played.csv"
    rows = sorted((1000 * k + 60 * half, k % 5, 16 * half | k % 16) for k in range(1, 200) for half in (0, 1))
    path.write_text("time_ns,node,port\n" + "".join(f"{t},{n},{v}\n" for t, n, v in rows))
    out, table = tmp_path / "run", tmp_path / "events.csv"
    base = ["sim", str(path), "-o", str(out), "--config", "extended"]
    assert _run([*base, "--mask", "nodes=0b01011", "--mask", "nibbles=0x00f1"]) == 0
    assert _run(["export", str(out), "--to", "csv", str(table)]) == 0
    events = [tuple(map(int, line.split(",")[1:])) for line in table.read_text().splitlines()[1:]]
    assert events == [(k % 5, k % 16) for k in range(1, 200) if k % 5 in (0, 1, 3) and k % 16 in (0, 4, 5, 6, 7)]
    capsys.readouterr()
    for arguments, said in ((["--mask", "nodes"], "nodes=MASK or nibbles=MASK"),
                            (["--mask", "nodes=-1"], "nodes=MASK or nibbles=MASK"),
                            (["--mask", "ids=1"], "nodes=MASK or nibbles=MASK"),
                            (["--config", "classic", "--mask", "nibbles=1"], "add --config extended")):
        assert _run([*base[:2], "-o", str(tmp_path / "other"), "--config", "extended", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert said in error
