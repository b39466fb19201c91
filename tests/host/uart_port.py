"""A board's end of a serial line, in plain Python: what `hypermon.host.link.uart` talks to in tests."""

import os
import pty
import select
import threading
import time
import tty
import zlib

from hypermon.hdl.layout import UART_ESCAPE, UART_REPLY, UART_REQUEST, UartMark, UartOp
from hypermon.sim.serve.line_faults import LineFaults

__all__ = ["ESCAPE", "LITERAL", "PACKET", "Port"]

ESCAPE, LITERAL = bytes((UART_ESCAPE,)), bytes((UART_ESCAPE, UartMark.LITERAL))
PACKET = bytes((UART_ESCAPE, UartMark.PACKET))


class Port(threading.Thread):
    """A board's end of a serial line, in plain Python, at a pseudo terminal; see docs/links.md.

    ``board`` is a link to what is behind it; ``executed`` are the requests that it was asked for.
    """

    def __init__(self, path, board, to_host=None, to_board=None):
        super().__init__(daemon=True)
        self.path, self.board = path, board
        self.to_host, self.to_board = to_host or LineFaults(), to_board or LineFaults()
        self.executed, self.silent = [], False
        self.reply, self.last, self.received = b"", None, b""
        self.ending, self.wish = False, None
        self.plug()
        self.start()

    def plug(self):
        self.fd, program = pty.openpty()
        tty.setraw(program)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(program))
        os.close(program)

    def unplug(self):
        os.close(self.fd)
        self.path.unlink()
        self.fd = None

    def ask(self, wish):
        """Has the thread do something, and waits until it has."""
        self.wish = wish
        while self.wish:
            time.sleep(0.01)

    def run(self):
        while not self.ending:
            if self.wish:
                self.wish()
                self.wish = None
            stream = self.board.stream(1000)
            if self.fd is None:
                time.sleep(0.01)
                continue
            ready = select.select([self.fd], [], [], 0 if stream else 0.01)[0]
            out = self.to_host.pass_on(stream.replace(ESCAPE, LITERAL))
            try:
                if ready:
                    out += self.to_host.pass_on(self.answer(self.to_board.pass_on(os.read(self.fd, 4096))))
                os.write(self.fd, out)
            except OSError:    # nobody has it open
                time.sleep(0.01)

    def answer(self, data):
        self.received += data
        out = b""
        while PACKET in self.received:
            self.received = self.received[self.received.index(PACKET):]
            body = self.received[2:].split(PACKET)[0].replace(LITERAL, ESCAPE)
            if len(body) < UART_REQUEST.bytes:
                if self.received.count(PACKET) == 1:
                    break
            elif zlib.crc32(body[:8]) == int.from_bytes(body[8:12], "little") and not self.silent:
                out += self.serve(UART_REQUEST.unpack(body))
            self.received = self.received[2:]
        return out

    def serve(self, request):
        sequence, op, value = request["sequence"], request["op"], request["value"]
        if sequence != self.last or op == UartOp.HELLO:
            self.last, data = sequence, b""
            if op != UartOp.HELLO:
                self.executed.append((UartOp(op), request["address"], value))
            if op == UartOp.WRITE:
                self.board.write(request["address"], value)
            elif op == UartOp.READ and request["address"] < 0x1000:
                data = b"".join(self.board.read(request["address"] + 4 * k).to_bytes(4, "little") for k in range(value))
            elif op == UartOp.READ:
                data = self.board.read_burst(0x1000, value)
            body = UART_REPLY.pack(sequence=sequence, words=len(data) // 4) + data
            self.reply = PACKET + (body + zlib.crc32(body).to_bytes(4, "little")).replace(ESCAPE, LITERAL)
        return self.reply

    def close(self):
        self.ending = True
        self.join()
