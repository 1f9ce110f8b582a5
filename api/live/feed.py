"""``GET /live`` for one watcher: the last hour, then what is new, until one of the two sides ends it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import anyio
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as HttpScope

from api.keyring import Caller
from api.live.board import Board
from api.live.events import render_history, render_point
from api.live.history import HistoryReader
from api.live.scope import Scope
from api.sse import KEEP_ALIVE, cancel_when_gone


@dataclass(slots=True)
class Shown:
    """What one watcher has been sent."""

    epoch: int = -1
    num_points: int = 0
    version: int = 0

    def catch_up(self, history: HistoryReader, scope: Scope) -> bytes:
        """What it has not; the whole history again if that in Redis is another one now."""
        if self.epoch != history.epoch:
            news = render_history(history.points())
        else:
            news = b"".join(render_point(point) for point in history.since(self.num_points))
        self.epoch, self.num_points = history.epoch, history.num_read
        if self.version != scope.version:
            news += scope.frame
            self.version = scope.version
        return news


class LiveFeed(Response):
    """A watcher that is slow to read misses views in between, and no point."""

    media_type = "text/event-stream"

    def __init__(self, board: Board, caller: Caller, keepalive_s: float) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._board = board
        self._caller = caller
        self._keepalive_s = keepalive_s

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        async with self._board.watch(self._caller) as watched:
            headers = self.raw_headers
            start = {"type": "http.response.start", "status": self.status_code, "headers": headers}
            await send(start)
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_gone, receive, group.cancel_scope)
                with suppress(OSError):  # the client is gone
                    await self._send_events(watched, send)
                group.cancel_scope.cancel()

    async def _send_events(self, watched: Scope, send: Send) -> None:
        shown, history = Shown(), self._board.history
        clock = asyncio.get_running_loop().time
        silent_until_s = clock() + self._keepalive_s
        while not watched.is_over:
            news = watched.news  # before what it has told is looked at
            body = shown.catch_up(history, watched)
            if not body:
                try:
                    async with asyncio.timeout_at(silent_until_s):
                        await news.wait()
                    continue
                except TimeoutError:
                    body = KEEP_ALIVE
            await send({"type": "http.response.body", "body": body, "more_body": True})
            silent_until_s = clock() + self._keepalive_s
        await send({"type": "http.response.body", "body": b"", "more_body": False})
