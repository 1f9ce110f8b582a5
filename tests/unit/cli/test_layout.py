import pytest

from cli.layout import Layout, plan_layout
from shared.errors import SetupError

GB = 10**9


@pytest.mark.parametrize(
    ("cores", "memory", "workers", "threads", "expected"),
    [
        (8, 100 * GB, None, None, Layout(8, 1)),
        (8, 5 * GB, None, None, Layout(4, 2)),
        (7, 5 * GB, None, None, Layout(4, 1)),
        (8, 100 * GB, 2, None, Layout(2, 4)),
        (8, 100 * GB, None, 4, Layout(2, 4)),
        (2, 100 * GB, 3, 1, Layout(3, 1)),
        (1, 100 * GB, None, None, Layout(1, 1)),
        (2, 1, 5, None, Layout(5, 1)),
    ],
)
def test_cores_and_memory_decide_and_what_is_given_is_kept(
    cores: int, memory: int, workers: int | None, threads: int | None, expected: Layout
) -> None:
    assert plan_layout(cores, memory, GB, workers, threads) == expected


def test_more_threads_than_cores_are_refused() -> None:
    with pytest.raises(SetupError, match="--threads 3: only 2 cores"):
        plan_layout(2, 100 * GB, GB, threads=3)


def test_no_room_for_one_worker_says_what_needs_less() -> None:
    with pytest.raises(SetupError, match="MINI_VLLM_CONTEXT_TOKENS"):
        plan_layout(2, GB, 2 * GB)
