from typing import Any

import pytest

from api.completions.chunks import ChoiceChunks
from api.completions.form import Form
from shared.errors import JobCancelled
from shared.protocol import Event, FinishReason, JobStatus, StartEvent
from tests.unit.api.completions.jobs import end, token

CHAT = Form(endpoint="/v1/chat/completions", model="m")
TEXT = Form(endpoint="/v1/completions", model="m")
START = StartEvent(prompt_tokens=5)


def told(form: Form, *events: Event) -> list[dict[str, Any]]:
    choice = ChoiceChunks(form, "id", 7, 1, "j")
    chunks = [chunk for event in events for chunk in choice.feed(event)]
    assert {chunk["id"] for chunk in chunks} == {"id"}
    assert {chunk["choices"][0]["index"] for chunk in chunks} == {1}
    return [chunk["choices"][0] for chunk in chunks]


def test_a_chat_begins_with_its_role_and_ends_with_its_reason() -> None:
    chunks = told(CHAT, START, token(0, "a"), token(1, ""), token(2, "b"), end())
    assert [chunk["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "a"},
        {"content": "b"},
        {},
    ]
    assert [chunk["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]


def test_a_completion_is_texts() -> None:
    chunks = told(TEXT, START, token(0, "a"), end(reason=FinishReason.LENGTH))
    assert [(chunk["text"], chunk["finish_reason"]) for chunk in chunks] == [
        ("a", None),
        ("", "length"),
    ]


def test_log_probabilities_come_with_their_tokens_also_where_those_have_no_text() -> None:
    chunks = told(
        TEXT, token(0, "", raw=b"\xc3"), token(1, "é", raw=b"\xa9"), token(2, "x", raw=b"x")
    )
    assert [chunk["text"] for chunk in chunks] == ["", "é", "x"]
    assert [chunk["logprobs"]["text_offset"] for chunk in chunks] == [[0], [0], [1]]
    (chat,) = told(CHAT, token(0, "", raw=b"\xc3"))
    assert chat["delta"] == {"content": ""}
    assert chat["logprobs"]["content"][0]["bytes"] == [0xC3]


def test_a_call_of_a_tool_is_told_name_first() -> None:
    form = CHAT.model_copy(update={"tool_format": "hermes"})
    text = 'See <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    pieces = [token(i, text[i * 5 : i * 5 + 5]) for i in range(len(text) // 5 + 1)]
    deltas = [chunk["delta"] for chunk in told(form, START, *pieces, end())]
    assert "".join(delta.get("content") or "" for delta in deltas) == "See"
    first, second = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert (first["index"], first["type"]) == (0, "function")
    assert first["id"].startswith("call_")
    assert first["function"] == {"name": "f", "arguments": ""}
    assert second == {"index": 0, "function": {"arguments": '{"x": 1}'}}
    assert told(form, START, *pieces, end())[-1]["finish_reason"] == "tool_calls"


def test_a_job_that_gave_no_answer_ends_in_its_error() -> None:
    with pytest.raises(JobCancelled, match="job j"):
        told(CHAT, token(0, "a"), end(JobStatus.CANCELLED, FinishReason.CANCELLED))


def test_a_call_that_is_cut_is_told_before_the_end() -> None:
    pieces = ["<tool_", 'call>\n{"name": "f", "argu', 'ments": {"x": [1, ']
    tokens = [token(i, piece) for i, piece in enumerate(pieces)]
    form = CHAT.model_copy(update={"tool_format": "hermes"})
    chunks = told(form, START, *tokens, end(reason=FinishReason.LENGTH))
    deltas = [chunk["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == ""
    (name,), (arguments,) = (delta["tool_calls"] for delta in deltas if "tool_calls" in delta)
    assert name["function"]["name"] == "f"
    assert arguments["function"]["arguments"] == '{"x": [1, '
    assert chunks[-1]["finish_reason"] == "length"
