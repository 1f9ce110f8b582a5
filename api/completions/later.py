"""An answer that is fetched later, by the id that it was announced with."""

from typing import Any

from api.completions.answer import answer, head
from api.completions.ends import error_of
from api.completions.form import Endpoint, Form
from api.deps import Gateway
from api.errors import status_of
from api.job_reads import read_events
from api.keyring import Caller
from api.openai_errors import openai_body, openai_status
from shared.errors import BadRequest, JobNotFound
from shared.protocol import JobStatus
from shared.stream import JobRecord, Transcript

_STATUS = {JobStatus.RUNNING: "in_progress"}


async def read_later(
    gateway: Gateway, endpoint: Endpoint, call_id: str, caller: Caller
) -> dict[str, Any]:
    """Raises ``JobNotFound``, also for a job of another route, or of somebody else."""
    prefix = Form(endpoint=endpoint, model="").id_prefix
    job_id = call_id.removeprefix(prefix)
    record, transcript = await read_events(gateway.reads, job_id, caller)
    form = Form.of_note(record.note)
    if job_id == call_id or form is None or form.endpoint != endpoint:
        raise JobNotFound()
    if form.num_jobs is not None:
        raise BadRequest(
            f"this call has {form.num_jobs} choices, of which each is a job of its own; "
            f"the first one can be read at /jobs/{job_id}"
        )
    return later(form, job_id, record, transcript)


def later(form: Form, job_id: str, record: JobRecord, transcript: Transcript) -> dict[str, Any]:
    """Pure. ``status`` says whether there are ``choices``, or an ``error``."""
    call_id, created_s = form.call_id(job_id), record.created_ms // 1000
    if transcript.end is None:
        status = record.status
        # Between two reads it may have ended; the next one will see how.
        told = _STATUS.get(status, status.value) if not status.is_final else "in_progress"
        return {**head(form, call_id, created_s), "status": told, "choices": []}
    status = transcript.end.status
    if error := error_of(transcript.end, f"job {job_id}"):
        whole = head(form, call_id, created_s) | {"status": status.value, "choices": []}
        return whole | openai_body(error, openai_status(error, status_of(error)))
    return answer(form, call_id, created_s, [transcript]) | {"status": status.value}


def announced(form: Form, job_id: str, created_s: int) -> dict[str, Any]:
    """Of a call that nobody waits for."""
    return {**head(form, form.call_id(job_id), created_s), "status": "queued", "choices": []}
