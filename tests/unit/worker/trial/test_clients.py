from shared.trials import RequestShape, Step
from tests.factories import FixedPace
from worker.backends.scripted import ScriptedBackend
from worker.engine import Engine
from worker.trial.clients import Clients, Observed

SHAPE = RequestShape(prompt_tokens=20, output_tokens=10)


class Ticking:
    """Each look at it takes 10 ms."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.01
        return self.now_s


def watch(
    num_clients: int, *, slots: int = 4, is_short: bool = False, window_s: float = 4.0
) -> tuple[Observed, ScriptedBackend]:
    backend = ScriptedBackend(slots=slots, context_tokens=64)
    clock = Ticking()
    engine = Engine(
        backend, worker="trial", chunk_tokens=8, pace=FixedPace(16), clock=lambda: clock.now_s
    )
    clients = Clients(
        engine,
        num_clients=num_clients,
        num_vocab=256,
        shapes=[SHAPE],
        chunk_tokens=8,
        seed=1,
        is_short=is_short,
        clock=clock,
    )
    return clients.run(window_s, max_warmup_s=2.0), backend


def in_window(seen: Observed) -> list[Step]:
    return [step for step in seen.steps if seen.begin_s < step.end_s <= seen.end_s]


def test_the_window_begins_when_every_slot_has_given_a_token() -> None:
    seen, _ = watch(4)
    warmup = [step for step in seen.steps if step.end_s <= seen.begin_s]
    assert sum(step.output_tokens for step in warmup) >= 4
    assert seen.end_s - seen.begin_s >= 4.0
    assert max(step.output_tokens for step in in_window(seen)) == 4


def test_tokens_that_are_counted_are_those_that_the_model_computed() -> None:
    seen, backend = watch(4)
    rows = [row for call in backend.calls if call.name == "prefill" for row in call.rows]
    assert sum(step.prompt_tokens for step in seen.steps) == sum(count for _, count, _ in rows)
    decoded = sum(len(call.rows) for call in backend.calls if call.name == "decode")
    finished_prompts = sum(step.output_tokens for step in seen.steps) - decoded
    assert 0 < finished_prompts <= len(rows)


def test_who_waits_for_a_slot_waits_longer_for_the_first_token() -> None:
    crowded, _ = watch(8)
    roomy, _ = watch(4)
    assert min(crowded.ttft_ms) > min(roomy.ttft_ms)
    assert crowded.requests > 0


def test_clients_stand_at_different_points_of_their_answers() -> None:
    seen, _ = watch(4)
    ends = [step.prompt_tokens > 0 for step in in_window(seen)]
    assert any(ends)
    assert not all(ends)


def test_gaps_are_between_tokens_of_one_client() -> None:
    seen, _ = watch(2, slots=2)
    step_ms = sorted(step.spent_s * 1000 for step in seen.steps)
    assert min(seen.itl_ms) >= step_ms[0]


def test_a_short_trial_cuts_the_first_prompts_and_sees_all_rows_at_once() -> None:
    seen, _ = watch(4, is_short=True, window_s=0.1)
    warmup = [step for step in seen.steps if step.end_s <= seen.begin_s]
    assert sum(step.prompt_tokens for step in warmup) < 4 * SHAPE.prompt_tokens
    assert {step.output_tokens for step in in_window(seen)} == {4}


def test_the_same_seed_asks_the_same() -> None:
    assert watch(3)[0] == watch(3)[0]
