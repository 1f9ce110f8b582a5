from api.completions.logprobs import TextOffsets, chat_logprobs, completion_logprobs
from shared.protocol import TokenEvent, TokenLogprob
from tests.unit.api.completions.jobs import token


def test_there_are_none_where_none_were_asked_for() -> None:
    assert chat_logprobs([token(0, "a")]) is None
    assert completion_logprobs([token(0, "a")], TextOffsets()) is None
    assert chat_logprobs([]) is None


def test_a_chat_shows_tokens_as_texts_and_bytes() -> None:
    found = chat_logprobs([token(0, "a", raw=b"a"), token(1, "", raw=b"\xf0\x9f")])
    assert found is not None
    first, second = found["content"]
    assert (first["token"], first["bytes"], first["logprob"]) == ("a", [97], -0.5)
    assert [top["token"] for top in first["top_logprobs"]] == ["a", "other"]
    assert second["bytes"] == [0xF0, 0x9F]


def test_a_completion_shows_parts_of_characters_as_openai_does() -> None:
    events = [token(0, "", raw=b"\xf0\x9f"), token(1, "", raw=b"\x98"), token(2, "😀", raw=b"\x80")]
    events.append(token(3, "ab", raw=b"ab"))
    found = completion_logprobs(events, TextOffsets())
    assert found is not None
    assert found["tokens"] == ["bytes:\\xf0\\x9f", "bytes:\\x98", "bytes:\\x80", "ab"]
    assert found["text_offset"] == [0, 0, 0, 1]
    assert found["token_logprobs"] == [-0.5] * 4
    assert found["top_logprobs"][3] == {"ab": -0.5, "other": -3.0}


def test_what_is_impossible_is_a_number_and_none_asked_for_is_null() -> None:
    lone = TokenLogprob(token=1, bytes=(97,), logprob=float("-inf"))
    event = TokenEvent(index=0, tokens=(1,), text="a", attempt=1, logprobs=(lone,))
    found = completion_logprobs([event], TextOffsets())
    assert found is not None
    assert found["token_logprobs"] == [-9999.0]
    assert found["top_logprobs"] is None
