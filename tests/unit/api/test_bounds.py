from typing import Any

import pytest

from api.bounds import check_bounds
from api.validation import InvalidRequest
from shared.protocol import GenerateRequest
from shared.settings import load_settings

SETTINGS = load_settings(max_prompt_chars=10, max_messages=3, max_stops=2, max_stop_chars=4)


def messages(*contents: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content} for content in contents]}


def check(body: dict[str, Any]) -> None:
    check_bounds(GenerateRequest.model_validate(body), SETTINGS)


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "x" * 10},
        {"prompt": "é漢😀" * 3},  # characters, not bytes
        messages("12345", "1234", "1"),
        {"prompt": "x", "stop": ["1234", "1234"]},
        {"prompt": "x", "stop": "1234"},
    ],
)
def test_what_is_exactly_at_its_bound_passes(body: dict[str, Any]) -> None:
    check(body)


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"prompt": "x" * 11}, "prompt", "prompt: must have at most 10 characters (has 11)"),
        (
            messages("1", "2", "3", "4"),
            "messages",
            "messages: must have at most 3 elements (has 4)",
        ),
        (
            messages("123456", "12345"),
            "messages",
            "messages: must have at most 10 characters in all contents together (has 11)",
        ),
        (
            {"prompt": "x", "stop": ["a", "b", "c"]},
            "stop",
            "stop: must have at most 2 elements (has 3)",
        ),
        (
            {"prompt": "x", "stop": ["a", "12345"]},
            "stop.1",
            "stop.1: must have at most 4 characters (has 5)",
        ),
        (
            {"prompt": "x", "stop": "12345"},
            "stop",
            "stop: must have at most 4 characters (has 5)",
        ),
    ],
)
def test_what_is_beyond_names_field_limit_and_size(
    body: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check(body)
    assert (caught.value.field, caught.value.message) == (field, message)
    assert caught.value.problems == ()


def test_all_that_is_too_much_is_said_at_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        check({"prompt": "x" * 11, "stop": ["12345", "b", "123456"]})
    assert [problem.message for problem in caught.value.problems] == [
        "prompt: must have at most 10 characters (has 11)",
        "stop: must have at most 2 elements (has 3)",
        "stop.0: must have at most 4 characters (has 5)",
    ]
