from shared.histograms import bucket_field, read_observed, sum_field
from worker.step_figures import StepFigures


def as_hash(figures: StepFigures) -> dict[bytes, bytes]:
    return {name.encode(): str(value).encode() for name, value in figures.totals().items()}


def test_each_step_and_each_gap_is_counted_once() -> None:
    figures = StepFigures("m")
    figures.step_done(0.012, [0.02, 0.02, 0.3], 2)
    figures.step_done(0.5, [], 1)
    observed = read_observed([as_hash(figures)])
    step, itl = observed.histograms["m", "step"], observed.histograms["m", "itl"]
    assert (step.count, round(step.sum_s, 6)) == (2, 0.512)
    assert (itl.count, round(itl.sum_s, 6)) == (3, 0.34)
    assert figures.num_calls == 3
    assert figures.totals()[bucket_field("m", "itl", 1)] == 2
    assert figures.totals()[sum_field("m", "step")] == 512_000


def test_what_is_zero_is_not_sent() -> None:
    assert StepFigures("m").totals() == {}
