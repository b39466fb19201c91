"""Damaged run directories: never a traceback, never a hang, and never other rows with nothing said."""

import random
import shutil
import signal
from dataclasses import asdict, replace

import pytest
from hypermon.hdl.layout import LATENCY, Sink, Window
from hypermon.host import cli
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.events import framed_events
from hypermon.host.record.recorder import record
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import open_run

from tests.host.conftest import event_item
from tests.host.damaging import DAMAGES, JSON_DAMAGES
from tests.host.fake_board import FakeBoard, FakeLink, random_run

SUM = "select count(*), sum(time_ps::hugeint), sum(node) from events"
#: Questions about a run; OUT is a new file or directory.
COMMANDS = [
    ["stats"], ["stats", "--json"], ["export", "--to", "csv", "-"], ["decode"], ["query"], ["query", SUM, "--csv"],
    ["query", "from loss", "--csv"], ["query", "from states", "--csv"], ["query", "from messages", "--csv"],
    ["check"], ["export", "--to", "perfetto", "OUT"], ["export", "--to", "ctf", "OUT"],
    ["export", "--to", "vcd", "OUT"]]
BOOK = """
[go]
id = 1
begin = "work"
send = "message"
fields = { key = "u8" }
counters = ["key"]
[done]
id = 2
end = "work"
receive = "message"
fields = { key = "u8" }
"""
#: Changing it is a right of its owner, and nobody can say whether that was done by a person. Nor whether a table was
#: framed if it is gone with the account that named it; and that UTC is not measured is said among the figures.
FREE = ("dictionary.toml",)


class HangError(Exception):
    """A command that does not come to its end."""


def nibbles(seed):
    return random_run(FakeBoard(4), random.Random(seed), 30, losses=0.3)


def plain(path, seed, **settings):
    record(Device(FakeLink(nibbles(seed), piece=500)), path, Settings(), **settings)


def extended(path, seed):
    board = random_run(FakeBoard(4, sink=Sink.EXTENDED), random.Random(seed), 30, losses=0.3)
    record(Device(FakeLink(board)), path, Settings(sink=Sink.EXTENDED))


def ring(path, seed):
    board = random_run(FakeBoard(4), random.Random(seed), 120, losses=0.3)
    record(Device(FakeLink(board, piece=500)), path, Settings(), ring_s=board.events()[-1][0] / 4e12)


def write(path, board, **info):
    values = replace(RunInfo("fake:", board.nodes, board.clock_hz, "800", LATENCY, board.epoch), **info)
    with RunWriter(path, values, segment_bytes=4000) as writer:
        writer.append(board.data)
        if values.drain == "registers":
            writer.add_groups([(k, k, k + 1) for k in range(5)])
        writer.close(how="test", duration_ps=10**9)


def registers(path, seed):
    write(path, nibbles(seed), drain="registers")


def words_and_events(path, seed):
    modes, rng = ItemModes.of([ItemMode.EVENT, ItemMode.NIBBLE, ItemMode.WORD]), random.Random(seed)
    board, window = FakeBoard(nodes=3, window=Window.CLOCK, sink=Sink.EXTENDED).start(), 10
    for _ in range(5):
        items = []
        for k in range(40):
            window += rng.randint(1, 40)
            items.append(rng.choice([event_item(window, 0, 1 + k % 2, rng.randrange(4)),
                                     LongItem(window, 1, bytes([rng.randrange(16)])),
                                     LongItem(window, 2, bytes(rng.choices(range(16), k=8)))]))
        board.items(items, modes)
    write(path, board.stop(window + 1000), window="1", sink="extended", modes=["event", "nibble", "word"],
          item_timeout_clocks=1000)
    named(path)


def framed(path, seed):
    board, rng, window = FakeBoard(nodes=2).start(), random.Random(seed), 10
    for k in range(60):
        for nibble in (2, 1 + k % 2, 0, rng.randrange(4), 0):
            window += rng.randint(1, 5)
            board.frames([(window, {0: nibble, 1: nibble})])
    write(path, board.stop(window + 1000))
    named(path)
    framed_events(open_run(path))


def named(path):
    book = path.with_name(f"{path.name}.toml")
    book.write_text(BOOK)
    keep_dictionary(open_run(path), book)


def several(path, seed):
    path.mkdir()
    for number in range(2):
        plain(path / f"board-{number}", seed + number)
    info = RunInfo.load(path / "board-0" / "recording.json")
    write_json(path / "recording.json", asdict(replace(info, boards=["board-0", "board-1"], board="all", nodes=8,
                                                       modes=[])))


KINDS = {
    "classic": plain, "extended": extended, "ring": ring, "registers": registers, "items": words_and_events,
    "framed": framed, "several": several,
    "events": lambda path, seed: plain(path, seed, keep="events"),
    "stats": lambda path, seed: plain(path, seed, keep="stats")}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """``made(kind)``: two decoded runs of that kind."""
    folder = tmp_path_factory.mktemp("made")

    def make(kind):
        paths = [folder / f"{kind}-{seed}" / "run" for seed in (1, 5)]
        for path, seed in zip(paths, (1, 5), strict=True):
            if not path.exists():
                path.parent.mkdir()
                KINDS[kind](path, seed)
                assert cli._run(["stats", str(path)]) == 0
                assert open_run(path).stats()["events"] > 50, "a run of nothing cannot be damaged"
                cli._run(["query", str(path)])
        return paths

    return make


def ask(command, path, capfd):
    """Status, standard output and standard error, the run by the name RUN; raises HangError after 20 s."""
    out = path.parent / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)
    words = [str(out) if word == "OUT" else word for word in command]

    def late(*_):
        raise HangError(words)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        capfd.readouterr()
        status = cli._run([words[0], str(path), *words[1:]])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    said = capfd.readouterr()
    return status, *(text.replace(str(path), "RUN") for text in said)


def damaged(kind, made, tmp_path, capfd, rng, damage=None):
    """One damaged directory, and one question; raises AssertionError with the case if it is not answered well."""
    source, other = made(kind)
    run = tmp_path / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(source, run)
    undecoded = rng.random() < 0.3 and kind not in ("events", "stats")
    if undecoded:
        (run / "decode.json").unlink()
    command = rng.choice(COMMANDS)
    wanted = truth(kind, command, source, capfd)
    files = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    if damage in JSON_DAMAGES:
        files = [path for path in files if path.suffix == ".json"]
    if damage == "swap":
        files = [path for path in files if (other / path).is_file()]
    name = rng.choice(files)
    damage = damage or rng.choice([*DAMAGES, *(JSON_DAMAGES if name.suffix == ".json" else ())])
    if damage == "swap" and not (other / name).is_file():
        damage = "gone"
    (DAMAGES | JSON_DAMAGES)[damage](rng, run / name, other / name)
    case = f"{kind} {name} {damage} {command} {'undecoded' if undecoded else ''}"
    try:
        status, out, said = ask(command, run, capfd)
    except BaseException as error:
        raise AssertionError(f"{case}: {error!r}") from error
    err = said.splitlines()
    assert status in (0, 1, 2), case
    assert not [line for line in err if "Traceback" in line or "\x1b" in line], (case, err)
    if status == 2 and wanted[0] != 2:
        assert err, case
        assert err[-1].startswith("hypermon: "), (case, err)
        assert all(line.startswith("RUN: ") for line in err[:-1]), (case, err)
    removed = damage in ("gone", "renamed")
    free = (name.name in FREE and not (run / name).is_symlink()) or damage == "member" or (removed and (
        "not measured" in out or (undecoded and name.name == "framed.parquet")))
    if status != 2 and (status, out) != wanted[:2] and not free:
        assert said != wanted[2], f"{case}: other figures, and nothing is said"
    for path in run.rglob("*"):
        if path.is_file():
            path.chmod(0o600)


_TRUTH: dict = {}


def truth(kind, command, source, capfd):
    """The answer of the run that is whole."""
    key = kind, tuple(command)
    if key not in _TRUTH:
        _TRUTH[key] = ask(command, source, capfd)
    return _TRUTH[key]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged(kind, made, tmp_path, capfd):
    """Each damage once."""
    rng = random.Random(kind)
    for damage in [*DAMAGES, *JSON_DAMAGES]:
        damaged(kind, made, tmp_path, capfd, rng, damage)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_many_times(kind, made, tmp_path, capfd, seed):
    """9 kinds of runs, 5 seeds, 100 directories each: 4,500."""
    rng = random.Random(f"{kind} {seed}")
    for _ in range(100):
        damaged(kind, made, tmp_path, capfd, rng)

