import pytest

from api.completions.answer import answer
from api.completions.form import Form
from shared import errors
from shared.protocol import EndEvent, FinishReason, JobStatus
from tests.unit.api.completions.jobs import end, job

CHAT = Form(endpoint="/v1/chat/completions", model="m")
TEXT = Form(endpoint="/v1/completions", model="m")
TOOLS = CHAT.model_copy(update={"tool_format": "hermes"})
CALL = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'


def test_a_chat_has_a_message_for_each_choice_and_one_usage() -> None:
    results = [job("a", "b"), job("c", ended=end(reason=FinishReason.LENGTH, tokens=1))]
    found = answer(CHAT, "chatcmpl-1", 7, results, num_choices=2)
    assert found["object"] == "chat.completion"
    assert (found["id"], found["created"], found["model"]) == ("chatcmpl-1", 7, "m")
    first, second = found["choices"]
    assert first == {
        "index": 0,
        "message": {"role": "assistant", "content": "ab", "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert (second["index"], second["finish_reason"]) == (1, "length")
    assert found["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 3},
    }


def test_prompts_of_their_own_count_each() -> None:
    found = answer(TEXT, "cmpl-1", 7, [job("a"), job("b")], num_choices=1)
    assert found["object"] == "text_completion"
    assert [choice["text"] for choice in found["choices"]] == ["a", "b"]
    assert found["usage"]["prompt_tokens"] == 10


def test_calls_of_tools_are_told_where_tools_were_given() -> None:
    (choice,) = answer(TOOLS, "chatcmpl-1", 7, [job(CALL)])["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["function"] == {"name": "f", "arguments": '{"x": 1}'}
    (plain,) = answer(CHAT, "chatcmpl-1", 7, [job(CALL)])["choices"]
    assert (plain["message"]["content"], plain["finish_reason"]) == (CALL, "stop")


def test_choices_that_call_have_ids_of_their_own() -> None:
    found = answer(TOOLS, "chatcmpl-1", 7, [job(CALL), job(CALL)], num_choices=2)
    ids = {choice["message"]["tool_calls"][0]["id"] for choice in found["choices"]}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("ended", "error", "code"),
    [
        (end(JobStatus.CANCELLED, FinishReason.CANCELLED), errors.JobCancelled, "job_cancelled"),
        (
            end(JobStatus.FAILED, FinishReason.TIMEOUT, code="timeout"),
            errors.GenerationTimedOut,
            "timeout",
        ),
        (
            end(JobStatus.FAILED, FinishReason.ERROR, code="context_length_exceeded"),
            errors.PromptTooLong,
            "context_length_exceeded",
        ),
        (
            end(JobStatus.FAILED, FinishReason.ERROR, code="invalid_request"),
            errors.BadRequest,
            "invalid_request",
        ),
        (
            end(JobStatus.FAILED, FinishReason.ERROR, code="worker_lost"),
            errors.JobFailed,
            "worker_lost",
        ),
    ],
)
def test_a_job_that_gave_no_answer_is_an_error(
    ended: EndEvent, error: type[errors.ServiceError], code: str
) -> None:
    with pytest.raises(error) as caught:
        answer(CHAT, "chatcmpl-1", 7, [job("a"), job("b", ended=ended)])
    assert caught.value.code == code


def test_a_call_that_is_cut_after_a_whole_one_is_length() -> None:
    results = [job(CALL, "<tool_call>", ended=end(reason=FinishReason.LENGTH, tokens=2))]
    (choice,) = answer(TOOLS, "chatcmpl-1", 7, results, num_choices=1)["choices"]
    assert choice["finish_reason"] == "length"
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["f"]


@pytest.mark.parametrize(
    ("field", "param"),
    [("messages", "messages"), ("prompt_token_ids", "prompt"), (None, None)],
)
def test_an_error_names_the_field_as_openai_has_it(field: str | None, param: str | None) -> None:
    code = "context_length_exceeded"
    ended = end(JobStatus.FAILED, FinishReason.ERROR, code=code, field=field)
    with pytest.raises(errors.PromptTooLong) as caught:
        answer(TEXT, "cmpl-1", 7, [job(ended=ended)])
    assert caught.value.field == param


def test_a_call_that_is_cut_is_told_as_far_as_it_came() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"x": [1, '
    results = [job("See.\n", text, ended=end(reason=FinishReason.LENGTH))]
    (choice,) = answer(TOOLS, "chatcmpl-1", 7, results)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] == "See."
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": '{"x": [1, '}


def test_an_answer_has_the_fingerprint_of_its_form() -> None:
    assert answer(CHAT, "chatcmpl-1", 7, [job("a")])["system_fingerprint"] is None
    form = CHAT.model_copy(update={"fingerprint": "fp_1"})
    assert answer(form, "chatcmpl-1", 7, [job("a")])["system_fingerprint"] == "fp_1"
    assert Form.of_note(form.to_note()) == form
    assert form.to_identity() == CHAT.to_identity() == CHAT.to_note()
