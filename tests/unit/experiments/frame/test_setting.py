"""What is asked for, before anything is measured."""

import pytest

from experiments.frame.setting import parse_points
from shared.errors import BadRequest


def test_points_are_in_order_and_each_once() -> None:
    assert parse_points("64,16,64", "--lengths") == (16, 64)
    assert parse_points(None, "--lengths") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no list of whole numbers"),
        ("a,b", "no list of whole numbers"),
        ("1.5", "no list of whole numbers"),
        ("0,4", "0 is less than 1"),
        (",".join(map(str, range(1, 40))), "39 of them, at most 32"),
    ],
)
def test_what_is_no_list_of_numbers_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(BadRequest, match=f"--lengths: .*{words}"):
        parse_points(text, "--lengths")
