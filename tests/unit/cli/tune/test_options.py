from pathlib import Path

import pytest

from cli.tune.options import parse_budget_s, parse_size, read_shapes
from shared.errors import BadRequest
from shared.trials import RequestShape


def test_sizes_are_read_with_or_without_a_letter() -> None:
    assert [parse_size(text, "memory") for text in ("8G", "1.5g", "500MB", "1000")] == [
        8 * 10**9, 1_500_000_000, 500 * 10**6, 1000
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "x", "-1G", "0", "8 apples"])
def test_what_is_no_size_is_named(text: str) -> None:
    with pytest.raises(BadRequest, match="--memory: must be like 8G"):
        parse_size(text, "memory")


@pytest.mark.parametrize("text", ["1s", "2d", "soon"])
def test_a_budget_has_its_limits(text: str) -> None:
    with pytest.raises(BadRequest, match="--budget"):
        parse_budget_s(text)


def test_a_trace_is_read_as_that_of_bench(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"time_s": 0, "prompt_tokens": 5, "output_tokens": 6}\n\n')
    assert read_shapes(path) == (RequestShape(prompt_tokens=5, output_tokens=6),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no requests"),
        ('{"time_s": 0, "prompt_tokens": 5}', "line 1: output_tokens"),
        ('{"time_s": 0, "prompt": "Hi", "output_tokens": 1}', "needs prompt_tokens in each line"),
    ],
)
def test_a_bad_trace_says_what_it_lacks(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(BadRequest, match=words):
        read_shapes(path)
