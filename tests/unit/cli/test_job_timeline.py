"""Where the time of a job went."""

import pytest

from cli.job_timeline import Marks, Timeline, bar, marks_for, timeline_of
from tests.unit.cli.recorded import NOW_S, job, running

MARKS = Marks("q", "p", "d", "-")


def test_of_a_job_that_ended_its_timings_count_and_what_is_between() -> None:
    assert timeline_of(job(), NOW_S) == Timeline(0.5, 0.5, 1.0, 0.0)
    timings = job()["timings"] | {"total_s": 5.0}
    assert timeline_of(job(timings=timings), NOW_S).other_s == 3.0


def test_a_job_that_ended_before_it_began_has_only_waited() -> None:
    timings = {"queued_s": None, "total_s": 3.0}
    assert timeline_of(job(status="cancelled", timings=timings), NOW_S) == Timeline(3.0)


@pytest.mark.parametrize(
    ("timings", "expected"),
    [
        ({}, Timeline(4.0)),
        ({"queued_s": 1.0}, Timeline(1.0, 3.0)),
        ({"queued_s": 1.0, "ttft_s": 1.5}, Timeline(1.0, 0.5, 2.5)),
    ],
)
def test_of_a_job_that_runs_the_phase_goes_on(
    timings: dict[str, float], expected: Timeline
) -> None:
    assert timeline_of(running(**timings), NOW_S) == expected


def test_a_clock_behind_the_services_makes_no_negative_times() -> None:
    assert timeline_of(running(queued_s=1.0), NOW_S - 100) == Timeline(1.0, 0.0)


@pytest.mark.parametrize("num_chars", [1, 7, 24])
def test_a_bar_is_as_long_as_is_asked(num_chars: int) -> None:
    for timeline in (Timeline(0.1, 0.2, 0.7), Timeline(3.0), Timeline(0.0), Timeline(1, 1, 1, 9)):
        assert len(bar(timeline, num_chars, MARKS)) == num_chars


def test_the_phases_have_their_shares() -> None:
    assert bar(Timeline(1.0, 2.0, 4.0, 1.0), 8, MARKS) == "qppdddd-"


def test_marks_are_what_the_terminal_knows() -> None:
    assert marks_for("UTF-8") == Marks()
    assert marks_for("ascii").decode == "#"
