"""Jobs as a terminal shows them."""

from typing import Any

from rich.console import Console, RenderableType

from cli.job_timeline import Marks
from cli.jobs.outcome import outcome_of
from cli.jobs.tables import job_facts, jobs_table
from tests.unit.cli.recorded import JOB_ID, NOW_S, job, running


def drawn(renderable: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def shown(**changes: Any) -> str:
    return drawn(job_facts(job(**changes), NOW_S, Marks()))


def test_a_table_has_a_line_for_each_job_and_fits_80_columns() -> None:
    lines = drawn(jobs_table([job(), running(queued_s=1.0)], NOW_S)).splitlines()
    assert lines[0].split() == [
        *("job", "status", "priority", "worker", "tokens", "waited", "total", "created"),
    ]
    assert lines[1].split()[:8] == [
        *("4b355c02", "completed", "normal", "worker-1", "33+38", "0.5", "s", "2.0"),
    ]
    assert lines[2].split()[1] == "running"
    assert "4.0 s" in lines[2]
    assert len(lines) == 3


def test_one_job_is_told_with_where_its_time_went() -> None:
    text = shown()
    assert JOB_ID in text
    assert "completed (stop)" in text
    assert "33 prompt, 38 output" in text
    assert "waited 0.50 s, prefill 0.50 s, decode 1.00 s; 2.00 s in all" in text
    assert "after 1.00 s, then 38.0 tokens/s" in text


def test_a_job_that_waits_has_its_place_and_one_that_failed_its_reason() -> None:
    assert "queued, at place 3" in shown(status="queued", finish_reason=None, position=3)
    error = {"code": "context_length_exceeded", "message": "too long", "field": "prompt"}
    failed = shown(status="failed", finish_reason="error", error=error)
    assert "context_length_exceeded: too long (field prompt)" in failed


def test_markup_and_controls_of_others_are_only_text() -> None:
    text = shown(user="[red]no[/red] \x1b[2J")
    assert "[red]no[/red] \\x1b[2J" in text
    assert "\x1b" not in text


def test_the_outcome_of_a_cancel_is_told() -> None:
    cancelled = job(status="cancelled")
    assert outcome_of(cancelled, had_ended=False) == f"{JOB_ID} cancelled after 38 tokens"
    assert outcome_of(job(), had_ended=True) == f"{JOB_ID} had ended before: completed"
    assert "ended meanwhile: completed" in outcome_of(job(), had_ended=False)
    assert f"jobs show {JOB_ID}" in outcome_of(running() | {"cancelling": True}, had_ended=False)
