"""Requests and replies: each comes back out of the stream around it, however it is cut; damage costs what it hits."""

import random
import zlib

import pytest
from hypermon.hdl.layout import UART_ESCAPE, UART_REPLY, UART_REQUEST, UartMark, UartOp
from hypermon.host.link.uart_packets import Reply, Separator, build_request

PACKET = bytes((UART_ESCAPE, UartMark.PACKET))


def literal(data):
    return data.replace(bytes((UART_ESCAPE,)), bytes((UART_ESCAPE, UartMark.LITERAL)))


def reply(sequence, data=b"", status=0):
    body = UART_REPLY.pack(sequence=sequence, status=status, words=len(data) // 4) + data
    return PACKET + literal(body + zlib.crc32(body).to_bytes(4, "little"))


def random_bytes(choose, count):
    """Many of them escape bytes and marks."""
    return bytes(choose.choice([UART_ESCAPE, 0, 1, choose.randrange(256)]) for _ in range(count))


def test_a_request_is_its_record():
    wanted = {"sequence": UART_ESCAPE, "op": UartOp.WRITE, "address": 0x7c, "value": 0xdbdb0100}
    packet = build_request(**wanted)
    assert packet[:2] == PACKET
    body = packet[2:].replace(bytes((UART_ESCAPE, UartMark.LITERAL)), bytes((UART_ESCAPE,)))
    assert UART_REQUEST.unpack(body) == wanted | {"crc": zlib.crc32(body[:-4])}
    assert packet.count(UART_ESCAPE) == 1 + body.count(UART_ESCAPE) > 3


@pytest.mark.parametrize("seed", range(5))
def test_everything_comes_back(seed):
    choose = random.Random(seed)
    line, stream, replies = b"", b"", []
    for number in range(50):
        piece = random_bytes(choose, choose.randrange(40))
        stream += piece
        data = random_bytes(choose, 4 * choose.choice([0, 1, 2, 256]))
        replies.append(Reply(number, choose.random() < 0.8, data))
        line += literal(piece) + reply(number, data, int(not replies[-1].understood))
    separator, came, answers = Separator(), b"", []
    while line:
        size = choose.choice([1, 2, 7, 500])
        part, got = separator.feed(line[:size])
        came, answers, line = came + part, answers + got, line[size:]
    assert (came, answers) == (stream, replies)


@pytest.mark.parametrize("seed", range(20))
def test_no_reply_is_made_up_and_the_stream_is_soon_right(seed):
    choose = random.Random(seed)
    line, sent = b"", set()
    for number in range(100):
        data = random_bytes(choose, 4 * choose.randrange(20))
        sent.add(Reply(number, True, data))
        line += literal(random_bytes(choose, choose.randrange(60))) + reply(number, data)
    damaged = bytearray()
    for byte in line:
        if choose.random() > 0.01:
            damaged.append(byte ^ (1 << choose.randrange(8) if choose.random() < 0.01 else 0))
    separator = Separator()
    _, answers = separator.feed(bytes(damaged))
    assert set(answers) <= sent
    assert len(answers) > 20
    # Whatever state that has left, it is over with the next mark but one.
    tail = choose.randbytes(100)
    separator.feed(reply(1) + reply(2))
    stream, answers = separator.feed(literal(tail) + reply(3))
    assert (stream, answers) == (tail, [Reply(3, True, b"")])


def test_a_head_that_cannot_be_costs_the_head():
    body = UART_REPLY.pack(sequence=1, status=0, words=257)
    assert Separator().feed(PACKET + body + b"abc") == (b"abc", [])


def test_noise_is_no_reply():
    choose, separator = random.Random(1), Separator()
    assert all(not separator.feed(random_bytes(choose, 1000))[1] for _ in range(100))
