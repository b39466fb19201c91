"""A relay among clients that say nothing, say half of it, go without a word, or are not who they should be."""

import contextlib
import random
import socket
import threading
import time

import pytest
from hypermon.hdl.layout import REGISTERS
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, IncompleteError, LinkError
from hypermon.host.link import open_link, relay
from hypermon.host.link.relay import ANSWER, NONCE_BYTES, REQUEST, Op, Status, listen, proof, receive, serve_link
from hypermon.host.record.recorder import record
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import in_time, patience

TOKEN = "a-token-of-these-tests"
BUILD = REGISTERS["BUILD"].offset


@pytest.fixture
def relayed():
    """``relayed(link, token)``: the URI of a relay; ``relayed.said``: what it has said of takeovers."""
    listeners, said = [], []

    def make(link, token=None) -> str:
        listener = listen("127.0.0.1", 0)
        listeners.append(listener)

        def serve():
            with contextlib.suppress(OSError):
                serve_link(link, listener, token, said.append)

        threading.Thread(target=serve, daemon=True).start()
        return f"tcp:127.0.0.1:{listener.getsockname()[1]}"

    make.said = said
    yield make
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def idle():
    return FakeLink(random_run(FakeBoard(), random.Random(6), 30, losses=0.3), piece=300, endless=True)


@contextlib.contextmanager
def connected(uri, token=None, proves=True):
    """A client, byte by byte; it has read the greeting."""
    with socket.create_connection(("127.0.0.1", int(uri.rpartition(":")[2]))) as connection:
        nonce = receive(connection, NONCE_BYTES, 10)
        if proves:
            connection.sendall(proof(token, nonce))
            answered(connection)
        yield connection


def answered(connection):
    status, _, length, _ = ANSWER.unpack(receive(connection, ANSWER.size, patience(10)))
    return status, receive(connection, length, patience(10))


def asked(connection, op, address=0, value=0):
    connection.sendall(REQUEST.pack(op, address, value))
    return answered(connection)


def open_still(connection):
    """Whether the other side has not closed a connection."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def quick(uri, **more):
    """Somebody else is served, and soon."""
    begun = time.monotonic()
    with Device(open_link(uri + (f"?token={TOKEN}" if more.get("token") else ""))) as device:
        assert device.identity.nodes == 16
    in_time(begun, more.get("within_s", 2))


# ------------------------------------------------------------------------------------- at the door

@pytest.mark.parametrize("token", [None, TOKEN])
def test_silent_and_dripping_strangers(relayed, token, monkeypatch):
    """They keep nobody out, and are gone after a time for all their bytes together."""
    proof = patience(0.6)       # of now: the machine may be less busy when they are due to go
    monkeypatch.setattr(relay, "_PROOF_S", proof)
    uri = relayed(idle(), token)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connected(uri, proves=False)) for _ in range(10)]
        begun = time.monotonic()
        while any(map(open_still, strangers)):
            in_time(begun + proof, 1.9, "the strangers to be gone")
            for stranger in strangers[::2]:
                with contextlib.suppress(OSError):
                    stranger.sendall(b"x")
            time.sleep(proof / 10)      # so few bytes in all that the proof, of 32, is never complete
            quick(uri, token=token)


def test_more_strangers_than_there_is_room_for(relayed):
    uri = relayed(idle(), TOKEN)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connected(uri, proves=False)) for _ in range(100)]
        quick(uri, token=TOKEN)
        assert sum(map(open_still, strangers)) < 40


def strangers_of_noise(uri, count):
    rng = random.Random(count)
    for _ in range(count):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(uri.rpartition(":")[2]))) as one:
            one.settimeout(patience(5))
            one.sendall(rng.choice([b"GET / HTTP/1.1\r\n\r\n", rng.randbytes(32), rng.randbytes(200), b""]))
            if rng.random() < 0.5:
                one.recv(100)


def clients_of_noise(uri, count):
    """They know the token, and send any requests."""
    rng = random.Random(count)
    for _ in range(count):
        with contextlib.suppress(OSError), connected(uri, TOKEN) as one:
            one.settimeout(patience(5))
            for _ in range(5):
                one.sendall(REQUEST.pack(rng.randrange(9), rng.getrandbits(32), rng.getrandbits(32))
                            if rng.random() < 0.9 else rng.randbytes(rng.randrange(40)))
            one.shutdown(socket.SHUT_WR)
            while one.recv(1 << 16):
                pass


def test_noise(relayed):
    uri = relayed(idle(), TOKEN)
    strangers_of_noise(uri, 50)
    clients_of_noise(uri, 50)
    quick(uri, token=TOKEN)


@pytest.mark.slow
def test_much_noise(relayed):
    uri = relayed(idle(), TOKEN)
    for _ in range(10):
        strangers_of_noise(uri, 500)
        clients_of_noise(uri, 500)
        quick(uri, token=TOKEN)


@pytest.mark.parametrize(("op", "address", "value"), [
    (Op.READ, 0xffffffff, 0), (Op.READ, 2, 0), (Op.READ, 1 << 16, 0), (Op.WRITE, 0xfffffffd, 1),
    (Op.READ_BURST, 0, 0), (Op.READ_BURST, 0, 0xffffffff), (Op.READ_BURST, 0xfffc, 2), (99, 0, 0), (255, 0, 0)])
def test_requests_that_make_no_sense(relayed, op, address, value):
    """They are refused one by one; the board is not asked."""
    link = idle()
    link.read = link.write = link.read_burst = lambda *of: 1 // 0
    with connected(relayed(link)) as client:
        for _ in range(2):
            status, text = asked(client, op, address, value)
            assert (status, b"there are no" in text or b"no request has number" in text) == (Status.ERROR, True)


def test_whatever_the_link_raises(relayed):
    link = idle()
    link.read = lambda address: 1 // 0
    with connected(relayed(link)) as client:
        assert asked(client, Op.READ) == (Status.ERROR, b"integer division or modulo by zero")
        assert asked(client, Op.STREAM, 0, 10)[0] == Status.DONE


# ---------------------------------------------------------------------------------- who has the board

def test_a_client_that_asks_is_left_alone(relayed, tmp_path):
    """The one that comes later is told at once who has the board; the recording does not notice."""
    link, refused = idle(), []

    def come():
        with pytest.raises(HypermonError) as error:
            Device(open_link(uri))
        refused.append(str(error.value))

    def later(polls):
        if polls == 5:
            threading.Thread(target=come).start()
        if refused:
            link.endless = False

    uri = relayed(link)
    link.on_poll = later
    with Device(open_link(uri)) as device:
        record(device, tmp_path / "run", Settings())
    run = open_run(tmp_path / "run")
    assert "in use by 127.0.0.1" in refused[0]
    assert run.info.end["how"] == "the stimulus ended"
    assert len(run.events()) == len(link.board.events())
    assert relayed.said == []


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_client_that_went_without_a_word(relayed, monkeypatch, token):
    """Another one gets the board after a time; the first is told when it asks again, and cannot come back."""
    monkeypatch.setattr(relay, "_SILENT_S", patience(0.5))
    uri = relayed(idle(), token)
    query = f"?token={token}" if token else ""
    gone = open_link(uri + query)
    gone.read(0)
    begun = time.monotonic()
    with Device(open_link(uri + query)) as device:
        assert time.monotonic() - begun > 0.3
        in_time(begun, 5)
        for _ in range(2):
            with pytest.raises(LinkError, match=r"127\.0\.0\.1:\d+ has taken the board over"):
                gone.read(0)
            with pytest.raises(LinkError, match="has taken the board over"):
                gone.stream(100)
        assert device.read("BUILD") == 0xabcd
    assert len(relayed.said) == 1
    gone.close()


def test_a_client_whose_ticket_is_void_cannot_come_again(relayed, monkeypatch):
    """Its connection was lost, and meanwhile another one had the board."""
    monkeypatch.setattr(relay, "_SILENT_S", 0.2)
    uri = relayed(idle())
    first = open_link(uri)
    first.read(0)
    first._connection.shutdown(socket.SHUT_RDWR)
    quick(uri)
    with contextlib.suppress(LinkError):
        first.read(0)      # the connection is found to be lost
    with pytest.raises(LinkError, match="has taken the board over"):
        first.stream(100)
    first.close()


def test_the_same_client_comes_again_at_once(relayed):
    """The relay has not heard that its old connection is lost."""
    uri = relayed(idle())
    link = open_link(uri)
    link.read(0)
    half_open, link._connection = link._connection, None
    begun = time.monotonic()
    assert link.read(BUILD) == 0xabcd
    in_time(begun, 2)
    half_open.settimeout(patience(2))
    assert half_open.recv(1) == b""
    assert relayed.said == []
    half_open.close()
    link.close()


def test_a_relay_that_was_started_again(relayed):
    """It does not know the ticket, and nobody else has had the board."""
    first, second = relayed(idle()), relayed(idle())
    link = open_link(first)
    link.read(0)
    link._connection.shutdown(socket.SHUT_RDWR)
    link._where = ("127.0.0.1", int(second.rpartition(":")[2]))
    with contextlib.suppress(LinkError):
        link.read(0)
    assert link.read(BUILD) == 0xabcd
    link.close()


@pytest.mark.parametrize("resume", [0, 1, 2**63])
def test_a_ticket_of_somebody_else(relayed, resume):
    uri = relayed(idle())
    with connected(uri) as first, connected(uri) as second:
        assert asked(first, Op.READ)[0] == Status.DONE
        assert asked(second, Op.RESUME, resume & 0xffffffff, resume >> 32)[0] == Status.TAKEN
        assert asked(first, Op.READ)[0] == Status.DONE


def test_a_takeover(relayed, tmp_path):
    """With the token, and asked for: the first recording ends, and says why; the second gets a board that is reset."""
    link = idle()
    uri = relayed(link, TOKEN)
    others = []

    def later(polls):
        if polls == 5:
            others.append(threading.Thread(target=lambda: others.append(
                open_link(f"{uri}?token={TOKEN}&takeover=yes"))))
            others[0].start()

    link.on_poll = later
    with Device(open_link(f"{uri}?token={TOKEN}")) as device:
        with pytest.raises(IncompleteError, match="has taken the board over"):
            record(device, tmp_path / "run", Settings())
    how = open_run(tmp_path / "run").info.end["how"]
    assert "has taken the board over" in how
    assert how.startswith("tcp:127.0.0.1")
    others[0].join()
    with Device(others[1]) as device:
        assert device.identity.nodes == 16
    assert len(relayed.said) == 1


def test_a_client_that_loses_the_board_while_it_waits(relayed):
    """It took it over while a request of the first was under way, and lost it before its own turn came."""
    link, inside, go = idle(), threading.Event(), threading.Event()

    def stream(limit):
        inside.set()
        go.wait(10)
        return b"mine"

    link.stream = stream
    uri = relayed(link, TOKEN)
    with connected(uri, TOKEN) as first, connected(uri, TOKEN) as second, connected(uri, TOKEN) as third:
        first.sendall(REQUEST.pack(Op.STREAM, 0, 9))
        inside.wait(10)
        for number, later in enumerate((second, third), 1):
            later.sendall(REQUEST.pack(Op.TAKE, 0, 0))
            while len(relayed.said) < number:
                time.sleep(0.01)
        go.set()
        assert answered(first) == (Status.DONE, b"mine")     # what the board gave is not lost
        assert answered(second)[0] == Status.TAKEN
        assert answered(third)[0] == Status.DONE
        assert asked(third, Op.STREAM, 0, 9) == (Status.DONE, b"mine")
        assert asked(first, Op.STREAM, 0, 9)[0] == Status.TAKEN


def test_no_takeover_without_a_token(relayed):
    uri = relayed(idle())
    with Device(open_link(uri)) as device:
        with pytest.raises(HypermonError, match="needs a relay with a token"):
            open_link(f"{uri}?takeover=yes")
        assert device.read("BUILD") == 0xabcd


def test_a_client_that_takes_no_answers(relayed, monkeypatch):
    """It holds up itself."""
    monkeypatch.setattr(relay, "_SILENT_S", patience(0.5))
    monkeypatch.setattr(relay, "_SEND_S", patience(0.5))
    link = idle()
    link.stream = bytes
    uri = relayed(link)
    with connected(uri) as greedy:
        greedy.sendall(REQUEST.pack(Op.STREAM, 0, 1 << 20) * 40)
        time.sleep(0.5)
        quick(uri, within_s=5)


def test_the_system_asks_whether_a_client_is_there(relayed):
    """A connection that is lost without a word is found out within half a minute, on both sides."""
    uri = relayed(idle())
    link = open_link(uri)
    connection = link._connection
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    if hasattr(socket, "TCP_KEEPIDLE"):
        idle_s, probe_s, probes = (connection.getsockopt(socket.IPPROTO_TCP, name) for name in (
            socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT))
        assert idle_s + probe_s * probes <= 30
    link.close()
