"""uvicorn's HTTP/1.1 with bounds on what comes before the application: the head of a request.

httptools has none: it keeps a header until it is whole, and waits for its end for ever.
"""

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from api.head_count import HeadCount
from api.refusal import refusal
from shared.errors import BadRequest, HeadersTooLarge, ServiceError
from shared.settings import Settings

#: A connection that is closed while something unread has come is reset, and its answer lost: what a
#: client still sends after a refusal is thrown away for so long.
_LINGER_S = 2.0


class BoundedHttp(HttpToolsProtocol):
    settings: Settings

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head = HeadCount(self.settings.max_header_bytes)
        self._is_refused = False
        self._closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._close_after(self.settings.header_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._keep_open()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._head.received(len(data))
        super().data_received(data)
        if self._is_refused:
            return
        if self._head.is_endless:
            self._refuse(self._too_large())
        elif self._head.has_begun and self._closing is None:
            self._close_after(self.settings.header_timeout_s)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head.began()

    def on_url(self, url: bytes) -> None:
        self._head.showed_url(len(url))
        self._check_head()
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.showed_header(len(name) + len(value))
        self._check_head()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head.head_ended()
        self._keep_open()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head.showed_body()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head.message_ended()
        self._keep_open()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._head.is_in_body and not self._is_answering:
            # It was refused; the rest is thrown away so that the client comes to read why.
            self._close_after(self.settings.body_timeout_s)

    def send_400_response(self, msg: str) -> None:
        """The parser has failed, by itself or of what is raised in ``_check_head``."""
        if self._head.is_too_large:
            self._refuse(self._too_large())
        else:
            self._refuse(BadRequest(msg), status=400)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _check_head(self) -> None:
        if self._head.is_too_large:
            raise self._too_large()  # ends the parser

    def _too_large(self) -> HeadersTooLarge:
        max_bytes = self.settings.max_header_bytes
        return HeadersTooLarge(
            f"The request line and the headers are larger than {max_bytes} bytes together."
        )

    def _refuse(self, error: ServiceError, status: int | None = None) -> None:
        """Nothing that comes on this connection is read any more."""
        self._is_refused = True
        if self._is_answering and not self._head.is_in_body:
            self.cycle.keep_alive = False  # the requests before this one are answered first
            return
        if self._head.is_in_body:
            if not self._is_answering or self.cycle.response_started or self.pipeline:
                self.transport.close()  # this is no place for an answer
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(refusal(error, status, self.server_state.default_headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._close_after(_LINGER_S)

    def _close_after(self, delay_s: float) -> None:
        self._keep_open()
        self._closing = self.loop.call_later(delay_s, self._close, delay_s)

    def _keep_open(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def _close(self, delay_s: float) -> None:
        if self._is_answering:  # an earlier request of this connection: it has its answer first
            self._close_after(delay_s)
        else:
            self.transport.close()


def bounded_http(settings: Settings) -> type[BoundedHttp]:
    """What uvicorn makes of each connection: it passes nothing of ours to it, so its class has it."""
    return type("GatewayHttp", (BoundedHttp,), {"settings": settings})
