"""A job's events: the writer for workers, and how a reader understands what stands in Redis.

An entry of the stream is ``k`` (kind) and ``d`` (the event as JSON). The writer's entries go through
``append.lua``, which drops what an outdated attempt sends and what was sent before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.protocol import (
    EndEvent,
    Event,
    JobStatus,
    Priority,
    StartEvent,
    TokenEvent,
    event_from_wire,
    to_wire,
)

#: The last moment of year 9999, which is as far as dates go.
_MAX_MS = 253_402_300_799_999

Call = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of one attempt; ``event`` is ``None`` to ask only whether the job may go on."""

    job_id: str
    attempt: int
    event: Event | None
    busy_ms: int = 0

    def to_args(self) -> tuple[Any, ...]:
        match self.event:
            case None:
                return (self.job_id, self.attempt, "check", 0, 0, "", "", 0)
            case StartEvent() as start:
                return (
                    self.job_id,
                    self.attempt,
                    "start",
                    0,
                    start.prompt_tokens,
                    to_wire(start),
                    "",
                    0,
                )
            case TokenEvent() as token:
                n = len(token.tokens)
                return (self.job_id, self.attempt, "token", token.index, n, to_wire(token), "", 0)
            case EndEvent() as end:
                return (
                    self.job_id,
                    self.attempt,
                    "end",
                    end.usage.completion_tokens,
                    0,
                    to_wire(end),
                    end.status,
                    self.busy_ms,
                )


def append_call(incarnation: str, result_ttl_s: int, entries: Iterable[Entry]) -> Call:
    """For ``run_scripts``; the reply is read by ``verdicts``."""
    args = [value for entry in entries for value in entry.to_args()]
    return "append", (incarnation, result_ttl_s, *args)


def verdicts(reply: Any) -> dict[str, str]:
    """Job id -> ``fenced``, ``ended`` or ``cancelled``; an empty dict if all may go on.
    Raises ``Buried`` if this incarnation was declared dead."""
    if reply == b"buried":
        raise Buried
    return {job_id.decode(): verdict.decode() for job_id, verdict in reply}


class Buried(Exception):
    """This worker was declared dead: what it writes no longer counts; it must exit."""


def parse_entry(fields: Mapping[bytes, bytes]) -> Event:
    return event_from_wire(fields[b"k"].decode(), fields[b"d"])


@dataclass(slots=True)
class Transcript:
    """A job's events as read so far."""

    start: StartEvent | None = None
    tokens: list[TokenEvent] = field(default_factory=list)
    end: EndEvent | None = None

    def add(self, event: Event) -> None:
        match event:
            case StartEvent():
                self.start = event
            case TokenEvent():
                self.tokens.append(event)
            case EndEvent():
                self.end = event

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.tokens)

    @property
    def num_tokens(self) -> int:
        return self.tokens[-1].end_index if self.tokens else 0

    @property
    def token_ids(self) -> list[int]:
        return [token for event in self.tokens for token in event.tokens]


def read_transcript(entries: Iterable[tuple[bytes, Mapping[bytes, bytes]]]) -> Transcript:
    """From the reply of XRANGE. What is no event of ours, or does not follow, is left out."""
    transcript = Transcript()
    for _, fields in entries:
        try:
            event = parse_entry(fields)
        except (KeyError, ValueError):
            continue
        if not isinstance(event, TokenEvent) or event.index == transcript.num_tokens:
            transcript.add(event)
    return transcript


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Our hash of one job. Times are ms of Redis' clock."""

    status: JobStatus
    queue: str
    model: str
    seed: int
    created_ms: int
    started_ms: int | None
    first_token_ms: int | None
    ended_ms: int | None
    deadline_ms: int | None
    attempt: int
    count: int
    worker: str
    prompt_tokens: int | None
    cancelling: bool
    owner: str  #: '' for a job that was submitted without a key
    note: str = ""  #: of the gateway that submitted it
    webhook: str = ""  #: where its end is told

    @classmethod
    def from_hash(cls, raw: Mapping[bytes, bytes]) -> "JobRecord | None":
        """``None`` for a hash that is not there, or not whole: it has expired, or is damaged."""
        try:
            return cls._read(raw)
        except (KeyError, ValueError):
            return None

    @classmethod
    def _read(cls, raw: Mapping[bytes, bytes]) -> "JobRecord":
        def whole(text: bytes) -> int:
            number = int(text)
            if not 0 <= number <= _MAX_MS:
                raise ValueError(f"{number} is neither a time nor a count")
            return number

        def number(name: bytes) -> int | None:
            return whole(raw[name]) if raw.get(name) else None

        Priority(raw[b"queue"].decode().rsplit(":", 1)[-1])
        return cls(
            status=JobStatus(raw[b"status"].decode()),
            queue=raw[b"queue"].decode(),
            model=raw[b"model"].decode(),
            seed=whole(raw[b"seed"]),
            created_ms=whole(raw[b"created_ms"]),
            started_ms=number(b"started_ms"),
            first_token_ms=number(b"first_token_ms"),
            ended_ms=number(b"ended_ms"),
            deadline_ms=number(b"deadline_ms"),
            attempt=whole(raw.get(b"attempt", b"0")),
            count=whole(raw.get(b"count", b"0")),
            worker=raw.get(b"worker", b"").decode(),
            prompt_tokens=number(b"prompt_tokens"),
            cancelling=b"cancel" in raw,
            owner=raw.get(b"owner", b"").decode(),
            note=raw.get(b"note", b"").decode(),
            webhook=raw.get(b"webhook", b"").decode(),
        )
