"""A body that is larger than its route takes is refused, by what it announces and while it arrives."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import error_response
from shared.errors import BodyTooLarge

#: Of routes that say nothing else; none of them has a use for a body.
DEFAULT_BODY_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Bytes by method and path."""

    routes: Mapping[tuple[str, str], int]
    default_bytes: int = DEFAULT_BODY_BYTES

    def of(self, method: str, path: str) -> int:
        return self.routes.get((method, path), self.default_bytes)


@dataclass(slots=True)
class _CountedBody:
    receive: Receive
    max_bytes: int
    num_bytes: int = field(default=0, init=False)

    async def __call__(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.num_bytes += len(message.get("body", b""))
            if self.num_bytes > self.max_bytes:
                raise _too_large(self.max_bytes)
        return message


class BodyLimit:
    """Middleware. What the application has not caught itself ends here as 413."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        max_bytes = self._limits.of(scope["method"], scope["path"])
        if _announced_bytes(scope) > max_bytes:
            await error_response(_too_large(max_bytes))(scope, receive, send)
            return
        has_started = False

        async def watched_send(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, _CountedBody(receive, max_bytes), watched_send)
        except BodyTooLarge as error:
            if has_started:
                raise
            await error_response(error)(scope, receive, send)


def _announced_bytes(scope: Scope) -> int:
    """0 if it says nothing; the server has checked that it is a number."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and len(value) < 20:
            return int(value)
    return 0


def _too_large(max_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {max_bytes} bytes, the most this route takes.")
