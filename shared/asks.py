"""Questions that a worker answers beside its jobs, at once: text to tokens and back, and a chat as a prompt.

An ask waits in a list of its model, which is bounded, until a worker or its deadline comes. The answer
is a key that expires; a stream of each gateway names the asks that are answered.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from shared.errors import NoWorkerReady, Overloaded
from shared.keys import answer_key, answered_key, answerers_key, asks_key
from shared.protocol import (
    MAX_TOOLS,
    MESSAGES_CEILING,
    PROMPT_CHARS_CEILING,
    PROMPT_TOKENS_CEILING,
    Message,
    Tool,
)
from shared.protocol.base import Frozen, Integer, Text
from shared.protocol.request import MAX_TOKEN_ID
from shared.scripts import run_script_async

#: Waiting in one list; a worker answers hundreds in a second.
MAX_WAITING = 256
#: How long an answer is kept for a gateway that was away.
ANSWER_TTL_S = 30
#: How long a worker counts as one that answers, after it said so.
ANSWERER_TTL_S = 5

_TokenId = Annotated[Integer, Field(ge=0, le=MAX_TOKEN_ID)]
_ModelField = Annotated[Text, Field(min_length=1, max_length=1024)] | None


class Tokenize(Frozen):
    """The body of ``POST /tokenize``. Names and defaults are llama-server's."""

    content: Text = Field(max_length=PROMPT_CHARS_CEILING)
    add_special: bool = Field(False, description="begin with BOS, where the model wants it")
    parse_special: bool = Field(True, description="special tokens in the text are not plain text")
    with_pieces: bool = Field(False, description="each token with its text")
    model: _ModelField = Field(None, description="none: the gateway's own")


class Detokenize(Frozen):
    """The body of ``POST /detokenize``."""

    tokens: tuple[_TokenId, ...] = Field(max_length=PROMPT_TOKENS_CEILING, fail_fast=True)
    model: _ModelField = Field(None, description="none: the gateway's own")


class ApplyTemplate(Frozen):
    """The body of ``POST /apply-template``."""

    messages: tuple[Message, ...] = Field(min_length=1, max_length=MESSAGES_CEILING, fail_fast=True)
    tools: tuple[Tool, ...] | None = Field(None, min_length=1, max_length=MAX_TOOLS, fail_fast=True)
    model: _ModelField = Field(None, description="none: the gateway's own")


Question = Tokenize | Detokenize | ApplyTemplate


class Ask(Frozen):
    """One of the three questions; ``deadline_ms`` by Redis' clock."""

    ask_id: str
    gateway_id: str
    deadline_ms: int
    tokenize: Tokenize | None = None
    detokenize: Detokenize | None = None
    apply_template: ApplyTemplate | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        questions = (self.tokenize, self.detokenize, self.apply_template)
        if sum(question is not None for question in questions) != 1:
            raise ValueError("an ask has one question")
        return self


class Piece(Frozen):
    """``piece`` is a list of bytes where it is no text by itself."""

    id: int
    piece: str | tuple[int, ...]


class Answer(Frozen):
    """``code`` and ``error`` where the question was refused."""

    tokens: tuple[int, ...] | None = None
    pieces: tuple[Piece, ...] | None = None
    text: str | None = None
    code: str | None = None
    error: str | None = None
    field: str | None = None


async def put_ask(
    client: AsyncRedis,
    model: str,
    ask_id: str,
    gateway_id: str,
    timeout_ms: int,
    question: Question,
) -> None:
    """Raises ``NoWorkerReady`` at once where nobody answers, and ``Overloaded``."""
    kind = {Tokenize: "tokenize", Detokenize: "detokenize", ApplyTemplate: "apply_template"}
    wire = question.model_dump_json(exclude_unset=True)
    head = (ask_id, gateway_id, kind[type(question)])
    verdict = await run_script_async(client, "ask", model, timeout_ms, MAX_WAITING, *head, wire)
    if verdict == b"nobody":
        raise NoWorkerReady(f"No worker of the model {model!r} is ready.")
    if verdict == b"full":
        raise Overloaded("Too many questions wait for a worker already; try again.")


async def fetch_answer(client: AsyncRedis, ask_id: str) -> Answer | None:
    """``None`` where it has expired, or is none."""
    async with client.pipeline(transaction=False) as pipe:
        pipe.get(answer_key(ask_id))
        pipe.delete(answer_key(ask_id))
        raw, _ = await pipe.execute()
    try:
        return Answer.model_validate_json(raw) if raw else None
    except ValueError:
        return None


def take_ask(client: Redis, model: str, wait_s: float) -> bytes | None:
    """Blocking. It says beside that somebody of this model answers."""
    client.set(answerers_key(model), "1", ex=ANSWERER_TTL_S)
    reply: Any = client.blpop([asks_key(model)], timeout=wait_s)
    return None if reply is None else bytes(reply[1])


def put_answer(client: Redis, ask: Ask, answer: Answer) -> None:
    told = answered_key(ask.gateway_id)
    with client.pipeline(transaction=False) as pipe:
        pipe.set(answer_key(ask.ask_id), answer.model_dump_json(exclude_none=True), ex=ANSWER_TTL_S)
        pipe.xadd(told, {"i": ask.ask_id}, maxlen=4 * MAX_WAITING)
        pipe.expire(told, 2 * ANSWER_TTL_S)
        pipe.execute()


def piece_of(token: int, piece: bytes) -> Piece:
    try:
        return Piece(id=token, piece=piece.decode())
    except UnicodeDecodeError:
        return Piece(id=token, piece=tuple(piece))


def joined(pieces: Sequence[bytes]) -> str:
    """What is no UTF-8 becomes a replacement character."""
    return b"".join(pieces).decode(errors="replace")
