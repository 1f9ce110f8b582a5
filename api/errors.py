"""Errors as HTTP: one table of statuses, one shape of body, and what other libraries raise made ours.

The body is ``{"error": {"code", "message", "field", "details"}}``; ``details`` lists the problems
where there are several. Under ``/v1/`` it is OpenAI's. Whatever the client sent, the answer can be encoded.
"""

import json
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.allow import allowed_methods
from api.openai_errors import is_openai_path, openai_body, openai_status
from api.validation import InvalidRequest, Problem, find_problems
from shared.errors import (
    BadRequest,
    BatchEnded,
    BatchNotFound,
    BodyTimedOut,
    BodyTooLarge,
    FileInUse,
    FileNotStored,
    Forbidden,
    GenerationTimedOut,
    HeadersTooLarge,
    IdempotencyConflict,
    InternalError,
    JobCancelled,
    JobFailed,
    JobNotFound,
    MethodNotAllowed,
    ModelNotFound,
    RedisFull,
    RedisUnavailable,
    RouteNotFound,
    ServiceError,
    StorageFull,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from shared.login import login_problem

log = logging.getLogger(__name__)

#: The nearest class in the order of inheritance decides.
STATUS: dict[type[ServiceError], int] = {
    BadRequest: 422,
    BodyTimedOut: 408,
    BodyTooLarge: 413,
    Unauthorized: 401,
    Forbidden: 403,
    IdempotencyConflict: 409,
    FileInUse: 409,
    BatchEnded: 409,
    FileNotStored: 404,
    BatchNotFound: 404,
    StorageFull: 507,
    TooManyRequests: 429,
    HeadersTooLarge: 431,
    # Of jobs that were run: no status that clients take for a reason to have them run again.
    JobCancelled: 422,
    GenerationTimedOut: 422,
    JobFailed: 500,
    JobNotFound: 404,
    ModelNotFound: 404,
    RouteNotFound: 404,
    MethodNotAllowed: 405,
    Unavailable: 503,
    ServiceError: 500,
}

RETRY_AFTER_S = 1


def status_of(error: ServiceError) -> int:
    return next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)


def error_response(
    error: ServiceError, *, status: int | None = None, headers: dict[str, str] | None = None
) -> Response:
    return ErrorResponse(error, status or status_of(error), headers or {})


class ErrorResponse(Response):
    """Ours, until it is sent on a path of OpenAI's API: who makes it need not know on which it will be."""

    media_type = "application/json"

    def __init__(self, error: ServiceError, status: int, headers: dict[str, str]) -> None:
        self._error = error
        self._given_headers = headers
        # NOTE: ASCII, so that a lone surrogate of the client's does not fail here.
        body = json.dumps(_body(error))
        super().__init__(body, status, _headers(error, status) | headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_openai_path(scope["path"]):
            await super().__call__(scope, receive, send)
            return
        status = openai_status(self._error, self.status_code)
        headers = _headers(self._error, status) | self._given_headers
        body = json.dumps(openai_body(self._error, status))
        await Response(body, status, headers, self.media_type)(scope, receive, send)


def _body(error: ServiceError) -> dict[str, Any]:
    problems = error.problems if isinstance(error, InvalidRequest) else ()
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "field": error.field,
            "details": [{"field": p.field, "message": p.message} for p in problems],
        }
    }


def _headers(error: ServiceError, status: int) -> dict[str, str]:
    headers = {}
    wait_s = error.retry_after_s or (RETRY_AFTER_S if status == 503 else None)
    if wait_s is not None:
        headers["Retry-After"] = str(wait_s)
    if status == 408:
        headers["Connection"] = "close"  # what comes of the body now has no use
    if isinstance(error, JobCancelled | JobFailed | GenerationTimedOut):
        headers["X-Should-Retry"] = "false"  # OpenAI's clients obey it
    return headers


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(RequestValidationError, _on_bad_parameters)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RedisError, _on_redis_error)


async def _on_service_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    if status_of(error) == 500 and not isinstance(error, JobFailed):
        log.error("a request failed: %s", error.code, exc_info=error)
        error = InternalError()
    return error_response(error)


async def _on_bad_parameters(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # The location of a parameter begins with where it stands: query, path or header.
    rows = [e | {"loc": tuple(e["loc"])[1:]} for e in error.errors()]
    return error_response(InvalidRequest(find_problems(rows)))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's own: no such path, no such method."""
    assert isinstance(error, HTTPException)
    ours: ServiceError
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            ours = RouteNotFound()
        case 405:
            ours = MethodNotAllowed()
            headers["Allow"] = ", ".join(allowed_methods(request.app.routes, request.scope))
        case status if status < 500:
            ours = InvalidRequest([Problem(None, str(error.detail))])
        case _:
            ours = InternalError()
    return error_response(ours, status=error.status_code, headers=headers)


async def _on_redis_error(request: Request, error: Exception) -> Response:
    if request.app.state.gateway.complaints.covers(error):
        return error_response(RedisUnavailable(_refusal(error)))
    log.warning("%s %s: Redis: %r", request.method, request.url.path, error)
    if isinstance(error, OutOfMemoryError):
        return error_response(RedisFull())
    if isinstance(error, ResponseError):
        log.error("%s %s: Redis refuses: %s", request.method, request.url.path, error)
        refused = "Redis refused; what was asked may or may not have been done. The logs say more."
        return error_response(RedisUnavailable(refused))
    late = "Redis did not answer in time; what was asked may or may not have been done."
    return error_response(RedisUnavailable(late if isinstance(error, RedisTimeoutError) else None))


def _refusal(error: Exception) -> str:
    """For everybody: it names no user and no place."""
    if login_problem(error):
        return (
            "Redis refuses the login of this gateway; nothing was accepted. Whoever runs it: check "
            "MINI_VLLM_REDIS_URL and MINI_VLLM_REDIS_PASSWORD."
        )
    return (
        "Redis refuses a command to this gateway, whose user lacks a right; what was asked may or "
        "may not have been done. The logs say more."
    )
