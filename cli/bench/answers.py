"""What was answered to one request, and when its text came. Pure: times are arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

ERROR_CHARS = 300


@dataclass(slots=True)
class Answer:
    """Filled while it comes. Times are monotonic; ``came_s`` has one for each piece with text,
    ``began_s`` is the first event's (of ours, in a chat: the job left the queue), ``ended_s`` that
    of the last one of its text or end. ``error`` is empty unless it failed, ``error_kind`` a word."""

    sent_s: float
    came_s: list[float] = field(default_factory=list)
    began_s: float = 0.0
    ended_s: float = 0.0
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    has_usage: bool = False
    error: str = ""
    error_kind: str = ""
    is_cut: bool = False  #: we left before its end

    def feed(self, event: Mapping[str, Any], now_s: float) -> None:
        """One event of the stream. Raises ``TypeError``, ``KeyError`` and ``AttributeError`` of one that is
        not as OpenAI's API has it."""
        self.began_s = self.began_s or now_s
        if error := event.get("error"):
            self.fail(_kind_of(error), str(error), now_s)
        for choice in event.get("choices") or ():
            self.ended_s = now_s
            piece = choice.get("text") or (choice.get("delta") or {}).get("content")
            if piece:
                self.text += piece
                self.came_s.append(now_s)
        if usage := event.get("usage"):
            self.prompt_tokens = _whole("prompt_tokens", usage["prompt_tokens"])
            self.output_tokens = _whole("completion_tokens", usage["completion_tokens"])
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            self.cached_tokens = 0 if cached is None else _whole("cached_tokens", cached)
            self.has_usage = True
            # Of an answer without a choice, whose usage is all there is.
            self.ended_s = self.ended_s or now_s

    def fail(self, kind: str, message: str, now_s: float) -> None:
        """The first thing that goes wrong is what is told."""
        if not self.error:
            self.error, self.error_kind = message[:ERROR_CHARS] or kind, kind
            self.ended_s = now_s

    @property
    def is_good(self) -> bool:
        return self.has_usage and not self.error and not self.is_cut

    @property
    def ttft_s(self) -> float | None:
        return self.came_s[0] - self.sent_s if self.came_s else None

    @property
    def e2e_s(self) -> float:
        return self.ended_s - self.sent_s

    @property
    def tpot_s(self) -> float | None:
        """Time per output token after the first; nothing of one token, as vLLM has it."""
        if self.ttft_s is None or self.output_tokens <= 1:
            return None
        return (self.e2e_s - self.ttft_s) / (self.output_tokens - 1)

    @property
    def gaps_s(self) -> list[float]:
        return [b - a for a, b in pairwise(self.came_s)]


@dataclass(slots=True)
class Seen:
    """What a load was answered. ``streams`` are those that run beside the clients, from ``quiet_s`` on
    all of them; they are closed before their end. ``cpu_s`` is what we ourselves used meanwhile."""

    began_s: float
    ended_s: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    streams: list[Answer] = field(default_factory=list)
    quiet_s: float = 0.0
    cpu_s: float = 0.0
    is_interrupted: bool = False

    @property
    def took_s(self) -> float:
        return self.ended_s - self.began_s


def _whole(name: str, value: object) -> int:
    """Raises ``TypeError``: with what is no number nothing can be counted."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"usage.{name} is {value!r:.40}")
    return value


def _kind_of(error: object) -> str:
    if isinstance(error, Mapping):
        code = error.get("code") or error.get("type")
        if code:
            return f"stream: {code}"
    return "stream: error"
