from collections.abc import Mapping, Sequence

import pytest

from cli.tune.candidates import Candidate
from cli.tune.decision import Decision, Limits, decide, pareto_front
from cli.tune.measures import Measure
from tests.unit.cli.tune.recorded import made, recorded

DEFAULT = Candidate("as-is", 2, 1, 8)
SINGLE = Candidate("as-is", 1, 2, 16)
BF16 = Candidate("bf16", 2, 1, 8)


def decided(
    measures: Mapping[Candidate, Sequence[Measure]], limits: Limits | None = None
) -> Decision:
    return decide(measures, limits or Limits(), default=DEFAULT, single=SINGLE)


def chosen(decision: Decision) -> Candidate | None:
    return decision.chosen.measure.candidate if decision.chosen else None


def refusals(decision: Decision) -> dict[Candidate, str]:
    return {row.measure.candidate: row.refusal for row in decision.rows}


def test_recorded_repeats_that_differ_are_called_noisy() -> None:
    decision = decided(recorded())
    assert "repeats of one candidate differ" in decision.noise
    assert decision.chosen is not None
    assert decision.chosen.repeats


def test_of_a_whole_recorded_run_the_upcast_copy_wins_clearly_though_it_was_noisy() -> None:
    decision = decided(recorded("tune_measures_whole"))
    assert decision.chosen is not None
    assert decision.chosen.measure.candidate == Candidate("bf16", 2, 1, 8, 32)
    assert decision.chosen.repeats == 5
    assert decision.gain_over_default == pytest.approx(2.02, abs=0.01)
    assert decision.gain_over_single == pytest.approx(1.91, abs=0.01)
    assert "repeats of one candidate differ by up to 66%" in decision.noise
    assert decision.rows[-1].measure.candidate.weight_format == "as-is"
    # What was looked at shortly only is in the table, and no more.
    (estimate,) = [row for row in decision.rows if not row.repeats]
    assert estimate.measure.candidate == Candidate("f16", 1, 2, 16)


def test_of_a_whole_recorded_run_the_best_that_fits_wins() -> None:
    """The two workers take 2.2 GB with the context of the service, one process 2.0 GB."""
    limits = Limits(memory_bytes=2_100_000_000, kv_bytes_per_slot=100_270_080)
    decision = decided(recorded("tune_measures_whole"), limits)
    assert chosen(decision) == Candidate("bf16", 1, 2, 16)
    assert "more than the 2.1 GB it may" in refusals(decision)[BF16]


def test_of_a_whole_recorded_run_all_but_what_was_not_checked_is_deterministic() -> None:
    decision = decided(recorded("tune_measures_whole"), Limits(deterministic=True))
    assert chosen(decision) == Candidate("bf16", 2, 1, 8, 32)
    assert {candidate: why for candidate, why in refusals(decision).items() if why} == {
        Candidate("f16", 1, 2, 16): "not checked whether its tokens depend on the batch"
    }


def test_one_lucky_repeat_does_not_win() -> None:
    lucky = [made(SINGLE, 100), made(SINGLE, 400), made(SINGLE, 100)]
    steady = [made(BF16, 150), made(BF16, 155), made(BF16, 152)]
    decision = decided({SINGLE: lucky, BF16: steady})
    assert chosen(decision) == BF16
    assert "differ by up to 300%" in decision.noise


def test_what_was_seen_shortly_only_is_not_chosen_where_others_were_seen_longer() -> None:
    measures = {BF16: [made(BF16, 900, is_short=True)], DEFAULT: [made(DEFAULT, 100)]}
    assert chosen(decided(measures)) == DEFAULT
    assert chosen(decided({BF16: [made(BF16, 900, is_short=True)]})) == BF16


def test_no_clear_gain_leaves_the_default() -> None:
    measures = {DEFAULT: [made(DEFAULT, 100)], BF16: [made(BF16, 102)]}
    assert chosen(decided(measures)) == DEFAULT
    assert chosen(decided(measures | {BF16: [made(BF16, 110)]})) == BF16


def test_latency_takes_the_quicker_answers_but_not_at_half_the_throughput() -> None:
    quick = Candidate("bf16", 2, 1, 4)
    measures = {
        BF16: [made(BF16, 200, ttft_ms=500, itl_ms=80)],
        quick: [made(quick, 150, ttft_ms=300, itl_ms=40)],
        SINGLE: [made(SINGLE, 90, ttft_ms=10, itl_ms=10)],
    }
    assert chosen(decided(measures)) == BF16
    decision = decided(measures, Limits("latency"))
    assert chosen(decision) == quick
    assert "half of the best throughput" in refusals(decision)[SINGLE]


def test_memory_counts_the_cache_that_the_service_will_have() -> None:
    measures = {
        BF16: [made(BF16, 200, memory_bytes=600 * 10**6)],
        DEFAULT: [made(DEFAULT, 100, memory_bytes=200 * 10**6)],
    }
    limits = Limits(memory_bytes=2 * 10**9, kv_bytes_per_slot=10**8)
    decision = decided(measures, limits)  # 16 slots take 1.6 GB
    assert chosen(decision) == DEFAULT
    assert refusals(decision)[BF16] == "it takes 2.2 GB, more than the 2.0 GB it may"
    assert chosen(decided(measures, Limits(memory_bytes=10**9, kv_bytes_per_slot=10**8))) is None


@pytest.mark.parametrize(("found", "expected"), [(True, BF16), (False, DEFAULT), (None, DEFAULT)])
def test_deterministic_admits_only_what_was_found_to_be(
    found: bool | None, expected: Candidate
) -> None:
    measures = {
        BF16: [made(BF16, 200, invariant=found)],
        DEFAULT: [made(DEFAULT, 100, invariant=True)],
    }
    assert chosen(decided(measures, Limits(deterministic=True))) == expected
    assert chosen(decided(measures)) == BF16


def test_cores_that_others_had_are_told() -> None:
    decision = decided({DEFAULT: [made(DEFAULT, 100, delayed=0.4)]})
    assert "other processes had our cores for 40%" in decision.noise
    assert decided({DEFAULT: [made(DEFAULT, 100)]}).noise == ""


def test_a_candidate_without_a_token_is_refused() -> None:
    decision = decided({DEFAULT: [made(DEFAULT, 0)]})
    assert decision.chosen is None
    assert refusals(decision)[DEFAULT] == "it gave no token in its time"


def test_nothing_measured_chooses_nothing() -> None:
    assert decided({}).chosen is None


def test_the_front_has_what_nothing_beats_in_both() -> None:
    fast, quick, neither = (Candidate(name, 1, 1, 4) for name in ("f16", "q8_0", "q4_0"))
    front = pareto_front(
        [
            made(neither, 90, ttft_ms=200),
            made(fast, 200, ttft_ms=300),
            made(quick, 100, ttft_ms=50),
        ]
    )
    assert front == (fast, quick)


def test_no_gain_is_told_between_an_estimate_and_a_full_trial() -> None:
    measures = {DEFAULT: [made(DEFAULT, 100, is_short=True)], BF16: [made(BF16, 300)]}
    assert decided(measures).gain_over_default is None
    measures[DEFAULT].append(made(DEFAULT, 150))
    assert decided(measures).gain_over_default == pytest.approx(2)
