from datetime import UTC, datetime

from api.job_view import end_of, summarize, view
from shared.protocol import JobStatus, Priority, StartEvent, TokenEvent, Weights, to_wire
from shared.stream import JobRecord, Transcript
from tests.unit.api.test_sse import END

RAW = {
    b"status": b"running",
    b"queue": b"m:high",
    b"model": b"m",
    b"seed": b"9",
    b"created_ms": b"1000",
    b"started_ms": b"1500",
    b"first_token_ms": b"2000",
    b"attempt": b"2",
    b"count": b"2",
    b"worker": b"worker-0.ab",
    b"prompt_tokens": b"7",
}
TRANSCRIPT = Transcript(
    start=StartEvent(prompt_tokens=7),
    tokens=[
        TokenEvent(index=0, tokens=(1,), text="a", attempt=1),
        TokenEvent(index=1, tokens=(2,), text="b", attempt=2),
    ],
)


def record(**changes: str) -> JobRecord:
    made = JobRecord.from_hash(RAW | {k.encode(): v.encode() for k, v in changes.items()})
    assert made is not None
    return made


def test_a_running_job_shows_what_is_known() -> None:
    job = view(summarize("j", record(), None, "worker-0"), TRANSCRIPT, None)
    assert (job.status, job.text, job.worker) == (JobStatus.RUNNING, "ab", "worker-0")
    assert (job.usage.prompt_tokens, job.usage.completion_tokens) == (7, 2)
    assert (job.timings.queued_s, job.timings.ttft_s, job.timings.total_s) == (0.5, 1.0, None)
    assert (job.seed, job.attempts, job.priority) == (9, 2, Priority.HIGH)
    assert job.created_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert job.ended_at is None


def test_a_queued_job_has_a_position() -> None:
    job = view(summarize("j", record(status="queued", worker=""), None), Transcript(), 3)
    assert (job.position, job.text, job.worker) == (3, "", None)


def test_the_terminal_event_is_the_truth_about_an_ended_job() -> None:
    raw = RAW | {b"status": b"completed", b"end": to_wire(END).encode(), b"cancel": b"1"}
    ended = record(status="completed", ended_ms="4000", cancel="1")
    job = view(summarize("j", ended, end_of(raw)), TRANSCRIPT, None)
    assert (job.status, job.finish_reason, job.seed, job.worker) == (
        END.status,
        END.finish_reason,
        END.seed,
        END.worker,
    )
    assert (job.usage, job.timings, job.attempts) == (END.usage, END.timings, END.attempts)
    assert not job.cancelling
    assert job.ended_at == datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC)
    assert '"created_at":"1970-01-01T00:00:01Z"' in job.model_dump_json()


def test_the_weights_of_a_job_are_those_of_its_last_worker() -> None:
    before, after = (Weights(format=name, fingerprint="a" * 16) for name in ("q4_1", "bf16"))
    assert summarize("j", record(), None, "w", before).weights == before
    end = END.model_copy(update={"weights": after})
    assert summarize("j", record(), end_of({b"end": to_wire(end).encode()})).weights == after
