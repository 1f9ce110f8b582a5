import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import make_args, make_times
from worker.detokenizer import Detokenizer
from worker.scheduler import Close, Move, Scheduler
from worker.sequence import Drawn, Sequence, chunk_sizes


def make_scheduler(**changes: int) -> Scheduler:
    limits = {"slots": 4, "context_tokens": 64, "chunk_tokens": 8, "budget_tokens": 16}
    return Scheduler(**(limits | changes))


def make_sequence(job_id: str, num_prompt: int = 4, max_tokens: int = 100) -> Sequence:
    return Sequence(
        job_id=job_id,
        attempt=1,
        worker="worker-0",
        prompt=tuple(range(num_prompt)),
        sampling=make_args().request,
        seed=1,
        max_tokens=max_tokens,
        times=make_times(),
        detokenizer=Detokenizer(),
    )


def run_step(scheduler: Scheduler, piece: bytes = b"x") -> list[Close | Move]:
    plan = scheduler.plan()
    drawn = [Drawn(7, piece, False)] * plan.num_draws
    return scheduler.commit(plan, drawn, 101.0).changes


@given(st.integers(1, 2000), st.integers(2, 56))
def test_chunks_cover_the_prompt_and_never_have_one_row(num_tokens: int, max_rows: int) -> None:
    sizes = chunk_sizes(num_tokens, max_rows)
    assert sum(sizes) == num_tokens
    if num_tokens > 1:
        assert min(sizes) >= 2
        assert max(sizes) <= max(max_rows, 3)


def test_running_sequences_decode_before_a_long_prompt_goes_on() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence("a"))
    run_step(scheduler)
    scheduler.add(make_sequence("b", num_prompt=40))
    plan = scheduler.plan()
    assert [s.job_id for s in plan.rows] == ["a"]
    assert [len(c.tokens) for c in plan.chunks] == [8, 8]
    assert not any(c.draws for c in plan.chunks)


def test_the_budget_bounds_the_prompt_tokens_of_a_step() -> None:
    scheduler = make_scheduler()
    for job_id in "abc":
        scheduler.add(make_sequence(job_id, num_prompt=12))
    sizes = [len(c.tokens) for c in scheduler.plan().chunks]
    assert sizes == [8, 4]
    assert sum(sizes) <= 16


def test_a_budget_below_one_chunk_still_makes_progress() -> None:
    scheduler = make_scheduler(budget_tokens=2)
    scheduler.add(make_sequence("a", num_prompt=12))
    assert [len(c.tokens) for c in scheduler.plan().chunks] == [8]


def test_a_hole_is_filled_by_the_last_sequence() -> None:
    scheduler = make_scheduler()
    sequences = [make_sequence(job_id) for job_id in "abcd"]
    for sequence in sequences:
        scheduler.add(sequence)
    changes = scheduler.drop(sequences[1]).changes
    assert changes == [Close(1), Move(3, 1)]
    assert [s.job_id for s in scheduler.sequences] == ["a", "d", "c"]
    scheduler.check_integrity()


def test_several_ends_in_one_step_change_slots_one_after_another() -> None:
    scheduler = make_scheduler()
    for job_id, max_tokens in zip("abcd", (100, 1, 100, 1), strict=True):
        scheduler.add(make_sequence(job_id, max_tokens=max_tokens))
    assert run_step(scheduler) == [Close(1), Move(3, 1), Close(1), Move(2, 1)]
    assert [s.job_id for s in scheduler.sequences] == ["a", "c"]
    scheduler.check_integrity()


def test_a_resumed_sequence_refeeds_its_prompt_by_the_same_chunks_then_its_own_tokens() -> None:
    scheduler = make_scheduler(budget_tokens=100)
    sequence = make_sequence("a", num_prompt=10)
    sequence.resume([50, 51, 52])
    scheduler.add(sequence)
    plan = scheduler.plan()
    assert [c.tokens for c in plan.chunks] == [(0, 1, 2, 3, 4, 5, 6, 7), (8, 9), (50, 51)]
    assert plan.num_draws == 0
    scheduler.commit(plan, [], 101.0)
    assert scheduler.plan().rows == [sequence]
    assert sequence.num_computed == 12


def test_committing_too_few_tokens_is_refused() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence("a"))
    with pytest.raises(AssertionError, match="one token for each row"):
        scheduler.commit(scheduler.plan(), [], 101.0)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 6)), min_size=1, max_size=10))
def test_slots_stay_dense_and_every_job_ends_with_its_tokens(jobs: list[tuple[int, int]]) -> None:
    scheduler = make_scheduler()
    waiting = [make_sequence(str(i), p, m) for i, (p, m) in enumerate(jobs)]
    started: list[Sequence] = []
    while waiting or scheduler.sequences:
        while waiting and scheduler.num_free_slots:
            started.append(waiting.pop(0))
            scheduler.add(started[-1])
        run_step(scheduler)
        scheduler.check_integrity()
    for sequence, (num_prompt, max_tokens) in zip(started, jobs, strict=True):
        assert sequence.num_released == min(max_tokens, 64 - num_prompt)
