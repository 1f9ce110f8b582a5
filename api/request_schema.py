"""The body of ``POST /generate`` for OpenAPI. It is read by the route and not by FastAPI, which
therefore does not know of it. Pure."""

from typing import Any

from shared.protocol import MAX_TOP_LOGPROBS, GenerateRequest
from shared.settings import Settings

_EXAMPLES = {
    "prompt": {"value": {"prompt": "Explain gravity simply", "max_tokens": 64}},
    "messages": {
        "value": {
            "messages": [
                {"role": "system", "content": "Answer in one sentence."},
                {"role": "user", "content": "What is a queue?"},
            ],
            "seed": 1,
            "stop": ["\n\n"],
        }
    },
}

#: pydantic leaves them out of the schema of a union.
LOGPROBS_BOUNDS = {"minimum": 0, "maximum": MAX_TOP_LOGPROBS}


def request_body(settings: Settings) -> dict[str, Any]:
    """With the bounds of this gateway, which are narrower than those of the protocol."""
    schema = GenerateRequest.model_json_schema()
    whole: dict[str, Any] = inlined(schema, schema["$defs"])
    whole.pop("examples")
    fields = whole["properties"]
    text, messages = _branch(fields["prompt"], "string"), _branch(fields["messages"], "array")
    text["maxLength"] = settings.max_prompt_chars
    messages["maxItems"] = settings.max_messages
    content = _branch(messages["items"]["properties"]["content"], "string")
    content["maxLength"] = settings.max_prompt_chars
    messages["items"] = whole_message(messages["items"])
    tokens = _branch(fields["prompt_token_ids"], "array")
    tokens["maxItems"] = settings.max_prompt_chars
    _branch(fields["logprobs"], "integer").update(LOGPROBS_BOUNDS)
    stop, stops = _branch(fields["stop"], "string"), _branch(fields["stop"], "array")
    stop["maxLength"] = stops["items"]["maxLength"] = settings.max_stop_chars
    stops["maxItems"] = settings.max_stops
    whole["oneOf"] = _either(text, messages, tokens)
    return {
        "required": True,
        "content": {"application/json": {"schema": whole, "examples": _EXAMPLES}},
    }


def _either(
    text: dict[str, Any], messages: dict[str, Any], tokens: dict[str, Any]
) -> list[dict[str, Any]]:
    """What the model's own validator says: one of the three, and null is as good as nothing."""
    one_of = {"prompt": text, "messages": messages, "prompt_token_ids": tokens}
    return [
        {
            "required": [name],
            "properties": {
                **{other: _NULL for other in one_of if other != name},
                name: schema,
                **({} if name == "prompt" else {"raw": {"const": False}}),
            },
        }
        for name, schema in one_of.items()
    ]


_NULL: dict[str, Any] = {"type": "null"}


def whole_message(message: dict[str, Any]) -> dict[str, Any]:
    """With what a role asks for: nothing but the assistant's calls of tools stands for a content."""
    fields = message["properties"]
    roles = [role for role in fields["role"]["enum"] if role not in ("assistant", "tool")]
    said = {"anyOf": [b for b in fields["content"]["anyOf"] if b != _NULL]}
    calls = _branch(fields["tool_calls"], "array")
    calls["minItems"] = 1
    no_calls, no_id = {"tool_calls": _NULL}, {"tool_call_id": _NULL}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("content", {"role": {"enum": roles}, "content": said, **no_calls, **no_id}),
        ("content", {"role": {"const": "tool"}, "content": said, **no_calls}),
        ("content", {"role": {"const": "assistant"}, "content": said, **no_id}),
        ("tool_calls", {"role": {"const": "assistant"}, "tool_calls": calls, **no_id}),
    ]
    branches = [{"required": ["role", needed], "properties": own} for needed, own in kinds]
    return message | {"anyOf": branches}


def _branch(field: dict[str, Any], kind: str) -> dict[str, Any]:
    branch: dict[str, Any] = next(b for b in field["anyOf"] if b.get("type") == kind)
    return branch


def inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Without references: they would point out of the place in OpenAPI where it stands."""
    if isinstance(schema, list):
        return [inlined(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    whole = schema | definitions.get(str(schema.get("$ref")).rpartition("/")[2], {})
    return {k: inlined(v, definitions) for k, v in whole.items() if k not in ("$ref", "$defs")}
