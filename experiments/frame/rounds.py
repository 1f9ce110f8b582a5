"""Repeats in turn: every round measures every case, so that what drifts meets all of them alike."""

from collections.abc import Callable, Sequence

from experiments.frame.samples import Case, Samples, Values
from experiments.frame.watch import Watch


def in_turn(
    samples: Samples,
    cases: Sequence[Case],
    rounds: int,
    measure: Callable[[Case], Values],
    watch: Watch,
) -> None:
    """Odd rounds go backwards, so that nobody always comes after the same one."""
    watch.expect(len(cases) * rounds)
    for number in range(1, rounds + 1):
        for case in cases if number % 2 else reversed(cases):
            told = ", ".join(f"{name} {value}" for name, value in case.items())
            watch.begin(f"round {number} of {rounds}: {told}")
            samples.add(case, number, measure(case))
            watch.end()
