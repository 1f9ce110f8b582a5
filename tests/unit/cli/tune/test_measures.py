import pytest

from cli.tune.candidates import Candidate
from cli.tune.measures import known_invariance, measure, percentile
from shared.trials import RequestShape, Step, TrialReport
from tests.unit.cli.tune.recorded import made

BF16 = Candidate("bf16", 2, 1, 8)
SHAPES = [RequestShape(prompt_tokens=64, output_tokens=64)]


def report(**fields: object) -> TrialReport:
    """A worker that gives 2 tokens each 0.1 s, from second 1 to 3."""
    steps = [
        Step(end_s=i / 10, spent_s=0.1, output_tokens=2, prompt_tokens=0) for i in range(1, 31)
    ]
    known: dict[str, object] = {
        "load_s": 1, "batch_invariant": None, "begin_s": 1.0, "end_s": 3.0, "steps": steps,
        "ttft_ms": [200.0], "itl_ms": [100.0] * 40, "requests": 1, "slots": 8, "clients": 2,
        "kv_cache_bytes": 100, "rss_bytes": 1100, "pss_bytes": 600, "cpu_s": 3.0, "delayed_s": 0.3,
        "involuntary_switches": 1, "stolen_s": 0.0, "threads": 1,
    }  # fmt: skip
    return TrialReport.model_validate(known | fields)


def test_only_the_time_counts_in_which_all_workers_are_busy() -> None:
    late = report(begin_s=2.0, end_s=4.0, steps=[
        Step(end_s=2 + i / 10, spent_s=0.1, output_tokens=4, prompt_tokens=0) for i in range(1, 21)
    ])  # fmt: skip
    both = measure(BF16, [report(), late], SHAPES, is_short=False, stall_ms=100)
    assert both.output_tokens_per_s == pytest.approx(60, rel=0.05)


def test_memory_counts_shared_pages_once_and_no_cache_of_the_trial() -> None:
    both = measure(BF16, [report(), report()], SHAPES, is_short=False, stall_ms=100)
    assert (both.memory_bytes, both.rss_bytes) == (1000, 2000)


def test_a_worker_without_clients_counts_for_its_memory_only() -> None:
    idle = report(clients=0, steps=[], begin_s=0, end_s=0, ttft_ms=[], itl_ms=[])
    both = measure(BF16, [report(), idle], SHAPES, is_short=False, stall_ms=100)
    alone = measure(BF16, [report()], SHAPES, is_short=False, stall_ms=100)
    assert both.output_tokens_per_s == alone.output_tokens_per_s
    assert both.memory_bytes == 2 * alone.memory_bytes


def test_waits_for_a_core_are_a_share_of_the_time() -> None:
    assert measure(
        BF16, [report()], SHAPES, is_short=False, stall_ms=100
    ).delayed_share == pytest.approx(0.1)


@pytest.mark.parametrize(("checks", "expected"), [
    ((None, None), None), ((True, None), True), ((True, False), False)
])  # fmt: skip
def test_one_worker_that_depends_on_the_batch_is_enough(
    checks: tuple[bool | None, bool | None], expected: bool | None
) -> None:
    both = [report(batch_invariant=check) for check in checks]
    found = measure(BF16, both, SHAPES, is_short=False, stall_ms=100)
    assert found.batch_invariant is expected


def test_an_estimate_has_each_prompt_hold_up_the_others() -> None:
    steps = [Step(end_s=0.1, spent_s=0.1, output_tokens=0, prompt_tokens=64)]
    steps += [
        Step(end_s=0.1 + i / 100, spent_s=0.01, output_tokens=2, prompt_tokens=0)
        for i in range(1, 20)
    ]
    found = measure(BF16, [report(steps=steps)], SHAPES, is_short=True, stall_ms=100)
    assert found.prefill_tokens_per_s == pytest.approx(640)
    assert found.step_ms == pytest.approx(10)
    assert found.output_tokens_per_s == pytest.approx(2 * 64 / (2 * 0.1 + 64 * 0.01))


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile([1.0, 2.0], 99) == 2.0
    assert percentile([], 50) is None


@pytest.mark.parametrize(
    ("found", "candidate", "expected"),
    [
        (True, Candidate("bf16", 1, 1, 8), True),
        (True, Candidate("bf16", 4, 1, 4), True),
        (True, Candidate("bf16", 2, 1, 16), None),  # iq4_nl: alike up to 7 rows, not with 8
        (False, Candidate("bf16", 2, 1, 16), False),
        (False, Candidate("bf16", 2, 1, 4), None),
        (True, Candidate("bf16", 1, 2, 8), None),
        (False, Candidate("f16", 2, 1, 8), None),
        (None, Candidate("bf16", 2, 1, 8), None),
    ],
)
def test_a_check_tells_of_others_of_its_format_as_far_as_it_went(
    found: bool | None, candidate: Candidate, expected: bool | None
) -> None:
    assert known_invariance(candidate, [made(BF16, 100, invariant=found)]) is expected
