"""What crosses a process boundary: the request of a job, its events, and what a worker reports.

Everything is JSON on the wire and is validated when it is read, in the gateway and again in the
worker: what stands in Redis is data, never code.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

#: llama.cpp takes 0xFFFFFFFF for "draw a random seed", so it is not a seed.
MAX_SEED = 2**32 - 2

#: What a setting of the gateway may be raised to. A worker does not know the gateway's settings: it
#: takes all that some gateway may have accepted.
PROMPT_CHARS_CEILING = 16_777_216
MESSAGES_CEILING = 65_536
STOPS_CEILING = 256
STOP_CHARS_CEILING = 4096


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode text, without lone surrogates") from None
    return text


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: JSON has one kind of number: 64.0 is an integer in it, and some clients write it so.
Integer = Annotated[int, BeforeValidator(_whole)]
# NOTE: bounds go before the validator: behind it, in a union, pydantic leaves them out of the schema.
Seed = Annotated[int, Field(ge=0, le=MAX_SEED), BeforeValidator(_whole)]

Text = Annotated[str, AfterValidator(_encodable)]
StopText = Annotated[Text, Field(min_length=1, max_length=STOP_CHARS_CEILING)]


class Priority(StrEnum):
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


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


class Frozen(BaseModel):
    # pydantic would keep the texts of 16,384 requests, prompts among them, to make them again faster.
    model_config = ConfigDict(frozen=True, extra="forbid", cache_strings="keys")


class Message(Frozen):
    role: Literal["system", "user", "assistant"]
    content: Annotated[Text, Field(max_length=PROMPT_CHARS_CEILING)]


class Sampling(Frozen):
    """How tokens are drawn. Defaults are llama-server's; its meaning of each name holds."""

    temperature: float = Field(0.8, ge=0, le=5, allow_inf_nan=False)
    top_k: Integer = Field(40, ge=0, le=1_000_000, description="0 turns it off")
    top_p: float = Field(0.95, ge=0, le=1, allow_inf_nan=False)
    min_p: float = Field(0.05, ge=0, le=1, allow_inf_nan=False)
    repeat_penalty: float = Field(1.0, ge=0.01, le=10, allow_inf_nan=False)
    presence_penalty: float = Field(0.0, ge=-2, le=2, allow_inf_nan=False)
    frequency_penalty: float = Field(0.0, ge=-2, le=2, allow_inf_nan=False)
    ignore_eos: bool = False


class GenerateRequest(Sampling):
    """The body of ``POST /generate``."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        cache_strings="keys",
        json_schema_extra={"examples": [{"prompt": "Explain gravity simply", "max_tokens": 64}]},
    )

    prompt: Text | None = Field(None, min_length=1, max_length=PROMPT_CHARS_CEILING)
    # fail_fast: a list of nonsense would have an error for each of its elements, half a million.
    messages: tuple[Message, ...] | None = Field(
        None, min_length=1, max_length=MESSAGES_CEILING, fail_fast=True
    )
    raw: bool = Field(False, description="continue the prompt as it is, without chat template")
    max_tokens: Integer = Field(256, ge=1, le=1_000_000)
    seed: Seed | None = None
    stop: (
        StopText | Annotated[tuple[StopText, ...], Field(max_length=STOPS_CEILING, fail_fast=True)]
    ) = ()
    timeout_s: float | None = Field(None, gt=0, le=604_800, allow_inf_nan=False)
    priority: Priority = Priority.NORMAL

    @model_validator(mode="after")
    def _one_input(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("give either `prompt` or `messages`")
        if self.raw and self.messages is not None:
            raise ValueError("`raw` goes with `prompt`, not with `messages`")
        return self

    @property
    def num_prompt_chars(self) -> int:
        return len(self.prompt or "") + sum(len(m.content) for m in self.messages or ())

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else self.stop


class JobArgs(Frozen):
    """``args[0]`` of the RQ job: all that a worker needs to know of it."""

    request: GenerateRequest
    seed: int = Field(ge=0, le=MAX_SEED)
    request_id: str | None = None


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
    code: str
    message: str


class StartEvent(Frozen):
    """The prompt is known; on the stream once per job, before the first token."""

    prompt_tokens: int


class TokenEvent(Frozen):
    """Tokens whose text is free: ``text`` is theirs, byte for byte; ``index`` counts from 0."""

    index: int
    tokens: tuple[int, ...]
    text: str
    attempt: int

    @property
    def end_index(self) -> int:
        return self.index + len(self.tokens)


class EndEvent(Frozen):
    """How the job ended: the only truth about it."""

    status: JobStatus
    finish_reason: FinishReason
    usage: Usage
    timings: Timings
    error: JobError | None = None
    seed: int
    worker: str | None = None
    attempts: int


Event = StartEvent | TokenEvent | EndEvent

_KINDS: dict[str, type[StartEvent] | type[TokenEvent] | type[EndEvent]] = {
    "start": StartEvent,
    "token": TokenEvent,
    "end": EndEvent,
}


def event_from_wire(kind: str, payload: str | bytes) -> Event:
    """Reads one stream entry. Raises ``KeyError`` or pydantic's ``ValidationError``."""
    return _KINDS[kind].model_validate_json(payload)


class WorkerState(StrEnum):
    WAITING = "waiting"  #: for a core
    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


class WorkerReport(BaseModel):
    """What a worker says of itself with every heartbeat (``GET /workers``)."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str
    incarnation: str
    pid: int
    host: str
    cores: tuple[int, ...] = ()
    threads: int = 0
    model: str
    model_path: str = ""
    model_description: str = ""
    state: WorkerState
    slots: int = 0
    slots_used: int = 0
    context_tokens: int = 0
    kv_cache_bytes: int = 0
    batch_invariant: bool | None = None
    has_chat_template: bool | None = None
    tokens_per_s: float = 0.0
    memory_mb: float = 0.0
    cpu_percent: float = 0.0
    started_at: float = 0.0
    llama_cpp: str = ""


def to_wire(model: BaseModel) -> str:
    return model.model_dump_json()


def job_args_to_wire(args: JobArgs) -> dict[str, Any]:
    """Only what was set, so that a default can change without changing what waits in a queue."""
    return args.model_dump(mode="json", exclude_unset=True)
