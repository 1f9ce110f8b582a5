import pytest

from cli.durations import duration_text, parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("90", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86_400),
        ("1.5h", 5400),
        ("0", 0),
    ],
)
def test_a_span_of_time_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "-1h", "1w", "1 h", "inf", "1e9", "1h30m", "9" * 10])
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="90s, 30m, 2h or 1d"):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.9, "59 s"), (60, "1 m"), (7199, "1 h"), (200_000, "2 d")],
)
def test_a_span_of_time_is_written_in_its_largest_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
