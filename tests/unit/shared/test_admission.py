import pytest

from shared.admission import Limits, expected_wait_s, refusal_of, retry_after_s
from shared.errors import QueueFull, TooManyJobs

LIMITS = Limits(max_queued_jobs=10, max_queued_chars=100, max_owner_jobs=3, worker_grace_ms=60_000)


@pytest.mark.parametrize(
    ("num_queued", "service_ms", "slots", "expected"),
    [
        (100, 2_000, 10, 10),  # 5 jobs a second: 50 of them are gone after 10 s
        (100, 4_000, 10, 20),
        (200, 2_000, 10, 20),
        (100, 2_000, 20, 5),
        (1, 10, 8, 1),
        (1_000_000, 60_000, 1, 3600),
        (8, 0, 8, 3),  # nobody knows: 5 s a job
        (8, 1_000, 0, 4),  # no worker: as if it had one slot
    ],
)
def test_one_comes_again_when_half_of_the_queue_is_served(
    num_queued: int, service_ms: int, slots: int, expected: int
) -> None:
    assert retry_after_s(num_queued, service_ms, slots) == expected


@pytest.mark.parametrize(
    ("num_ahead", "service_ms", "slots", "num_free", "expected"),
    [
        (0, 2_000, 4, 0, 0.5),  # one of the four ends
        (7, 2_000, 4, 0, 4.0),
        (7, 4_000, 4, 0, 8.0),
        (3, 2_000, 4, 4, 0),
        (4, 2_000, 4, 4, 0.5),
        (0, 0, 4, 1, 0),
        (1, 0, 4, 1, None),  # nobody has measured what a job takes
        (0, 2_000, 0, 0, None),  # nobody works
    ],
)
def test_a_job_waits_until_those_before_it_have_a_slot_and_one_is_left(
    num_ahead: int, service_ms: int, slots: int, num_free: int, expected: float | None
) -> None:
    assert expected_wait_s(num_ahead, service_ms, slots, num_free) == expected


def test_a_refusal_names_the_limit_and_what_there_is() -> None:
    full = refusal_of([b"jobs", 10, 10, 1000, 5], LIMITS, "m")
    assert isinstance(full, QueueFull)
    assert (full.message, full.retry_after_s) == ("10 jobs wait, at most 10 may.", 1)
    owner = refusal_of([b"owner", 3, 100, 1000, 5], LIMITS, "m")
    assert isinstance(owner, TooManyJobs)
    assert (owner.retry_after_s, "max_queued_jobs_per_key" in owner.message) == (10, True)
