from shared.protocol import WorkerReport, WorkerState
from worker.reporter import Reporter


def make_reporter(clock: list[float]) -> Reporter:
    facts = WorkerReport(
        name="w",
        incarnation="w.1",
        pid=1,
        host="h",
        model="m",
        state=WorkerState.READY,
        slots=4,
        context_tokens=100,
    )
    return Reporter(facts, clock=lambda: clock[0])


def test_speeds_are_over_the_last_seconds() -> None:
    clock, tokens = [0.0], [0]
    reporter = make_reporter(clock)
    reporter.num_generated = lambda: tokens[0]
    reporter.weights_bytes = 100_000_000
    assert reporter.report().tokens_per_s == 0
    clock[0], tokens[0] = 2.0, 50
    for _ in range(40):
        reporter.steps.step_done(0.01, [], 1)
    report = reporter.report()
    assert report.tokens_per_s == 25
    assert report.read_gb_per_s == 2.0, "40 readings of 0.1 GB in 2 s"
    clock[0] = 60.0
    assert reporter.report().tokens_per_s == 0


def test_the_kv_cache_is_full_when_all_slots_are() -> None:
    reporter = make_reporter([0.0])
    reporter.num_kv_tokens = lambda: 100
    report = reporter.report()
    assert (report.kv_tokens_used, report.kv_usage) == (100, 0.25)


def test_what_it_counts_is_of_caches_and_steps() -> None:
    reporter = make_reporter([0.0])
    reporter.cache.preemptions = 2
    reporter.steps.step_done(0.02, [0.02], 1)
    totals = reporter.totals()
    assert totals["preemptions"] == 2
    assert totals["h|m|itl|1"] == 1
