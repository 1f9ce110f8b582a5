"""The body of ``POST /generate`` for OpenAPI. It is read by the route and not by FastAPI, which
therefore does not know of it. Pure."""

from typing import Any

from api.message_schema import tell_roles
from shared.protocol import GenerateRequest
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


def request_body(settings: Settings) -> dict[str, Any]:
    """With the bounds of this gateway, which are narrower than those of the protocol."""
    schema = GenerateRequest.model_json_schema()
    whole: dict[str, Any] = inlined(schema, schema["$defs"])
    whole.pop("examples")
    fields = whole["properties"]
    text, messages = _branch(fields["prompt"], "string"), _branch(fields["messages"], "array")
    text["maxLength"] = settings.max_prompt_chars
    messages["maxItems"] = settings.max_messages
    messages["items"]["properties"]["content"]["maxLength"] = settings.max_prompt_chars
    tell_roles(messages["items"])
    stop, stops = _branch(fields["stop"], "string"), _branch(fields["stop"], "array")
    stop["maxLength"] = stops["items"]["maxLength"] = settings.max_stop_chars
    stops["maxItems"] = settings.max_stops
    if not settings.webhook_secret.get_secret_value():
        unset = "refused: it needs MINI_VLLM_WEBHOOK_SECRET"
        fields["webhook_url"] = {"type": "null", "description": unset}
    else:
        url = _branch(fields["webhook_url"], "string")
        url |= {"format": "uri", "pattern": "^https?://"}
    whole["oneOf"] = _either(text, messages)
    return {
        "required": True,
        "content": {"application/json": {"schema": whole, "examples": _EXAMPLES}},
    }


def _either(text: dict[str, Any], messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What the model's own validator says: one of the two, and null is as good as nothing."""
    null = {"type": "null"}
    return [
        {"required": ["prompt"], "properties": {"prompt": text, "messages": null}},
        {
            "required": ["messages"],
            "properties": {"messages": messages, "prompt": null, "raw": {"const": False}},
        },
    ]


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
