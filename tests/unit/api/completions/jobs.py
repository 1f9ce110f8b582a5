"""Jobs that have ended, for tests of how they are told."""

from shared.protocol import (
    Alternative,
    EndEvent,
    FinishReason,
    JobError,
    JobStatus,
    StartEvent,
    Timings,
    TokenEvent,
    TokenLogprob,
    Usage,
)
from shared.stream import Transcript


def end(
    status: JobStatus = JobStatus.COMPLETED,
    reason: FinishReason = FinishReason.STOP,
    *,
    tokens: int = 2,
    code: str | None = None,
    field: str | None = None,
) -> EndEvent:
    return EndEvent(
        status=status,
        finish_reason=reason,
        usage=Usage(prompt_tokens=5, cached_tokens=3, completion_tokens=tokens),
        timings=Timings(),
        error=None
        if code is None
        else JobError(code=code, message=f"because of {code}", field=field),
        seed=1,
        attempts=1,
    )


def token(index: int, text: str, *, raw: bytes | None = None) -> TokenEvent:
    """With log probabilities where its bytes are given."""
    logprobs = None
    if raw is not None:
        other = Alternative(token=9, bytes=tuple(b"other"), logprob=-3.0)
        chosen = Alternative(token=1, bytes=tuple(raw), logprob=-0.5)
        told = TokenLogprob(token=1, bytes=tuple(raw), logprob=-0.5, top=(chosen, other))
        logprobs = (told,)
    return TokenEvent(index=index, tokens=(1,), text=text, attempt=1, logprobs=logprobs)


def job(*texts: str, ended: EndEvent | None = None) -> Transcript:
    tokens = [token(i, text) for i, text in enumerate(texts)]
    ended = ended or end(tokens=len(texts))
    return Transcript(start=StartEvent(prompt_tokens=5), tokens=tokens, end=ended)
