"""What a route may answer besides its good news, declared from the errors that it may raise.

Status, codes, texts and examples are made from the errors themselves, so that the OpenAPI document
says what the gateway sends.
"""

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from api.errors import error_response, status_of
from api.openai_errors import openai_body, openai_status
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


class OpenAIErrorInfo(BaseModel):
    message: str = Field(description="for people: what is wrong and what to do")
    type: str
    param: str | None = Field(description="the field, parameter or header that is wrong")
    code: str = Field(description="stable; what a program decides by")


class OpenAIError(BaseModel):
    """The shape of errors under `/v1/`."""

    error: OpenAIErrorInfo


def refusals(*errors: ErrorClass, others: Responses | None = None) -> Responses:
    """For ``responses=`` of a route that may raise them; ``others`` are those that are none."""
    return _refusals(errors, others, status_of, _declaration)


def openai_refusals(*errors: ErrorClass, others: Responses | None = None) -> Responses:
    """The same for a route under ``/v1/``."""
    return _refusals(errors, others, _openai_status, _openai_declaration)


def _refusals(
    errors: tuple[ErrorClass, ...],
    others: Responses | None,
    status_of_class: Callable[[ServiceError], int],
    declaration: Callable[[int, list[ErrorClass]], dict[str, Any]],
) -> Responses:
    by_status: dict[int, list[ErrorClass]] = {}
    for error in errors:
        by_status.setdefault(status_of_class(error()), []).append(error)
    declared = dict(others or {})
    for status in sorted(by_status):
        declared[status] = declaration(status, by_status[status])
    return declared


def _openai_status(error: ServiceError) -> int:
    return openai_status(error, status_of(error))


def error_schemas() -> dict[str, Any]:
    """What ``#/components/schemas`` has to hold for the declarations."""
    schemas: dict[str, Any] = {}
    for shape in (Error, OpenAIError):
        schema = shape.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= {**schema.pop("$defs"), shape.__name__: schema}
    return schemas


def restore_nulls(response: dict[str, Any]) -> None:
    """FastAPI leaves out of its document what is null, also in an example."""
    for example in (
        response.get("content", {}).get("application/json", {}).get("examples", {}).values()
    ):
        if "error" in example["value"]:
            error = example["value"]["error"]
            error.setdefault("param" if "type" in error else "field", None)


def header(description: str, kind: str = "string") -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}}


_RETRY_AFTER = {"Retry-After": header("seconds until it is worth trying again", "integer")}
_HEADERS = {
    401: {"WWW-Authenticate": header("`Bearer`, the scheme that is asked for")},
    408: {"Connection": header("`close`: what comes of the body now has no use")},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}


def _openai_declaration(status: int, errors: list[ErrorClass]) -> dict[str, Any]:
    declared = _declaration(status, errors)
    examples = {error.code: {"value": openai_body(error(), status)} for error in errors}
    schema = {"$ref": f"#/components/schemas/{OpenAIError.__name__}"}
    return declared | {"content": {"application/json": {"schema": schema, "examples": examples}}}


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
