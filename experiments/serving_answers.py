"""What was answered, and when its text came: of one request, and of a whole load. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ERROR_CHARS = 300


@dataclass(slots=True)
class Answer:
    """Filled while it comes. Times are monotonic; ``came_s`` has one for each piece with text."""

    sent_s: float
    came_s: list[float] = field(default_factory=list)
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    has_usage: bool = False
    error: str = ""

    def feed(self, event: Mapping[str, Any], now_s: float) -> None:
        """One event of the stream."""
        if error := event.get("error"):
            self.error = str(error)[:ERROR_CHARS]
        for choice in event.get("choices") or ():
            piece = choice.get("text") or (choice.get("delta") or {}).get("content")
            if piece:
                self.text += piece
                self.came_s.append(now_s)
        if usage := event.get("usage"):
            self.has_usage = True
            self.prompt_tokens = usage["prompt_tokens"]
            self.output_tokens = usage["completion_tokens"]
            self.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


@dataclass(slots=True)
class Seen:
    """What a load was answered. ``streams`` are those that run beside the clients, from ``quiet_s`` on
    all of them; they are closed before their end."""

    began_s: float
    ended_s: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    streams: list[Answer] = field(default_factory=list)
    quiet_s: float = 0.0
