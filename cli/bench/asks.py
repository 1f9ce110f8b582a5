"""One request of a load, whichever server it goes to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Ask:
    """``messages`` of a chat, else ``prompt``."""

    output_tokens: int
    prompt: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()

    @property
    def path(self) -> str:
        return CHAT if self.messages else COMPLETIONS

    @property
    def content(self) -> dict[str, Any]:
        return {"messages": list(self.messages)} if self.messages else {"prompt": self.prompt}

    def after(self, history: tuple[Mapping[str, Any], ...]) -> "Ask":
        """The same turn, after what was said before it."""
        return replace(self, messages=(*history, *self.messages))
