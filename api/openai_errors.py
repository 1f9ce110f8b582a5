"""Errors in the shape of OpenAI's API, for all paths under ``/v1/``. Pure."""

from typing import Any

from shared.errors import BadRequest, ServiceError

_TYPES = {
    401: "authentication_error",
    403: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def is_openai_path(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")


def openai_status(error: ServiceError, status: int) -> int:
    """``status`` as it is on other paths. OpenAI knows 400 alone for what is wrong with a request."""
    return 400 if status == 422 and isinstance(error, BadRequest) else status


def openai_body(error: ServiceError, status: int) -> dict[str, Any]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "error": {
            "message": error.message,
            "type": kind,
            "param": error.field,
            "code": error.code,
        }
    }
