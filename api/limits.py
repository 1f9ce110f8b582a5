"""A body that is larger than its route takes, that stalls, or for which there is no room, is refused:
by what it announces, and while it arrives.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.body_budget import BodyBudget
from api.errors import error_response
from shared.errors import BodyTimedOut, BodyTooLarge, Overloaded

#: Of routes that say nothing else; none of them has a use for a body.
DEFAULT_BODY_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Bytes by method and path."""

    routes: Mapping[tuple[str, str], int]
    default_bytes: int = DEFAULT_BODY_BYTES
    timeout_s: float = 30  #: between two pieces
    deadline_s: float = 300  #: of the whole body
    #: Routes that put what comes aside at once, with their own deadline.
    streamed_s: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def of(self, method: str, path: str) -> int:
        return self.routes.get((method, path), self.default_bytes)


@dataclass(slots=True)
class _CountedBody:
    receive: Receive
    max_bytes: int
    timeout_s: float
    deadline_s: float
    budget: BodyBudget
    is_streamed: bool = False  #: of what came before, nothing is held
    began_s: float = field(default_factory=monotonic, init=False)
    num_bytes: int = field(default=0, init=False)
    held_bytes: int = field(default=0, init=False)
    is_whole: bool = field(default=False, init=False)
    is_answered: bool = field(default=False, init=False)

    async def __call__(self) -> Message:
        message = await self._next()
        self.is_whole = not message.get("more_body", False)  # nothing follows a disconnect either
        num_bytes = len(message.get("body", b""))
        self.num_bytes += num_bytes
        if self.num_bytes > self.max_bytes:
            raise _too_large(self.max_bytes)
        if not self.is_answered:
            if self.is_streamed:
                self._give_back()
            self.budget.take(num_bytes)
            self.held_bytes += num_bytes
        return message

    async def _next(self) -> Message:
        """After the body, the application waits here for the client to leave: as long as it likes."""
        if not self.is_whole and not self.is_answered:
            left_s = self.began_s + self.deadline_s - monotonic()
            try:
                async with asyncio.timeout(max(0, min(self.timeout_s, left_s))):
                    return await self.receive()
            except TimeoutError:
                # Asked again: the answer may have begun in another task while this one waited.
                if not self.is_answered:
                    raise BodyTimedOut(self._why(left_s)) from None
        return await self.receive()

    def _why(self, left_s: float) -> str:
        if left_s < self.timeout_s:
            return f"The body was not whole after {self.deadline_s:g} s; nothing was accepted."
        return f"The body did not go on for {self.timeout_s:g} s; nothing was accepted."

    def release(self) -> None:
        self.is_answered = True
        self._give_back()

    def _give_back(self) -> None:
        self.budget.give_back(self.held_bytes)
        self.held_bytes = 0


class BodyLimit:
    """Middleware. What the application has not caught itself ends here as 413, 408 or 503."""

    def __init__(self, app: ASGIApp, limits: BodyLimits, budget: BodyBudget) -> None:
        self._app = app
        self._limits = limits
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        max_bytes = self._limits.of(scope["method"], scope["path"])
        if _announced_bytes(scope) > max_bytes:
            await error_response(_too_large(max_bytes))(scope, receive, send)
            return
        streamed_s = self._limits.streamed_s.get((scope["method"], scope["path"]))
        body = _CountedBody(
            receive,
            max_bytes,
            self._limits.timeout_s,
            self._limits.deadline_s if streamed_s is None else streamed_s,
            self._budget,
            is_streamed=streamed_s is not None,
        )

        async def watched_send(message: Message) -> None:
            # A request that is answered has been handled; a stream would hold its body to its end.
            body.release()
            await send(message)

        try:
            await self._app(scope, body, watched_send)
        except (BodyTooLarge, BodyTimedOut, Overloaded) as error:
            if body.is_answered:
                raise
            await error_response(error)(scope, receive, send)
        finally:
            body.release()


def _announced_bytes(scope: Scope) -> int:
    """0 if it says nothing; the server has checked that it is a number."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and len(value) < 20:
            return int(value)
    return 0


def _too_large(max_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {max_bytes} bytes, the most this route takes.")
