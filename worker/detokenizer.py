"""From tokens to text that may be sent. Pure.

A token is released once all its text is free: its characters are whole, and no part of it may yet
become the beginning of a stop string. So what was sent never has to be taken back, and a fresh
detokenizer goes on after released tokens: they leave nothing behind.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Released:
    tokens: tuple[int, ...]
    text: str


@dataclass(slots=True)
class _Held:
    token: int
    text: str
    is_whole: bool  #: no character is begun after this token


class Detokenizer:
    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: list[_Held] = []
        self.is_stopped = False

    def feed(self, token: int, piece: bytes) -> Released | None:
        """What this token frees; sets ``is_stopped`` if it completes a stop string, whose text and
        all after it is cut off."""
        text = self._decoder.decode(piece)
        self._held.append(_Held(token, text, not self._decoder.getstate()[0]))
        held_text = "".join(held.text for held in self._held)
        found = [at for stop in self._stops if (at := held_text.find(stop)) >= 0]
        if found:
            self.is_stopped = True
            return self._release(len(self._held), held_text[: min(found)])
        return self._release_free(len(held_text) - self._begun_stop_chars(held_text))

    def flush(self) -> Released | None:
        """The rest, when the generation has ended in another way than by a stop string."""
        tail = self._decoder.decode(b"", True)
        if not self._held:
            return None
        return self._release(len(self._held), "".join(held.text for held in self._held) + tail)

    def _begun_stop_chars(self, text: str) -> int:
        """Length of the longest end of ``text`` that is a beginning of a stop string."""
        for length in range(min(len(text), max(map(len, self._stops), default=0)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0

    def _release_free(self, num_free_chars: int) -> Released | None:
        num_tokens = num_chars = at_chars = 0
        for i, held in enumerate(self._held, 1):
            at_chars += len(held.text)
            if at_chars > num_free_chars:
                break
            if held.is_whole:
                num_tokens, num_chars = i, at_chars
        if not num_tokens:
            return None
        return self._release(num_tokens, "".join(h.text for h in self._held)[:num_chars])

    def _release(self, num_tokens: int, text: str) -> Released:
        released, self._held = self._held[:num_tokens], self._held[num_tokens:]
        return Released(tuple(held.token for held in released), text)
