"""Tools and shapes through OpenAI's own client, on the real model with a template that knows tools."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from tests.service import Up

pytestmark = pytest.mark.model

TEMPLATE = Path(__file__).parents[1] / "data" / "hermes.jinja"
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
ADD: Any = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}
ASK: Any = [{"role": "user", "content": "What is the weather in Paris?"}]


@pytest.fixture(scope="module")
def ai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    folder = tmp_path_factory.mktemp("tools")
    up = Up(folder, "--workers", "1", MINI_VLLM_CHAT_TEMPLATE_FILE=str(TEMPLATE))
    try:
        url = up.wait_ready().url
        with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120) as client:
            yield client
    finally:
        up.stop()


def test_a_tool_that_must_be_called_is_called_with_whole_arguments(ai: OpenAI) -> None:
    done = ai.chat.completions.create(
        model="default",
        messages=ASK,
        tools=[WEATHER, ADD],
        tool_choice="required",
        seed=1,
        max_tokens=200,
    )
    (choice,) = done.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    for call in choice.message.tool_calls:
        assert call.type == "function" and call.id.startswith("call_")
        arguments = json.loads(call.function.arguments)
        assert set(arguments) == {"get_weather": {"city"}, "add": {"a", "b"}}[call.function.name]


def test_a_named_tool_is_the_one_that_is_called_streamed_or_not(ai: OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": "default",
        "messages": ASK,
        "tools": [WEATHER, ADD],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "seed": 3,
        "max_tokens": 100,
    }
    done = ai.chat.completions.create(**asked)
    (call,) = done.choices[0].message.tool_calls or []
    assert call.function.name == "add"
    name = arguments = content = ""
    finish = None
    for chunk in ai.chat.completions.create(**asked, stream=True):
        (choice,) = chunk.choices
        content += choice.delta.content or ""
        finish = choice.finish_reason or finish
        for part in choice.delta.tool_calls or ():
            assert part.index == 0 and part.function
            name += part.function.name or ""
            arguments += part.function.arguments or ""
    assert (name, arguments) == ("add", call.function.arguments)
    assert (finish, content) == ("tool_calls", "")


def test_the_result_of_a_tool_goes_back_into_the_chat(ai: OpenAI) -> None:
    call = {"id": "call_1", "type": "function"} | {
        "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    }
    messages: Any = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny, 24 degrees"},
    ]
    with_result = ai.chat.completions.create(
        model="default", messages=messages, tools=[WEATHER], tool_choice="none", max_tokens=24
    )
    assert with_result.choices[0].message.content
    without = ai.chat.completions.create(model="default", messages=ASK, max_tokens=1)
    assert with_result.usage and without.usage
    assert with_result.usage.prompt_tokens > without.usage.prompt_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_json_by_schema(ai: OpenAI, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "people": {"type": "integer", "minimum": 0, "maximum": 99_000_000},
        },
        "required": ["city", "people"],
        "additionalProperties": False,
    }
    shape: Any = {
        "type": "json_schema",
        "json_schema": {"name": "city", "schema": schema, "strict": True},
    }
    asked: dict[str, Any] = {"model": "default", "messages": ASK, "seed": 5, "max_tokens": 100}
    asked["response_format"] = shape
    if stream:
        chunks = ai.chat.completions.create(**asked, stream=True)
        text = "".join(c.choices[0].delta.content or "" for c in chunks)
    else:
        text = ai.chat.completions.create(**asked).choices[0].message.content or ""
    answer = json.loads(text)
    assert set(answer) == {"city", "people"} and 0 <= answer["people"] <= 99_000_000


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"not": {}}},
                }
            },
            '"not"',
        ),
        ({"extra_body": {"grammar": "root ::= nothing"}}, "no rule 'nothing'"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "no"}}},
            "'no', which no tool has",
        ),
        ({"tools": [WEATHER], "response_format": {"type": "json_object"}}, "do not go with"),
    ],
)
def test_what_cannot_be_kept_to_is_a_400_that_says_where(
    ai: OpenAI, fields: dict[str, Any], where: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=where):
        ai.chat.completions.create(model="default", messages=ASK, **fields)


def test_a_grammar_on_both_routes(ai: OpenAI) -> None:
    extra = {"grammar": 'root ::= "yes" | "no"'}
    chat = ai.chat.completions.create(model="default", messages=ASK, extra_body=extra)
    text = ai.completions.create(model="default", prompt="Is water wet?", extra_body=extra)
    assert {chat.choices[0].message.content, text.choices[0].text} <= {"yes", "no"}


def test_a_call_that_is_cut_is_no_content_streamed_or_not(ai: OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": "default",
        "messages": ASK,
        "tools": [WEATHER],
        "tool_choice": "required",
        "seed": 1,
    }
    told = []
    for max_tokens in range(2, 24, 3):
        done = ai.chat.completions.create(**asked, max_tokens=max_tokens)
        (choice,) = done.choices
        assert choice.finish_reason == "length"
        assert not choice.message.content
        calls = choice.message.tool_calls or []
        arguments = content = ""
        for chunk in ai.chat.completions.create(**asked, max_tokens=max_tokens, stream=True):
            content += chunk.choices[0].delta.content or ""
            for part in chunk.choices[0].delta.tool_calls or ():
                arguments += (part.function and part.function.arguments) or ""
        assert content == ""
        assert arguments == "".join(call.function.arguments for call in calls)
        told.append(len(calls))
    assert (told[0], told[-1]) == (0, 1), "without a name yet, and with one"


def test_the_prompt_of_tools_can_be_seen(ai: OpenAI) -> None:
    url = str(ai.base_url).removesuffix("/v1/")
    body = {"messages": ASK, "tools": [WEATHER]}
    with_tools = httpx.post(f"{url}/apply-template", json=body).json()["prompt"]
    without = httpx.post(f"{url}/apply-template", json={"messages": ASK}).json()["prompt"]
    assert "get_weather" in with_tools
    assert "get_weather" not in without
    usage = ai.chat.completions.create(
        model="default", messages=ASK, tools=[WEATHER], max_tokens=1
    ).usage
    tokens = httpx.post(f"{url}/tokenize", json={"content": with_tools, "add_special": True})
    assert usage is not None
    assert usage.prompt_tokens == len(tokens.json()["tokens"])


def test_an_answer_says_which_workers_it_is_of(ai: OpenAI) -> None:
    first, second = (
        ai.chat.completions.create(model="default", messages=ASK, max_tokens=1) for _ in range(2)
    )
    assert first.system_fingerprint == second.system_fingerprint
    assert first.system_fingerprint is not None
    assert first.system_fingerprint.startswith("fp_")
