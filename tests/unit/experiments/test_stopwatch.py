"""Time by part, and that a watched engine decides as one that is not."""

import time
from time import monotonic

from experiments.played_model import PlayedModel
from experiments.stopwatch import Stopwatch, TimedDetokenizer, TimedModel, TimedScheduler
from shared.protocol import GenerateRequest, JobArgs, TokenEvent
from worker.engine import Engine
from worker.pace import Pace
from worker.sequence import JobTimes


def test_what_an_inner_call_takes_is_not_the_outers() -> None:
    watch = Stopwatch()

    def outer() -> str:
        return watch.time("inner", inner, word="done")

    def inner(word: str) -> str:
        time.sleep(0.05)
        return word

    begin_s = time.perf_counter()
    assert watch.time("outer", outer) == "done"
    took_s = time.perf_counter() - begin_s
    assert watch.spent_s["inner"] >= 0.05
    assert 0 <= watch.spent_s["outer"] <= took_s - watch.spent_s["inner"]


def tokens_of(model: PlayedModel, scheduler: TimedScheduler | None, watch: Stopwatch) -> list[int]:
    engine = Engine(model, worker="w", chunk_tokens=8, pace=Pace(0.1))
    engine.scheduler = scheduler or engine.scheduler
    request = GenerateRequest(prompt="word " * 20, max_tokens=12, ignore_eos=True)
    engine.admit("a", 1, JobArgs(request=request, seed=1), JobTimes(0, 0, monotonic()))
    if scheduler:
        engine.scheduler.sequences[0].detokenizer = TimedDetokenizer(watch)
    tokens: list[int] = []
    while engine.num_active:
        for _, event in engine.step():
            tokens += event.tokens if isinstance(event, TokenEvent) else ()
    return tokens


def test_a_watched_engine_gives_the_same_tokens_and_has_a_time_for_each_part() -> None:
    watch = Stopwatch()
    scheduler = TimedScheduler(watch, slots=2, context_tokens=256, chunk_tokens=8)
    watched = tokens_of(TimedModel(watch, slots=2, context_tokens=256), scheduler, watch)
    assert watched == tokens_of(PlayedModel(slots=2, context_tokens=256), None, watch)
    assert len(watched) == 12
    assert set(watch.spent_s) == {"model", "plan", "commit", "detokenize"}
    assert all(spent_s > 0 for spent_s in watch.spent_s.values())
