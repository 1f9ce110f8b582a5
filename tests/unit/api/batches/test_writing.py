"""What is written of a line that is done."""

import json
from typing import Any

import pytest

from api.batches.flight import Flight
from api.batches.lines import Line
from api.batches.record import Progress
from api.batches.writing import Writing
from api.completions.call import parse_call
from shared.errors import PromptTooLong
from shared.protocol import (
    EndEvent,
    FinishReason,
    JobError,
    JobStatus,
    Timings,
    TokenEvent,
    Usage,
)
from shared.stream import Transcript

BODY = b'{"messages": [{"role": "user", "content": "x"}]}'


def flight(**fields: Any) -> Flight:
    call = parse_call("/v1/chat/completions", BODY)
    return Flight(7, 700, Line("mine", call), call=call, jobs=["j" * 32], **fields)


def result(status: JobStatus = JobStatus.COMPLETED, error: JobError | None = None) -> Transcript:
    end = EndEvent(
        status=status,
        finish_reason=FinishReason.STOP,
        usage=Usage(prompt_tokens=3, cached_tokens=2, completion_tokens=1),
        timings=Timings(),
        seed=1,
        worker="w",
        attempts=1,
        error=error,
    )
    return Transcript(None, [TokenEvent(index=0, tokens=(1,), text="hello", attempt=1)], end)


def written(line: Flight, *results: Transcript, ending: str = "") -> tuple[Writing, Any, Any]:
    writing = Writing("batch_1", 5, ending, Progress(lines=6, completed=1))
    writing.add(line, results)
    rows = [json.loads(b"".join(found) or b"null") for found in (writing.output, writing.errors)]
    assert (writing.progress.lines, writing.progress.input_bytes) == (7, 700)
    return writing, *rows


def test_an_answer_is_in_the_output_and_counted_with_its_tokens() -> None:
    writing, row, _ = written(flight(), result())
    assert (row["custom_id"], row["error"]) == ("mine", None)
    assert row["response"]["status_code"] == 200
    assert row["response"]["body"]["choices"][0]["message"]["content"] == "hello"
    done = writing.progress
    assert (done.completed, done.failed, done.output_bytes) == (2, 0, len(writing.output[0]))
    assert (done.prompt_tokens, done.cached_tokens, done.completion_tokens) == (3, 2, 1)


def test_a_failure_is_in_the_error_file_with_its_status() -> None:
    error = JobError(code="worker_lost", message="gone")
    writing, _, row = written(flight(), result(JobStatus.FAILED, error))
    assert (row["response"]["status_code"], row["error"]["code"]) == (500, "worker_lost")
    assert row["response"]["body"]["error"]["message"] == "gone"
    assert (writing.progress.completed, writing.progress.failed) == (1, 1)


def test_a_line_that_was_refused_is_too() -> None:
    _, _, row = written(flight(refusal=PromptTooLong("too long", field="messages")))
    assert row["response"]["status_code"] == 400
    assert row["response"]["body"]["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("ending", ["cancelled", "expired"])
def test_what_the_end_of_the_batch_cut_off_is_neither_answered_nor_failed(ending: str) -> None:
    given_up = written(flight(is_given_up=True), ending=ending)
    cancelled = written(flight(), result(JobStatus.CANCELLED), ending=ending)
    for writing, _, row in (given_up, cancelled):
        assert (row["response"], row["error"]["code"]) == (None, f"batch_{ending}")
        assert (writing.progress.completed, writing.progress.failed) == (1, 0)


def test_a_job_that_somebody_cancelled_is_a_failure_of_its_line() -> None:
    writing, _, row = written(flight(), result(JobStatus.CANCELLED))
    assert row["error"]["code"] == "job_cancelled"
    assert writing.progress.failed == 1


def test_an_empty_line_is_passed_over() -> None:
    writing, row, other = written(Flight(7, 700, None))
    assert (row, other) == (None, None)
    assert writing.progress.completed == 1
