"""A recorded load: a file of JSON lines, one request each. It knows no server.

    {"time_s": 0.25, "prompt_tokens": 120, "output_tokens": 64}

instead of ``prompt_tokens`` (words are drawn) ``prompt`` or ``messages`` may stand. Lines are in order of
their time; what a line has beside this is refused by name.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.bench.asks import Ask
from cli.bench.words import Rate, make_words
from shared.errors import BadRequest

MAX_LINES = 1_000_000
MAX_TOKENS = 1_000_000
MAX_TIME_S = 86_400
_MAX_LINE_BYTES = 16_777_216
_TEXTS = ("prompt", "messages", "prompt_tokens")
_KNOWN = {"time_s", "output_tokens", *_TEXTS}


@dataclass(frozen=True, slots=True)
class Arrival:
    """``prompt_tokens`` are of a prompt that is drawn; None where the line has its text."""

    time_s: float
    ask: Ask
    prompt_tokens: int | None = None

    def ask_of(self, rng: random.Random, rate: Rate) -> Ask:
        if self.prompt_tokens is None:
            return self.ask
        return Ask(self.ask.output_tokens, make_words(rng, rate.words_of(self.prompt_tokens)))


def read_trace(path: Path) -> list[Arrival]:
    """Raises ``BadRequest`` that names the line and the field."""
    arrivals: list[Arrival] = []
    try:
        with path.open("rb") as file:
            for number in range(1, MAX_LINES + 2):
                raw = file.readline(_MAX_LINE_BYTES + 1)
                if not raw:
                    break
                if number > MAX_LINES:
                    raise BadRequest(f"--trace {path}: more than {MAX_LINES} lines", field="trace")
                if raw.strip():
                    before_s = arrivals[-1].time_s if arrivals else 0.0
                    arrivals.append(_parse_at(path, number, raw, before_s))
    except OSError as error:
        raise BadRequest(f"--trace {path}: {error.strerror}", field="trace") from None
    if not arrivals:
        raise BadRequest(f"--trace {path}: has no requests in it", field="trace")
    return arrivals


def _parse_at(path: Path, number: int, raw: bytes, before_s: float) -> Arrival:
    try:
        if len(raw) > _MAX_LINE_BYTES:
            raise ValueError(f"longer than {_MAX_LINE_BYTES} bytes")
        return parse_line(raw, before_s)
    except ValueError as error:
        raise BadRequest(f"--trace {path}: line {number}: {error}", field="trace") from None


def parse_line(raw: bytes, before_s: float) -> Arrival:
    """``before_s`` is the time of the line before. Raises ``ValueError`` that names the field."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        raise ValueError("must be a JSON object")
    if unknown := sorted(set(line) - _KNOWN):
        raise ValueError(f"{unknown[0]}: no such field; there are {', '.join(sorted(_KNOWN))}")
    given = [name for name in _TEXTS if name in line]
    if len(given) != 1:
        told = " and ".join(given) or "none"
        raise ValueError(f"needs one of {', '.join(_TEXTS)} (has {told})")
    time_s = _time(line, before_s)
    output_tokens = _tokens(line, "output_tokens")
    match given[0]:
        case "prompt":
            return Arrival(time_s, Ask(output_tokens, prompt=_prompt(line["prompt"])))
        case "messages":
            return Arrival(time_s, Ask(output_tokens, messages=_messages(line["messages"])))
        case _:
            return Arrival(time_s, Ask(output_tokens), _tokens(line, "prompt_tokens"))


def _time(line: Mapping[str, Any], before_s: float) -> float:
    value = line.get("time_s")
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= MAX_TIME_S:
        told = f"must be a number of seconds, at most {MAX_TIME_S}"
        raise ValueError(f"time_s: {told} (got {value!r:.40})")
    if value < before_s:
        raise ValueError(f"time_s: must not be before {before_s:g} of the line above (got {value})")
    return float(value)


def _tokens(line: Mapping[str, Any], name: str) -> int:
    value = line.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        raise ValueError(f"{name}: must be a number from 1 to {MAX_TOKENS} (got {value!r:.40})")
    return value


def _prompt(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("prompt: must be a text that is not empty")
    return value


def _messages(value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value or not all(isinstance(m, dict) for m in value):
        raise ValueError("messages: must be a list of objects that is not empty")
    return tuple(value)
