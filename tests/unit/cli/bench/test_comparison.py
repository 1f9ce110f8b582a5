from cli.bench.comparison import over_rounds, ratios
from cli.bench.figures import Figures, percentile


def test_a_ratio_is_of_the_same_round() -> None:
    ours: list[Figures] = [
        {"output_throughput": 200.0},
        {"output_throughput": 20.0},
        {"output_throughput": 9.0},
    ]
    theirs: list[Figures] = [{"output_throughput": 100.0}, {"output_throughput": 10.0}]
    told = ratios(ours, theirs)["output_throughput"]
    assert told == {"median": 2.0, "min": 2.0, "max": 2.0}


def test_a_figure_that_a_round_lacks_is_left_out_of_it() -> None:
    told = over_rounds([{"a": 1.0, "b": None}, {"a": 3.0, "b": 5.0}])
    assert told == {
        "a": {"median": 2.0, "min": 1.0, "max": 3.0},
        "b": {"median": 5.0, "min": 5.0, "max": 5.0},
    }


def test_percentiles_are_interpolated() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert percentile([7.0], 99) == 7.0
