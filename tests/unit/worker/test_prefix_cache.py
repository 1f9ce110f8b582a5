"""Reuse between the slots of one worker; the scripted model says what is wrong with a state."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.errors import BadRequest
from shared.protocol import EndEvent, TokenEvent
from tests.factories import make_args, make_engine, make_times
from worker.backends.scripted import ScriptedBackend
from worker.engine import Engine, Events

SHARED = "You are a terse assistant that answers in one line. " * 2


def admit(engine: Engine, job_id: str, prompt: str, owner: str = "", max_tokens: int = 4) -> Events:
    args = make_args(prompt, max_tokens=max_tokens)
    return engine.admit(job_id, 1, args, make_times(), owner=owner)


def run(engine: Engine) -> dict[str, tuple[str, EndEvent]]:
    texts: dict[str, str] = {}
    ends = {}
    while engine.num_active:
        for sequence, event in engine.step():
            if isinstance(event, TokenEvent):
                texts[sequence.job_id] = texts.get(sequence.job_id, "") + event.text
            elif isinstance(event, EndEvent):
                ends[sequence.job_id] = event
        engine.scheduler.check_integrity()
    return {job_id: (texts.get(job_id, ""), end) for job_id, end in ends.items()}


def num_prefilled(backend: ScriptedBackend) -> int:
    return sum(row[1] for call in backend.calls if call.name == "prefill" for row in call.rows)


def test_two_prompts_that_begin_alike_at_the_same_moment_are_computed_once() -> None:
    backend = ScriptedBackend()
    engine, _ = make_engine(backend)
    for job_id in "abc":
        admit(engine, job_id, SHARED + job_id * 5)
    ends = run(engine)
    assert num_prefilled(backend) == len(SHARED) + 3 * 5
    assert [ends[j][1].usage.cached_tokens for j in "abc"] == [0, len(SHARED), len(SHARED)]
    assert engine.figures.cache_hits == 2
    assert engine.figures.cache_hit_tokens == 2 * len(SHARED)


def test_a_prompt_starts_from_a_slot_that_is_decoding() -> None:
    backend = ScriptedBackend()
    engine, _ = make_engine(backend, budget_tokens=1000, chunk_tokens=56)
    admit(engine, "a", SHARED, max_tokens=50)
    engine.step()
    admit(engine, "b", SHARED + "more")
    assert run(engine)["b"][1].usage.cached_tokens == len(SHARED)
    assert num_prefilled(backend) == len(SHARED) + 4


def test_the_last_two_tokens_of_an_equal_prompt_are_computed_again() -> None:
    backend = ScriptedBackend()
    engine, _ = make_engine(backend)
    for job_id in "ab":
        admit(engine, job_id, SHARED)
    assert run(engine)["b"][1].usage.cached_tokens == len(SHARED) - 2


def test_two_keys_share_nothing() -> None:
    backend = ScriptedBackend()
    engine, _ = make_engine(backend)
    admit(engine, "a", SHARED, owner="one")
    admit(engine, "b", SHARED, owner="other")
    assert [end.usage.cached_tokens for _, end in run(engine).values()] == [0, 0]


def test_two_keys_share_where_the_setting_says_so() -> None:
    engine, _ = make_engine(ScriptedBackend(), sharing="all")
    admit(engine, "a", SHARED, owner="one")
    admit(engine, "b", SHARED, owner="other")
    assert run(engine)["b"][1].usage.cached_tokens == len(SHARED) - 2


def test_one_that_waits_goes_on_by_itself_when_the_other_is_cancelled() -> None:
    backend = ScriptedBackend()
    engine, _ = make_engine(backend)
    admit(engine, "a", SHARED + "a")
    admit(engine, "b", SHARED + "b")
    engine.step()
    assert engine.scheduler.sequences[1].reuse.is_waiting
    engine.cancel("a")
    ends = run(engine)
    assert ends["b"][1].usage.completion_tokens == 4
    assert ends["b"][1].usage.cached_tokens == 0


def test_one_that_waits_can_be_cancelled() -> None:
    engine, _ = make_engine(ScriptedBackend())
    admit(engine, "a", SHARED + "a")
    admit(engine, "b", SHARED + "b")
    engine.cancel("b")
    ends = run(engine)
    assert ends["b"][1].finish_reason == "cancelled"
    assert ends["a"][1].finish_reason == "length"


def test_a_short_common_beginning_is_not_worth_waiting_for() -> None:
    engine, _ = make_engine(ScriptedBackend(), min_tokens=64)
    admit(engine, "a", SHARED[:40] + "a" * 60)
    admit(engine, "b", SHARED[:40] + "b" * 60)
    assert not engine.scheduler.sequences[1].reuse.is_waiting


@settings(max_examples=60)
@given(
    prompts=st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 90), st.integers(0, 20), st.integers(0, 30)),
        min_size=2,
        max_size=8,
    ),
    window=st.sampled_from([0, 0, 24]),
    grid=st.sampled_from([0, 0, 16]),
    budget=st.integers(2, 60),
)
@example(  # two that begin alike once waited for each other, for ever
    prompts=[
        (0, 29, 15, 6),
        (1, 7, 7, 12),
        (0, 51, 15, 6),
        (0, 32, 14, 6),
        (0, 23, 4, 23),
        (0, 7, 18, 24),
        (1, 43, 11, 23),
        (1, 14, 17, 1),
    ],
    window=0,
    grid=16,
    budget=29,
)
def test_whatever_is_reused_the_texts_are_those_of_a_cold_run(
    prompts: list[tuple[int, int, int, int]], window: int, grid: int, budget: int
) -> None:
    """Each: which of three texts it begins with, for how long, its own rest, and its arrival."""
    texts = ["".join(chr(97 + (i * 7 + i // (k + 2)) % 26) for i in range(90)) for k in range(3)]
    jobs = [
        (str(i), texts[which][:length] + "xyz"[i % 3] * rest, arrival)
        for i, (which, length, rest, arrival) in enumerate(prompts)
    ]

    def outcome(*, has_cache: bool) -> dict[str, str]:
        backend = ScriptedBackend(window_tokens=window)
        engine, _ = make_engine(
            backend, budget_tokens=budget, grid_tokens=grid, has_cache=has_cache, chunk_tokens=8
        )
        told: dict[str, str] = {}
        waiting, step = sorted(jobs, key=lambda job: job[2]), 0
        while waiting or engine.num_active:
            while waiting and waiting[0][2] <= step and engine.num_free_slots:
                job_id, prompt, _ = waiting.pop(0)
                admit(engine, job_id, prompt, max_tokens=6)
            for sequence, event in engine.step():
                if isinstance(event, TokenEvent):
                    told[sequence.job_id] = told.get(sequence.job_id, "") + event.text
            engine.scheduler.check_integrity()
            step += 1
            assert step < 2000, "it never ends"
        return told

    assert outcome(has_cache=True) == outcome(has_cache=False)


@pytest.mark.parametrize("has_cache", [True, False])
def test_a_job_that_is_there_for_its_snapshot_is_refused_where_none_is_kept(
    has_cache: bool,
) -> None:
    engine, _ = make_engine(ScriptedBackend(), has_cache=has_cache)
    args = make_args(SHARED).model_copy(update={"warm": "own"})
    with pytest.raises(BadRequest, match="MINI_VLLM_PREFIX_CACHE"):
        engine.admit("a", 1, args, make_times())
