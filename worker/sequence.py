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
    Weights,
)
from worker.detokenizer import Detokenizer, Released
from worker.reuse import Reuse

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
    weights: Weights | None = None
    deadline_s: float | None = None
    slot: int = -1
    num_computed: int = 0  #: tokens whose KV the slot holds
    prefill_end: int = 0  #: so many are prefilled; what follows is decoded
    reuse: Reuse = field(default_factory=Reuse)
    end: EndEvent | None = None
    is_preemptible: bool = False
    output: list[int] = field(default_factory=list)
    num_known: int = 0  #: tokens from earlier attempts
    logprobs: list[TokenLogprob] = field(default_factory=list)  #: of this attempt's, if asked for
    num_released: int = 0
    first_token_s: float | None = None
    last_token_s: float | None = None  #: when its newest token was drawn
    gap_s: float | None = None  #: between its two newest tokens, if its last draw was one
    is_cancelled: bool = False

    def resume(self, known: Seq[int]) -> None:
        """Goes on after the tokens that the stream already holds: the released ones, whose text the
        detokenizer is not to hold again."""
        self.output += known
        self.num_released = self.num_known = len(known)

    def plan_prefill(self) -> None:
        """The prompt, then all known tokens but the last, which is the first input to decode."""
        self.prefill_end = len(self.prompt) + max(0, len(self.output) - 1)

    @property
    def is_prefilling(self) -> bool:
        return self.num_computed < self.prefill_end

    @property
    def draws_first(self) -> bool:
        """Whether its next token comes of its prefill."""
        return not self.output

    def next_stop(self, position: int) -> int:
        """Where a chunk at ``position`` has to end at the latest: the prompt has its own chunks,
        whatever follows it."""
        stops = (*self.reuse.cuts, len(self.prompt), self.prefill_end)
        return min(stop for stop in stops if stop > position)

    def fed(self, begin: int, end: int) -> tuple[int, ...]:
        """Its tokens from ``begin`` to ``end``, prompt and output as one."""
        num_prompt = len(self.prompt)
        if end <= num_prompt:
            return self.prompt[begin:end]
        rest = self.output[max(0, begin - num_prompt) : end - num_prompt]
        return (*self.prompt[begin:], *rest)

    @property
    def num_tokens(self) -> int:
        return len(self.prompt) + len(self.output)

    def accept(
        self, drawn: Drawn, now_s: float, context_tokens: int
    ) -> list[TokenEvent | EndEvent]:
        """Takes the next token: what may be sent, and the end if it is one."""
        if self.first_token_s is None:
            self.first_token_s = now_s
        last_s, self.gap_s = self.last_token_s, None
        if drawn.error:
            failed = ShapeFailed(f"The answer could not be held to its shape: {drawn.error}")
            error = JobError(code=failed.code, message=failed.message)
            return self.finish(FinishReason.ERROR, now_s, error)
        if drawn.is_end:
            return self.finish(FinishReason.STOP, now_s)
        self.gap_s, self.last_token_s = None if last_s is None else now_s - last_s, now_s
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
        self.end = EndEvent(
            status=_STATUS[reason],
            finish_reason=reason,
            usage=Usage(
                prompt_tokens=len(self.prompt),
                cached_tokens=min(self.reuse.num_restored, len(self.prompt)),
                completion_tokens=self.num_released,
            ),
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
            weights=self.weights,
        )
        return self.end


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
