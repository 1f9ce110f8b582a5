from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from shared.metrics import Totals, add_totals

counts = st.builds(Totals, **{name: st.integers(0, 10**12) for name in asdict(Totals())})


def test_averages_of_nothing_are_zero() -> None:
    assert Totals().avg_latency_s == 0
    assert Totals().tokens_per_s == 0


def test_averages_are_over_ended_jobs() -> None:
    totals = Totals(
        jobs_completed=2,
        jobs_failed=1,
        jobs_cancelled=1,
        e2e_ms=8000,
        busy_ms=4000,
        ended_tokens=100,
    )
    assert totals.jobs_ended == 4
    assert totals.avg_latency_s == 2.0
    assert totals.tokens_per_s == 25.0


@given(st.lists(counts, max_size=5))
def test_a_sum_does_not_depend_on_who_was_buried_first(rows: list[Totals]) -> None:
    folded = add_totals([add_totals(rows[:2]), *rows[2:]])
    assert folded == add_totals(rows)


@given(counts)
def test_totals_are_read_as_they_stand_in_redis(totals: Totals) -> None:
    raw = {name.encode(): str(value).encode() for name, value in asdict(totals).items()}
    assert Totals.from_hash(raw) == totals
