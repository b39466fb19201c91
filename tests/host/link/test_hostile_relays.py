"""Relays that lie, and boards that do: the client ends with one line that can be printed, and in little memory."""

import contextlib
import json
import os
import random
import socket
import struct
import threading
import time
import tracemalloc

import pytest
from hypermon.hdl.layout import REGISTERS, Sink, Window
from hypermon.host.cli import _run
from hypermon.host.device.device import Device
from hypermon.host.diagnose import selftest
from hypermon.host.errors import HypermonError
from hypermon.host.link import tcp
from hypermon.host.link.relay import ANSWER, NONCE_BYTES, REQUEST, TICKET_BITS, Op, Status, receive
from hypermon.host.record import recorder
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import in_time, patience

GREETING = {"uri": "x", "slow": False, "virtual": False, "ticket": 7}
TEXT = b"\x1b]0;owned\x07\x1b[2Jhello\r\nsecond line \xe2\x80\xae\xff\x9b31m"


@pytest.fixture
def lying(monkeypatch):
    """``lying(serve)``: the URI of a relay whose connections ``serve(connection)`` talks to, each in a thread."""
    monkeypatch.setattr(tcp, "_TIMEOUT_S", patience(0.4))
    monkeypatch.setattr(tcp, "_AGAIN_S", 0.01)
    for name, seconds in {"_SILENCE_S": 0.3, "_NOISE_S": 1.0, "_LAST_S": 2.0}.items():
        monkeypatch.setattr(recorder, name, patience(seconds))
    listeners = []

    def make(serve) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def talk(connection):
            with contextlib.suppress(OSError), connection:
                serve(connection)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=talk, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"tcp:127.0.0.1:{listener.getsockname()[1]}"

    yield make
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answer(data=b"", status=Status.DONE, length=None, ended=0, board_ps=0):
    return ANSWER.pack(status, ended, len(data) if length is None else length, board_ps) + data


def met(connection):
    connection.sendall(os.urandom(NONCE_BYTES))
    receive(connection, 32)


def greet(connection, greeting=GREETING):
    met(connection)
    connection.sendall(answer(greeting if isinstance(greeting, bytes) else json.dumps(greeting).encode()))


def ended(uri, capsys, *command):
    """The status of a command, and the one line that it printed."""
    tracemalloc.start()
    begun = time.monotonic()
    status = _run([*command, "-b", uri])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert all(letter.isprintable() or letter in "\n\r" for letter in text), text
    assert "Traceback" not in said.err
    assert peak < 40 << 20
    in_time(begun, 15)
    return status, said.err


def fails(uri, capsys, tmp_path):
    """Both commands end with the same line, which is given."""
    lines = []
    for command in (["info"], ["record", "-o", str(tmp_path / "run"), "--seconds", "1"]):
        status, text = ended(uri, capsys, *command)
        assert (status, text.count("\n")) == (2, 1), text
        lines.append(text.strip())
    assert not (tmp_path / "run").exists()
    return lines[0]


# --------------------------------------------------------------------------------- up to the greeting

def http(connection):
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"a" * 200)


def silent(connection):
    receive(connection, 1)


def garbage(connection):
    connection.sendall(random.Random(1).randbytes(5000))
    receive(connection, 1000)


def drips(connection):
    met(connection)
    for byte in answer(json.dumps(GREETING).encode()):
        connection.sendall(bytes([byte]))
        time.sleep(patience(0.1))


def hangs(connection):
    met(connection)
    receive(connection, 1)


def says(data):
    def serve(connection):
        met(connection)
        connection.sendall(data)
        receive(connection, 1)
    return serve


_GREETINGS = {
    "no JSON": b"{nope", "a list": b"[1, 2]", "nothing in it": b"{}", "no text": b"\xff\xfe\xfd", "a number": b"7",
    "null": b"null", "deep": b"[" * 4000, "digits": b"9" * 4096, "nothing": b"",
    "types": {"uri": 1, "slow": "", "virtual": 0},
    "a list of names": {"uri": ["a"], "slow": True, "virtual": False}, "a ticket": GREETING | {"ticket": -1},
    "a large ticket": GREETING | {"ticket": 1 << TICKET_BITS}, "a true ticket": GREETING | {"ticket": True},
}
_BEGINNINGS = {
    "http": (http, "not like a relay"), "closes": (lambda connection: None, "no answer"),
    "silent": (silent, "no answer"), "garbage": (garbage, "not like a relay"),
    "drips": (drips, "no answer"), "hangs": (hangs, "no answer"),
    "4 GiB": (says(answer(length=0xffffffff)), "4,294,967,295 bytes"),
    "4 GiB of an error": (says(answer(length=0xffffffff, status=Status.ERROR)), "4,294,967,295 bytes"),
    "status": (says(answer(status=77)), "status 77"),
    "half an answer": (says(answer(b"{}", length=100)), "no answer"),
    "escapes": (says(answer(TEXT, Status.ERROR)), r"\x1b]0;owned\x07\x1b[2Jhello second line \u202e"),
    "escapes of a link": (says(answer(TEXT, Status.LINK_ERROR)), r"\x1b]0;owned"),
    "taken": (says(answer(TEXT, Status.TAKEN)), r"\x1b]0;owned"),
    **{name: (lambda connection, said=said: greet(connection, said), "greeting makes no sense")
       for name, said in _GREETINGS.items()},
}


@pytest.mark.parametrize(("serve", "expected"), _BEGINNINGS.values(), ids=_BEGINNINGS)
def test_beginnings(lying, capsys, tmp_path, serve, expected):
    assert expected in fails(lying(serve), capsys, tmp_path)


# ------------------------------------------------------------------------------------ registers

def board(connection, lie, link=None, greeting=GREETING):
    """A relay of a board that is right, but for ``lie(op, address, value, right)``: the answer's bytes, or None."""
    link = link or FakeLink(random_run(FakeBoard(), random.Random(6), 30), endless=True)
    greet(connection, greeting)
    while True:
        op, address, value = REQUEST.unpack(receive(connection, REQUEST.size))
        right = b""
        if op == Op.READ:
            right = struct.pack("<I", link.read(address))
        elif op == Op.STREAM:
            right = link.stream(value)
        elif op == Op.WRITE:
            link.write(address, value)
        elif op == Op.READ_BURST:
            right = bytes(4 * value)
        said = lie(op, address, value, right)
        connection.sendall(answer(right) if said is None else said)


def on(which, said):
    return lambda op, address, value, right: said if op == which else None


_REGISTERS = {
    "short": (answer(b"ab"), "has 2 bytes"), "long": (answer(b"12345678"), "has 8 bytes"),
    "4 GiB": (answer(length=0xffffffff), "4,294,967,295 bytes"),
    "zeros": (answer(bytes(4)), "not a HYPERMON board"),
    "ones": (answer(b"\xff" * 4), "not a HYPERMON board"), "escapes": (answer(TEXT, Status.ERROR), r"\x1b]0;owned"),
    "of a link": (answer(TEXT, Status.LINK_ERROR), r"\x1b]0;owned"),
    "a long error": (answer(b"x" * 5000, Status.ERROR), "5,000"),
}


@pytest.mark.parametrize(("said", "expected"), _REGISTERS.values(), ids=_REGISTERS)
def test_registers(lying, capsys, tmp_path, said, expected):
    assert expected in fails(lying(lambda connection: board(connection, on(Op.READ, said))), capsys, tmp_path)


_IMPOSSIBLE = {
    "STORE_DEPTH": [17, 1500, 0xffff, 9 << 16, 29 << 16, 0xff << 16, 1 << 24, 2**31, 2**32 - 1],
    "CLOCK_HZ": [0, 1, 99_999_999, 1_005_000_000, 2**32 - 1], "NODE_DEPTH": [0, 3, 512, 2**32 - 1],
    "VECTOR_DEPTH": [0, 128, 1000, 2**32 - 1], "FRAME_DEPTH": [0, 3, 2**31],
    "GEOMETRY": [0, 0x05010400, 0x05010421, 0x05010510, 0x05000410, 0x05010810, 0x05810410, 2**32 - 1]}


@pytest.mark.parametrize(("register", "value"), [(name, value) for name, every in _IMPOSSIBLE.items()
                                                 for value in every])
def test_identities_that_cannot_be(lying, capsys, register, value):
    """Each register that says what a board is has bounds."""
    def lie(op, address, _, right):
        wrong = op == Op.READ and address == REGISTERS[register].offset
        return answer(struct.pack("<I", value)) if wrong else None

    status, text = ended(lying(lambda connection: board(connection, lie)), capsys, "info")
    assert (status, text.count("\n")) == (2, 1), text
    assert "reports impossible values" in text
    assert "hypermon flash BOARD" in text


def test_a_write_that_is_answered_with_data(lying, capsys, tmp_path):
    uri = lying(lambda connection: board(connection, on(Op.WRITE, answer(b"data"))))
    status, text = ended(uri, capsys, "record", "-o", str(tmp_path / "run"), "--seconds", "1")
    assert (status, "has 4 bytes" in text) == (2, True)


def test_a_time_that_cannot_be(lying, capsys, tmp_path):
    """It is said, the board is told to stop, and the recording opens."""
    def lie(op, address, value, right):
        if op == Op.WRITE and address == REGISTERS["CONTROL"].offset:
            written.append(value)
        return answer(b"\xff" * 4) if op == Op.READ and address == REGISTERS["TIME_HIGH"].offset else None

    written = []
    uri = lying(lambda connection: board(connection, lie))
    status, text = ended(uri, capsys, "record", "-o", str(tmp_path / "run"), "--seconds", "0.1")
    assert (status, text.count("\n")) == (3, 1), text
    assert "reports an impossible time: 18,446,744,0" in text
    assert written[-2:] == [18, 16]
    assert not open_run(tmp_path / "run").stats()["complete"]


def test_frames_of_a_time_that_cannot_be(lying, capsys, tmp_path):
    """Read through the registers, in groups whose times are tables of 64 bits."""
    def lie(op, address, value, right):
        if op == Op.READ and address in (REGISTERS["FRAME_HIGH"].offset, REGISTERS["RUN"].offset):
            return answer(struct.pack("<I", 2**32 - 1 if address == REGISTERS["FRAME_HIGH"].offset else 3))
        return None

    uri = lying(lambda connection: board(connection, lie))
    run = tmp_path / "run"
    status, text = ended(uri, capsys, "record", "-o", str(run), "--seconds", "60", "--drain", "registers")
    assert (status, text.count("\n")) == (3, 1), text
    assert "reports an impossible time: FRAME_HIGH is 0xffffffff" in text
    assert open_run(run).stats()["events"] == 0


def extended(connection, lie):
    """The same of a board of the extended configuration, with windows of a clock."""
    played = FakeBoard(sink=Sink.EXTENDED, window=Window.CLOCK)
    board(connection, lie, FakeLink(random_run(played, random.Random(6), 30), endless=True))


def test_a_check_of_a_board_whose_time_stands_still_ends():
    link = FakeLink(FakeBoard(sink=Sink.EXTENDED, window=Window.CLOCK).start().stop(), endless=True)
    check = selftest.checks(Device(link))["stall and recovery, extended"]
    with pytest.raises(HypermonError, match="its time stopped at window 0"):
        check()


@pytest.mark.parametrize(("said", "expected"), [(b"", "stopped sending"), (bytes(4096), "does not stop")])
def test_a_self_test_comes_to_an_end(lying, capsys, monkeypatch, said, expected):
    """Of a board that says nothing, and of one that sends noise for ever."""
    def lie(op, address, value, right):
        if op == Op.READ and address == REGISTERS["TIME_LOW"].offset:
            reads.append(op)
            return answer(struct.pack("<I", 1000 * len(reads)))
        return answer(said) if op == Op.STREAM else None

    monkeypatch.setattr(selftest, "_BESIDES_BYTES", 1 << 20)
    monkeypatch.setattr(selftest, "_SECONDS", 0.1)
    reads = []
    uri = lying(lambda connection: extended(connection, lie))
    status, text = ended(uri, capsys, "selftest")
    assert (status, text.count("\n")) == (2, 1), text
    assert expected in text


def random_registers(rng):
    """Each register now and then is anything, but the board's name is right."""
    wrong = {register.offset: rng.choice([0, 1, 0xff, 2**31, 2**32 - 1, rng.getrandbits(32), rng.getrandbits(8)])
             for name, register in REGISTERS.items() if name not in ("MAGIC", "VERSION") and rng.random() < 0.2}
    return lambda op, address, value, right: answer(struct.pack("<I", wrong[address])) \
        if op == Op.READ and address in wrong else None


def boards_of_random_registers(lying, capsys, tmp_path, seeds):
    for seed in seeds:
        uri = lying(lambda connection, seed=seed: board(connection, random_registers(random.Random(seed))))
        status, text = ended(uri, capsys, "info")
        unknown_build = text.count("and no bitstream that is known here has")  # a note, not an error
        assert (status, text.count("\n") - unknown_build) in ((0, 0), (2, 1)), (seed, text)
        for drain in ("stream", "registers"):
            run = tmp_path / f"run-{seed}-{drain}"
            status, text = ended(uri, capsys, "record", "-o", str(run), "--seconds", "0.05", "--drain", drain)
            assert status in (0, 2, 3), (seed, text)
            assert run.exists() == (status != 2), (seed, text)
            if run.exists():
                assert open_run(run).stats()["events"] >= 0
        uri = lying(lambda connection, seed=seed: extended(connection, random_registers(random.Random(seed))))
        for command in (["counters", "--seconds", "0.05"], ["selftest"]):
            status, text = ended(uri, capsys, *command)
            assert status in (0, 1, 2), (seed, command, text)


def test_boards_of_random_registers(lying, capsys, tmp_path):
    boards_of_random_registers(lying, capsys, tmp_path, range(4))


@pytest.mark.slow
def test_many_boards_of_random_registers(lying, capsys, tmp_path):
    boards_of_random_registers(lying, capsys, tmp_path, range(100, 400))


# ----------------------------------------------------------------------------------- the stream

_STREAMS = {
    "long": (lambda value: answer(bytes(value + 1)), "has 1,048,577 bytes"),
    "4 GiB": (lambda value: answer(length=0xffffffff), "4,294,967,295 bytes"),
    "status": (lambda value: answer(status=9), "status 9"),
    "taken": (lambda value: answer(TEXT, Status.TAKEN), r"\x1b]0;owned\x07\x1b[2Jhello second line"),
}


@pytest.mark.parametrize(("said", "expected"), _STREAMS.values(), ids=_STREAMS)
def test_streams(lying, capsys, tmp_path, said, expected):
    """The recording ends at once, keeps what came before, and says why it ended."""
    def lie(op, address, value, right):
        polls.append(op) if op == Op.STREAM else None
        return said(value) if op == Op.STREAM and len(polls) > 5 else None

    polls = []
    uri = lying(lambda connection: board(connection, lie))
    ended(uri, capsys, "record", "-o", str(tmp_path / "run"), "--seconds", "60")
    run = open_run(tmp_path / "run")
    assert expected in run.info.end["how"]
    assert run.stream_size == 5000


@pytest.mark.parametrize("greeting", [GREETING | {"uri": "another"}, GREETING | {"virtual": True}, b"{nope"])
def test_another_board_after_an_outage(lying, capsys, tmp_path, greeting):
    """It is not taken for the one that was there before."""
    def serve(connection):
        seen.append(1)
        board(connection, lambda *of: cut(connection, *of), greeting=GREETING if len(seen) == 1 else greeting)

    def cut(connection, op, address, value, right):
        polls.append(op) if op == Op.STREAM else None
        if len(polls) == 5:
            polls.append(op)
            connection.shutdown(socket.SHUT_RDWR)

    seen, polls = [], []
    ended(lying(serve), capsys, "record", "-o", str(tmp_path / "run"), "--seconds", "60")
    how = open_run(tmp_path / "run").info.end["how"]
    assert "another board" in how or "greeting makes no sense" in how
    assert len(seen) == 2


@pytest.mark.parametrize("size", [1, 4])
def test_a_ticket_that_is_answered_with_data(lying, capsys, tmp_path, size):
    """When the client comes again: no relay does that."""
    def lie(op, address, value, right):
        asked.append(op)
        if op == Op.RESUME:
            return answer(bytes(size))
        if asked.count(Op.STREAM) == 5 and Op.RESUME not in asked:
            raise OSError       # the connection is lost
        return None

    asked = []
    ended(lying(lambda connection: board(connection, lie)), capsys, "record", "-o", str(tmp_path / "run"),
          "--seconds", "60")
    assert f"an answer of status 0 has {size} bytes" in open_run(tmp_path / "run").info.end["how"]
    assert asked.count(Op.RESUME) == 1


def random_lies(rng):
    """Any answer to anything, now and then; in the end it is honest."""
    def lie(op, address, value, right):
        asked.append(op)
        if len(asked) > 300 or rng.random() < 0.9:
            return None
        size = rng.choice([len(right), len(right), rng.randrange(300), value % 5000])
        return answer(rng.randbytes(size), rng.choice([0, 0, 0, 0, 1, 2, 3, 9]), ended=rng.randrange(2),
                      board_ps=rng.getrandbits(63), length=rng.choice([size] * 9 + [rng.getrandbits(32)]))

    asked = []
    return lie


def relays_of_random_lies(lying, capsys, tmp_path, seeds):
    for seed in seeds:
        lie = random_lies(random.Random(seed))
        uri = lying(lambda connection, lie=lie: board(connection, lie))
        status, text = ended(uri, capsys, "record", "-o", str(tmp_path / f"run-{seed}"), "--seconds", "0.3")
        assert status in (0, 2, 3), (seed, text)


def test_relays_of_random_lies(lying, capsys, tmp_path):
    relays_of_random_lies(lying, capsys, tmp_path, range(10))


@pytest.mark.slow
def test_many_relays_of_random_lies(lying, capsys, tmp_path):
    relays_of_random_lies(lying, capsys, tmp_path, range(100, 600))


def noisy(seed):
    """A board's stream with noise in it, and blocks damaged."""
    rng = random.Random(seed)

    def lie(op, address, value, right):
        polls.append(op) if op == Op.STREAM else None
        if op != Op.STREAM or len(polls) > 10 or rng.random() < 0.5:
            return None
        data = bytearray(right)
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        return answer(bytes(data) + rng.randbytes(rng.randrange(100)))

    polls = []
    return lie


def test_streams_of_noise(lying, capsys, tmp_path):
    for seed in range(5):
        uri = lying(lambda connection, seed=seed: board(connection, noisy(seed)))
        status, text = ended(uri, capsys, "record", "-o", str(tmp_path / f"run-{seed}"), "--seconds", "0.1")
        assert status in (0, 3), text
        assert "torn" in text or "missing" in text or "lost" in text, text


@pytest.mark.parametrize("uri", ["tcp:a..b:1", "tcp:a\0b:1", f"tcp:{'a' * 300}:1", "tcp:\x1b[2J:1", "tcp:::1",
                                 "tcp:[:1", "tcp:127.0.0.1:1?takeover=perhaps", "tcp:\udcff:1"])
def test_names_that_are_none(capsys, uri):
    status, text = ended(uri, capsys, "info")
    assert (status, text.count("\n")) == (2, 1)


def test_more_frames_than_there_is_room_for(lying, capsys, tmp_path):
    def lie(op, address, value, right):
        return answer(b"\xff" * 4) if op == Op.READ and address == REGISTERS["RUN"].offset else None

    ended(lying(lambda connection: board(connection, lie)), capsys, "record", "-o", str(tmp_path / "run"), "--seconds",
          "60", "--drain", "registers")
    assert "4,294,967,295 frames" in open_run(tmp_path / "run").info.end["how"]
