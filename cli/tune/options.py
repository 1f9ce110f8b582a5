"""What `mini-vllm tune` is asked, read and checked. What is wrong is said by name."""

import re
from pathlib import Path

from cli.bench.trace import read_trace
from cli.durations import parse_duration_s
from shared.errors import BadRequest
from shared.trials import RequestShape

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


def read_shapes(path: Path) -> tuple[RequestShape, ...]:
    """Of a trace as `bench` reads it; when its requests come is left out, since a closed loop keeps its own
    time. Raises ``BadRequest`` that names the line, or the field that a line lacks."""
    shapes: list[RequestShape] = []
    for arrival in read_trace(path):
        if arrival.prompt_tokens is None:
            raise BadRequest(
                f"--trace {path}: needs prompt_tokens in each line, in place of prompt and messages "
                "(the tuner draws its prompts)",
                field="trace",
            )
        shapes.append(
            RequestShape(
                prompt_tokens=arrival.prompt_tokens, output_tokens=arrival.ask.output_tokens
            )
        )
    return tuple(shapes)
