"""Answers questions beside the jobs, in a thread and over a connection of its own.

It reads the vocabulary and the template alone, which llama.cpp lets several threads do, and touches
no sequence. A question that is bad, or fails, is answered with what is wrong.
"""

import logging
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Protocol

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import RedisError

from shared.asks import (
    Answer,
    ApplyTemplate,
    Ask,
    Detokenize,
    Tokenize,
    joined,
    piece_of,
    put_answer,
    take_ask,
)
from shared.errors import ServiceError
from shared.protocol import Message, Tool

log = logging.getLogger(__name__)

#: So long a worker that is told to stop may go on waiting for a question.
_WAIT_S = 0.5
_PAUSE_S = 0.5


class Words(Protocol):
    """What an answer takes of a backend."""

    def tokenize(self, text: str, *, raw: bool, add_special: bool = True) -> list[int]: ...

    def render_chat(
        self, messages: Sequence[Message], at_s: float, tools: Sequence[Tool] = ()
    ) -> str: ...

    def text_bytes(self, token: int) -> bytes: ...


class Answers:
    """For a ``with``: afterwards nobody reads the backend any more, and it may be closed."""

    def __init__(self, client: Redis, words: Words, model: str) -> None:
        self._client = client
        self._words = words
        self._model = model
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="answers", daemon=True)

    def __enter__(self) -> "Answers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        is_failing = False
        while not self._is_over.is_set():
            try:
                raw = take_ask(self._client, self._model, _WAIT_S)
                if raw is not None:
                    self._handle(raw)
                is_failing = False
            except RedisError as error:
                if not is_failing:
                    log.warning("questions are not answered while Redis fails: %r", error)
                is_failing = True
                self._is_over.wait(_PAUSE_S)
            except Exception:  # one question is no reason to answer no other
                log.exception("a question could not be handled")

    def _handle(self, raw: bytes) -> None:
        try:
            ask = Ask.model_validate_json(raw)
        except ValidationError:
            # Its words may be a prompt's.
            log.warning("%d bytes among the questions are no question of ours", len(raw))
            return
        seconds, microseconds = self._client.time()
        if seconds * 1000 + microseconds // 1000 > ask.deadline_ms:
            return  # nobody waits for it any more
        put_answer(self._client, ask, self.answer(ask))

    def answer(self, ask: Ask) -> Answer:
        try:
            return self._answer(ask.tokenize or ask.detokenize or ask.apply_template)
        except ServiceError as error:
            return Answer(code=error.code, error=error.message, field=error.field)
        except Exception:
            log.exception("a question failed")
            return Answer(code="internal_error", error="The question failed inside the worker.")

    def _answer(self, question: Tokenize | Detokenize | ApplyTemplate | None) -> Answer:
        match question:
            case Tokenize():
                return self._tokenize(question)
            case Detokenize():
                return self._detokenize(question)
            case ApplyTemplate():
                chat, tools = question.messages, question.tools or ()
                return Answer(text=self._words.render_chat(chat, time.time(), tools))
            case None:
                raise AssertionError("an ask has one question")

    def _tokenize(self, question: Tokenize) -> Answer:
        raw = not question.parse_special
        text = question.content
        tokens = self._words.tokenize(text, raw=raw, add_special=question.add_special)
        if not question.with_pieces:
            return Answer(tokens=tuple(tokens))
        return Answer(pieces=tuple(piece_of(t, self._words.text_bytes(t)) for t in tokens))

    def _detokenize(self, question: Detokenize) -> Answer:
        pieces = []
        for index, token in enumerate(question.tokens):
            try:
                pieces.append(self._words.text_bytes(token))
            except ValueError:
                said = f"tokens.{index}: {token} is no token of this model"
                return Answer(code="invalid_request", error=said, field=f"tokens.{index}")
        return Answer(text=joined(pieces))
