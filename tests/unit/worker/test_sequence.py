from shared.protocol import EndEvent, FinishReason, Sampling, TokenEvent, TokenLogprob
from tests.factories import make_times
from worker.detokenizer import Detokenizer
from worker.sequence import Drawn, Sequence


def make_sequence(*stops: str) -> Sequence:
    return Sequence(
        job_id="a",
        attempt=2,
        worker="w",
        prompt=(1, 2, 3),
        sampling=Sampling(),
        seed=1,
        max_tokens=10,
        times=make_times(),
        detokenizer=Detokenizer(stops),
    )


def drawn(token: int, text: str, **more: object) -> Drawn:
    logprob = TokenLogprob(token=token, bytes=tuple(text.encode()), logprob=-token)
    return Drawn(token, text.encode(), False, logprob=logprob, **more)  # type: ignore[arg-type]


def test_each_token_that_is_sent_has_its_log_probability_also_if_it_was_held_back() -> None:
    sequence = make_sequence("ab!")
    sequence.resume([90, 91])
    assert sequence.accept(drawn(4, "a"), 101, 100) == []
    (event,) = sequence.accept(drawn(5, "c"), 101, 100)
    assert isinstance(event, TokenEvent)
    assert (event.index, event.tokens) == (2, (4, 5))
    assert [p.token for p in event.logprobs or ()] == [4, 5]


def test_a_token_after_which_nothing_may_come_ends_the_answer() -> None:
    sequence = make_sequence()
    token, end = sequence.accept(drawn(4, "}", is_last=True), 101, 100)
    assert isinstance(token, TokenEvent) and token.text == "}"
    assert isinstance(end, EndEvent) and end.finish_reason is FinishReason.STOP


def test_an_answer_that_cannot_go_on_fails_with_the_reason_and_keeps_its_text() -> None:
    sequence = make_sequence("ab!")
    sequence.accept(drawn(4, "a"), 101, 100)
    events = sequence.accept(Drawn(-1, b"", False, error="too complex"), 101, 100)
    assert [e.text for e in events if isinstance(e, TokenEvent)] == ["a"]
    end = events[-1]
    assert isinstance(end, EndEvent) and end.error is not None
    assert (end.error.code, end.finish_reason) == ("shape_failed", FinishReason.ERROR)
    assert "too complex" in end.error.message
