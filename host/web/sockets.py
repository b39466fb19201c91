"""The connected pages: each receives what it can, and none delays another."""

import asyncio
import contextlib
import json
from typing import Any

from aiohttp import WSMessage, WSMsgType, web

__all__ = ["Page", "WishError"]

#: Length of the time that a page shows before it has requested another one.
_SPAN_PS = 10**13
#: The longest time that can be requested: longer than any recording.
_SPAN_MOST_S = 1e9
#: Frames that wait for a page; seconds for one to be sent, and for a page to close the connection.
_WAITING, _STUCK_S, _BYE_S = 2, 30.0, 2.0
#: Bytes of a message that a page may send.
_MESSAGE = 1 << 10
_HEARTBEAT_S = 20.0
#: More than any run's.
_BOARDS = 1 << 16


class WishError(ValueError):
    """A message that no page of this server sends. ``str()`` states what would be valid."""


class Page:
    """A socket, frames that wait for it, and a task that sends them.

    Members
    -------
    span_ps : length of the time that it shows.
    board : in a run of several boards, the board that it shows; None: all.
    dropped : frames for which the page was too slow. A text message reports this before the next frame.
    """

    def __init__(self) -> None:
        self.span_ps, self.dropped = _SPAN_PS, 0
        self.board: int | None = None
        self._told = 0
        self._socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=_MESSAGE)
        self._frames: asyncio.Queue[bytes | str] = asyncio.Queue(_WAITING)

    def offer(self, frame: bytes | str) -> None:
        """Queues a frame. If too many wait already, the oldest of them is dropped. Never waits."""
        if self._frames.full():
            self._frames.get_nowait()
            self.dropped += 1
        self._frames.put_nowait(frame)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serves the page until it leaves, sends an invalid message, or receives nothing any more."""
        await self._socket.prepare(request)
        transport = request.transport
        sender = asyncio.create_task(self._send(transport))
        try:
            async for message in self._socket:
                self.span_ps, self.board = _wish(message)
        except WishError as error:
            await self._bye(1008, str(error))
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            if transport is not None and transport.get_write_buffer_size():
                transport.abort()     # nobody would wait for it to take the rest
        return self._socket

    async def close(self) -> None:
        """Closes the connection when the server ends."""
        await self._bye(1001, "the server has ended")

    async def _bye(self, code: int, text: str) -> None:
        with contextlib.suppress(ConnectionError, asyncio.TimeoutError):
            await asyncio.wait_for(self._socket.close(code=code, message=text.encode()), _BYE_S)

    async def _send(self, transport: Any) -> None:
        """Sends frame after frame; a page that receives none is disconnected."""
        try:
            while True:
                frame = await self._frames.get()
                await asyncio.wait_for(self._send_one(frame), _STUCK_S)
        except (TimeoutError, ConnectionError):
            if transport is not None:
                transport.abort()

    async def _send_one(self, frame: bytes | str) -> None:
        if self._told != self.dropped:
            dropped = self.dropped
            await self._socket.send_str(json.dumps({"dropped": dropped}))
            self._told = dropped
        if isinstance(frame, str):
            await self._socket.send_str(frame)
        else:
            await self._socket.send_bytes(frame)


def _wish(message: WSMessage) -> tuple[int, int | None]:
    """The span, in picoseconds, and the board that a message requests, such as ``{"span_s": 10, "board": 3}``.

    Raises WishError.
    """
    try:
        if message.type is not WSMsgType.TEXT:
            raise WishError
        wish = json.loads(message.data)
        span_s, board = wish["span_s"], wish.get("board")
        if type(span_s) not in (int, float) or not 0 < span_s <= _SPAN_MOST_S:
            raise WishError
        if board is not None and (type(board) is not int or not 0 <= board < _BOARDS):
            raise WishError
        return max(int(span_s * 1e12), 1), board
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise WishError('a message is {"span_s": SECONDS}, seconds above 0 and up to 1e9, and may have "board": NUMBER'
                        ) from None
