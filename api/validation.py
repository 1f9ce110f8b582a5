"""Reads the body of a request, and turns pydantic's errors into messages that name field and limit."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from shared.errors import BadRequest
from shared.protocol import GenerateRequest

_Model = TypeVar("_Model", bound=BaseModel)

_MAX_ECHO_CHARS = 40
_MAX_ERRORS = 200

#: Half of a character outside the basic plane, as JSON escapes it; harmless where its other half is.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

_PHRASES = {
    "extra_forbidden": "unknown field",
    "missing": "is required",
    "string_type": "must be a text",
    "string_unicode": "must be valid Unicode text, without lone surrogates",
    "tuple_type": "must be a list",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "model_type": "must be an object",
}


@dataclass(frozen=True, slots=True)
class Problem:
    field: str | None
    message: str  #: names the field


class InvalidRequest(BadRequest):
    """The first problem is the message; several are all listed."""

    def __init__(self, problems: list[Problem]) -> None:
        assert problems, "an invalid request has a problem"
        self.problems = tuple(problems) if len(problems) > 1 else ()
        super().__init__("; ".join(p.message for p in problems[:5]), field=problems[0].field)


def parse_generate_request(body: bytes) -> GenerateRequest:
    return parse_body(GenerateRequest, body)


def parse_body(kind: type[_Model], body: bytes) -> _Model:
    """JSON whatever the content type says: curl -d sends that of a form. Types are taken strictly."""
    try:
        return kind.model_validate_json(body, strict=True)
    except ValidationError as error:
        if error.error_count() > _MAX_ERRORS:  # to render them would take seconds
            problems = [Problem(None, f"the body has {error.error_count()} errors")]
        else:
            problems = find_problems(error.errors(include_url=False))
        raise InvalidRequest(_surrogate_problems(kind, body) or problems) from None


def _surrogate_problems(kind: type[BaseModel], body: bytes) -> list[Problem]:
    """Pydantic's JSON parser ends at a lone surrogate and does not say in which field; Python's
    reads it, and then the field is refused by name. Empty where that is not what is wrong."""
    if not _SURROGATE.search(body):
        return []
    try:
        kind.model_validate(json.loads(body.decode()))
    except ValidationError as error:
        rows = [e for e in error.errors(include_url=False) if _has_surrogate(e["input"])]
        return find_problems(rows)
    except (ValueError, RecursionError):
        pass
    return []


def _has_surrogate(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value)


def find_problems(rows: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """One problem per field: a union reports each branch, and a list what is missing after its
    elements failed; the first with a better reason than its type is the one."""
    best: dict[str | None, tuple[bool, Problem]] = {}
    fields: list[str | None] = []
    for row in rows:
        field = _field(row["loc"])
        key = field.split(".")[0] if field else None
        is_type = str(row["type"]).endswith("_type")
        if key not in best or (best[key][0] and not is_type):
            if key not in best:
                fields.append(key)
            best[key] = (is_type, Problem(field, _message(field, row)))
        elif is_type and best[key][0] and key == "stop":
            best[key] = (True, Problem(field, "stop: must be a text or a list of texts"))
    return [best[key][1] for key in fields]


def _field(loc: Iterable[int | str]) -> str | None:
    """Dotted; what pydantic adds to name the branch of a union is left out."""
    parts = [str(part) for part in loc if isinstance(part, int) or "(" not in part]
    parts = [part for part in parts if not part.startswith(("tuple[", "[key]"))]
    return ".".join(parts)[:100] or None


def _message(field: str | None, row: Mapping[str, Any]) -> str:
    kind, ctx = row["type"], row.get("ctx") or {}
    if kind == "json_invalid":
        return f"the body is not valid JSON: {ctx.get('error', 'cannot be parsed')}"
    if kind == "extra_forbidden":
        return f"unknown field `{field}`"
    if field is None:
        return _phrase(row) if kind == "value_error" else f"the body {_phrase(row)}"
    return f"{field}: {_phrase(row)}{_echo(row)}"


def _phrase(row: Mapping[str, Any]) -> str:
    kind, value, ctx = row["type"], row.get("input"), row.get("ctx") or {}
    unit = "characters" if isinstance(value, str) else "elements"
    if kind in ("too_short", "string_too_short"):
        low = ctx.get("min_length", 1)
        return "must not be empty" if low == 1 else f"must have at least {low} {unit}"
    if kind in ("too_long", "string_too_long"):
        found = (
            len(value) if isinstance(value, str | list | tuple | dict) else ctx.get("actual_length")
        )
        return f"must have at most {ctx.get('max_length')} {unit} (has {found})"
    if kind in _PHRASES:
        return _PHRASES[kind]
    text = re.sub(r"^(Input|String|Value|Tuple|List) should ", "must ", str(row["msg"]))
    return text.removeprefix("Value error, ")


def _echo(row: Mapping[str, Any]) -> str:
    """The value that was refused, where it is short and is not the reason by itself."""
    value = row.get("input")
    if row["type"] in ("missing", "too_short", "too_long", "value_error", "string_unicode"):
        return ""
    if not isinstance(value, bool | int | float | str | None):
        return ""
    try:
        text = (
            "null"
            if value is None
            else str(value).lower()
            if value is True or value is False
            else repr(value)
        )
    except ValueError:  # an integer of more than 4300 digits
        return ""
    return f" (got {text})" if len(text) <= _MAX_ECHO_CHARS else ""
