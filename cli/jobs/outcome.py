"""What became of a job that was to be cancelled, in words. Pure."""

from typing import Any


def outcome_of(job: dict[str, Any], *, had_ended: bool) -> str:
    """``job`` as ``DELETE`` answers it."""
    job_id, status = job["job_id"], job["status"]
    if had_ended:
        return f"{job_id} had ended before: {status}"
    if not job["ended_at"]:
        return (
            f"{job_id} will be cancelled: its worker has not come to it yet; "
            f"see: mini-vllm jobs show {job_id}"
        )
    num_tokens = job["usage"]["completion_tokens"]
    if status == "cancelled":
        return f"{job_id} cancelled after {num_tokens} tokens"
    return f"{job_id} ended meanwhile: {status}, {num_tokens} tokens"
