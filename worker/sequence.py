"""One job inside the engine: its tokens, where it stands, and how it ends. Pure; times are given."""

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from shared.errors import ShapeFailed
from shared.protocol import (
    EndEvent,
    FinishReason,
    JobError,
    JobStatus,
    Sampling,
    Timings,
    TokenEvent,
    TokenLogprob,
    Usage,
)
from worker.detokenizer import Detokenizer, Released

_STATUS = {
    FinishReason.STOP: JobStatus.COMPLETED,
    FinishReason.LENGTH: JobStatus.COMPLETED,
    FinishReason.CANCELLED: JobStatus.CANCELLED,
    FinishReason.TIMEOUT: JobStatus.FAILED,
    FinishReason.ERROR: JobStatus.FAILED,
}


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Before this attempt, on Redis' clock, and when it began, on ours (both in s)."""

    queued_s: float
    before_attempt_s: float  #: submit to this attempt
    began_s: float
    ttft_s: float | None = None  #: if an earlier attempt sent the first token
    submitted_at_s: float = 0.0  #: Unix time


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token as sampled, with what the scheduler has to know of it."""

    token: int
    piece: bytes
    is_end: bool
    logprob: TokenLogprob | None = None
    is_last: bool = False  #: nothing may follow it, though it is not an end itself
    error: str = ""  #: it is no token, for that reason


def chunk_sizes(num_tokens: int, max_rows: int) -> list[int]:
    """Rows per chunk: full ones, then the rest. Never a chunk of one row, whose attention takes
    another kernel, unless there is but one token: a rest of one borrows from the chunk before."""
    full, rest = divmod(num_tokens, max_rows)
    sizes = [max_rows] * full + ([rest] if rest else [])
    if rest == 1 and full:
        sizes[-2:] = [max_rows - 1, 2] if max_rows > 2 else [3]
    return sizes


@dataclass(eq=False, slots=True)
class Sequence:
    job_id: str
    attempt: int
    worker: str
    prompt: tuple[int, ...]
    sampling: Sampling
    seed: int
    max_tokens: int
    times: JobTimes
    detokenizer: Detokenizer
    deadline_s: float | None = None
    slot: int = -1
    num_computed: int = 0  #: tokens whose KV the slot holds
    chunks: list[int] = field(default_factory=list)  #: rows of the chunks still to prefill
    output: list[int] = field(default_factory=list)
    num_known: int = 0  #: tokens from earlier attempts
    logprobs: list[TokenLogprob] = field(default_factory=list)  #: of this attempt's, if asked for
    num_released: int = 0
    first_token_s: float | None = None
    is_cancelled: bool = False

    def resume(self, known: Seq[int]) -> None:
        """Goes on after the tokens that the stream already holds: the released ones, whose text the
        detokenizer is not to hold again."""
        self.output += known
        self.num_released = self.num_known = len(known)

    def plan_prefill(self, max_rows: int) -> None:
        """The prompt by its own chunks, whatever follows it; then all known tokens but the last,
        which is the first input to decode."""
        self.chunks = chunk_sizes(len(self.prompt), max_rows)
        self.chunks += chunk_sizes(max(0, len(self.output) - 1), max_rows)

    @property
    def is_prefilling(self) -> bool:
        return bool(self.chunks)

    @property
    def num_tokens(self) -> int:
        return len(self.prompt) + len(self.output)

    def accept(
        self, drawn: Drawn, now_s: float, context_tokens: int
    ) -> list[TokenEvent | EndEvent]:
        """Takes the next token: what may be sent, and the end if it is one."""
        if self.first_token_s is None:
            self.first_token_s = now_s
        if drawn.error:
            failed = ShapeFailed(f"The answer could not be held to its shape: {drawn.error}")
            error = JobError(code=failed.code, message=failed.message)
            return self.finish(FinishReason.ERROR, now_s, error)
        if drawn.is_end:
            return self.finish(FinishReason.STOP, now_s)
        self.output.append(drawn.token)
        if drawn.logprob is not None:
            self.logprobs.append(drawn.logprob)
        events: list[TokenEvent | EndEvent] = []
        released = self.detokenizer.feed(drawn.token, drawn.piece)
        if released:
            events.append(self._token_event(released))
        if self.detokenizer.is_stopped:
            events.append(self._end_event(FinishReason.STOP, now_s, None))
        elif drawn.is_last:
            events += self.finish(FinishReason.STOP, now_s)
        elif len(self.output) >= self.max_tokens or self.num_tokens >= context_tokens:
            events += self.finish(FinishReason.LENGTH, now_s)
        return events

    def finish(
        self, reason: FinishReason, now_s: float, error: JobError | None = None
    ) -> list[TokenEvent | EndEvent]:
        """Sends what is held back, then the end."""
        released = self.detokenizer.flush()
        tokens = [self._token_event(released)] if released else []
        return [*tokens, self._end_event(reason, now_s, error)]

    def busy_ms(self, now_s: float) -> int:
        return round((now_s - self.times.began_s) * 1000)

    def _token_event(self, released: Released) -> TokenEvent:
        index, self.num_released = self.num_released, self.num_released + len(released.tokens)
        begin, end = index - self.num_known, self.num_released - self.num_known
        return TokenEvent(
            index=index,
            tokens=released.tokens,
            text=released.text,
            attempt=self.attempt,
            logprobs=tuple(self.logprobs[begin:end]) or None,
        )

    def _end_event(self, reason: FinishReason, now_s: float, error: JobError | None) -> EndEvent:
        first_s = self.first_token_s
        decode_s = None if first_s is None else now_s - first_s
        ttft_s = self.times.ttft_s
        if ttft_s is None and first_s is not None:
            ttft_s = self.times.before_attempt_s + first_s - self.times.began_s
        # The first token of an attempt is the prefill's, not decode's.
        num_decoded = len(self.output) - self.num_known - 1
        return EndEvent(
            status=_STATUS[reason],
            finish_reason=reason,
            usage=Usage(prompt_tokens=len(self.prompt), completion_tokens=self.num_released),
            timings=Timings(
                queued_s=_round(self.times.queued_s),
                prefill_s=_round((now_s if first_s is None else first_s) - self.times.began_s),
                decode_s=_round(decode_s),
                ttft_s=_round(ttft_s),
                total_s=_round(self.times.before_attempt_s + now_s - self.times.began_s),
                tokens_per_s=_round(num_decoded / decode_s)
                if decode_s and num_decoded > 0
                else None,
            ),
            error=error,
            seed=self.seed,
            worker=self.worker,
            attempts=self.attempt,
        )


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
