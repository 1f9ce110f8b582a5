from typing import Any

import pytest

from api.fleet import make_fleet
from api.live.points import INTERVAL_S, MAX_GAP_S, Point, Sample, point_between
from shared.histograms import bucket_field, bucket_of, counter_field

NOW = (1_000, 0)


def sample(at: float, seconds_of: dict[str, list[float]] | None = None, **totals: int) -> Sample:
    """Of a service whose totals stand in one hash, with latencies of two models."""
    raw: dict[bytes, bytes] = {name.encode(): str(count).encode() for name, count in totals.items()}
    for name, observed in (seconds_of or {}).items():
        for i, seconds in enumerate(observed):
            field = bucket_field("ab"[i % 2], name, bucket_of(name, seconds)).encode()
            raw[field] = str(int(raw.get(field, b"0")) + 1).encode()
    raw[counter_field("a", "ended_stop").encode()] = b"1"
    return Sample.of(make_fleet([], [NOW, [], raw, 0, 0, 0, 0]), at)


def between(earlier: Sample | None, later: Sample) -> Point | None:
    return point_between(earlier, later, running=2, queued=3)


def test_a_point_has_the_rates_and_latencies_of_its_stretch_alone() -> None:
    before = {"ttft": [100.0] * 50, "e2e": [100.0]}
    after = {"ttft": [*before["ttft"], *[0.03] * 9, 2.0], "e2e": before["e2e"]}
    earlier = sample(990, before, generated_tokens=1000, jobs_completed=50, jobs_failed=1)
    later = sample(
        1000, after, generated_tokens=1500, prompt_tokens=70, jobs_completed=58, jobs_failed=3
    )
    point = between(earlier, later)
    assert point
    assert (point.at, point.tokens_per_s, point.prompt_tokens_per_s) == (1000, 50, 7)
    assert (point.requests_per_s, point.errors_per_s) == (1.0, 0.2)
    assert (point.running, point.queued) == (2, 3)
    assert point.ttft_p50_s is not None and 0.02 < point.ttft_p50_s <= 0.04
    assert point.ttft_p90_s == 0.04
    assert point.ttft_p99_s is not None and 1 < point.ttft_p99_s <= 2.5
    assert (point.itl_p50_s, point.e2e_p50_s, point.e2e_p99_s) == (None, None, None)


def test_a_turn_that_was_missed_is_part_of_the_next() -> None:
    point = between(sample(980), sample(1000, generated_tokens=100))
    assert point and point.tokens_per_s == 5


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (None, sample(1000, generated_tokens=5)),
        (sample(1000), sample(1000, generated_tokens=5)),
        (sample(1010), sample(1000, generated_tokens=5)),
        (sample(990 - MAX_GAP_S), sample(1000, generated_tokens=5)),
        (sample(990, generated_tokens=10**6), sample(1000, generated_tokens=5)),
        (sample(990, {"itl": [0.1, 0.1]}), sample(1000, {"itl": [0.1]}, generated_tokens=5)),
    ],
)
def test_samples_that_do_not_follow_each_other_make_no_point(
    earlier: Sample | None, later: Sample
) -> None:
    """The first one, a clock that was set back, a service that stood still, counters that began anew."""
    assert between(earlier, later) is None
    point = between(later, sample(later.at + INTERVAL_S, {"itl": [0.1]}, generated_tokens=25))
    assert point and point.tokens_per_s == 2, "the second of them is a beginning"


def test_a_sample_and_a_point_are_read_as_they_were_written() -> None:
    one = sample(990, {"e2e": [1.0]}, generated_tokens=7)
    assert Sample.from_wire(one.model_dump_json().encode()) == one
    point = between(one, sample(1000, {"e2e": [1.0, 2.0]}, generated_tokens=9))
    assert point and Point.from_wire(point.model_dump_json().encode()) == point


def _with_tokens(count: int) -> bytes:
    return (
        Sample(**sample(990).model_dump() | {"generated_tokens": count}).model_dump_json().encode()
    )


def _without_a_bucket() -> bytes:
    fields: dict[str, Any] = sample(990).model_dump()
    return (
        Sample(**fields | {"counts": fields["counts"] | {"ttft": (1, 2)}})
        .model_dump_json()
        .encode()
    )


@pytest.mark.parametrize(
    "raw",
    [
        *(None, b"", b"{}", b"[" * 10_000, b"x" * 10**6, b'{"at": "NaN"}', _without_a_bucket()),
        *(_with_tokens(-1), _with_tokens(-(10**400)), _with_tokens(10**400)),
    ],
)
def test_what_is_none_of_ours_is_left_out(raw: bytes | None) -> None:
    assert Sample.from_wire(raw) is None
    assert Point.from_wire(raw) is None
