"""The benchmark of the engine loop, from its command to its last line, against a Valkey of its own."""

import json
import subprocess
import sys

import pytest


def run(*flags: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "experiments.engine_loop", *flags],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_step_is_one_round_trip_that_its_sequences_share() -> None:
    done = run("--sequences", "2", "1", "--repeats", "1", "--tokens", "16")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    one, two = result["rows"]
    assert (one["sequences"], two["sequences"], result["slots"]) == (1, 2, 2)
    for row in (one, two):
        assert all(figure["median"] > 0 for figure in row["step"].values())
        assert all(figure["median"] > 0 for figure in row["redis"].values())
        # A token is an event of its stream; beside it, the news name who has one, once in a step.
        assert row["token_commands"]["xadd"] == 1 + 1 / row["sequences"]
    # A full worker appends; one with a free slot asks for jobs in the same round trip.
    assert two["redis"]["script_calls_per_token"]["median"] == 0.5
    assert one["redis"]["script_calls_per_token"]["median"] == 2


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--sequences", "0"], "--sequences: must be 1 to 128 (got 0)"),
        (["--tokens", "4000"], "--tokens: must be 16 to 3000 (got 4000)"),
        (["--repeats", "0"], "--repeats: must be 1 or more (got 0)"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_its_limit(flags: list[str], words: str) -> None:
    done = run(*flags)
    assert done.returncode == 2
    assert words in done.stderr
