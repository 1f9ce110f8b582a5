from typing import Any

import pytest

from api import examples
from api.fleet import Fleet, make_fleet
from api.live.view import Sight, View, mean_ms, queue_view, totals_view
from shared.protocol import WorkerReport, WorkerState, to_wire


def fleet(*lengths: int, **facts: Any) -> Fleet:
    """One worker of the model `m`, and queues of `m` and of another model."""
    given = {"state": WorkerState.READY, "slots": 4, "slots_used": 4} | facts
    made = WorkerReport(name="w", incarnation="w.1", pid=1, host="h", model="m", **given)
    worker = [{}, {b"report": to_wire(made).encode(), b"beat_ms": b"9000"}, 1, 4]
    replies = [(10, 0), [], {b"jobs_completed": b"3"}, *lengths, 1, 1, 1, 1, *worker]
    return make_fleet(["w.1"], replies, ["m", "other"])


def waits_s(found: Fleet, service_ms: int = 2000) -> list[float | None]:
    return [row.expected_wait_s for row in queue_view(found, "m", service_ms)]


def sight(last_beat_s: float = 0.4, at: float = 1.0, **changes: Any) -> Sight:
    worker = examples.WORKER | {"last_beat_s": last_beat_s}
    names = ("model", "models", "queue", "running", "failures", "totals", "reports")
    fields = {name: examples.VIEW[name] for name in names}
    return Sight.model_validate(fields | {"at": at, "workers": [worker]} | changes)


def test_a_queue_is_of_all_models_and_its_wait_of_ones_own() -> None:
    rows = queue_view(fleet(0, 7, 8, 2), "m", 2000)
    assert [(row.priority, row.queued) for row in rows] == [
        ("high", 1),
        ("normal", 8),
        ("low", 9),
        ("suspect", 3),
    ]
    # 4 slots of 2 s: two jobs a second. The first to end makes room for the first that waits.
    assert [row.expected_wait_s for row in rows] == [0.5, 4.0, 8.0, None]


def test_nobody_waits_while_a_slot_is_free_for_him() -> None:
    assert waits_s(fleet(0, 0, 3, 0, slots_used=1))[:3] == [0, 0, 0.5]
    assert waits_s(fleet(0, 0, 0, 0, slots_used=3), service_ms=0)[:3] == [0, 0, 0]


@pytest.mark.parametrize(
    "found",
    [
        fleet(0, 0, 0, 0, state=WorkerState.LOADING, slots_used=0),
        fleet(0, 0, 0, 0, slots=0, slots_used=0),
    ],
)
def test_without_a_worker_that_is_ready_nobody_can_say(found: Fleet) -> None:
    assert waits_s(found) == [None] * 4


def test_a_service_that_nobody_has_measured_has_no_wait() -> None:
    assert waits_s(fleet(0, 1, 0, 0), service_ms=0) == [None] * 4


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], 0), ([b"10", b"21"], 16), ([b"10", b"-5", b"x", b"9" * 20], 10), ([b"x"], 0)],
)
def test_the_mean_is_of_what_is_a_number(times: list[bytes], expected: int) -> None:
    assert mean_ms(times) == expected


def test_who_sees_his_own_jobs_alone_sees_no_worker_and_no_totals() -> None:
    whole, own = sight().view([], shows_all=True), sight().view([], shows_all=False)
    hidden = {"workers", "failures", "warnings", "totals"}
    shown = own.model_dump()
    assert (whole.scope, own.scope) == ("all", "own")
    assert {name for name, value in shown.items() if value is None} == hidden
    assert None not in whole.model_dump().values()
    assert {n: v for n, v in whole.model_dump().items() if n not in hidden | {"scope"}} == {
        n: v for n, v in shown.items() if n not in hidden | {"scope"}
    }


@pytest.mark.parametrize("shows_all", [True, False])
def test_that_time_goes_on_makes_no_view_another_one(shows_all: bool) -> None:
    def essence(seen: Sight) -> dict[str, Any]:
        return seen.view([], shows_all=shows_all).essence()

    assert essence(sight()) == essence(sight(last_beat_s=1.4, at=2.0))
    assert essence(sight()) != essence(sight(running=2))


def test_totals_are_those_of_the_service() -> None:
    assert totals_view(fleet(0, 0, 0, 0)).model_dump() == {
        "completed": 3,
        "failed": 0,
        "cancelled": 0,
        "generated_tokens": 0,
        "prompt_tokens": 0,
    }


def test_the_example_has_all_that_a_view_has() -> None:
    assert set(examples.VIEW) == set(View.model_fields)
