import json
from typing import Any

import pytest

from api.errors import STATUS, error_response, status_of
from api.validation import InvalidRequest, Problem
from shared import errors
from shared.errors import ServiceError


def body(error: ServiceError) -> Any:
    return json.loads(bytes(error_response(error).body))["error"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.BadRequest(), 422),
        (errors.PromptTooLong(), 422),
        (errors.BodyTooLarge(), 413),
        (errors.BodyTimedOut(), 408),
        (errors.HeadersTooLarge(), 431),
        (errors.Overloaded(), 503),
        (errors.JobNotFound(), 404),
        (errors.RouteNotFound(), 404),
        (errors.MethodNotAllowed(), 405),
        (errors.RedisUnavailable(), 503),
        (errors.NoWorkerReady(), 503),
        (errors.ShuttingDown(), 503),
        (errors.InternalError(), 500),
        (errors.Unauthorized(), 401),
        (errors.Forbidden(), 403),
        (errors.IdempotencyConflict(), 409),
        (errors.QueueFull(), 429),
        (errors.TooManyJobs(), 429),
        (errors.RateLimited(), 429),
        (errors.RedisFull(), 503),
    ],
)
def test_a_class_has_a_status_and_a_code(error: ServiceError, status: int) -> None:
    assert status_of(error) == status
    assert body(error)["code"] == error.code


def test_the_table_ends_at_the_root() -> None:
    assert ServiceError in STATUS


def test_only_what_may_pass_says_when_to_come_again() -> None:
    assert error_response(errors.RedisUnavailable()).headers["retry-after"] == "1"
    assert error_response(errors.QueueFull(retry_after_s=17)).headers["retry-after"] == "17"
    assert "retry-after" not in error_response(errors.JobNotFound()).headers


def test_what_came_in_half_ends_its_connection() -> None:
    assert error_response(errors.BodyTimedOut()).headers["connection"] == "close"
    assert "connection" not in error_response(errors.BodyTooLarge()).headers


def test_the_shape_is_the_same_with_and_without_details() -> None:
    plain = body(errors.BadRequest("x: is bad", field="x"))
    assert plain == {
        "code": "invalid_request",
        "message": "x: is bad",
        "field": "x",
        "details": [],
    }
    several = body(InvalidRequest([Problem("a", "a: bad"), Problem("b", "b: bad")]))
    assert several["message"] == "a: bad; b: bad"
    assert several["details"] == [
        {"field": "a", "message": "a: bad"},
        {"field": "b", "message": "b: bad"},
    ]


def test_what_cannot_be_encoded_is_answered_all_the_same() -> None:
    error = errors.BadRequest("unknown field `\ud800`", field="\ud800")
    assert bytes(error_response(error).body).isascii()
