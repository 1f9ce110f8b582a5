"""An error as the bytes of a response, for a connection on which no application can answer."""

from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from api.errors import error_response
from shared.errors import ServiceError


def refusal(
    error: ServiceError, status: int | None, default_headers: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """The last response of its connection. ``status`` where it is not that of the error's class."""
    response = error_response(error, status=status, headers={"Connection": "close"})
    headers = [*default_headers, *response.raw_headers]
    lines = [name + b": " + value + b"\r\n" for name, value in headers]
    head = STATUS_LINE[response.status_code] + b"".join(lines)
    return head + b"\r\n" + bytes(response.body)
