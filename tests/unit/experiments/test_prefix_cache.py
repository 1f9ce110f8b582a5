"""The prefix cache: what a snapshot saves and from when on."""

import pytest

from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from experiments.prefix_cache.judging import explain, judge, tabulate, takeaway
from tests.unit.experiments.recorded import figures_of


def made(*, restore_ms: float, tokens: list[int], is_exact_expected: bool = True) -> Samples:
    samples = Samples(
        facts={"own_tokens": 16, "is_exact_expected": is_exact_expected, "format": "q"}
    )
    for prefix in (64, 128, 256, 512):
        for way, ms in (("recompute", prefix * 2.0), ("restore", restore_ms), ("same slot", 40.0)):
            answer = tokens if way == "restore" else [1, 2, 3]
            values = {"ttft_ms": ms, "tokens": answer, "state_bytes": prefix * 20_000}
            values["copy_ms"] = prefix / 1000 if way == "restore" else None
            samples.add({"prefix": prefix, "way": way}, 1, values)
    return samples


def test_a_snapshot_pays_from_where_it_is_sooner_than_computing() -> None:
    figures = judge(made(restore_ms=192, tokens=[1, 2, 3]), {})
    assert figures["pays_from"] == pytest.approx(96)
    assert "It pays from 96 tokens on" in explain(figures, {})
    assert figures["copy_us_per_token"] == pytest.approx(1)
    assert figures["rows"][-1]["restore_saves"] == pytest.approx(1024 / 192)


def test_a_snapshot_that_is_always_slower_never_pays() -> None:
    figures = judge(made(restore_ms=5000, tokens=[1, 2, 3]), {})
    assert figures["pays_from"] is None
    assert "A snapshot did not pay here. " in explain(figures, {})


def test_one_that_paid_in_between_did_not_never_pay() -> None:
    samples = made(restore_ms=192, tokens=[1, 2, 3])
    for sample in samples.of(way="restore", prefix=512):
        sample.values["ttft_ms"] = 5000.0
    assert "did not pay here, but at 128, 256 tokens. " in explain(judge(samples, {}), {})


def test_one_prefix_shows_no_growth() -> None:
    samples = made(restore_ms=50, tokens=[1, 2, 3])
    samples.kept = samples.of(prefix=64)
    words = explain(judge(samples, {}), {})
    assert "A snapshot of 64 tokens is 1.3 MB" in words
    assert words.count("128 ms") == 1


def test_other_tokens_are_a_problem_where_there_must_be_none() -> None:
    figures = judge(made(restore_ms=50, tokens=[1, 2, 9]), {})
    assert "for prefixes of 64, 128, 256, 512 tokens" in figures["problem"]
    lax = judge(made(restore_ms=50, tokens=[1, 2, 9], is_exact_expected=False), {})
    assert "problem" not in lax
    assert "not the same in all three" in explain(lax, {})


def test_a_prefix_that_lacks_a_way_is_left_out() -> None:
    samples = made(restore_ms=50, tokens=[1, 2, 3])
    samples.kept.pop()
    assert [row["prefix"] for row in judge(samples, {})["rows"]] == [64, 128, 256]
    samples.kept = samples.of(way="restore")
    with pytest.raises(TooLittle):
        judge(samples, {})


def test_the_recorded_run_saves_more_the_longer_the_prefix_is() -> None:
    figures = figures_of("prefix-cache")
    saved = [row["restore_saves"] for row in figures["rows"]]
    assert saved == sorted(saved)
    assert figures["is_exact"]
    assert "times sooner" in takeaway(figures)
    assert all(row[-1] == "yes" for row in tabulate(figures).rows)
