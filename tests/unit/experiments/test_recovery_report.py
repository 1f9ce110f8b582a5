"""The figures of a run in which workers were killed."""

from experiments.recovery_report import Kill, Run, summarize
from experiments.resumes import Attempt, Story


def make_run() -> Run:
    """Job a is killed after one token at 2.0 and goes on; job b has no token yet then; job c never ends."""
    run = Run(kills=[Kill("worker-0", 2.0, {"a": 1, "b": 1})], restarts_s=[3.0])
    for name, times_s in {"a": [1.0, 5.0], "b": [6.0, 7.0], "c": [1.0]}.items():
        story = run.stories[name] = Story(prompt_tokens=10)
        for index, came_s in enumerate(times_s):
            story.token(index, 1, came_s)
        story.status = "" if name == "c" else "completed"
        story.reported_tokens = 0 if name == "c" else 2
    run.attempts += [
        Attempt("a", "worker-0", 1, 0, False, 0.5),
        Attempt("a", "worker-1", 2, 1, False, 4.0),
        Attempt("b", "worker-1", 2, 0, False, 4.0),
    ]
    return run


def test_streams_that_had_tokens_are_told_from_those_that_had_none() -> None:
    figures = summarize(make_run(), 2)
    assert figures["resumed_streams"] == 1
    assert figures["resumed_before_first_token"] == 1
    assert figures["next_token_max_s"] == 3.0
    assert figures["of_it_until_resumed_max_s"] == 2.0
    assert figures["tokens_fed_again_max"] == 11


def test_a_job_without_an_end_is_lost() -> None:
    figures = summarize(make_run(), 2)
    assert figures["jobs_lost"] == 1
    assert figures["jobs_not_completed"] == 0
    assert figures["jobs_short_of_tokens"] == 1


def test_tokens_that_the_end_tells_of_and_no_client_saw_are_lost() -> None:
    run = make_run()
    run.stories["a"].reported_tokens = 5
    assert summarize(run, 2)["tokens_lost"] == 3
