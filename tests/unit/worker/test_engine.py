import pytest

from shared.errors import PromptTooLong
from shared.histograms import read_observed
from shared.protocol import EndEvent, FinishReason, JobStatus, StartEvent, TokenEvent
from tests.factories import make_args, make_engine, make_times
from worker.backends.scripted import ScriptedBackend
from worker.engine import Engine, Events
from worker.step_figures import StepFigures


def run(engine: Engine, events: Events, max_steps: int = 500) -> Events:
    for _ in range(max_steps):
        if not engine.num_active:
            return events
        events += engine.step()
    raise AssertionError("the engine did not come to an end")


def text_of(events: Events, job_id: str) -> str:
    return "".join(e.text for s, e in events if s.job_id == job_id and isinstance(e, TokenEvent))


def end_of(events: Events, job_id: str) -> EndEvent:
    (end,) = [e for s, e in events if s.job_id == job_id and isinstance(e, EndEvent)]
    return end


def test_a_job_starts_streams_and_ends_once() -> None:
    engine, _ = make_engine(ScriptedBackend(answers={"hello": "world"}))
    events = run(engine, engine.admit("a", 1, make_args("hello"), make_times()))
    assert events[0][1] == StartEvent(prompt_tokens=5)
    assert text_of(events, "a") == "world"
    end = end_of(events, "a")
    assert (end.status, end.finish_reason) == (JobStatus.COMPLETED, FinishReason.STOP)
    assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (5, 5)


def test_indices_count_tokens_without_gap() -> None:
    engine, _ = make_engine(ScriptedBackend())
    events = run(engine, engine.admit("a", 1, make_args(max_tokens=20), make_times()))
    tokens = [e for _, e in events if isinstance(e, TokenEvent)]
    assert [e.index for e in tokens] == [
        sum(len(p.tokens) for p in tokens[:i]) for i in range(len(tokens))
    ]
    assert sum(len(e.tokens) for e in tokens) == 20


def test_a_job_gives_the_same_text_alone_and_among_others() -> None:
    engine, _ = make_engine(ScriptedBackend())
    alone = run(engine, engine.admit("a", 1, make_args("one", max_tokens=30), make_times()))
    engine, _ = make_engine(ScriptedBackend())
    events: Events = []
    for job_id, prompt, n in (("b", "a longer prompt", 5), ("a", "one", 30), ("c", "two", 12)):
        events += engine.admit(job_id, 1, make_args(prompt, max_tokens=n), make_times())
    together = run(engine, events)
    assert text_of(alone, "a") == text_of(together, "a")


@pytest.mark.parametrize("num_known", [1, 2, 9, 29])
def test_a_resumed_job_goes_on_at_the_next_token(num_known: int) -> None:
    engine, _ = make_engine(ScriptedBackend())
    args = make_args("one", max_tokens=30)
    whole = run(engine, engine.admit("a", 1, args, make_times()))
    known = [t for _, e in whole if isinstance(e, TokenEvent) for t in e.tokens][:num_known]
    engine, _ = make_engine(ScriptedBackend())
    rest = run(engine, engine.admit("a", 2, args, make_times(), known=known))
    assert bytes(known).decode() + text_of(rest, "a") == text_of(whole, "a")
    first = next(e for _, e in rest if isinstance(e, TokenEvent))
    assert (first.index, first.attempt) == (num_known, 2)
    assert end_of(rest, "a").usage.completion_tokens == 30


def test_a_prompt_that_fills_the_context_is_refused_with_both_counts() -> None:
    engine, _ = make_engine(ScriptedBackend(context_tokens=32))
    with pytest.raises(PromptTooLong, match=r"has 32 tokens; .* holds 32"):
        engine.admit("a", 1, make_args("x" * 32), make_times())
    assert engine.num_active == 0


def test_a_sequence_that_fills_its_context_ends_with_length() -> None:
    engine, _ = make_engine(ScriptedBackend(context_tokens=32))
    events = run(engine, engine.admit("a", 1, make_args("x" * 31), make_times()))
    assert end_of(events, "a").finish_reason is FinishReason.LENGTH
    assert end_of(events, "a").usage.completion_tokens == 1


def test_cancel_takes_effect_at_the_next_step_even_while_prefilling() -> None:
    engine, _ = make_engine(ScriptedBackend())
    engine.admit("a", 1, make_args("x" * 200), make_times())
    engine.step()
    engine.cancel("a")
    (last,) = engine.step()
    assert isinstance(last[1], EndEvent)
    assert last[1].status is JobStatus.CANCELLED
    assert engine.num_active == 0


def test_a_deadline_ends_the_job_and_keeps_its_text() -> None:
    engine, clock = make_engine(ScriptedBackend())
    events = engine.admit("a", 1, make_args(), make_times(), deadline_s=105.0)
    for _ in range(3):
        events += engine.step()
    clock.now_s = 105.0
    events = run(engine, events)
    end = end_of(events, "a")
    assert (end.status, end.finish_reason) == (JobStatus.FAILED, FinishReason.TIMEOUT)
    assert end.error is not None
    assert end.error.code == "timeout"
    assert len(text_of(events, "a")) == end.usage.completion_tokens == 3


def test_slots_stay_dense_when_jobs_of_all_lengths_come_and_go() -> None:
    """The backend itself refuses a hole, a wrong position or a foreign token."""
    engine, _ = make_engine(ScriptedBackend(slots=3))
    events: Events = []
    waiting = [(f"job{i}", "p" * (1 + 7 * i % 23), 1 + 5 * i % 11) for i in range(20)]
    for _ in range(500):
        while waiting and engine.num_free_slots:
            job_id, prompt, n = waiting.pop(0)
            events += engine.admit(job_id, 1, make_args(prompt, max_tokens=n), make_times())
        if not engine.num_active:
            break
        events += engine.step()
    ended = [s.job_id for s, e in events if isinstance(e, EndEvent)]
    assert sorted(ended) == sorted(f"job{i}" for i in range(20))


def test_timings_add_up() -> None:
    engine, clock = make_engine(ScriptedBackend())
    events = engine.admit("a", 1, make_args(max_tokens=3), make_times(began_s=100.0))
    clock.now_s = 102.0
    events += engine.step()
    clock.now_s = 106.0
    events = run(engine, events)
    timings = end_of(events, "a").timings
    assert (timings.queued_s, timings.prefill_s, timings.decode_s) == (0.5, 2.0, 4.0)
    assert (timings.ttft_s, timings.total_s) == (2.5, 6.5)
    assert timings.tokens_per_s == 0.5


def test_a_bare_prompt_is_a_chat_turn_where_the_model_has_a_template() -> None:
    backend = ScriptedBackend(answers={"<user>hi\n<assistant>": "yes"})
    engine, _ = make_engine(backend)
    events = run(engine, engine.admit("a", 1, make_args("hi", raw=False), make_times()))
    assert text_of(events, "a") == "yes"


def test_a_bare_prompt_is_continued_where_the_model_has_no_template() -> None:
    engine, _ = make_engine(ScriptedBackend(answers={"hi": "!"}, has_chat_template=False))
    events = run(engine, engine.admit("a", 1, make_args("hi", raw=False), make_times()))
    assert text_of(events, "a") == "!"


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_tokenized() -> None:
    backend = ScriptedBackend(context_tokens=32)
    engine, _ = make_engine(backend)
    with pytest.raises(PromptTooLong, match="at least 250 tokens"):
        engine.admit("a", 1, make_args("x" * 1000), make_times())


def test_a_resumed_job_that_no_longer_fits_ends_with_length() -> None:
    engine, _ = make_engine(ScriptedBackend(context_tokens=32))
    events = engine.admit("a", 2, make_args("x" * 20), make_times(), known=list(b"y" * 20))
    assert engine.num_active == 0
    end = end_of(events, "a")
    assert (end.status, end.finish_reason) == (JobStatus.COMPLETED, FinishReason.LENGTH)
    assert end.usage.completion_tokens == 20


def test_every_token_but_the_first_is_a_gap_and_every_round_a_step() -> None:
    figures = StepFigures("m")
    engine, _ = make_engine(ScriptedBackend(), step_figures=figures)
    events: Events = []
    for job_id, num_tokens in (("a", 12), ("b", 5), ("c", 1)):
        args = make_args(job_id * 4, max_tokens=num_tokens)
        events += engine.admit(job_id, 1, args, make_times())
    assert engine.num_kv_tokens == 0
    engine.step()
    assert engine.num_kv_tokens == 8, "a chunk of a prompt is in the cache"
    run(engine, events)
    assert engine.num_kv_tokens == 0
    raw = {name.encode(): str(value).encode() for name, value in figures.totals().items()}
    observed = read_observed([raw])
    assert observed.of_all_models("itl").count == 11 + 4
    assert observed.of_all_models("step").count >= 12
    assert figures.num_calls >= observed.of_all_models("step").count


def test_what_only_ends_an_answer_is_no_token_and_no_gap() -> None:
    figures = StepFigures("m")
    engine, _ = make_engine(ScriptedBackend(answers={"hello": "world"}), step_figures=figures)
    events = run(engine, engine.admit("a", 1, make_args("hello"), make_times()))
    assert end_of(events, "a").finish_reason is FinishReason.STOP
    raw = {name.encode(): str(value).encode() for name, value in figures.totals().items()}
    assert read_observed([raw]).of_all_models("itl").count == len("world") - 1
