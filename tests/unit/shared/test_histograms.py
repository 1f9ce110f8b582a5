import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.histograms import (
    BOUNDS_S,
    bucket_field,
    bucket_of,
    counter_field,
    empty_histogram,
    read_observed,
    sum_field,
)


def test_a_bound_belongs_to_its_bucket_and_what_is_longer_than_all_to_the_last() -> None:
    assert bucket_of("ttft", 0.001) == 0
    assert bucket_of("ttft", 0.0011) == 1
    assert bucket_of("ttft", 1e9) == len(BOUNDS_S["ttft"])


def _hash(**fields: int) -> dict[bytes, bytes]:
    return {name.encode(): str(value).encode() for name, value in fields.items()}


def test_hashes_are_summed_by_model_and_name() -> None:
    one = _hash(**{bucket_field("a|b", "itl", 2): 3, sum_field("a|b", "itl"): 120_000})
    other = _hash(**{bucket_field("a|b", "itl", 2): 1, bucket_field("c", "itl", 0): 5})
    both = read_observed([one, other, _hash(**{counter_field("c", "ended_stop"): 7})])
    assert both.histograms["a|b", "itl"].counts[2] == 4
    assert both.histograms["a|b", "itl"].sum_s == pytest.approx(0.12)
    assert both.of_all_models("itl").count == 9
    assert both.counted("ended_stop") == 7


def test_what_is_no_field_of_ours_counts_nothing() -> None:
    raw = {b"h|m|none|0": b"1", b"h|m|itl|99": b"1", b"h|m|itl|x": b"1", b"h|m|itl|0": b"-1"}
    observed = read_observed([raw, {b"jobs_failed": b"3", b"\xff": b"2", b"h|": b"1"}])
    assert observed.of_all_models("itl").count == 0
    assert observed.counters == {}


def test_a_quantile_lies_within_its_bucket() -> None:
    raw = _hash(**{bucket_field("m", "e2e", 0): 1, bucket_field("m", "e2e", 1): 1})
    histogram = read_observed([raw]).of_all_models("e2e")
    assert histogram.quantile(0.5) == pytest.approx(0.3)
    assert histogram.quantile(0.75) == pytest.approx(0.4)
    assert empty_histogram("e2e").quantile(0.5) is None


def test_beyond_the_last_bound_a_quantile_is_that_bound() -> None:
    raw = _hash(**{bucket_field("m", "itl", len(BOUNDS_S["itl"])): 1})
    assert read_observed([raw]).of_all_models("itl").quantile(0.99) == 80


@given(st.lists(st.floats(0.0, 8000.0), min_size=1), st.floats(0.01, 1.0))
def test_a_quantile_is_as_near_as_its_bucket_is_wide(seconds: list[float], q: float) -> None:
    counts: dict[str, int] = {}
    for value in seconds:
        field = bucket_field("m", "e2e", bucket_of("e2e", value))
        counts[field] = counts.get(field, 0) + 1
    found = read_observed([_hash(**counts)]).of_all_models("e2e").quantile(q)
    true = sorted(seconds)[min(len(seconds) - 1, max(0, -int(-q * len(seconds) // 1) - 1))]
    assert found is not None
    bucket = min(bucket_of("e2e", true), len(BOUNDS_S["e2e"]) - 1)
    low, high = (0.0, *BOUNDS_S["e2e"])[bucket], BOUNDS_S["e2e"][bucket]
    assert low <= found <= high or abs(bucket_of("e2e", found) - bucket_of("e2e", true)) <= 1


def test_a_difference_is_what_came_since() -> None:
    early = read_observed([_hash(**{bucket_field("m", "itl", 0): 2})]).of_all_models("itl")
    late = read_observed([_hash(**{bucket_field("m", "itl", 0): 5})]).of_all_models("itl")
    assert (late - early).count == 3
    assert (early - late).count == 0


def test_the_scripts_have_the_same_bounds() -> None:
    text = (files("shared") / "lua" / "common.lua").read_text()
    for lua, name in (("FIRST_TOKEN_MS", "ttft"), ("REQUEST_MS", "e2e")):
        numbers = re.search(rf"local {lua} = \{{([^}}]*)\}}", text)
        assert numbers
        bounds_s = tuple(int(number) / 1000 for number in numbers[1].split(","))
        assert bounds_s == BOUNDS_S[name]
    table = re.search(r"local BOUNDS_MS = \{([^}]*)\}", text)
    assert table
    of = dict(pair.split(" = ") for pair in re.sub(r"\s+", " ", table[1]).split(", "))
    assert of.keys() == BOUNDS_S.keys() - {"itl", "step"}, "those are the workers' own"
    lists = {"FIRST_TOKEN_MS": BOUNDS_S["ttft"], "REQUEST_MS": BOUNDS_S["e2e"]}
    assert {name: lists[lua] for name, lua in of.items()} == {n: BOUNDS_S[n] for n in of}
