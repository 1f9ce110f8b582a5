from pathlib import Path

from worker.trial.cost import cost_so_far, memory_bytes


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_waits_of_all_threads_and_stolen_time_of_our_cores_are_added_up(tmp_path: Path) -> None:
    write(tmp_path / "self/task/1/schedstat", "5000000000 1500000000 10\n")
    write(tmp_path / "self/task/2/schedstat", "5000000000 500000000 10\n")
    write(
        tmp_path / "stat",
        "cpu  1 1 1 1 1 1 1 900 0 0\ncpu0 1 1 1 1 1 1 1 200 0 0\ncpu1 1 1 1 1 1 1 1 700 0 0\n",
    )
    cost = cost_so_far([0], tmp_path)
    assert cost.delayed_s == 2.0
    assert cost.stolen_s == 2.0
    after = cost_so_far([0], tmp_path).since(cost)
    assert (after.delayed_s, after.stolen_s) == (0.0, 0.0)
    assert after.cpu_s >= 0


def test_memory_is_told_with_shared_pages_whole_and_divided(tmp_path: Path) -> None:
    write(tmp_path / "self/smaps_rollup", "0-1 ---p 0 0 [rollup]\nRss:  300 kB\nPss:  200 kB\n")
    assert memory_bytes(tmp_path) == (300 * 1024, 200 * 1024)


def test_a_kernel_that_does_not_tell_gives_zeros(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path) == (0, 0)
    assert cost_so_far([0], tmp_path).delayed_s == 0
