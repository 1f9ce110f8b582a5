"""The outermost middleware: every request has an id, a line in the log, and every failure an answer.

``X-Request-Id`` is taken from the client if it is sane, returned on every response, and in all that is
logged meanwhile. HEAD is answered as GET without the body, which the server leaves out.
"""

import logging
import re
import time
from urllib.parse import quote
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import error_response
from shared.errors import InternalError
from shared.logs import about, concerning

log = logging.getLogger(__name__)

_SANE = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
#: Asked every few seconds by machines: that they are answered well is no news.
_PROBED = frozenset({"/health", "/ready", "/metrics", "/metrics/prometheus"})
_MAX_PATH_CHARS = 200
#: How the paths end of what is sent as it comes.
_STREAMS = ("/stream", "/live")


class RequestId:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _SANE.fullmatch(given) else uuid4().hex
        began_s, status = time.monotonic(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        inner = dict(scope, state={**scope.get("state", {}), "request_id": request_id})
        # A stream would go on to its end for a HEAD, a feed for ever: those stay 405.
        if scope["method"] == "HEAD" and not scope["path"].endswith(_STREAMS):
            inner["method"] = "GET"
        with concerning(request_id=request_id):
            try:
                await self._app(inner, receive, send_with_id)
            except ClientDisconnect:
                log.debug("the client left")
            except Exception:
                log.exception("a request failed")
                if not status:
                    await error_response(InternalError())(scope, receive, send_with_id)
            finally:
                _log_access(scope, status, time.monotonic() - began_s)


def _log_access(scope: Scope, status: int, duration_s: float) -> None:
    """Without the query, which may be anything; a status of 0: the client left before the answer."""
    method, path, ms = scope["method"], scope["path"][:_MAX_PATH_CHARS], round(duration_s * 1000, 1)
    is_dull = path in _PROBED and status < 400
    told = about(method=method, path=path, status=status, duration_ms=ms)
    words = "%s %s %d in %g ms"
    level = logging.DEBUG if is_dull else logging.INFO
    # With spaces in it, a path could say more in a line for people: a status, or another job's id.
    log.log(level, words, method, quote(path, safe="/!$&'()*+,;=:@~"), status, ms, extra=told)
