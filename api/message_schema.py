"""A message in OpenAPI: which fields go with which role, as ``Message`` itself checks it. Pure."""

from typing import Any

_NULL = {"type": "null"}


def tell_roles(message: dict[str, Any]) -> None:
    """Adds it to the schema of a message whose references are inlined."""
    fields = message["properties"]
    content = _given(fields["content"])
    calls = _given(fields["tool_calls"])
    no_calls, no_id = {"tool_calls": _NULL}, {"tool_call_id": _NULL}
    message["anyOf"] = [
        _kind(["system", "user"], content=content, **no_calls, **no_id),
        _kind(["assistant"], content=content, **no_id),
        _kind(["assistant"], tool_calls=calls, **no_id),
        _kind(["tool"], content=content, **no_calls),
    ]


def _kind(roles: list[str], **fields: dict[str, Any]) -> dict[str, Any]:
    required = [name for name, schema in fields.items() if schema is not _NULL]
    return {
        "required": ["role", *required],
        "properties": {"role": {"enum": roles}, **fields},
    }


def _given(field: dict[str, Any]) -> dict[str, Any]:
    """What a field is that is not null."""
    branch: dict[str, Any] = next(b for b in field["anyOf"] if b != _NULL)
    return branch
