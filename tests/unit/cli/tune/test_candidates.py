import pytest

from cli.tune.candidates import (
    Candidate,
    all_candidates,
    layouts,
    least_bytes,
    neighbours,
    shares,
    slots_for,
)


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        (1, [(1, 1)]),
        (2, [(2, 1), (1, 2)]),
        (6, [(6, 1), (3, 2), (1, 4), (1, 6)]),
        (8, [(8, 1), (4, 2), (2, 4), (1, 8)]),
    ],
)
def test_layouts_never_use_more_cores_than_there_are(
    cores: int, expected: list[tuple[int, int]]
) -> None:
    assert layouts(cores) == expected
    assert all(workers * threads <= cores for workers, threads in layouts(cores))


def test_every_client_has_a_slot() -> None:
    for concurrency in (1, 3, 16, 100):
        for workers in (1, 2, 7):
            assert slots_for(concurrency, workers) * workers >= min(concurrency, 128 * workers)
            assert sum(shares(concurrency, workers)) == concurrency


def test_all_formats_are_tried_in_all_layouts() -> None:
    found = all_candidates(["as-is", "bf16"], 2, 16)
    assert {(c.weight_format, c.workers, c.threads) for c in found} == {
        ("as-is", 2, 1), ("as-is", 1, 2), ("bf16", 2, 1), ("bf16", 1, 2)
    }  # fmt: skip


def test_around_the_best_are_fewer_slots_smaller_chunks_and_fewer_workers() -> None:
    best = Candidate("bf16", 4, 1, 8)
    assert neighbours(best, 32) == [
        Candidate("bf16", 4, 1, 4),
        Candidate("bf16", 4, 1, 8, 32),
        Candidate("bf16", 2, 1, 16),
    ]


def test_memory_is_that_of_all_workers_with_the_cache_of_the_service() -> None:
    one = least_bytes(Candidate("bf16", 1, 1, 8), 10**9, 10**8)
    assert one > 10**9 + 8 * 10**8
    assert least_bytes(Candidate("bf16", 3, 1, 8), 10**9, 10**8) == 3 * one
