"""What `mini-vllm tune` is asked, read and checked. What is wrong is said by name."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cli.durations import parse_duration_s
from shared.errors import BadRequest
from shared.trials import RequestShape

MAX_TRACE_LINES = 100_000
_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_size(text: str, field: str) -> int:
    """``8G``, ``500M``, bytes without a letter. Raises ``BadRequest``."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,3})?)([KMGT]?)B?", text.strip().upper())
    size = float(found[1]) * _SIZES[found[2]] if found else 0
    if not found or size < 1:
        raise BadRequest(f"--{field}: must be like 8G or 500M (got {text[:40]!r})", field=field)
    return round(size)


def parse_budget_s(text: str) -> float:
    try:
        budget_s = parse_duration_s(text)
    except ValueError as error:
        raise BadRequest(f"--budget: {error}", field="budget") from None
    if not 5 <= budget_s <= 86_400:
        raise BadRequest(f"--budget: must be 5s to 1d (got {text[:40]})", field="budget")
    return budget_s


def read_trace(path: Path) -> tuple[RequestShape, ...]:
    """JSON lines with ``prompt_tokens`` and ``output_tokens``; others (``time_s``) are of `bench`: a closed
    loop keeps its own time. Raises ``BadRequest`` that names the line."""
    shapes: list[RequestShape] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if number > MAX_TRACE_LINES:
                    raise _bad(path, f"more than {MAX_TRACE_LINES} lines")
                if line.strip():
                    shapes.append(_shape(path, number, line))
    except OSError as error:
        raise _bad(path, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise _bad(path, "is no text in UTF-8") from None
    if not shapes:
        raise _bad(path, "has no requests in it")
    return tuple(shapes)


def _shape(path: Path, number: int, line: str) -> RequestShape:
    try:
        fields: Any = json.loads(line)
        if not isinstance(fields, dict):
            raise _bad(path, f"line {number}: must be an object")
        names = ("prompt_tokens", "output_tokens")
        return RequestShape.model_validate({name: fields[name] for name in names if name in fields})
    except ValueError as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            raise _bad(path, f"line {number}: {first['loc'][0]}: {first['msg']}") from None
        raise _bad(path, f"line {number}: is no JSON") from None


def _bad(path: Path, what: str) -> BadRequest:
    return BadRequest(f"--trace {path}: {what}", field="trace")
