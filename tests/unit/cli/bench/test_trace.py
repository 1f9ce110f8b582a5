import pytest

from cli.bench.trace import parse_line


def test_a_line_with_a_prompt_of_its_own() -> None:
    arrival = parse_line(b'{"time_s": 0.5, "prompt": "Hi", "output_tokens": 3}', 0.0)
    assert (arrival.time_s, arrival.ask.prompt, arrival.ask.output_tokens) == (0.5, "Hi", 3)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"[]", "JSON object"),
        (b'{"time_s": 0, "output_tokens": 1}', "needs one of"),
        (b'{"time_s": 0, "prompt": "a", "prompt_tokens": 2, "output_tokens": 1}', "needs one of"),
        (b'{"time_s": 2, "prompt": "a", "output_tokens": 0}', "output_tokens"),
        (b'{"time_s": 2, "prompt": "a", "output_tokens": true}', "output_tokens"),
        (b'{"time_s": NaN, "prompt": "a", "output_tokens": 1}', "time_s"),
        (b'{"time_s": 1, "prompt": "a", "output_tokens": 1}', "must not be before"),
        (b'{"time_s": 3, "prompt": "a", "output_tokens": 1, "top": 1}', "top: no such field"),
        (b'{"time_s": 1' + b"0" * 400 + b', "prompt": "a", "output_tokens": 1}', "time_s: must be"),
        (b'{"time_s": NaN, "prompt": "a", "output_tokens": 1}', "time_s: must be a number"),
        (b'{"time_s": 1e9, "prompt": "a", "output_tokens": 1}', "at most 86400"),
    ],
)
def test_a_bad_line_names_its_field(line: bytes, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_line(line, 2.0)
