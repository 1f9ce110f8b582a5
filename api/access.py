"""Middleware: who asks, and whether they may. What is refused here reaches no route and no body is read.

A key comes as ``Authorization: Bearer <key>`` or ``X-API-Key: <key>``.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import error_response
from api.keyring import ANYBODY, Caller, Keyring, Role
from shared.errors import Forbidden, ServiceError, Unauthorized

#: For load balancers and orchestrators, which have no key.
OPEN_PATHS = frozenset({"/health", "/ready"})
#: The page and what it is made of, which asks for the key itself; none of it is of the service.
OPEN_PAGES = frozenset({"/dashboard", "/dashboard/"})
_OPEN_FOLDER = "/dashboard/static/"
METRICS_PATHS = frozenset({"/metrics", "/metrics/prometheus"})
ADMIN_PATHS = METRICS_PATHS | {"/workers", "/admin/log-level"}


def needs_key(keyring: Keyring, path: str) -> bool:
    """A gateway without keys asks for none, but for the metrics if they have their own."""
    has_own_key = path in METRICS_PATHS and keyring.metrics is not None
    return not _is_open(path) and (not keyring.is_open or has_own_key)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path in OPEN_PAGES or path.startswith(_OPEN_FOLDER)


def authorize(keyring: Keyring, path: str, key: str | None) -> Caller:
    """Raises ``Unauthorized`` or ``Forbidden``. Pure."""
    if not needs_key(keyring, path):
        return ANYBODY
    caller = keyring.identify(key)
    if caller is None:
        raise Unauthorized(None if key is None else "This API key is not known.")
    if caller.role is Role.USER and path in ADMIN_PATHS:
        raise Forbidden(f"{path} needs an admin key (MINI_VLLM_ADMIN_KEYS).")
    if caller.role is Role.METRICS and path not in METRICS_PATHS:
        raise Forbidden("The metrics key reads /metrics and nothing else.")
    return caller


def presented_key(headers: Headers) -> str | None:
    """Raises ``Unauthorized`` for another scheme of authorization."""
    given = headers.getlist("authorization") or headers.getlist("x-api-key")
    if len(given) > 1:  # a proxy in front may have read the other one
        raise Unauthorized("A key must be given once.", field="Authorization")
    if not headers.getlist("authorization"):
        return given[0] if given else None
    scheme, *rest = given[0].split() or [""]
    if scheme.lower() != "bearer" or len(rest) != 1:
        raise Unauthorized("Authorization: must be `Bearer <key>`.", field="Authorization")
    return rest[0]


def sees_workers(keyring: Keyring, headers: Headers) -> bool:
    """Whether who asks at a path that is open to all may also know what only admins are shown."""
    if keyring.is_open:
        return True
    try:
        caller = keyring.identify(presented_key(headers))
    except Unauthorized:  # a load balancer's own
        return False
    return caller is not None and caller.role is Role.ADMIN


class Access:
    def __init__(self, app: ASGIApp, keyring: Keyring) -> None:
        self._app = app
        self._keyring = keyring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            # A load balancer may have an Authorization of its own: where none is asked for, none is read.
            is_asked = needs_key(self._keyring, scope["path"])
            key = presented_key(Headers(scope=scope)) if is_asked else None
            caller = authorize(self._keyring, scope["path"], key)
        except ServiceError as error:
            is_unknown = isinstance(error, Unauthorized)
            headers = {"WWW-Authenticate": "Bearer"} if is_unknown else {}
            await error_response(error, headers=headers)(scope, receive, send)
            return
        await self._app(
            dict(scope, state={**scope.get("state", {}), "caller": caller}), receive, send
        )
