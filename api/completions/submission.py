"""Puts the jobs of a call into their queues: all of them, or none. Blocking."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.completions.call import Call
from shared.broker import Broker, Submitted
from shared.logs import note_job
from shared.shapes import check_shape


@dataclass(frozen=True, slots=True)
class Origin:
    """Who sent the call, and in which request."""

    request_id: str
    owner: str
    idempotency_key: str | None


def submit_call(broker: Broker, call: Call, model: str, origin: Origin) -> list[Submitted]:
    """Raises ``BadRequest`` for a shape that cannot be kept to, and what ``Broker.submit`` raises; then
    those that it took before are cancelled."""
    check_shape(call.jobs[0], call.form.tool_format)  # the same for all of them
    taken: list[Submitted] = []
    try:
        for index, job in enumerate(call.jobs):
            # The note has the name of the model: it may have been asked for by another.
            done = broker.submit(
                job.model_copy(update={"model": None}),
                origin.request_id,
                owner=origin.owner,
                idempotency_key=_key(call, origin.idempotency_key, index),
                model=model,
                note=call.form.to_note(),
                identity=call.form.to_identity(),
            )
            taken.append(done)
            note_job(done.job_id)
    except Exception:
        cancel_jobs(broker, [job.job_id for job in taken if job.is_new])
        raise
    return taken


def cancel_jobs(broker: Broker, job_ids: Sequence[str]) -> None:
    for job_id in job_ids:
        broker.cancel(job_id)


def _key(call: Call, given: str | None, index: int) -> str | None:
    """One for each job. A given one has no space in it, so it is not that of another route."""
    return None if given is None else f"{call.form.endpoint} {index} {given}"
