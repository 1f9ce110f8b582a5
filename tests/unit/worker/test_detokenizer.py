from hypothesis import example, given
from hypothesis import strategies as st

from worker.detokenizer import Detokenizer, Released


def feed_all(detokenizer: Detokenizer, pieces: list[bytes]) -> tuple[list[Released], bool]:
    """Feeds pieces as tokens 0, 1, ... and flushes; whether a stop string ended it."""
    released = []
    for token, piece in enumerate(pieces):
        freed = detokenizer.feed(token, piece)
        if freed:
            released.append(freed)
        if detokenizer.is_stopped:
            return released, True
    rest = detokenizer.flush()
    return [*released, rest] if rest else released, False


def test_a_character_split_over_tokens_is_released_with_its_last_token() -> None:
    euro = "€".encode()
    detokenizer = Detokenizer()
    assert detokenizer.feed(1, euro[:1]) is None
    assert detokenizer.feed(2, euro[1:2]) is None
    assert detokenizer.feed(3, euro[2:]) == Released((1, 2, 3), "€")


def test_a_token_that_ends_inside_a_character_waits_with_its_whole_text() -> None:
    detokenizer = Detokenizer()
    assert detokenizer.feed(1, b"a\xc3") is None
    assert detokenizer.feed(2, b"\xa4b") == Released((1, 2), "aäb")


def test_a_stop_string_that_spans_tokens_is_never_sent() -> None:
    detokenizer = Detokenizer(["END"])
    assert detokenizer.feed(1, b"text ") == Released((1,), "text ")
    assert detokenizer.feed(2, b"E") is None
    assert detokenizer.feed(3, b"N") is None
    assert detokenizer.feed(4, b"D and more") == Released((2, 3, 4), "")
    assert detokenizer.is_stopped


def test_text_before_a_stop_string_in_the_same_token_is_sent() -> None:
    detokenizer = Detokenizer(["\n\n"])
    assert detokenizer.feed(1, b"done\n\nnot this") == Released((1,), "done")
    assert detokenizer.is_stopped


def test_what_only_began_like_a_stop_string_is_sent_in_the_end() -> None:
    detokenizer = Detokenizer(["abc"])
    assert detokenizer.feed(1, b"xab") is None
    assert detokenizer.feed(2, b"d") == Released((1, 2), "xabd")
    assert detokenizer.feed(3, b"ab") is None
    assert detokenizer.flush() == Released((3,), "ab")


def test_the_earliest_of_several_stop_strings_counts() -> None:
    detokenizer = Detokenizer(["world", "lo"])
    assert detokenizer.feed(1, b"hello world") == Released((1,), "hel")


def test_a_control_token_without_text_is_released_at_once() -> None:
    assert Detokenizer().feed(7, b"") == Released((7,), "")


@given(st.text(), st.data())
def test_any_cut_of_a_text_into_tokens_gives_it_back(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    released, _ = feed_all(Detokenizer(), pieces)
    assert "".join(r.text for r in released) == text
    assert [t for r in released for t in r.tokens] == list(range(len(pieces)))


@given(st.lists(st.binary(max_size=4), max_size=16))
def test_any_bytes_become_valid_text_and_no_token_is_lost(pieces: list[bytes]) -> None:
    released, _ = feed_all(Detokenizer(), pieces)
    assert [t for r in released for t in r.tokens] == list(range(len(pieces)))
    assert "".join(r.text for r in released) == b"".join(pieces).decode(errors="replace")


@given(
    st.text("ab", max_size=24),
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=2),
    st.data(),
)
def test_stop_strings_cut_the_same_text_however_it_is_tokenized(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    """The cut depends on where tokens end only in which stop string is complete first."""
    pieces = [char.encode() for char in text]
    released, stopped = feed_all(Detokenizer(stops), pieces)
    sent = "".join(r.text for r in released)
    assert text.startswith(sent)
    assert not any(stop in sent for stop in stops)
    assert stopped == any(stop in text for stop in stops)
    if not stopped:
        assert sent == text


@given(st.lists(st.binary(max_size=3), max_size=12), st.integers(0, 12))
@example([b"a", b"a"], 2)  # alone, the first may begin a stop string; the second one has freed it
def test_a_fresh_one_goes_on_after_released_tokens_as_if_never_interrupted(
    pieces: list[bytes], num_sent: int
) -> None:
    stops = ["ab"]
    whole, stopped = feed_all(Detokenizer(stops), pieces)
    if stopped:
        return
    first = Detokenizer(stops)  # what flush releases comes with the end: nothing resumes after it
    fed = [first.feed(token, piece) for token, piece in enumerate(pieces[:num_sent])]
    sent = [released for released in fed if released]
    num_tokens = sum(len(released.tokens) for released in sent)
    again = Detokenizer(stops)
    rest = [
        freed
        for token in range(num_tokens, len(pieces))
        if (freed := again.feed(token, pieces[token]))
    ]
    if last := again.flush():
        rest.append(last)
    assert "".join(r.text for r in sent + rest) == "".join(r.text for r in whole)
