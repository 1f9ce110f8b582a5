import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message

from api.errors import error_response
from shared import errors
from shared.errors import ServiceError


def sent(error: ServiceError, path: str, status: int | None = None) -> tuple[int, Any, Any]:
    """Status, headers and error as they go out on a path."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        raise AssertionError("an error has no use for a body")

    response = error_response(error, status=status, headers={"X-Given": "1"})
    asyncio.run(response({"type": "http", "path": path}, receive, send))
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    assert headers["x-given"] == "1"
    return messages[0]["status"], headers, json.loads(messages[1]["body"])["error"]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (errors.BadRequest("no", field="n"), 400, "invalid_request_error"),
        (errors.PromptTooLong(), 400, "invalid_request_error"),
        (errors.BodyTooLarge(), 413, "invalid_request_error"),
        (errors.Unauthorized(), 401, "authentication_error"),
        (errors.Forbidden(), 403, "authentication_error"),
        (errors.ModelNotFound(), 404, "not_found_error"),
        (errors.RouteNotFound(), 404, "not_found_error"),
        (errors.MethodNotAllowed(), 405, "invalid_request_error"),
        (errors.QueueFull(retry_after_s=9), 429, "rate_limit_error"),
        (errors.ShuttingDown(), 503, "server_error"),
        (errors.JobFailed(), 500, "server_error"),
        (errors.JobCancelled(), 422, "invalid_request_error"),
        (errors.GenerationTimedOut(), 422, "invalid_request_error"),
    ],
)
def test_under_v1_an_error_is_one_of_openais(error: ServiceError, status: int, kind: str) -> None:
    found, _, body = sent(error, "/v1/chat/completions")
    assert found == status
    assert body == {
        "message": error.message,
        "type": kind,
        "param": error.field,
        "code": error.code,
    }


def test_on_other_paths_it_is_ours() -> None:
    for path in ("/generate", "/v10/models", "/jobs/v1/"):
        status, _, body = sent(errors.BadRequest("no", field="n"), path)
        assert status == 422
        assert body == {"code": "invalid_request", "message": "no", "field": "n", "details": []}


def test_who_may_come_again_is_told_when_and_who_should_not_is_told_too() -> None:
    assert sent(errors.QueueFull(retry_after_s=9), "/v1/models")[1]["retry-after"] == "9"
    assert sent(errors.ShuttingDown(), "/v1/models")[1]["retry-after"] == "1"
    for error in (errors.JobFailed(), errors.JobCancelled(), errors.GenerationTimedOut()):
        assert sent(error, "/v1/completions")[1]["x-should-retry"] == "false"
    assert "x-should-retry" not in sent(errors.InternalError(), "/v1/completions")[1]


def test_a_status_of_its_own_stays() -> None:
    assert sent(errors.BadRequest(), "/v1/files", status=411)[0] == 411
