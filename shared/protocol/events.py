"""What goes on a job's stream, from its first token to how it ended."""

from enum import StrEnum

from pydantic import BaseModel

from shared.protocol.base import Frozen


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (JobStatus.QUEUED, JobStatus.RUNNING)


class FinishReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    ERROR = "error"


class Usage(Frozen):
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


class Timings(Frozen):
    """Seconds. ``queued_s`` from submit to the first attempt, ``ttft_s`` from submit to the first
    token, ``prefill_s`` and ``decode_s`` of the last attempt, ``total_s`` from submit to the end;
    ``tokens_per_s`` is decoded tokens over ``decode_s``."""

    queued_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    ttft_s: float | None = None
    total_s: float | None = None
    tokens_per_s: float | None = None


class JobError(Frozen):
    """``field`` of the request, where it was that. The gateways before it cannot read it."""

    code: str
    message: str
    field: str | None = None


class Weights(Frozen):
    """Which file a worker has loaded. ``fingerprint``: 16 hex characters of its SHA-256; ``format``: one of
    ``shared.weight_formats``, or `other`. Two files of one model answer differently."""

    format: str
    fingerprint: str


class StartEvent(Frozen):
    """The prompt is known; on the stream once per job, before the first token."""

    prompt_tokens: int


class Alternative(Frozen):
    """A token that might have stood in a place. ``bytes`` may be a part of a character."""

    token: int
    bytes: tuple[int, ...]
    logprob: float

    @property
    def text(self) -> str:
        return bytes(self.bytes).decode(errors="replace")


class TokenLogprob(Alternative):
    """``logprob`` is the natural logarithm of the probability that the model gave the token, before
    temperature, penalties, biases and grammar; ``top`` are the likeliest, best first."""

    top: tuple[Alternative, ...] = ()


class TokenEvent(Frozen):
    """Tokens whose text is free: ``text`` is theirs, byte for byte; ``index`` counts from 0.
    ``logprobs``, where they were asked for, has one element for each token."""

    index: int
    tokens: tuple[int, ...]
    text: str
    attempt: int
    logprobs: tuple[TokenLogprob, ...] | None = None

    @property
    def end_index(self) -> int:
        return self.index + len(self.tokens)


class EndEvent(Frozen):
    """How the job ended: the only truth about it. ``weights`` of the worker of the last attempt. The
    gateways before them cannot read them, so gateways are renewed before workers."""

    status: JobStatus
    finish_reason: FinishReason
    usage: Usage
    timings: Timings
    error: JobError | None = None
    seed: int
    worker: str | None = None
    attempts: int
    weights: Weights | None = None


Event = StartEvent | TokenEvent | EndEvent

_KINDS: dict[str, type[StartEvent] | type[TokenEvent] | type[EndEvent]] = {
    "start": StartEvent,
    "token": TokenEvent,
    "end": EndEvent,
}


def event_from_wire(kind: str, payload: str | bytes) -> Event:
    """Reads one stream entry. Raises ``KeyError`` or pydantic's ``ValidationError``."""
    return _KINDS[kind].model_validate_json(payload)


def to_wire(model: BaseModel) -> str:
    if isinstance(model, EndEvent):
        left_out: dict[str, bool | set[str]] = {}
        if model.error is not None and model.error.field is None:
            left_out["error"] = {"field"}
        if model.weights is None:
            left_out["weights"] = True
        return model.model_dump_json(exclude=left_out)
    return model.model_dump_json(exclude_none=isinstance(model, TokenEvent))
