from api.completions.form import Form
from api.completions.later import later
from shared.protocol import FinishReason, JobStatus
from shared.stream import JobRecord, Transcript
from tests.unit.api.completions.jobs import end, job

FORM = Form(endpoint="/v1/chat/completions", model="m", user="u")


def record(status: JobStatus) -> JobRecord:
    fields = {"status": status.value, "queue": "m:normal", "model": "m", "seed": "1"}
    raw = {k.encode(): v.encode() for k, v in (fields | {"created_ms": "7500"}).items()}
    found = JobRecord.from_hash(raw)
    assert found is not None
    return found


def test_a_job_that_has_not_ended_has_a_status_and_no_choices() -> None:
    for status, told in ((JobStatus.QUEUED, "queued"), (JobStatus.RUNNING, "in_progress")):
        found = later(FORM, "j", record(status), Transcript())
        assert (found["status"], found["choices"]) == (told, [])
        assert (found["id"], found["created"]) == ("chatcmpl-j", 7)


def test_an_answer_is_whole_and_completed() -> None:
    found = later(FORM, "j", record(JobStatus.COMPLETED), job("a"))
    assert found["status"] == "completed"
    assert found["choices"][0]["message"]["content"] == "a"
    assert found["usage"]["total_tokens"] == 6


def test_a_job_without_an_answer_says_why() -> None:
    ended = end(JobStatus.CANCELLED, FinishReason.CANCELLED)
    found = later(FORM, "j", record(JobStatus.CANCELLED), job("a", ended=ended))
    assert (found["status"], found["choices"]) == ("cancelled", [])
    assert found["error"]["code"] == "job_cancelled"
    ended = end(JobStatus.FAILED, FinishReason.ERROR, code="context_length_exceeded")
    found = later(FORM, "j", record(JobStatus.FAILED), job(ended=ended))
    assert found["error"]["type"] == "invalid_request_error"


def test_a_form_is_kept_in_a_note_and_other_notes_are_none() -> None:
    assert Form.of_note(FORM.to_note()) == FORM
    assert Form.of_note("") is None
    assert Form.of_note('{"user": "u"}') is None
