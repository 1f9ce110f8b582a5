"""The body of ``POST /generate`` as the OpenAPI document has it."""

from typing import Any

from api.request_schema import request_body
from shared.protocol import GenerateRequest
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
    assert (messages["maxItems"], messages["items"]["properties"]["content"]["maxLength"]) == (
        12,
        11,
    )
    stop, stops = own["stop"]["anyOf"]
    assert (stop["maxLength"], stops["maxItems"], stops["items"]["maxLength"]) == (14, 13, 14)


def test_bounds_of_numbers_are_in_the_schema() -> None:
    """Also where a validator stands before them."""
    own = fields()
    seed = own["seed"]["anyOf"][0]
    assert (seed["minimum"], seed["maximum"]) == (0, 2**32 - 2)
    for name, bounds in (("max_tokens", (1, 1_000_000)), ("top_k", (0, 1_000_000))):
        assert (own[name]["minimum"], own[name]["maximum"]) == bounds


def test_prompt_and_messages_exclude_each_other() -> None:
    either = content()["schema"]["oneOf"]
    assert [branch["required"] for branch in either] == [["prompt"], ["messages"]]
    assert either[0]["properties"]["messages"] == either[1]["properties"]["prompt"]
    assert either[1]["properties"]["raw"] == {"const": False}


def test_every_field_of_a_request_is_described_in_place() -> None:
    assert fields().keys() == GenerateRequest.model_fields.keys()
    assert "$ref" not in str(content())


def test_the_examples_are_valid() -> None:
    examples = content()["examples"]
    assert set(examples) == {"prompt", "messages"}
    for example in examples.values():
        GenerateRequest.model_validate(example["value"])
