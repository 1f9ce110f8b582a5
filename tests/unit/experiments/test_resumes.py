"""What a resume cost, from a client's view and a worker's log."""

import pytest

from experiments.resumes import Attempt, Story, match_resume

JOB = "4b355c02eb0340deb26bb6f248e1acc8"
PREFIX = f"09:10:24 worker-1 INFO worker.service: job {JOB}: attempt "


@pytest.mark.parametrize(
    ("rest", "number", "known", "alone"),
    [
        ("1\n", 1, 0, False),
        ("2, goes on after 17 tokens", 2, 17, False),
        ("2, goes on after 17 tokens, request abc", 2, 17, False),
        ("2, goes on after 17 tokens request_id=abc", 2, 17, False),
        ("1, user 'a b' request_id=abc", 1, 0, False),
        ("4, alone, since 3 workers died of it, goes on after 5 tokens", 4, 5, True),
        ("4, alone, since 3 workers died of it", 4, 0, True),
    ],
)
def test_an_attempt_is_read_from_a_workers_log(
    rest: str, number: int, known: int, alone: bool
) -> None:
    expected = Attempt(JOB, "worker-1", number, known, alone, 7.5)
    assert Attempt.parse(7.5, PREFIX + rest) == expected


def test_other_lines_are_no_attempts() -> None:
    line = f"09:10:24 worker-1 INFO worker.service: job {JOB}: completed (length), 64 tokens"
    assert Attempt.parse(0, line) is None


def make_story(*events: tuple[int, int, float]) -> Story:
    story = Story(prompt_tokens=60)
    for index, count, came_s in events:
        story.token(index, count, came_s)
    return story


def test_a_whole_stream_has_neither_gap_nor_repeat() -> None:
    story = make_story((0, 1, 1.0), (1, 2, 2.0), (3, 1, 3.0))
    assert (story.num_tokens, story.num_skipped, story.num_repeated) == (4, 0, 0)


def test_skipped_and_repeated_tokens_are_counted() -> None:
    story = make_story((0, 2, 1.0), (3, 2, 2.0), (4, 2, 3.0))
    assert (story.num_tokens, story.num_skipped, story.num_repeated) == (6, 1, 1)


def test_a_token_came_with_the_event_that_holds_it() -> None:
    story = make_story((0, 1, 1.0), (1, 2, 2.0))
    assert [story.came_s(i) for i in range(4)] == [1.0, 2.0, 2.0, None]


def test_a_resume_is_split_where_its_attempt_began() -> None:
    # The token of index 1 was on its way when the worker died at 1.9.
    story = make_story((0, 1, 1.0), (1, 1, 2.0), (2, 1, 5.0))
    attempts = [Attempt(JOB, "worker-0", 1, 0, False, 0.5), Attempt(JOB, "w", 2, 2, False, 4.0)]
    resume = match_resume(1.9, story, attempts, 1)
    assert resume is not None
    assert resume.wait_s == pytest.approx(2.1)
    assert resume.refeed_s == pytest.approx(1.0)
    assert resume.gap_s == pytest.approx(3.1)
    assert resume.fed_tokens == 62


def test_an_attempt_that_died_before_its_first_token_is_no_resume() -> None:
    story = make_story((0, 1, 1.0), (1, 1, 9.0))
    attempts = [Attempt(JOB, "w", 2, 1, False, 4.0), Attempt(JOB, "w", 3, 1, False, 8.0)]
    assert match_resume(2.0, story, attempts, 1) is None
    assert match_resume(7.0, story, attempts, 2) is not None


def test_a_job_that_had_ended_is_no_resume() -> None:
    story = make_story((0, 1, 1.0))
    assert match_resume(1.5, story, [Attempt(JOB, "w", 1, 0, False, 0.5)], 1) is None
