"""What a route may answer besides its good news, declared from the errors that it may raise.

Status, codes, texts and examples are made from the errors themselves, so that the OpenAPI document
says what the gateway sends.
"""

import json
from typing import Any

from pydantic import BaseModel, Field

from api.errors import error_response, status_of
from shared.errors import (
    BadRequest,
    BodyTooLarge,
    Forbidden,
    HeadersTooLarge,
    RateLimited,
    RedisUnavailable,
    ServiceError,
    Unauthorized,
)

ErrorClass = type[ServiceError]
Responses = dict[int | str, dict[str, Any]]

#: Of every route, also those that need no key: a query parameter that it does not take, a body that
#: it has no use for, headers without end.
ANY_ROUTE: tuple[ErrorClass, ...] = (BadRequest, BodyTooLarge, HeadersTooLarge)
#: Of a route that asks for a key where keys are set, and counts its requests in Redis.
KEYED_ROUTE: tuple[ErrorClass, ...] = (
    *ANY_ROUTE,
    Unauthorized,
    Forbidden,
    RateLimited,
    RedisUnavailable,
)

_ERROR = {"$ref": "#/components/schemas/Error"}


class ErrorDetail(BaseModel):
    field: str | None
    message: str


class ErrorInfo(BaseModel):
    code: str = Field(description="stable; what a program decides by")
    message: str = Field(description="for people: what is wrong and what to do")
    field: str | None = Field(description="the field, parameter or header that is wrong")
    details: list[ErrorDetail] = Field(description="all problems, where there are several")


class Error(BaseModel):
    """The one shape of all errors."""

    error: ErrorInfo


def refusals(*errors: ErrorClass, others: Responses | None = None) -> Responses:
    """For ``responses=`` of a route that may raise them; ``others`` are those that are none."""
    by_status: dict[int, list[ErrorClass]] = {}
    for error in errors:
        by_status.setdefault(status_of(error()), []).append(error)
    declared = dict(others or {})
    for status in sorted(by_status):
        declared[status] = _declaration(status, by_status[status])
    return declared


def error_schemas() -> dict[str, Any]:
    """What ``#/components/schemas`` has to hold for the declarations."""
    schema = Error.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), Error.__name__: schema}


def restore_nulls(response: dict[str, Any]) -> None:
    """FastAPI leaves out of its document what is null, also in an example."""
    for example in (
        response.get("content", {}).get("application/json", {}).get("examples", {}).values()
    ):
        if "error" in example["value"]:
            example["value"]["error"].setdefault("field", None)


def header(description: str, kind: str = "string") -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}}


_RETRY_AFTER = {"Retry-After": header("seconds until it is worth trying again", "integer")}
_HEADERS = {
    401: {"WWW-Authenticate": header("`Bearer`, the scheme that is asked for")},
    408: {"Connection": header("`close`: what comes of the body now has no use")},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}


def _declaration(status: int, errors: list[ErrorClass]) -> dict[str, Any]:
    lines = [f"`{error.code}`: {error().message}" for error in errors]
    examples = {error.code: {"value": _example(error)} for error in errors}
    return {
        "description": "\n\n".join(lines),
        # NOTE: with "model", FastAPI would say that errors have the content type of the route.
        "content": {"application/json": {"schema": _ERROR, "examples": examples}},
        "headers": _HEADERS.get(status, {}),
    }


def _example(error: ErrorClass) -> Any:
    return json.loads(bytes(error_response(error()).body))
