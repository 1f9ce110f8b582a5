import pytest

from cli.printable import one_line, printable


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "größer 日本 🙂"])
def test_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_controls_are_shown_and_not_done() -> None:
    assert printable("a\x1b[2Jb\rc\x9b\u202e") == "a\\x1b[2Jb\\x0dc\\x9b\\x202e"


def test_one_line_has_no_more_characters_than_it_may() -> None:
    assert one_line("a\nb  c", 10) == "a b c"
    assert one_line("abcdef", 4) == "abc…"
