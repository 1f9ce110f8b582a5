"""Log probabilities as OpenAI shows them, in the two shapes that it has for them. Pure."""

import codecs
from collections.abc import Iterable
from typing import Any

from shared.protocol import Alternative, TokenEvent, TokenLogprob

#: OpenAI's for what is as good as impossible; JSON has no infinity.
_LEAST = -9999.0


def chat_logprobs(events: Iterable[TokenEvent]) -> dict[str, Any] | None:
    """``None`` where the job was not asked for them."""
    told = _told(events)
    return None if told is None else {"content": [_chat(token) for token in told], "refusal": None}


def _chat(token: TokenLogprob) -> dict[str, Any]:
    return _one(token) | {"top_logprobs": [_one(other) for other in token.top]}


def _one(token: Alternative) -> dict[str, Any]:
    return {"token": token.text, "logprob": _bounded(token.logprob), "bytes": list(token.bytes)}


class TextOffsets:
    """Where in the text of a choice its tokens begin, in characters: one that begins inside of a
    character begins where that does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._num_chars = 0

    def next(self, token: TokenLogprob) -> int:
        offset = self._num_chars
        self._num_chars += len(self._decoder.decode(bytes(token.bytes)))
        return offset


def completion_logprobs(
    events: Iterable[TokenEvent], offsets: TextOffsets
) -> dict[str, Any] | None:
    """``offsets`` has seen the tokens before."""
    told = _told(events)
    if told is None:
        return None
    return {
        "tokens": [_written(token) for token in told],
        "token_logprobs": [_bounded(token.logprob) for token in told],
        "top_logprobs": [
            {_written(other): _bounded(other.logprob) for other in token.top} for token in told
        ]
        if any(token.top for token in told)
        else None,
        "text_offset": [offsets.next(token) for token in told],
    }


def _told(events: Iterable[TokenEvent]) -> list[TokenLogprob] | None:
    events = list(events)
    if all(event.logprobs is None for event in events):
        return None
    return [token for event in events for token in event.logprobs or ()]


def _written(token: Alternative) -> str:
    """A part of a character as OpenAI writes it, so that two of them are not one key."""
    raw = bytes(token.bytes)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


def _bounded(logprob: float) -> float:
    return max(logprob, _LEAST)
