import json
from typing import Any

import pytest

from api.completions.bodies import Body
from api.completions.call import Call, parse_call
from api.completions.form import Endpoint
from shared.errors import ServiceError
from shared.protocol import MAX_SEED, Priority

CHAT: Endpoint = "/v1/chat/completions"
TEXT: Endpoint = "/v1/completions"
HI = [{"role": "user", "content": "hi"}]
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def chat(**body: Any) -> Call:
    return parse_call(CHAT, json.dumps({"messages": HI} | body).encode())


def text(**body: Any) -> Call:
    return parse_call(TEXT, json.dumps({"prompt": "hi"} | body).encode())


def refused(endpoint: Endpoint, **body: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        parse_call(endpoint, json.dumps(body).encode())
    return caught.value


def test_a_chat_is_one_job_with_the_defaults_of_the_service() -> None:
    call = chat(model="m")
    (job,) = call.jobs
    assert job.model_dump(exclude_unset=True) == {
        "model": "m",
        "messages": ({"role": "user", "content": "hi"},),
        "max_tokens": 1_000_000,
    }
    assert (call.model, call.stream, call.background, call.num_choices) == ("m", False, False, 1)


def test_a_completion_is_a_raw_prompt_of_16_tokens() -> None:
    (job,) = text().jobs
    assert (job.prompt, job.raw, job.max_tokens) == ("hi", True, 16)


def test_null_is_as_good_as_nothing() -> None:
    nulls = dict.fromkeys([*Body.model_fields, "metadata", "store", "logprobs"])
    assert text(**nulls).jobs == text().jobs
    more = ("tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens", "top_logprobs")
    assert chat(**nulls, **dict.fromkeys(more)).jobs == chat().jobs


def test_all_that_a_job_has_too_is_passed_on() -> None:
    given = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "min_p": 0.1,
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "repeat_penalty": 1.1,
        "ignore_eos": True,
        "timeout_s": 5,
        "user": "u",
        "seed": 3,
        "max_tokens": 7,
        "priority": "high",
    }
    job = text(**given, stop=["a"], logit_bias={"5": -100}, logprobs=2).jobs[0]
    assert given.items() <= job.model_dump(mode="json").items()
    assert (job.stops, job.logit_bias, job.logprobs) == (("a",), {5: -100}, 2)
    assert text(response_format={"type": "json_object"}).jobs[0].is_shaped
    assert text(grammar='root ::= "a"').jobs[0].grammar == 'root ::= "a"'


@pytest.mark.parametrize(
    ("prompt", "texts", "tokens"),
    [
        ("a", ["a"], [None]),
        (["a", "b"], ["a", "b"], [None, None]),
        ([1, 2], [None], [(1, 2)]),
        ([[1, 2], [3]], [None, None], [(1, 2), (3,)]),
    ],
)
def test_prompts_come_in_four_kinds(prompt: Any, texts: list[str], tokens: list[Any]) -> None:
    jobs = text(prompt=prompt).jobs
    assert [job.prompt for job in jobs] == texts
    assert [job.prompt_token_ids for job in jobs] == tokens


def test_choices_have_seeds_of_their_own_and_stand_together() -> None:
    jobs = text(prompt=["a", "b"], n=2, seed=MAX_SEED).jobs
    assert [(job.prompt, job.seed) for job in jobs] == [
        ("a", MAX_SEED),
        ("a", 0),
        ("b", MAX_SEED),
        ("b", 0),
    ]
    assert [job.seed for job in text(n=3).jobs] == [None] * 3


def test_messages_are_taken_as_clients_write_them() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    said = [
        {"role": "developer", "content": [{"type": "text", "text": t} for t in "ab"]},
        {"role": "assistant", "content": None, "tool_calls": calls, "refusal": None},
        {"role": "tool", "tool_call_id": "c", "content": "5"},
        {"role": "assistant", "content": "x", "annotations": [], "audio": None},
    ]
    messages = chat(messages=said).jobs[0].messages or ()
    assert [(m.role, m.content) for m in messages] == [
        ("system", "ab"),
        ("assistant", None),
        ("tool", "5"),
        ("assistant", "x"),
    ]
    assert messages[1].tool_calls is not None
    assert messages[1].tool_calls[0].function.name == "f"


def test_log_probabilities_of_a_chat_are_a_switch_and_a_number() -> None:
    assert chat(logprobs=True).jobs[0].logprobs == 0
    assert chat(logprobs=True, top_logprobs=5).jobs[0].logprobs == 5
    assert chat(logprobs=False, top_logprobs=0).jobs[0].logprobs is None


@pytest.mark.parametrize(
    ("tier", "priority"),
    [("auto", Priority.NORMAL), ("flex", Priority.LOW), ("priority", Priority.HIGH)],
)
def test_a_service_tier_is_a_priority(tier: str, priority: Priority) -> None:
    assert text(service_tier=tier).jobs[0].priority is priority


def test_two_names_of_one_thing_may_say_the_same() -> None:
    assert chat(max_tokens=5, max_completion_tokens=5).jobs[0].max_tokens == 5
    assert chat(max_completion_tokens=6).jobs[0].max_tokens == 6
    assert text(repetition_penalty=1.5).jobs[0].repeat_penalty == 1.5
    assert text(repetition_penalty=1.5, repeat_penalty=1.5).jobs[0].repeat_penalty == 1.5


def test_streams_say_what_they_want() -> None:
    call = chat(stream=True, stream_options={"include_usage": True, "include_obfuscation": False})
    assert (call.stream, call.include_usage) == (True, True)
    assert not chat(stream=True, stream_options={"include_usage": None}).include_usage


def test_the_format_of_tool_calls_is_kept_only_where_there_may_be_some() -> None:
    assert chat(tools=[WEATHER]).served_by("m", "hermes").form.tool_format == "hermes"
    assert (
        chat(tools=[WEATHER], tool_choice="none").served_by("m", "hermes").form.tool_format is None
    )
    assert chat().served_by("m", "hermes").form.tool_format is None
    assert chat(tools=[]).jobs[0].tools is None
    assert chat(model="default").served_by("m", None).form.model == "m"


@pytest.mark.parametrize(
    ("endpoint", "body", "field", "words"),
    [
        (CHAT, {}, "messages", "required"),
        (CHAT, {"messages": []}, "messages", "empty"),
        (CHAT, {"messages": HI, "max_tokens": 0}, "max_tokens", "1"),
        (CHAT, {"messages": HI, "max_completion_tokens": 0}, "max_completion_tokens", "1"),
        (
            CHAT,
            {"messages": HI, "max_tokens": 1, "max_completion_tokens": 2},
            "max_tokens",
            "differ",
        ),
        (CHAT, {"messages": HI, "top_logprobs": 3}, "top_logprobs", "logprobs"),
        (CHAT, {"messages": HI, "logprobs": True, "top_logprobs": 21}, "top_logprobs", "20"),
        (CHAT, {"messages": HI, "logprobs": 3}, "logprobs", "true or false"),
        (CHAT, {"messages": HI, "temperature": "hot"}, "temperature", "number"),
        (CHAT, {"messages": HI, "surprise": 1}, "surprise", "unknown field"),
        (CHAT, {"messages": HI, "service_tier": "fast"}, "service_tier", "flex"),
        (CHAT, {"messages": HI, "tool_choice": "required"}, None, "tools"),
        (CHAT, {"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role", "user"),
        (
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages.0.content",
            "image_url",
        ),
        (TEXT, {}, "prompt", "required"),
        (TEXT, {"prompt": None}, "prompt", "text"),
        (TEXT, {"prompt": []}, "prompt", "empty"),
        (TEXT, {"prompt": [True]}, "prompt", "token ids"),
        (TEXT, {"prompt": ["a", 1]}, "prompt", "list"),
        (TEXT, {"prompt": [-1]}, "prompt.0", "0"),
        (TEXT, {"prompt": "x", "max_completion_tokens": 5}, "max_completion_tokens", "unknown"),
        (TEXT, {"prompt": "x", "n": 17}, "n", "16"),
        (TEXT, {"prompt": ["x"] * 20, "n": 16}, "n", "128"),
        (TEXT, {"prompt": "x", "seed": -1}, "seed", "0"),
        (TEXT, {"prompt": "x", "stop": [""]}, "stop.0", "empty"),
        (TEXT, {"prompt": "x", "logit_bias": {"1": 101}}, "logit_bias.1", "100"),
        (TEXT, {"prompt": "x", "stream_options": {}}, "stream_options", "stream"),
        (TEXT, {"prompt": "x", "background": True, "n": 2}, "background", "one"),
        (TEXT, {"prompt": "x", "repetition_penalty": 11}, "repetition_penalty", "10"),
        (TEXT, {"prompt": "x", "repetition_penalty": 2, "repeat_penalty": 1}, "repeat_penalty", ""),
        (TEXT, {"prompt": "x", "service_tier": "flex", "priority": "high"}, "service_tier", "flex"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    endpoint: Endpoint, body: dict[str, Any], field: str | None, words: str
) -> None:
    error = refused(endpoint, **body)
    assert error.code == "invalid_request"
    assert error.field == field
    assert words in error.message
    assert (field or "").split(".")[0] in error.message


@pytest.mark.parametrize(
    ("endpoint", "name", "neutral", "other"),
    [
        (CHAT, "store", False, True),
        (CHAT, "metadata", {}, {"a": "b"}),
        (CHAT, "modalities", ["text"], ["text", "audio"]),
        (CHAT, "audio", None, {"voice": "x"}),
        (CHAT, "reasoning_effort", None, "low"),
        (CHAT, "verbosity", None, "low"),
        (CHAT, "functions", None, [{"name": "f"}]),
        (CHAT, "web_search_options", None, {}),
        (CHAT, "prediction", None, {"type": "content", "content": "x"}),
        (TEXT, "echo", False, True),
        (TEXT, "echo", False, 0),
        (TEXT, "suffix", "", "end"),
        (TEXT, "best_of", 1, 2),
        (TEXT, "best_of", 1.0, 0),
    ],
)
def test_what_is_not_supported_may_have_its_neutral_value(
    endpoint: Endpoint, name: str, neutral: object, other: object
) -> None:
    body = {"messages": HI} if endpoint == CHAT else {"prompt": "x"}
    assert parse_call(endpoint, json.dumps(body | {name: neutral}).encode()).jobs
    error = refused(endpoint, **body, **{name: other})
    assert (error.code, error.field) == ("unsupported_parameter", name)
    assert name in error.message


def test_best_of_may_be_the_number_of_choices() -> None:
    assert len(text(n=3, best_of=3).jobs) == 3
    assert refused(TEXT, prompt="x", n=3, best_of=1).field == "best_of"


def test_text_that_is_none_is_refused_by_its_field() -> None:
    with pytest.raises(ServiceError, match=r"messages\.0\.content: must be valid Unicode"):
        parse_call(CHAT, b'{"messages":[{"role":"user","content":"\\ud800"}]}')
