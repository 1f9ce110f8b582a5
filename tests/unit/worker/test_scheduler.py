import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import make_args, make_times
from worker.detokenizer import Detokenizer
from worker.scheduler import Close, Move, Scheduler, StepPlan
from worker.sequence import Drawn, Sequence


def make_scheduler(**changes: int) -> Scheduler:
    limits = {"slots": 4, "context_tokens": 64, "chunk_tokens": 8}
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
    plan = scheduler.plan(16)
    drawn = [Drawn(7, piece, False)] * plan.num_draws
    return scheduler.commit(plan, drawn, 101.0).changes


def test_running_sequences_decode_before_a_long_prompt_goes_on() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence("a"))
    run_step(scheduler)
    scheduler.add(make_sequence("b", num_prompt=40))
    plan = scheduler.plan(16)
    assert [s.job_id for s in plan.rows] == ["a"]
    assert [len(c.tokens) for c in plan.chunks] == [8, 8]
    assert not any(c.draws for c in plan.chunks)


def test_the_budget_bounds_the_prompt_tokens_of_a_step() -> None:
    scheduler = make_scheduler()
    for job_id in "abc":
        scheduler.add(make_sequence(job_id, num_prompt=12))
    sizes = [len(c.tokens) for c in scheduler.plan(16).chunks]
    assert sizes == [6, 6]
    assert sum(sizes) <= 16


def test_a_budget_below_one_chunk_makes_smaller_chunks() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence("a", num_prompt=12))
    assert [len(c.tokens) for c in scheduler.plan(4).chunks] == [4]
    assert [len(c.tokens) for c in scheduler.plan(1).chunks] == [2]


def test_the_rest_of_a_budget_is_not_spent_on_a_tiny_chunk() -> None:
    scheduler = make_scheduler()
    for job_id in "ab":
        scheduler.add(make_sequence(job_id, num_prompt=14))
    assert [len(c.tokens) for c in scheduler.plan(16).chunks] == [7, 7]


def shape(plan: StepPlan) -> list[list[tuple[str, int]]]:
    return [[(c.sequence.job_id, len(c.tokens)) for c in call] for call in plan.calls]


def test_neighbours_with_as_much_to_do_share_a_call() -> None:
    scheduler = make_scheduler()
    for job_id, num_prompt in zip("abcd", (8, 8, 5, 8), strict=True):
        scheduler.add(make_sequence(job_id, num_prompt))
    assert shape(scheduler.plan(100)) == [[("a", 8), ("b", 8)], [("c", 5), ("d", 5)], [("d", 3)]]


def test_a_shared_call_keeps_to_the_budget_and_serves_the_oldest_first() -> None:
    scheduler = make_scheduler()
    for job_id in "abcd":
        scheduler.add(make_sequence(job_id, num_prompt=8))
    assert shape(scheduler.plan(19)) == [[("a", 8), ("b", 8)]]
    run_step(scheduler)
    assert shape(scheduler.plan(19)) == [[("c", 8), ("d", 8)]]


def test_no_neighbour_is_left_with_a_lone_row() -> None:
    scheduler = make_scheduler()
    for job_id, num_prompt in zip("abc", (8, 9, 10), strict=True):
        scheduler.add(make_sequence(job_id, num_prompt))
    assert shape(scheduler.plan(100)) == [[("a", 8)], [("b", 5), ("c", 5)], [("b", 4)], [("c", 5)]]


def test_a_further_call_is_charged_what_it_costs_by_itself() -> None:
    scheduler = make_scheduler()
    for job_id, num_prompt in zip("ab", (8, 6), strict=True):
        scheduler.add(make_sequence(job_id, num_prompt))
    assert shape(scheduler.plan(16, call_tokens=2)) == [[("a", 8)], [("b", 6)]]
    assert shape(scheduler.plan(16, call_tokens=3)) == [[("a", 8)]]


def test_a_grid_shares_no_calls() -> None:
    scheduler = make_scheduler(grid_tokens=16)
    for job_id in "ab":
        scheduler.add(make_sequence(job_id, num_prompt=8))
    assert shape(scheduler.plan(100)) == [[("a", 8)], [("b", 8)]]


def test_a_grid_cuts_the_prompt_at_its_borders_only_and_the_answer_by_chunks() -> None:
    scheduler = make_scheduler(grid_tokens=16)
    sequence = make_sequence("a", num_prompt=40)
    sequence.resume(list(range(50, 62)))
    scheduler.add(sequence)
    chunks = scheduler.plan(1000).chunks
    assert [(c.position, len(c.tokens)) for c in chunks] == [
        (0, 16),
        (16, 16),
        (32, 8),
        (40, 6),
        (46, 5),
    ]
    assert [len(c.tokens) for c in scheduler.plan(2).chunks] == [16]


def test_a_cut_ends_a_chunk_and_the_sequences_part_of_the_step() -> None:
    scheduler = make_scheduler()
    sequence = make_sequence("a", num_prompt=30)
    sequence.reuse.cuts = (11,)
    scheduler.add(sequence)
    assert [len(c.tokens) for c in scheduler.plan(100).chunks] == [6, 5]


def test_one_that_waits_holds_a_slot_and_does_nothing() -> None:
    scheduler = make_scheduler()
    leader, follower = make_sequence("a", 20), make_sequence("b", 20)
    follower.reuse.leader = leader
    scheduler.add(leader)
    scheduler.add(follower)
    assert {c.sequence.job_id for c in scheduler.plan(100).chunks} == {"a"}
    follower.reuse.stop_waiting()
    assert {c.sequence.job_id for c in scheduler.plan(100).chunks} == {"a", "b"}


def test_the_youngest_preemptible_sequence_gives_way() -> None:
    scheduler = make_scheduler()
    for job_id, gives_way in zip("abcd", (True, True, False, False), strict=True):
        sequence = make_sequence(job_id)
        sequence.is_preemptible = gives_way
        scheduler.add(sequence)
    youngest = scheduler.find_preemptible()
    assert youngest is not None
    assert youngest.job_id == "b"
    assert scheduler.num_preemptible == 2


def test_a_hole_is_filled_by_the_last_sequence() -> None:
    scheduler = make_scheduler()
    sequences = [make_sequence(job_id) for job_id in "abcd"]
    for sequence in sequences:
        scheduler.add(sequence)
    changes = scheduler.drop(sequences[1]).changes
    assert changes == [Close(1, sequences[1]), Move(3, 1)]
    assert [s.job_id for s in scheduler.sequences] == ["a", "d", "c"]
    scheduler.check_integrity()


def test_several_ends_in_one_step_change_slots_one_after_another() -> None:
    scheduler = make_scheduler()
    a, b, c, d = (make_sequence(x, max_tokens=m) for x, m in zip("abcd", (9, 1, 9, 1), strict=True))
    for sequence in (a, b, c, d):
        scheduler.add(sequence)
    assert run_step(scheduler) == [Close(1, b), Move(3, 1), Close(1, d), Move(2, 1)]
    assert [s.job_id for s in scheduler.sequences] == ["a", "c"]
    scheduler.check_integrity()


def test_a_resumed_sequence_refeeds_its_prompt_by_the_same_chunks_then_its_own_tokens() -> None:
    scheduler = make_scheduler()
    sequence = make_sequence("a", num_prompt=10)
    sequence.resume([50, 51, 52])
    scheduler.add(sequence)
    plan = scheduler.plan(100)
    assert [c.tokens for c in plan.chunks] == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9), (50, 51)]
    assert plan.num_draws == 0
    scheduler.commit(plan, [], 101.0)
    assert scheduler.plan(100).rows == [sequence]
    assert sequence.num_computed == 12


def test_committing_too_few_tokens_is_refused() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence("a"))
    with pytest.raises(AssertionError, match="one token for each row"):
        scheduler.commit(scheduler.plan(16), [], 101.0)


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
