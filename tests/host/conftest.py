"""Runs on disk, made of a fake board's stream."""

import contextlib
import random
import socket
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import FRAME_WINDOW, LATENCY, Sink, Window
from hypermon.host import cli
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.decode.event_framing import EVENT_SCHEMA
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.run_dictionary import FRAMED, keep_dictionary, name_files
from hypermon.host.link.relay import listen, serve_link
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.parts import replace_part
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard, random_run
from tests.host.telling import BOOK


@pytest.fixture
def run_cli(capsys):
    """``run_cli(arguments...)``: exit status, standard output, lines of standard error."""

    def run(*arguments):
        status = cli._run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return run


@pytest.fixture
def make_run(tmp_path):
    """``make_run(board, data=None, name="run")``: a RUN of the board's stream, or of other bytes."""

    def make(board, /, data=None, name="run", end=True, **info) -> Run:
        path: Path = tmp_path / name
        window = next(k for k, w in FRAME_WINDOW.items() if w is board.window)
        values = RunInfo("fake:", board.nodes, board.clock_hz, window, LATENCY, board.epoch,
                         sink=board.sink.name.lower(), drain="registers" if board.host else "stream")
        for key, value in info.items():
            setattr(values, key, value)
        with RunWriter(path, values) as writer:
            writer.append(board.data if data is None else data)
            if end:
                writer.close(how="test", duration_ps=12345)
        return Run(path)

    return make


@pytest.fixture
def relayed():
    """``relayed(link, token)``: the URI by which it is reached."""
    listeners = []

    def make(link, token=None) -> str:
        listener = listen("127.0.0.1", 0)
        listeners.append(listener)
        threading.Thread(target=serve_quietly, args=(link, listener, token), daemon=True).start()
        return f"tcp:127.0.0.1:{listener.getsockname()[1]}"

    yield make
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def serve_quietly(link, listener, token):
    with contextlib.suppress(OSError):  # the end of the test
        serve_link(link, listener, token)


@pytest.fixture
def losing_run(make_run) -> Run:
    """Nibbles of 16 nodes, with losses, in the classic configuration."""
    return make_run(random_run(FakeBoard(), random.Random(3), 40, losses=0.3))


def event_item(window: int, node: int, *data: int, filler: int = 0) -> LongItem:
    """An event: its id and payload. ``filler``: nibbles at its end that did not come."""
    nibbles = [len(data), *(half for byte in data for half in (byte & 15, byte >> 4))]
    return LongItem(window, node, bytes(nibbles[:len(nibbles) - filler]) + bytes(filler), filler)


@pytest.fixture
def mixed_run(make_run) -> Run:
    """Node 0 writes events of ids 1 to 3, node 1 nibbles, node 2 words; some are aborted, some lost."""
    rng = random.Random(5)
    modes = ItemModes.of([ItemMode.EVENT, ItemMode.NIBBLE, ItemMode.WORD])
    board = FakeBoard(nodes=3, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    window = 10
    for block in range(6):
        items = []
        for k in range(50):
            window += rng.randint(1, 40)
            aborted = 2 if k % 10 == 9 else 0
            data = [rng.randint(1, 3), *rng.randbytes(rng.choice([0, 1, 3, 3]) + bool(aborted))]
            items.append(rng.choice([event_item(window, 0, *data, filler=aborted),
                                     LongItem(window, 1, bytes([rng.randrange(16)])),
                                     LongItem(window, 2, bytes(rng.choices(range(16), k=8 - aborted)) + bytes(aborted),
                                              aborted)]))
        board.items(items, modes)
        board.loss([(block % 3, block + 1, window + 10, window + 20)])
        window += 100
    return make_run(board.stop(window + 1000), modes=["event", "nibble", "word"], item_timeout_clocks=1000)


@pytest.fixture
def told(make_run, tmp_path: Path):
    """``told(rows, losses, stop, book, nodes)``: a run with these events: time, node, id, payload, aborted.

    ``stop`` : number of the window in which it ends.
    """
    def make(rows, losses=(), stop=10**6, book=BOOK, nodes=4) -> Run:
        board = FakeBoard(nodes=nodes).start()
        if losses:
            board.loss(list(losses))
        run = make_run(board.stop(stop), name="told")
        run.decode()
        columns = zip(*rows, strict=True) if rows else ((),) * 5
        table = pa.Table.from_arrays([pa.array(list(column), field.type) for column, field in
                                      zip(columns, EVENT_SCHEMA, strict=True)], schema=EVENT_SCHEMA)
        pq.write_table(table, run.path / "new")
        replace_part(run.path, run.path / "new", FRAMED)
        (tmp_path / "book.toml").write_text(book)
        keep_dictionary(run, tmp_path / "book.toml")
        name_files(run.path, [FRAMED], load_dictionary(tmp_path / "book.toml"))
        return run

    return make
