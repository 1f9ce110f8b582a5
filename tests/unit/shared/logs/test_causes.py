import json

import pytest
from pydantic import ValidationError
from redis.exceptions import ResponseError

from shared.errors import BadRequest, SetupError
from shared.logs.causes import traceback_of, words_of
from shared.protocol import GenerateRequest

SECRET = "marmalade"


def validation_error(body: dict[str, object]) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        GenerateRequest.model_validate_json(json.dumps(body))
    assert SECRET in str(caught.value), "pydantic quotes what it was given"
    return caught.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file", "/m.gguf"), "No such file: '/m.gguf'"),
        (RuntimeError("llama.cpp returned 1"), "llama.cpp returned 1"),
        (SetupError("MINI_VLLM_SLOTS is 0"), "MINI_VLLM_SLOTS is 0"),
        (ResponseError("OOM command not allowed"), "OOM command not allowed"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_what_the_system_says_is_told(error: Exception, words: str) -> None:
    assert words_of(error).startswith(type(error).__name__)
    assert words in words_of(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"invalid literal: '{SECRET}'"),
        KeyError(SECRET),
        UnicodeEncodeError("utf-8", SECRET, 0, 1, SECRET),
        json.JSONDecodeError(SECRET, SECRET, 0),
        BadRequest(f"the model's chat template refuses these messages: {SECRET}"),
        ResponseError(f"unknown command 'X', with args beginning with: '{SECRET}'"),
        validation_error({"prompt": [SECRET]}),
        validation_error({"prompt": "a", SECRET: 1}),
        validation_error({"prompt": SECRET, "messages": SECRET}),
    ],
)
def test_what_may_quote_a_request_is_told_by_its_kind(error: Exception) -> None:
    assert SECRET not in words_of(error)
    assert words_of(error).startswith(type(error).__name__)


def test_a_traceback_has_the_causes_and_not_their_words() -> None:
    def fail() -> None:
        try:
            try:
                raise ValueError(SECRET)
            except ValueError as error:
                raise BadRequest(SECRET) from error
        except BadRequest:
            raise ExceptionGroup(SECRET, [KeyError(SECRET), RuntimeError("known")]) from None

    with pytest.raises(ExceptionGroup) as caught:
        fail()
    trace = traceback_of(caught.value)
    assert "marmalade" not in trace.replace("SECRET", "")
    assert "RuntimeError: known" in trace
    assert trace.splitlines()[-1] == "ExceptionGroup"
    cause = caught.value.__context__
    assert cause is not None
    assert "ValueError" in traceback_of(cause)
    assert "BadRequest: invalid_request" in traceback_of(cause)


def test_a_chain_without_end_has_an_end() -> None:
    error: Exception = RuntimeError("0")
    for number in range(1000):
        another = RuntimeError(str(number))
        another.__cause__ = error
        error = another
    assert len(traceback_of(error).splitlines()) < 50
