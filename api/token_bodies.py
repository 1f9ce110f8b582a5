"""The bodies of the routes of tokens for OpenAPI; the routes read them and FastAPI does not. Pure."""

from typing import Any

from pydantic import BaseModel

from api.request_schema import inlined, whole_message
from shared.asks import ApplyTemplate, Detokenize, Tokenize
from shared.protocol.request import MAX_TOKEN_ID
from shared.settings import Settings

_KINDS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "/tokenize": (Tokenize, {"content": "Explain gravity simply", "add_special": False}),
    "/detokenize": (Detokenize, {"tokens": [504, 3362]}),
    "/apply-template": (ApplyTemplate, {"messages": [{"role": "user", "content": "Hello"}]}),
}
TOKEN_PATHS = tuple(_KINDS)


def token_body(path: str, settings: Settings) -> dict[str, Any]:
    """With the bounds of this gateway."""
    kind, example = _KINDS[path]
    schema = kind.model_json_schema()
    whole: dict[str, Any] = inlined(schema, schema.get("$defs", {}))
    fields = whole["properties"]
    match path:
        case "/tokenize":
            fields["content"]["maxLength"] = settings.max_prompt_chars
        case "/detokenize":
            # NOTE: pydantic leaves the bounds out of it.
            number = {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN_ID}
            fields["tokens"] |= {"maxItems": settings.max_prompt_chars, "items": number}
        case "/apply-template":
            fields["messages"]["maxItems"] = settings.max_messages
            fields["messages"]["items"] = whole_message(fields["messages"]["items"])
    examples = {"example": {"value": example}}
    return {
        "required": True,
        "content": {"application/json": {"schema": whole, "examples": examples}},
    }
