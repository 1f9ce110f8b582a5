"""The body of ``POST /generate`` as the OpenAPI document has it."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from api.request_schema import request_body
from shared.protocol import GenerateRequest, Message
from shared.settings import load_settings


def content(**settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = request_body(load_settings(**settings))["content"]["application/json"]
    return found


def fields(**settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = content(**settings)["schema"]["properties"]
    return found


def test_the_bounds_are_those_of_the_gateway() -> None:
    own = fields(max_prompt_chars=11, max_messages=12, max_stops=13, max_stop_chars=14)
    messages = own["messages"]["anyOf"][0]
    assert own["prompt"]["anyOf"][0]["maxLength"] == 11
    content_of_one = messages["items"]["properties"]["content"]["anyOf"][0]
    assert (messages["maxItems"], content_of_one["maxLength"]) == (12, 11)
    stop, stops = own["stop"]["anyOf"]
    assert (stop["maxLength"], stops["maxItems"], stops["items"]["maxLength"]) == (14, 13, 14)


def test_bounds_of_numbers_are_in_the_schema() -> None:
    """Also where a validator stands before them."""
    own = fields()
    seed = own["seed"]["anyOf"][0]
    assert (seed["minimum"], seed["maximum"]) == (0, 2**32 - 2)
    for name, bounds in (("max_tokens", (1, 1_000_000)), ("top_k", (0, 1_000_000))):
        assert (own[name]["minimum"], own[name]["maximum"]) == bounds


def test_the_three_inputs_exclude_each_other() -> None:
    either = {
        branch["required"][0]: branch["properties"] for branch in content()["schema"]["oneOf"]
    }
    assert list(either) == ["prompt", "messages", "prompt_token_ids"]
    for name, own in either.items():
        nulls = {other for other, schema in own.items() if schema == {"type": "null"}}
        assert nulls == either.keys() - {name}
        assert own.get("raw") == (None if name == "prompt" else {"const": False})


def test_a_message_without_content_has_calls_of_tools() -> None:
    message = fields()["messages"]["anyOf"][0]["items"]
    check = Draft202012Validator(message)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    for good in (
        {"role": "user", "content": "x"},
        {"role": "tool", "content": "x", "tool_call_id": "c"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ):
        assert check.is_valid(good), good
        Message.model_validate(good)
    for bad in (
        {"role": "user"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "x", "tool_calls": [call]},
        {"role": "user", "content": "x", "tool_call_id": "c"},
        {"role": "assistant", "tool_calls": []},
    ):
        assert not check.is_valid(bad), bad
        with pytest.raises(ValidationError):
            Message.model_validate(bad)


def test_every_field_of_a_request_is_described_in_place() -> None:
    assert fields().keys() == GenerateRequest.model_fields.keys()
    assert "$ref" not in str(content())


def test_the_examples_are_valid() -> None:
    examples = content()["examples"]
    assert set(examples) == {"prompt", "messages"}
    for example in examples.values():
        GenerateRequest.model_validate(example["value"])
