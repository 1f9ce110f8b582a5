import pytest

from experiments.frame.words import figure, seconds, with_range


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [
        (0.019359, 4, "0.01936"),
        (227.79, 4, "227.8"),
        (11590.07, 4, "11590"),
        (9999.6, 4, "10000"),
        (-12345.6, 3, "-12346"),
        (999.7, 3, "1000"),
        (0.0, 4, "0"),
    ],
)
def test_a_large_figure_has_no_exponent(value: float, digits: int, told: str) -> None:
    assert figure(value, digits) == told


def test_a_time_has_its_unit() -> None:
    assert [seconds(s) for s in (0.0123, 0.9997, 14.317, 999.7, 12426.4)] == [
        "12.3 ms",
        "1000 ms",
        "14.3 s",
        "1000 s",
        "12426 s",
    ]


def test_one_round_has_no_range() -> None:
    spread = {"median": 14317.0, "least": 13984.0, "most": 14441.0, "rounds": 3}
    assert with_range(spread, 4) == "14317 (13984-14441)"
    assert with_range(spread | {"rounds": 1}, 4) == "14317"
