"""What was seen while workers were killed, and the figures that come of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.figures import percentile
from experiments.resumes import Attempt, Resume, Story, match_resume


@dataclass(frozen=True, slots=True)
class Kill:
    worker: str
    at_s: float
    attempts: dict[str, int]  #: job that it held -> its attempt then


@dataclass(slots=True)
class Run:
    """What is seen while it goes on; looked at when it is over."""

    stories: dict[str, Story] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    restarts_s: list[float] = field(default_factory=list)
    is_over: bool = False

    def hear(self, now_s: float, line: str) -> None:
        if attempt := Attempt.parse(now_s, line):
            self.attempts.append(attempt)


def resumes_of(run: Run) -> list[Resume]:
    resumes = []
    for kill in run.kills:
        for job_id, number in kill.attempts.items():
            story = run.stories.get(job_id)
            attempts = [a for a in run.attempts if a.job_id == job_id]
            if story and (resume := match_resume(kill.at_s, story, attempts, number)):
                resumes.append(resume)
    return resumes


def _figure(values: Sequence[float], percent: float, digits: int) -> float | None:
    """JSON has no number for the percentile of nothing."""
    return round(percentile(values, percent), digits) if values else None


def summarize(run: Run, output_tokens: int) -> dict[str, object]:
    found = resumes_of(run)
    resumes = [resume for resume in found if resume.known_tokens]
    stories = list(run.stories.values())
    num_held = sum(len(kill.attempts) for kill in run.kills)
    gaps_s, waits_s = [r.gap_s for r in resumes], [r.wait_s for r in resumes]
    refeeds_s, fed = [r.refeed_s for r in resumes], [r.fed_tokens for r in resumes]
    return {
        "kills": len(run.kills),
        "jobs_held_at_kills": num_held,
        "resumed_streams": len(resumes),
        "resumed_before_first_token": len(found) - len(resumes),
        "killed_again_or_ended": num_held - len(found),
        "next_token_p50_s": _figure(gaps_s, 50, 3),
        "next_token_p95_s": _figure(gaps_s, 95, 3),
        "next_token_max_s": _figure(gaps_s, 100, 3),
        "of_it_until_resumed_p50_s": _figure(waits_s, 50, 3),
        "of_it_until_resumed_min_s": _figure(waits_s, 0, 3),
        "of_it_until_resumed_max_s": _figure(waits_s, 100, 3),
        "of_it_fed_again_p50_s": _figure(refeeds_s, 50, 3),
        "of_it_fed_again_max_s": _figure(refeeds_s, 100, 3),
        "usual_token_gap_p50_s": _figure([gap for s in stories for gap in s.gaps_s], 50, 3),
        "tokens_fed_again_median": _figure(fed, 50, 0),
        "tokens_fed_again_max": _figure(fed, 100, 0),
        "tokens_lost": sum(
            s.num_skipped + max(0, s.reported_tokens - s.num_tokens) for s in stories
        ),
        "tokens_repeated": sum(s.num_repeated for s in stories),
        "jobs": len(stories),
        "jobs_lost": sum(not s.status for s in stories),
        "jobs_not_completed": sum(bool(s.status) and s.status != "completed" for s in stories),
        "error_codes": sorted({s.error_code for s in stories if s.error_code}),
        "jobs_short_of_tokens": sum(s.num_tokens != output_tokens for s in stories),
        "jobs_run_alone": len({a.job_id for a in run.attempts if a.is_alone}),
        "all_workers_ready_p50_s": _figure(run.restarts_s, 50, 1),
        "all_workers_ready_max_s": _figure(run.restarts_s, 100, 1),
    }
