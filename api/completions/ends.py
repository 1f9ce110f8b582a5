"""How a job's end is told to OpenAI's clients: as a finish reason, or as an error. Pure."""

from shared.errors import (
    BadRequest,
    GenerationTimedOut,
    JobCancelled,
    JobFailed,
    NoChatTemplate,
    PromptTooLong,
    ServiceError,
)
from shared.protocol import EndEvent, FinishReason, JobStatus

_ERRORS: dict[str, type[ServiceError]] = {
    cls.code: cls for cls in (PromptTooLong, NoChatTemplate, BadRequest, GenerationTimedOut)
}
#: Fields of a job that have another name in OpenAI's bodies.
_NAMES = {"prompt_token_ids": "prompt"}


def error_of(end: EndEvent, what: str = "the job") -> ServiceError | None:
    """``None`` if it gave an answer. A deadline or somebody's DELETE is an error: half of an answer
    that looks whole would be taken for one. What was written can be read at ``what``."""
    if end.status is JobStatus.COMPLETED:
        return None
    if end.status is JobStatus.CANCELLED:
        return JobCancelled(f"{what} was cancelled before it was done; its text so far is kept")
    if end.finish_reason is FinishReason.TIMEOUT:
        return GenerationTimedOut(f"the deadline of {what} passed; its text so far is kept")
    if end.error is None:
        return JobFailed()
    field = _NAMES.get(end.error.field or "", end.error.field)
    error = _ERRORS.get(end.error.code, JobFailed)(end.error.message, field=field)
    error.code = end.error.code
    return error


def is_cut(end: EndEvent) -> bool:
    """Whether the model had not come to its end."""
    return end.finish_reason is FinishReason.LENGTH


def finish_reason(end: EndEvent, num_calls: int) -> str:
    if is_cut(end):  # of several calls the last one may be cut
        return "length"
    return "tool_calls" if num_calls else "stop"
