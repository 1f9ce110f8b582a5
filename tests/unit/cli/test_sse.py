from cli.sse import ServerSentEvent, lines_of, read_events


def test_events_are_read_and_comments_are_not() -> None:
    lines = ["event: start", "id: 0", "data: {}", "", ": keep-alive", "", "data: a", "data: b", ""]
    assert list(read_events(lines)) == [
        ServerSentEvent("start", "{}", "0"),
        ServerSentEvent("message", "a\nb", "0"),
    ]


def test_an_event_that_is_cut_off_is_not_given() -> None:
    assert list(read_events(["event: token", "id: 4", "data: {"])) == []


def test_only_one_space_after_the_colon_is_the_formats() -> None:
    (event,) = read_events(["data:  x", ""])
    assert event.data == " x"


def test_a_line_ends_where_the_format_says_and_nowhere_else() -> None:
    pieces = ["data: a\u2028\u0085\x0b", "b\r", "\n\nda", "ta: c\n", "\ncut off"]
    assert list(lines_of(pieces)) == ["data: a\u2028\u0085\x0bb", "", "data: c", ""]
