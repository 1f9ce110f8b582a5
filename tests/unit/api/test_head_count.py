from api.head_count import HeadCount


def test_a_head_counts_as_it_stands_on_the_wire() -> None:
    lines = b"GET /jobs HTTP/1.1\r\nhost: a\r\nx: y\r\n\r\n"
    for max_bytes, is_too_large in ((len(lines), False), (len(lines) - 1, True)):
        head = HeadCount(max_bytes)
        head.began()
        head.showed_url(len("/jobs"))
        head.showed_header(len("host" + "a"))
        head.showed_header(len("x" + "y"))
        assert head.is_too_large == is_too_large


def test_what_the_parser_does_not_show_counts_too() -> None:
    head = HeadCount(100)
    head.received(100)
    head.began()
    assert (head.has_begun, head.is_endless) == (True, False)
    head.received(1)
    assert head.is_endless


def test_empty_lines_before_a_request_are_of_its_head() -> None:
    head = HeadCount(100)
    assert not head.has_begun
    head.received(2)
    assert head.has_begun


def test_a_body_of_any_size_is_no_head() -> None:
    head = HeadCount(100)
    head.received(5000)
    head.began()
    head.showed_header(10)
    assert not head.is_too_large
    head.head_ended()
    for _ in range(5):
        head.received(80)
        head.showed_body()
    assert not head.has_begun
    assert not head.is_endless


def test_what_comes_in_a_body_and_is_not_of_it_counts() -> None:
    head = HeadCount(100)
    head.began()
    head.head_ended()
    head.received(101)
    assert head.is_endless, "an endless trailer, or the length of a chunk without its chunk"


def test_trailers_count_with_the_headers() -> None:
    head = HeadCount(100)
    head.began()
    head.showed_header(40)
    head.head_ended()
    head.showed_header(40)
    assert head.is_too_large


def test_each_request_of_a_connection_counts_for_itself() -> None:
    head = HeadCount(100)
    for _ in range(3):
        head.received(80)
        head.began()
        head.showed_url(60)
        assert not head.is_too_large
        head.head_ended()
        head.message_ended()
        assert not head.has_begun
        assert not head.is_endless
