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
    error = _ERRORS.get(end.error.code, JobFailed)(end.error.message)
    error.code = end.error.code
    return error


def finish_reason(end: EndEvent, num_calls: int) -> str:
    if end.finish_reason is FinishReason.LENGTH:  # of several calls the last one may be cut
        return "length"
    return "tool_calls" if num_calls else "stop"
