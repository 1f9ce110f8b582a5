import pytest

from api.batches.window import window_jobs
from shared.admission import Limits


@pytest.mark.parametrize(
    ("slots", "num_batches", "max_queued", "max_owned", "window"),
    [
        (0, 1, 10_000, 0, 16),
        (8, 1, 10_000, 0, 16),
        (16, 1, 10_000, 0, 32),
        (16, 4, 10_000, 0, 8),
        (1, 100, 10_000, 0, 4),
        (16, 1, 10, 0, 5),
        (16, 1, 10_000, 6, 3),
        (16, 1, 1, 1, 1),
    ],
)
def test_a_batch_has_twice_the_slots_and_at_most_half_of_what_may_wait(
    slots: int, num_batches: int, max_queued: int, max_owned: int, window: int
) -> None:
    limits = Limits(max_queued, 1, max_owned, 1)
    assert window_jobs(slots, num_batches, limits) == window
