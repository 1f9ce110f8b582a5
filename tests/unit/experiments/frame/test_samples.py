"""What rounds say together."""

import pytest

from experiments.frame.noise import noise_of
from experiments.frame.samples import Samples, Spread


def made(*speeds: float, **case: str | int) -> Samples:
    samples = Samples()
    for number, speed in enumerate(speeds, 1):
        samples.add(case, number, {"tokens_per_s": speed, "delayed_share": 0.0, "list": [1, 2]})
    return samples


def test_a_spread_is_of_all_rounds_of_a_case() -> None:
    samples = made(10, 30, 20, threads=1)
    samples.add({"threads": 2}, 1, {"tokens_per_s": 99.0})
    assert samples.spread("tokens_per_s", threads=1) == Spread(20, 10, 30, 3)
    assert samples.median("tokens_per_s", threads=2) == 99
    assert samples.spread("tokens_per_s", threads=3) is None
    assert samples.settings("threads") == [1, 2]


def test_samples_come_back_from_json_as_they_were() -> None:
    samples = made(1 / 3, threads=1)
    samples.facts["format"] = "q4_1"
    again = Samples.from_json(samples.to_json())
    assert again.facts == samples.facts
    assert again.median("tokens_per_s", threads=1) == pytest.approx(1 / 3, rel=1e-4)


def test_rounds_that_agree_on_a_quiet_machine_are_not_noisy() -> None:
    assert noise_of(made(10, 10.5, 10.2), 0.1, ("tokens_per_s",)) == ""


def test_rounds_that_differ_are_said_to_be_noisy_and_by_how_much() -> None:
    words = noise_of(made(10, 20, 15, threads=2), 0.0, ("tokens_per_s",))
    assert "at most by 67% (tokens_per_s of threads 2)" in words
    assert noise_of(made(10, 20, 15, threads=2), 0.0, ("another",)) == ""


def test_a_neighbour_of_ours_is_no_noise() -> None:
    assert noise_of(made(10, 20, 15, neighbour="busy"), 0.0, ("tokens_per_s",)) == ""


def test_a_busy_machine_and_waiting_threads_are_told() -> None:
    samples = made(10, 10)
    samples.add({}, 3, {"delayed_share": 0.5})
    samples.add({}, 4, {"delayed_share": 0.5})
    samples.add({}, 5, {"delayed_share": 0.5})
    words = noise_of(samples, 1.5, ())
    assert "used 1.5 cores before it began" in words
    assert "waited for a core for 50%" in words
