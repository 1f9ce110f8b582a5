import pytest
from redis import Redis

from shared.asks import Answer, ApplyTemplate, Ask, Detokenize, Piece, Tokenize
from shared.protocol import Message
from tests.words import ask_of
from worker.answers import Answers
from worker.backends.scripted import END, ScriptedBackend


def answer_of(
    question: Tokenize | Detokenize | ApplyTemplate, has_chat_template: bool = True
) -> Answer:
    # Nothing is sent: Redis is asked by the thread alone, which is not started here.
    return Answers(Redis(), ScriptedBackend(has_chat_template=has_chat_template), "m").answer(
        ask_of(question)
    )


def test_a_text_becomes_its_tokens() -> None:
    assert answer_of(Tokenize(content="ab")) == Answer(tokens=(97, 98))


def test_a_piece_that_is_no_text_is_a_list_of_bytes() -> None:
    answer = answer_of(Tokenize(content="a\u00fc", with_pieces=True))
    assert answer.pieces == (
        Piece(id=97, piece="a"),
        Piece(id=195, piece=(195,)),
        Piece(id=188, piece=(188,)),
    )


def test_tokens_become_their_text_with_special_tokens_written_out() -> None:
    assert answer_of(Detokenize(tokens=(97, 195, 188, END))).text == "a\u00fc<end>"


def test_half_a_character_becomes_a_replacement_character() -> None:
    assert answer_of(Detokenize(tokens=(97, 195))).text == "a\ufffd"


def test_no_tokens_are_no_text() -> None:
    assert answer_of(Detokenize(tokens=())).text == ""
    assert answer_of(Tokenize(content="")).tokens == ()


def test_what_is_no_token_is_named() -> None:
    answer = answer_of(Detokenize(tokens=(97, 100_000)))
    assert (answer.code, answer.field) == ("invalid_request", "tokens.1")
    assert answer.error == "tokens.1: 100000 is no token of this model"


def test_a_chat_becomes_its_prompt() -> None:
    question = ApplyTemplate(messages=(Message(role="user", content="hi"),))
    assert answer_of(question).text == "<user>hi\n<assistant>"


def test_a_model_without_a_template_says_so() -> None:
    question = ApplyTemplate(messages=(Message(role="user", content="hi"),))
    assert answer_of(question, has_chat_template=False).code == "no_chat_template"


def test_a_question_that_breaks_the_model_is_answered() -> None:
    class Broken(ScriptedBackend):
        def tokenize(self, *_: object, **__: object) -> list[int]:
            raise RuntimeError("broken")

    answer = Answers(Redis(), Broken(), "m").answer(ask_of(Tokenize(content="x")))
    assert answer.code == "internal_error"


def test_an_ask_has_one_question() -> None:
    with pytest.raises(ValueError, match="one question"):
        Ask(ask_id="1", gateway_id="g", deadline_ms=1)
