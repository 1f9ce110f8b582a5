"""The outermost middleware: every request has an id and every failure an answer.

``X-Request-Id`` is taken from the client if it is sane, and returned on every response. HEAD is
answered as GET without the body, which the server leaves out.
"""

import logging
import re
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import error_response
from shared.errors import InternalError

log = logging.getLogger(__name__)

_SANE = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestId:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _SANE.fullmatch(given) else uuid4().hex
        has_started = False

        async def send_with_id(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        inner = dict(scope, state={**scope.get("state", {}), "request_id": request_id})
        # A stream would go on to its end for a HEAD: that one stays 405.
        if scope["method"] == "HEAD" and not scope["path"].endswith("/stream"):
            inner["method"] = "GET"
        try:
            await self._app(inner, receive, send_with_id)
        except ClientDisconnect:
            log.debug("%s %s: the client left", scope["method"], scope["path"])
        except Exception:
            log.exception("%s %s failed, request %s", scope["method"], scope["path"], request_id)
            if not has_started:
                await error_response(InternalError())(scope, receive, send_with_id)
